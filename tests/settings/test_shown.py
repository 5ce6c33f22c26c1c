"""What monitoring shows of a kind, of one declaration."""

from dataclasses import dataclass, fields
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from vpnrouter.settings.shown import (
    Family,
    counter,
    fill,
    gauge,
    known,
    label,
    metrics_of,
    read,
    seconds,
)

AGES = gauge("ages", "Both, and the second one first.", "direction", after="lost_total")
PAIR = counter("crossed_total", "Both.", "direction", falls=True, after="age_seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class KindStatus:
    """A kind of object."""

    ready: ClassVar = gauge("ready", "Whether it is.", reader=lambda one: 7)
    tx_age: int = read(lambda one: one.tx_age, metric=AGES.tx)
    rx_age: int = read(lambda one: one.rx_age, metric=AGES.rx)
    name: str = read(lambda one: one.name, "", label("kind"))
    way: str = read(lambda one: one.way, "", label("direction", lambda one: one.way.upper()))
    rx_count: int = read(lambda one: one.rx, metric=PAIR.rx)
    tx_count: int = read(lambda one: one.tx, metric=PAIR.tx)
    enabled: bool = read(lambda one: one.enabled, True, metric=gauge("enabled", "If enabled."))
    age_ms: int = read(
        lambda one: one.age_ms,
        -1,
        metric=gauge("age_seconds", "Age.", convert=seconds, after="ready"),
    )
    """How old it is,
    -1 for unborn."""
    costly: int = read(
        lambda one: one.costly(),
        metric=gauge("cheap", "The same.", sparse=True, reader=lambda one: one.cheap),
    )
    lost: dict[str, int] = read(
        lambda one: one.lost, {}, counter("lost_total", "Lost.", "reason", falls=True)
    )
    note: str = "as given"


def source(**more: Any) -> Any:
    """An object of the kind."""
    values = {
        "name": "n",
        "way": "in",
        "rx": 1,
        "tx": 2,
        "enabled": False,
        "age_ms": 1_500,
        "rx_age": 8,
        "tx_age": 9,
    }
    more = {"lost": {"a": 3}, "cheap": 4, "costly": lambda: 5} | more
    return SimpleNamespace(**values | more)


def test_a_status_is_read_from_its_source() -> None:
    """Each attribute is what its function reads; others are given, or have their default."""
    status = fill(KindStatus, source())
    assert (status.name, status.rx_count, status.enabled, status.costly) == ("n", 1, False, 5)
    assert status.note == "as given"
    assert fill(KindStatus, source(), note="mine").note == "mine"
    assert KindStatus().lost == {}
    assert KindStatus().lost is not KindStatus().lost
    assert "ready" not in {one.name for one in fields(KindStatus)}


def test_metrics_of_the_same_declaration() -> None:
    """Families stand in the order of declarations or behind the one that they name; a pair has one."""
    section = metrics_of(KindStatus)
    assert section.labels == ("kind", "direction")
    assert [one.name for one in section.families.values()] == [
        *("ready", "age_seconds", "crossed_total", "enabled", "cheap", "lost_total", "ages")
    ]
    assert section.names[4:6] == ("rx_count", "enabled")
    assert section.families["age_ms"] == Family("age_seconds", "gauge", "Age.")
    assert [section.names[place] for place in section.falling] == ["rx_count", "lost"]


def test_a_row_reads_what_is_a_metric() -> None:
    """Truth values are numbers, units are converted, and what costs much is not read."""
    section = metrics_of(KindStatus)
    row = section.row(source(costly=None))
    assert row == ("n", "IN", 7, 1.5, (1, 2), 0, 4, {"a": 3}, (8, 9))
    assert type(row[5]) is int
    unknown = section.row(source(age_ms=-1))
    assert unknown[3] is None


def test_values_of_a_split_are_converted() -> None:
    """All values by reason pass the same function, whatever class declares them."""
    section = metrics_of(KindStatus, {"reason": lambda counts: dict.fromkeys(counts, 0)})
    assert section.row(source())[-2] == {"a": 0}


def test_half_a_pair() -> None:
    """A pair of which one half is declared is a mistake of the programmer."""

    @dataclass
    class Half:
        value: int = read(lambda one: one, metric=counter("a_total", "A.", "direction").rx)

    with pytest.raises(LookupError, match="tx"):
        metrics_of(Half)


def test_a_family_behind_none() -> None:
    """A family that is to stand behind one that is not there is a mistake of the programmer."""

    @dataclass
    class Wrong:
        value: int = read(lambda one: one, metric=gauge("value", "It.", after="nothing"))

    with pytest.raises(LookupError, match="value"):
        metrics_of(Wrong)


def test_numbers_that_are_not_known() -> None:
    """Less than 0 is no sample."""
    assert [known(-1), known(0), known(3)] == [None, 0, 3]
    assert [seconds(-1), seconds(0), seconds(250)] == [None, 0.0, 0.25]
