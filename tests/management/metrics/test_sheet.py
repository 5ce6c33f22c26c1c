"""Samples by template are those that are written one by one."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from vpnrouter.management.metrics.exposition import Sheet
from vpnrouter.management.metrics.families import labelled, samples
from vpnrouter.settings.shown import Family

FAMILIES = [
    Family("a", "gauge", "One."),
    Family("b_total", "counter", "Two.", "direction"),
    Family("c_total", "counter", "Several.", "reason"),
    Family("d", "gauge", "Seldom.", sparse=True),
]

NAMES = st.lists(st.sampled_from(["x", "50 %", "%s", "%(a)s", 'q"', "é"]), unique=True, min_size=1)


def rows_of(names: list[str], numbers: Any) -> list[Any]:
    """A row for each name."""
    number, few = st.none() | st.integers(0, 9), st.integers(0, 1)
    return [
        (
            name,
            numbers.draw(number),
            (numbers.draw(number), 7),
            numbers.draw(REASONS),
            numbers.draw(few),
        )
        for name in names
    ]


REASONS = st.dictionaries(st.sampled_from(["r", "s"]), st.integers(0, 9))


@given(st.lists(NAMES, min_size=1, max_size=4), st.data())
def test_as_one_by_one(pages: list[list[str]], numbers: Any) -> None:
    """Whatever comes and goes between two pages, and whatever has no value."""
    sheet = Sheet(FAMILIES, 1)
    for names in pages:
        rows = rows_of(names, numbers)
        labels = ["{" + labelled(("name",), (name,)) for name in names]
        told = {family.name: text for family, text in sheet.write(labels, rows)}
        for place, family in enumerate(FAMILIES, 1):
            wanted = samples(family, labels, [row[place] for row in rows])
            assert told.get(family.name, "") == wanted
