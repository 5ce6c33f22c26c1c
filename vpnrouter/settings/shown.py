"""Declares once what monitoring shows of an object: how an attribute is read, and which metric it is.

A class of status objects is a dataclass whose fields say so:

    @dataclass(frozen=True, slots=True, kw_only=True)
    class QueueStatus:
        queue_name: str = read(lambda one: one.queue.name, "", label("queue"))
        spooled_msg_count: int = read(
            lambda one: one.counts.spooled,
            metric=counter("vpnrouter_queue_spooled_messages_total", "Messages that the queue has taken."),
        )

`one` is the source: the running object, or a look at it that has more than one; each class says what its source is.
`fill` makes an instance for the API of what a source has. `metrics_of` gives what the page of metrics has of the class;
a row of it reads the attributes that are metrics, and no other ones. The string under an attribute documents it.

A metric that is no attribute is a class variable:

    up: ClassVar = gauge("vpnrouter_bridge_up", "1 while the bridge is logged in.", reader=lambda one: int(one.up))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeVar

from vpnrouter.settings.schema import Value

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

FamilyKind = Literal["counter", "gauge", "histogram"]

Split = Literal["", "reason", "direction", "state", "info", "le"]

Reader = Callable[[Any], Value]
"""Reads a value from the source of a class."""

Convert = Callable[[Value], Value]

READER: Final = "reader"
METRIC: Final = "metric"
"""Where the field of a status has what is declared of it."""

WAYS: Final = ("rx", "tx")
"""Halves of a pair, in its order."""


@dataclass(frozen=True, slots=True)
class Family:
    """One metric of the page. Its labels are those of its section, and `labels` beyond them.

    What a value is, by `split`: "" a number; "reason" numbers by reason; "direction" a pair, received and
    sent; "state" the one state that is true; "info" texts by label; "le" a `Histogram`. None stands for no sample.
    """

    name: str
    kind: FamilyKind
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


@dataclass(frozen=True, slots=True)
class Metric:
    """How a family gets its values from an attribute of a status.

    A value is the attribute's, after `convert`; or what `reader` reads, where the attribute is another thing, or costs
    too much. A truth value becomes 1 or 0 by itself. Of a pair two attributes are the halves, `rx` and `tx` of one
    metric. The family stands on the page in the order of the declarations, or behind the family named `after`. `falls`
    says that a count may go back although it should not: the page shows the highest one.
    """

    family: Family
    reader: Reader | None = None
    convert: Convert | None = None
    after: str = ""
    falls: bool = False
    way: str = ""

    @property
    def rx(self) -> Metric:
        """The half that was received."""
        return replace(self, way=WAYS[0])

    @property
    def tx(self) -> Metric:
        """The half that was sent."""
        return replace(self, way=WAYS[1])


class Label(NamedTuple):
    """What makes an attribute of the key a label of all metrics of its class; `reader` reads it where it differs."""

    name: str
    reader: Reader | None = None


def counter(
    name: str, text: str, split: Split = "", *, sparse: bool = False, **more: Value
) -> Metric:
    """Return a metric that never goes down as long as what it counts is there; `more` is what `Metric` has."""
    return Metric(Family(name, "counter", text, split, sparse=sparse), **more)


def gauge(
    name: str,
    text: str,
    split: Split = "",
    info: tuple[str, ...] = (),
    *,
    sparse: bool = False,
    **more: Value,
) -> Metric:
    """Return a metric that goes up and down; `more` is what `Metric` has."""
    return Metric(Family(name, "gauge", text, split, info, sparse), **more)


def histogram(name: str, text: str) -> Metric:
    """Return a metric that counts by bounds."""
    return Metric(Family(name, "histogram", text, "le"))


def label(name: str, reader: Reader | None = None) -> Label:
    """Return what makes an attribute a label."""
    return Label(name, reader)


def seconds(milliseconds: float) -> float | None:
    """Return the seconds of an attribute in milliseconds that is less than 0 where there is nothing to tell."""
    return None if milliseconds < 0 else milliseconds / 1_000


def known(number: int) -> int | None:
    """Return a number that is less than 0 where it is not known."""
    return None if number < 0 else number


def read(reader: Reader, default: Value = 0, metric: Metric | Label | None = None) -> Value:
    """Return a field of a status: how it is read from the source of the class, and the metric or label it is."""
    declared = {READER: reader, METRIC: metric}
    if isinstance(default, dict | list):
        return field(default_factory=type(default), metadata=declared)
    return field(default=default, metadata=declared)


T = TypeVar("T", bound="DataclassInstance")


def fill(of: type[T], source: object, **given: Value) -> T:
    """Return what a source has to show now; `given` are attributes that are not read from it."""
    for name, reader in readers_of(of):
        given[name] = reader(source)
    return of(**given)


@cache
def readers_of(of: type[DataclassInstance]) -> tuple[tuple[str, Reader], ...]:
    """Return how each attribute of a class is read, by name, without those that are not."""
    return tuple(
        (each.name, each.metadata[READER]) for each in fields(of) if READER in each.metadata
    )


Row = tuple[Value, ...]
"""Of one object the labels, and a value of each family."""


def _as_it_is(row: Row) -> Row:
    return row


class Section(NamedTuple):
    """Families that have the same labels, by the attributes that show them, in the order of the page."""

    families: dict[str, Family]
    labels: tuple[str, ...]
    row: Callable[[Any], Row] = _as_it_is
    """Returns the labels and values of what a source has now."""
    falling: tuple[int, ...] = ()
    """The places in a row of counts that may go back, several or none."""

    @property
    def names(self) -> tuple[str, ...]:
        """What the values of a row are: labels, and attributes."""
        return (*self.labels, *self.families)


def metrics_of(
    of: type[DataclassInstance], converts: Mapping[Split, Convert] | None = None
) -> Section:
    """Return what the page has of a class of status objects. `converts` has what becomes of values by their split.

    Raises LookupError for half a pair, and for a family that is to stand behind one that is not there.
    """
    labels: dict[str, _Calls] = {}
    metrics: dict[str, Metric] = {}
    calls: dict[str, dict[str, _Calls]] = {}
    for name, metric, reader, convert in _declared(of):
        if isinstance(metric, Label):
            labels[metric.name] = (metric.reader or reader,)
            continue
        found = _calls(metric, reader, convert, converts or {})
        family = metric.family
        # The second half of a pair belongs to the first one.
        first = next((other for other, each in metrics.items() if each.family == family), name)
        metrics.setdefault(first, metric)
        calls.setdefault(first, {})[metric.way] = found
    order = _order(metrics)
    values = [[each] for each in labels.values()]
    for name in order:
        # Received comes first, whichever is declared first.
        ways = WAYS if metrics[name].way else ("",)
        values.append([calls[name][way] for way in ways])
    return Section(
        {name: metrics[name].family for name in order},
        tuple(labels),
        _row(values),
        tuple(place for place, name in enumerate(order, len(labels)) if metrics[name].falls),
    )


_Calls = tuple[Callable[[Any], Value], ...]
"""Functions that are called one with what the other has returned, the first one with the source."""


def _row(values: Sequence[Sequence[_Calls]]) -> Callable[[Any], Row]:
    """Return the function that makes a row; a value of two is a pair.

    It is one expression, as if it had been written by hand: a page has thousands of rows.
    """
    names: dict[str, object] = {}
    texts = []
    for halves in values:
        parts = []
        for calls in halves:
            text = "one"
            for function in calls:
                name = f"f{len(names)}"
                names[name] = function
                text = f"{name}({text})"
            parts.append(text)
        texts.append(parts[0] if len(parts) == 1 else f"({', '.join(parts)})")
    row: Callable[[Any], Row] = eval(f"lambda one: ({', '.join(texts)},)", names)  # noqa: S307 - made of numbers
    return row


def _declared(
    of: type[DataclassInstance],
) -> list[tuple[str, Metric | Label, Reader, Convert | None]]:
    """Return of each metric and label its name, what is declared, and how the attribute is read and converted."""
    shown = {each.name: each for each in fields(of)}
    found: list[tuple[str, Metric | Label, Reader, Convert | None]] = []
    names = [
        name for base in reversed(of.__mro__) for name in vars(base).get("__annotations__", ())
    ]
    for name in dict.fromkeys(names):
        value = getattr(of, name, None)
        if name in shown:
            one = shown[name]
            metric = one.metadata.get(METRIC)
            convert = int if isinstance(one.default, bool) else None
            if metric is not None:
                found.append((name, metric, one.metadata[READER], convert))
        elif isinstance(value, Metric) and value.reader is not None:
            found.append((name, value, value.reader, None))
    return found


def _calls(
    metric: Metric, reader: Reader, convert: Convert | None, converts: Mapping[Split, Convert]
) -> _Calls:
    """Return what is called for a value of a family."""
    own = metric.reader
    change = metric.convert or (None if own is not None else convert)
    further = (change, converts.get(metric.family.split))
    return (own or reader, *(each for each in further if each is not None))


def _order(metrics: Mapping[str, Metric]) -> list[str]:
    """Return the names of attributes in the order of their families on the page."""
    order = [name for name, metric in metrics.items() if not metric.after]
    waiting = [name for name, metric in metrics.items() if metric.after]
    while waiting:
        families = [metrics[name].family.name for name in order]
        name = next((name for name in waiting if metrics[name].after in families), "")
        if not name:
            raise LookupError(f"{waiting} stand behind families that are not there")
        order.insert(families.index(metrics[name].after) + 1, name)
        waiting.remove(name)
    return order
