"""The samples of a section, written by templates that last as long as its objects are the same."""

from collections.abc import Iterator, Sequence
from typing import Final, final

from vpnrouter.management.metrics.family import RX, TX, Family, samples

WHOLE: Final = frozenset({"", "direction"})
"""Splits of which each object has as many samples as the others, so that a template can be kept."""


@final
class Sheet:
    """One section: `families` in the order of a row's values, behind `labels` values that are labels."""

    def __init__(self, families: Sequence[Family], labels: int) -> None:
        self._families = families
        self._place = labels
        self._known: list[str] = []
        self._templates: list[str] = []

    def write(
        self, labels: list[str], rows: Sequence[Sequence[object]]
    ) -> Iterator[tuple[Family, str]]:
        """Each family with its samples; of each row, `labels` has what it is called."""
        if labels != self._known:
            self._known = labels
            self._templates = [self._template(family) for family in self._families]
        columns = list(zip(*rows, strict=True))
        for place, (family, template) in enumerate(
            zip(self._families, self._templates, strict=True), self._place
        ):
            column = columns[place]
            if family.sparse and not any(column):
                continue
            if family.split == "direction" and template:
                column = tuple([one for pair in column for one in pair])
            if template and None not in column:
                yield family, template % column
            else:
                yield family, samples(family, labels, columns[place])

    def _template(self, family: Family) -> str:
        """All samples with places for their values; "" where their number is not known before."""
        if family.sparse or family.split not in WHOLE:
            return ""
        name = family.name
        known = [labels.replace("%", "%%") for labels in self._known]
        if family.split:
            return "".join([f"{name}{labels}{way}}} %s\n" for labels in known for way in (RX, TX)])
        return "".join([f"{name}{labels}}} %s\n" for labels in known])
