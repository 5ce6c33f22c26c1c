"""Metric families, and samples as text (Prometheus text format 0.0.4, OpenMetrics 1.0)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

Kind = Literal["counter", "gauge", "histogram"]

Split = Literal["", "reason", "direction", "state", "info", "le"]

RX: Final = ',direction="rx"'
TX: Final = ',direction="tx"'

_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})

_BARE: Final = str.maketrans("", "", '\\"\n')


@dataclass(frozen=True, slots=True)
class Family:
    """One metric. Its labels are those of its section, and `labels` beyond them.

    What a value is, by `split`: "" a number; "reason" numbers by reason; "direction" a pair, received and
    sent; "state" the one state that is true; "info" texts by label; "le" a `Histogram`. None stands for no sample.
    """

    name: str
    kind: Kind
    help: str
    split: Split = ""
    info: tuple[str, ...] = ()
    """The labels of an "info"."""
    sparse: bool = False
    """Whether there is a sample only where the value is not 0: what nearly always is 0 would fill pages."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels beyond those of the section."""
        if self.split == "info":
            return self.info
        return (self.split,) if self.split else ()


class Histogram(NamedTuple):
    """How often a duration was at most each of `bounds` seconds; `counts` has one more, for all beyond."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    total: float
    """Sum of all, in seconds."""


def escaped(value: str) -> str:
    r"""A label's value as it is written: `\`, `"` and line feeds escaped."""
    if value.translate(_BARE) == value:
        return value
    return value.translate(_ESCAPES)


def labelled(names: Sequence[str], values: Sequence[str]) -> str:
    """`name="value"` for each, with a comma before each but the first."""
    return ",".join(f'{name}="{escaped(value)}"' for name, value in zip(names, values, strict=True))


def head(family: Family, *, openmetrics: bool) -> str:
    """The lines HELP and TYPE."""
    name = family.name
    if openmetrics and family.kind == "counter":
        name = name.removesuffix("_total")
    return f"# HELP {name} {family.help}\n# TYPE {name} {family.kind}\n"


def samples(family: Family, rows: Sequence[str], values: Sequence[object]) -> str:
    """The samples of a family: of each row its labels, as `{name="value"` without the end, and its value."""
    name = family.name
    split = family.split
    found: list[str] = []
    for labels, value in zip(rows, values, strict=True):
        if not split and value is not None and (value or not family.sparse):
            found.append(f"{name}{labels}}} {value}\n")
        elif value:
            found += _several(name + labels, name, labels, split, value)
    return "".join(found)


def _several(begin: str, name: str, labels: str, split: str, value: object) -> list[str]:
    match value:
        case Histogram():
            return _buckets(name, labels, value)
        case (received, sent):
            pairs = ((RX, received), (TX, sent))
            return [f"{begin}{way}}} {one}\n" for way, one in pairs if one is not None]
        case str():
            return [f'{begin},{split}="{escaped(value)}"}} 1\n']
        case dict() if split == "info":
            return [f"{begin},{labelled(tuple(value), tuple(value.values()))}}} 1\n"]
        case dict():
            return [
                f'{begin},{split}="{escaped(reason)}"}} {count}\n'
                for reason, count in value.items()
            ]
    return []


def _buckets(name: str, labels: str, value: Histogram) -> list[str]:
    found = []
    count = 0
    for bound, more in zip((*value.bounds, None), value.counts, strict=True):
        count += more
        shown = "+Inf" if bound is None else f"{bound}"
        found.append(f'{name}_bucket{labels},le="{shown}"}} {count}\n')
    found.append(f"{name}_count{labels}}} {count}\n")
    found.append(f"{name}_sum{labels}}} {value.total:.9f}\n")
    return found
