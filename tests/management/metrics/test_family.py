"""Samples as text, read back by the client library's own parser."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from vpnrouter.management.metrics.families import (
    Histogram,
    escaped,
    head,
    labelled,
    samples,
)
from vpnrouter.settings.shown import Family


def read(family: Family, *values: Any, labels: tuple[str, ...] = ("a", "b")) -> list[Any]:
    """The samples of one family of objects with these values, as a scraper sees them."""
    rows = ["{" + labelled(("name",), (label,)) for label in labels[: len(values)]]
    text = head(family, openmetrics=False) + samples(family, rows, values)
    found = list(text_string_to_metric_families(text))
    assert [one.documentation for one in found] == [family.help]
    assert [one.type for one in found] == [family.kind]
    return [(one.name, one.labels, one.value) for one in found[0].samples]


def test_numbers() -> None:
    """One line an object; what does not apply has none."""
    family = Family("vpnrouter_x_total", "counter", "What it is.")
    assert read(family, 3, None) == [("vpnrouter_x_total", {"name": "a"}, 3.0)]


def test_sparse() -> None:
    """What nearly always is 0 shows where it is not."""
    assert read(Family("x", "gauge", "Help.", sparse=True), 0, 2) == [("x", {"name": "b"}, 2.0)]


@pytest.mark.parametrize(
    ("split", "value", "told"),
    [
        ("direction", (1, 2), [({"direction": "rx"}, 1.0), ({"direction": "tx"}, 2.0)]),
        ("direction", (None, 0.5), [({"direction": "tx"}, 0.5)]),
        ("reason", {"x-y": 3, "z": 0}, [({"reason": "x-y"}, 3.0), ({"reason": "z"}, 0.0)]),
        ("reason", {}, []),
        ("state", "ready", [({"state": "ready"}, 1.0)]),
        ("state", "", []),
        ("info", {"p": "1", "q": ""}, [({"p": "1", "q": ""}, 1.0)]),
    ],
)
def test_splits(split: Any, value: Any, told: list[Any]) -> None:
    """What has several samples for an object."""
    family = Family("x", "gauge", "Help.", split)
    if not told:
        assert samples(family, ["{"], [value]) == ""
        return
    assert read(family, value) == [("x", {"name": "a"} | more, count) for more, count in told]


def test_histogram() -> None:
    """Buckets add up, and the last one is all."""
    family = Family("x", "histogram", "Help.", "le")
    assert read(family, Histogram((0.5, 1.0), (1, 2, 3), 7.25)) == [
        ("x_bucket", {"name": "a", "le": "0.5"}, 1.0),
        ("x_bucket", {"name": "a", "le": "1.0"}, 3.0),
        ("x_bucket", {"name": "a", "le": "+Inf"}, 6.0),
        ("x_count", {"name": "a"}, 6.0),
        ("x_sum", {"name": "a"}, 7.25),
    ]


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r")))
def test_any_name_can_be_a_label(name: str) -> None:
    """Quotes, backslashes and line feeds in a name break no line and come back as they were."""
    written = escaped(name)
    assert "\n" not in written
    [(_, labels, _)] = read(Family("x", "gauge", "Help."), 1, labels=(name,))
    assert labels == {"name": name}


def test_openmetrics_names_a_counter_without_its_end() -> None:
    """OpenMetrics 1.0: the family of `x_total` is `x`."""
    family = Family("x_total", "counter", "Help.")
    assert head(family, openmetrics=True) == "# HELP x Help.\n# TYPE x counter\n"
