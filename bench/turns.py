"""Reads the router's own account of its event loop: which turns took long, and what they did."""

from __future__ import annotations

import http.client
import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from bench.products import Address, Site

LONG_S: Final = 0.00025
"""Seconds from which a turn is told; a message waits that long behind it."""

SHOWN: Final = 4
"""Kinds of work that are told, those with the longest turns first."""

_BUCKET: Final = re.compile(
    r'vpnrouter_event_loop_turn_seconds_bucket\{.*?work="([^"]*)",le="([^"]*)"\} (\d+)'
)

Turns = Mapping[str, Mapping[float, int]]
"""By kind of work: how many turns took at most so many seconds."""


def turns_at(site: Site) -> Turns:
    """The turns since the start of our router; nothing at other products."""
    return {} if site.management is None else read_turns(site.management)


def read_turns(address: Address) -> Turns:
    """The turns since the start of the router that answers there."""
    connection = http.client.HTTPConnection(*address, timeout=10.0)
    try:
        connection.request("GET", "/metrics")
        page = connection.getresponse().read().decode()
    finally:
        connection.close()
    turns: dict[str, dict[float, int]] = defaultdict(dict)
    for work, bound, count in _BUCKET.findall(page):
        turns[work][float(bound)] = int(count)
    return turns


def between(before: Turns, after: Turns) -> dict[str, dict[float, int]]:
    """By kind of work, how many turns in an interval took longer than the bound below and at most this one."""
    found = {}
    for work, counts in after.items():
        earlier = before.get(work, {})
        risen = {bound: count - earlier.get(bound, 0) for bound, count in sorted(counts.items())}
        found[work] = {
            bound: count - lower
            for (bound, count), lower in zip(
                risen.items(), [0, *risen.values()][: len(risen)], strict=True
            )
        }
    return found


def long_turns(before: Turns, after: Turns) -> list[str]:
    """A line for each kind of work that had long turns in an interval, the longest first."""
    lines = []
    for work, counts in between(before, after).items():
        longest = max((bound for bound, count in counts.items() if count), default=0.0)
        if longest > LONG_S:
            over = sum(count for bound, count in counts.items() if bound > LONG_S)
            text = (
                f"{work}: {over:,} of {sum(counts.values()):,} turns over {LONG_S * 1e3:g} ms,"
                f" the longest up to {longest * 1e3:g} ms"
            )
            lines.append((longest, over, text))
    return [text for _, _, text in sorted(lines, reverse=True)[:SHOWN]]
