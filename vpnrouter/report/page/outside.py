"""Gathers what the drawing shows of connectors: providers, and one arrow for each connector and direction."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from vpnrouter.limits import REPORT_DRAWN_FEEDS
from vpnrouter.report.page.contents import Row, ShapeIndex, name_of, visible
from vpnrouter.report.schema import Rows

IN: Final = "in"
"""Direction of messages that come from a provider."""


@dataclass(kw_only=True)
class Provider:
    """A provider by its name, with messages from it (`incoming`) and to it."""

    name: str
    incoming: int = 0
    outgoing: int = 0


@dataclass(kw_only=True)
class Feed:
    """The links of one connector in one direction, as rows of PROVIDERS, between `node` and `provider`, by index."""

    node: int
    provider: int
    connector: str
    inward: bool
    title: str
    rows: Rows = field(default_factory=list)

    @property
    def messages(self) -> int:
        """Those of all its links."""
        return sum(row["messages"] for row in self.rows)


@dataclass(frozen=True, kw_only=True)
class Outside:
    """What is drawn of connectors. `left_out` counts the feeds that are not."""

    providers: list[Provider]
    feeds: list[Feed]
    left_out: int
    _index: dict[tuple[object, ...], int]

    def shape(self, row: Row) -> str | None:
        """Return the id of the arrow of a row of PROVIDERS, None if it is not drawn."""
        at = self._index.get(_key(row))
        return None if at is None else f"feed-{at}"


def outside(rows: Rows, shapes: ShapeIndex, drawn: Collection[int]) -> Outside:
    """Return the busiest feeds of `rows` (of PROVIDERS) to and from the `drawn` message VPNs, with their providers."""
    grouped: dict[tuple[object, ...], Rows] = {}
    for row in rows:
        if row["provider"] is not None:
            grouped.setdefault(_key(row), []).append(row)
    busiest = sorted(
        (key for key in grouped if shapes.node(*_place(grouped[key][0])) in drawn),
        key=lambda key: (-sum(row["messages"] for row in grouped[key]), key),
    )[:REPORT_DRAWN_FEEDS]
    numbers: dict[str, int] = {}
    providers: list[Provider] = []
    feeds: list[Feed] = []
    for key in busiest:
        mine = grouped[key]
        first = mine[0]
        node = shapes.node(*_place(first))
        if node is None:
            continue
        name = visible(first["provider"])
        at = numbers.setdefault(name, len(providers))
        if at == len(providers):
            providers.append(Provider(name=name))
        inward = first["direction"] == IN
        ends = [name, name_of(*_place(first))]
        feed = Feed(
            node=node,
            provider=at,
            connector=visible(first["connector"]),
            inward=inward,
            title=f"{visible(first['connector'])}: {' → '.join(ends if inward else ends[::-1])}",
            rows=mine,
        )
        if inward:
            providers[at].incoming += feed.messages
        else:
            providers[at].outgoing += feed.messages
        feeds.append(feed)
    return Outside(
        providers=providers,
        feeds=feeds,
        left_out=len(grouped) - len(feeds),
        _index={key: at for at, key in enumerate(busiest)},
    )


def _place(row: Row) -> tuple[str, str]:
    return row["router"], row["vpn"]


def _key(row: Row) -> tuple[object, ...]:
    return (*_place(row), row["provider"] or "", row["connector"], row["direction"])
