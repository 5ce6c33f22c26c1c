"""One page of what stands inside other objects, of which there may be ten thousand: only those that the page shows
are opened, unless there are conditions.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence

import trio

from vpnrouter.management.attributes import Row
from vpnrouter.management.paging import CHUNK, Key, Page, cursor_of, key_of
from vpnrouter.management.where import Condition, meets


async def nested_page(
    groups: Sequence[Key],
    opened: Callable[[Key], Sequence[tuple[Key, Row]]],
    most: int,
    cursor: str,
    conditions: tuple[Condition, ...],
    total: int,
) -> Page:
    """At most `most` rows after `cursor` ("" for the first page) that meet the conditions.

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
