"""Pages of rows.

A page costs what it shows. A cursor is the key of the last object shown, so that an object which comes or goes between
pages makes no other one appear twice or be left out.
"""

from __future__ import annotations

import base64
import binascii
import json
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import trio

from vpnrouter.management.answers.conditions import Condition, meets
from vpnrouter.management.answers.order import Order, sort_key
from vpnrouter.management.answers.rows import Row
from vpnrouter.management.errors import invalid

Key = tuple[str, ...]
"""The names that tell one object of a collection from the others."""

CHUNK: Final = 32
"""Objects looked at before the router's other tasks have their turn: about a millisecond."""

MANY: Final = 1_000
"""Keys that are put in order at once with whatever was done before."""


class Page(NamedTuple):
    """Rows with their keys, how many objects there are in all pages, and where the next one begins."""

    rows: list[tuple[Key, Row]]
    total: int
    cursor: str | None


async def page_of(
    keys: Sequence[Key],
    row: Callable[[Key], Row | None],
    most: int,
    cursor: str,
    conditions: tuple[Condition, ...],
) -> Page:
    """Return at most `most` rows after `cursor` ("" for the first page) that meet the conditions.

    `row` gives None for an object that is gone meanwhile. Raises RequestError for a cursor that is
    none.
    """
    if len(keys) > MANY:
        # Making so many took its time already.
        await trio.lowlevel.checkpoint()
    ordered = sorted(keys)
    start = bisect_right(ordered, key_of(cursor)) if cursor else 0
    count = 0 if conditions else len(ordered)
    rows: list[tuple[Key, Row]] = []
    # Without conditions only this page is looked at; with them all objects are, for the count.
    begin, end = (0, len(ordered)) if conditions else (start, start + most)
    for place in range(begin, min(end, len(ordered))):
        if (place - begin) % CHUNK == CHUNK - 1:
            await trio.lowlevel.checkpoint()
        key = ordered[place]
        item = row(key)
        if item is None or not meets(item, conditions):
            continue
        if conditions:
            count += 1
        if place >= start and len(rows) <= most:
            rows.append((key, item))
    more = len(rows) > most if conditions else end < len(ordered)
    last = ordered[end - 1] if more and not conditions else rows[most - 1][0] if more else None
    return Page(rows[:most], count, None if last is None else cursor_of(last))


async def sorted_page(
    keys: Sequence[Key],
    row: Callable[[Key], Row | None],
    most: int,
    cursor: str,
    conditions: tuple[Condition, ...],
    order: tuple[Order, ...],
) -> Page:
    """Return a page sorted by attributes, then by names: at most `most` rows that come after `cursor` in this order.

    All objects are looked at, and only those of the page are kept. An object whose value changes between two pages
    may come twice, or not at all. Raises RequestError for a cursor of another order.
    """
    after = _place_of(cursor, len(order)) if cursor else None
    places: list[_Place] = []
    rows: dict[Key, Row] = {}
    count = 0
    for number, key in enumerate(keys):
        if number % CHUNK == CHUNK - 1:
            await trio.lowlevel.checkpoint()
        item = row(key)
        if item is None or not meets(item, conditions):
            continue
        count += 1
        place = (tuple([sort_key(item[each.name], each) for each in order]), key)
        try:
            if (after is not None and place <= after) or (
                len(places) > most and place > places[-1]
            ):
                continue
        except TypeError:
            raise invalid("cursor: not one that this API gave for this order") from None
        insort(places, place)
        rows[key] = item
        if len(places) > most + 1:
            del rows[places.pop()[1]]
    more = len(places) > most
    last = cursor_of([places[most - 1][0], places[most - 1][1]]) if more else None
    return Page([(key, rows[key]) for _, key in places[:most]], count, last)


_Place = tuple[tuple[object, ...], Key]
"""The sort key of an object: the keys of its attributes, and its names."""


def _place_of(cursor: str, attributes: int) -> Any:  # noqa: ANN401 - it comes from the request, and is checked when it is compared
    decoded = _decoded(cursor)
    if (
        not isinstance(decoded, list)
        or len(decoded) != 2
        or not all(isinstance(part, list) for part in decoded)
        or len(decoded[0]) != attributes
    ):
        raise invalid("cursor: not one that this API gave for this order")
    values = tuple([tuple(each) if isinstance(each, list) else each for each in decoded[0]])
    return values, tuple(decoded[1])


def cursor_of(key: Sequence[object]) -> str:
    """Return the cursor behind the object of this key."""
    return base64.urlsafe_b64encode(json.dumps(key).encode()).decode("ascii")


def key_of(cursor: str) -> Key:
    """Return the key in a cursor. Raises RequestError for what is no cursor."""
    names = _decoded(cursor)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise invalid("cursor: not one that this API gave")
    return tuple(names)


def _decoded(cursor: str) -> object:
    try:
        decoded: object = json.loads(base64.b64decode(cursor, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError):
        return None
    return decoded


async def nested_page(
    groups: Sequence[Key],
    opened: Callable[[Key], Sequence[tuple[Key, Row]]],
    most: int,
    cursor: str,
    conditions: tuple[Condition, ...],
    total: int,
) -> Page:
    """Return at most `most` rows after `cursor` ("" for the first page) that meet the conditions.

    `groups` are in order; `opened` gives what is in one of them, in order, by keys that are that of the group
    and one name more. `total` is how many rows there are where there are no conditions. Raises RequestError for a
    cursor that is none.
    """
    after = key_of(cursor) if cursor else ()
    first = bisect_left(groups, after[:-1])
    rows: list[tuple[Key, Row]] = []
    count = 0 if conditions else total
    for place in range(0 if conditions else first, len(groups)):
        if place % CHUNK == CHUNK - 1:
            await trio.lowlevel.checkpoint()
        for key, row in opened(groups[place]):
            if conditions:
                if not meets(row, conditions):
                    continue
                count += 1
            if key > after and len(rows) <= most:
                rows.append((key, row))
        if len(rows) > most and not conditions:
            break
    more = len(rows) > most
    return Page(rows[:most], count, cursor_of(rows[most - 1][0]) if more else None)
