"""One page of a collection: a page costs what it shows, and the cursor survives changes between pages.

A cursor is the key of the last object shown, so that an object which comes or goes meanwhile makes
no other object appear twice or be left out.
"""

import base64
import binascii
import json
from bisect import bisect_right, insort
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import trio

from vpnrouter.management.attributes import Row
from vpnrouter.management.faults import invalid
from vpnrouter.management.sort import Order, sort_key
from vpnrouter.management.where import Condition, meets

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
    """At most `most` rows after `cursor` ("" for the first page) that meet the conditions.

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
        made = row(key)
        if made is None or not meets(made, conditions):
            continue
        if conditions:
            count += 1
        if place >= start and len(rows) <= most:
            rows.append((key, made))
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
    """A page sorted by attributes, then by names: at most `most` rows that come after `cursor` in this order.

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
        made = row(key)
        if made is None or not meets(made, conditions):
            continue
        count += 1
        place = (tuple([sort_key(made[each.name], each) for each in order]), key)
        try:
            if (after is not None and place <= after) or (
                len(places) > most and place > places[-1]
            ):
                continue
        except TypeError:
            raise invalid("cursor: not one that this API gave for this order") from None
        insort(places, place)
        rows[key] = made
        if len(places) > most + 1:
            del rows[places.pop()[1]]
    more = len(places) > most
    last = cursor_of([places[most - 1][0], places[most - 1][1]]) if more else None
    return Page([(key, rows[key]) for _, key in places[:most]], count, last)


_Place = tuple[tuple[object, ...], Key]
"""The sort key of an object: the keys of its attributes, and its names."""


def _place_of(cursor: str, attributes: int) -> Any:  # noqa: ANN401 - it comes from the request, and is checked when it is compared
    found = _decoded(cursor)
    if (
        not isinstance(found, list)
        or len(found) != 2
        or not all(isinstance(part, list) for part in found)
        or len(found[0]) != attributes
    ):
        raise invalid("cursor: not one that this API gave for this order")
    values = tuple([tuple(each) if isinstance(each, list) else each for each in found[0]])
    return values, tuple(found[1])


def cursor_of(key: Sequence[object]) -> str:
    """The cursor behind the object of this key."""
    return base64.urlsafe_b64encode(json.dumps(key).encode()).decode("ascii")


def key_of(cursor: str) -> Key:
    """The key that a cursor names; raises RequestError for what is no cursor."""
    names = _decoded(cursor)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise invalid("cursor: not one that this API gave")
    return tuple(names)


def _decoded(cursor: str) -> object:
    try:
        found: object = json.loads(base64.b64decode(cursor, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError):
        return None
    return found
