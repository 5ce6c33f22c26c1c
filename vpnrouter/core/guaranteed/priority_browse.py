"""Looks at the messages of an endpoint that respects priorities, in the order in which a consumer would get them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter.core.guaranteed.endpoint import EndpointMessage
from vpnrouter.core.guaranteed.schedule import PRIORITIES
from vpnrouter.errors import SpoolError

if TYPE_CHECKING:
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.message import Message

POOLS_SHIFT: Final = 5
"""So many lists, as a power of two, cost one part of a turn (TurnContext.work) to look into."""

LATER: Final = PRIORITIES
"""The place of what waits for a time, or to be sorted, whose priorities nobody knows: it comes last."""


@final
class PriorityBrowse:
    """How far a browser of `endpoint` has come: by priority, the last id that it has seen.

    It sees a message once, unless that is delayed while it looks; one whose delay ends meanwhile it may miss.
    """

    __slots__ = ("_endpoint", "_in_hand", "_places", "_seen")

    def __init__(self, endpoint: Endpoint, after_id: int) -> None:
        """Begin beyond `after_id`."""
        self._endpoint = endpoint
        self._seen = [after_id] * (PRIORITIES + 1)
        # Of the rows that were returned last: messages that consumers have, and the place of each row.
        self._in_hand: dict[int, Message] = {}
        self._places: dict[int, int] = {}

    def last(self) -> int:
        """Return the highest id that it has seen."""
        return max(self._seen)

    def passed(self, row: EndpointMessage) -> None:
        """Note that one of the rows that were returned last was looked at; they are in order."""
        self._seen[self._places[row.msg_id]] = row.msg_id

    def rows(self, count: int, most_bytes: int) -> list[EndpointMessage]:
        """Return at most `count` messages that it has not seen, and no more than so many bytes, but one message.

        Those that cannot be read are left out.
        """
        endpoint = self._endpoint
        self._in_hand = {}
        self._places = {}
        for flow in endpoint.holders():
            self._in_hand.update(flow.unacked)
        held: list[list[int]] = [[] for _ in range(PRIORITIES)]
        for number, message in self._in_hand.items():
            held[endpoint.level_of(message)].append(number)
        endpoint.vpn.context.work += len(endpoint.waiting) * PRIORITIES >> POOLS_SHIFT
        rows: list[EndpointMessage] = []
        left = most_bytes
        for place in range(PRIORITIES - 1, -1, -1):
            left = self._read(rows, count, left, place, held[place])
        self._read(rows, count, left, LATER, [])
        return rows

    def _read(
        self, rows: list[EndpointMessage], count: int, left: int, place: int, held: list[int]
    ) -> int:
        """Add the rows of one place; `held` are ids that consumers have. Return how many bytes are left, or -1."""
        # What was seen while it was delayed is not seen again.
        after = max(self._seen[place], self._seen[LATER])
        while left >= 0 and len(rows) < count:
            ids = self._ids(place, after, count - len(rows), held)
            if not ids:
                break
            after = ids[-1]
            for number in ids:
                message = self._message(number)
                if message is None:
                    continue
                left -= message.size
                if left < 0 and rows:
                    return -1
                in_hand = number in self._in_hand
                rows.append(EndpointMessage(self._endpoint, number, message, in_hand))
                self._places[number] = place
        return left

    def _ids(self, place: int, after: int, count: int, held: list[int]) -> list[int]:
        """Return at most `count` ids of one place beyond `after`, rising."""
        endpoint = self._endpoint
        ids = [number for number in held if number > after]
        if place == LATER:
            ids += [number for number in endpoint.schedule.delayed.ids() if number > after]
            later = list(endpoint.order.unsorted)
            if endpoint.schedule.held is not None:
                later.append(endpoint.schedule.held)
            for pool in later:
                ids += pool.after(after, count)
        else:
            ready = list(endpoint.waiting)
            if endpoint.ahead is not None:
                ready.append(endpoint.ahead)
            for pool in ready:
                ids += pool.of_priority(place, after, count)
        ids.sort()
        return ids[:count]

    def _message(self, number: int) -> Message | None:
        message = self._in_hand.get(number)
        if message is not None:
            return message
        try:
            return self._endpoint.spool.message(number)
        except SpoolError as error:
            self._endpoint.report_unreadable(number, error)
            return None
