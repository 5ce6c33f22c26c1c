"""Times of the messages in an endpoint: when they expire, and until when they are kept back.

A message's own life time stands in seconds' buckets. `max_ttl` counts from the arrival, and ids rise with it:
it is enough to look at the oldest, which costs no memory and survives a restart.

Messages wait for `delivery_delay` after their arrival, and before they are tried again. The first kind is due in the
order of ids, so that only the oldest is looked at; what is left of the delay survives a restart, since it counts from
the arrival.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter.core.guaranteed.waiting_list import DelayedIds, ExpiryBuckets, WaitingList
from vpnrouter.core.timers import TimerTarget
from vpnrouter.units import SECOND_NS

if TYPE_CHECKING:
    from array import array

    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.guaranteed.endpoint_settings import EndpointSettings
    from vpnrouter.core.message import Message
    from vpnrouter.core.timers import Timer


PRIORITIES: Final = 10
"""0 to 9."""

EXPIRIES_AT_ONCE: Final = 2_000
"""Messages that expire, or whose delay ends, in one go; the rest in the next round."""

SWEEP: Final = 1_024
"""Settled messages among those with a life time that are not worth a sweep."""


@final
class Schedule(TimerTarget):
    """What falls due in `endpoint`, and the one timer for it.

    `held` are messages that wait for their delivery delay, `delayed` those that wait for their redelivery, `expiring`
    those with a life time of their own.
    """

    __slots__ = (
        "_armed_ns",
        "_endpoint",
        "_held_due_ns",
        "_oldest_due_ns",
        "_timer",
        "delayed",
        "expiring",
        "held",
    )

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self.held: WaitingList | None = None
        self._held_due_ns = 0
        self.delayed = DelayedIds()
        self.expiring = ExpiryBuckets()
        self._oldest_due_ns = 0
        self._timer: Timer | None = None
        self._armed_ns = 0

    # -- the timer -------------------------------------------------------------------------------

    def arm(self) -> None:
        """Have `on_timer` called when the first delay or life time is over."""
        endpoint = self._endpoint
        first = self.delayed.next_ns()
        other = self.expiring.next_ns()
        if first < 0 or 0 <= other < first:
            first = other
        if self._held_due_ns and (first < 0 or self._held_due_ns < first):
            first = self._held_due_ns
        if self._oldest_due_ns and (first < 0 or self._oldest_due_ns < first):
            first = self._oldest_due_ns
        if first < 0:
            return
        # What is due already comes with the next round.
        first = max(first, endpoint.vpn.context.now_ns + 1)
        if self._timer is not None:
            if self._armed_ns <= first:
                return
            self._timer.cancel()
        self._armed_ns = first
        self._timer = endpoint.vpn.context.timers.arm(first, self, 0)

    def disarm(self) -> None:
        """Cancel the timer: nothing is due any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def on_timer(self, kind: int, now_ns: int) -> None:
        """Handle delays that are over and messages that expire."""
        endpoint = self._endpoint
        self._timer = None
        if endpoint.deleted:
            return
        if endpoint.spool.down:
            # Nothing can be written: look again a second later.
            self._armed_ns = now_ns + SECOND_NS
            self._timer = endpoint.vpn.context.timers.arm(self._armed_ns, self, 0)
            return
        self._run_expiry(now_ns)
        self._run_delay(now_ns)
        self.arm()

    # -- life times ------------------------------------------------------------------------------

    def expires_ns(self, message: Message) -> int:
        """When the message expires here (monotonic): the earlier of its own time and `max_ttl`; 0 for never."""
        endpoint = self._endpoint
        settings = endpoint.settings
        if not settings.respect_ttl_enabled:
            return 0
        end_ns = message.expires_ns
        if settings.max_ttl:
            context = endpoint.vpn.context
            latest_ns = (
                message.ingress_ns
                - context.steady_ns
                + context.now_ns
                + settings.max_ttl * SECOND_NS
            )
            end_ns = min(end_ns, latest_ns) if end_ns else latest_ns
            # Only 0 is never.
            return end_ns or 1
        return end_ns

    def expired(self, message: Message) -> bool:
        """True when its time is over."""
        end_ns = self.expires_ns(message)
        return end_ns != 0 and end_ns <= self._endpoint.vpn.context.now_ns

    def note(self, message_id: int, message: Message) -> None:
        """Note when a message that has arrived expires, where life times are respected."""
        endpoint = self._endpoint
        if message.expires_ns:
            expiring = self.expiring
            expiring.add(message_id, message.expires_ns)
            self.arm()
            if expiring.count > SWEEP + 2 * endpoint.spooled_count:
                self._sweep()
        if endpoint.settings.max_ttl and self._oldest_due_ns == 0:
            self._oldest_due_ns = (
                endpoint.vpn.context.now_ns + (endpoint.settings.max_ttl + 1) * SECOND_NS
            )
            self.arm()

    def _run_expiry(self, now_ns: int) -> None:
        """Expire messages; a bounded number now, the rest in the next round."""
        endpoint = self._endpoint
        left = EXPIRIES_AT_ONCE
        for message_id in self.expiring.due(now_ns, EXPIRIES_AT_ONCE):
            left -= 1
            if endpoint.take_out(message_id):
                message = endpoint.readable(message_id)
                if message is not None:
                    self._expire(message_id, message)
        if 0 < self._oldest_due_ns <= now_ns:
            self._oldest_due_ns = 0
            if endpoint.settings.respect_ttl_enabled and endpoint.settings.max_ttl:
                self._oldest(now_ns, left)

    def _expire(self, message_id: int, message: Message) -> None:
        """Expire a message that was taken out. If this raises, it is put back and tried again."""
        endpoint = self._endpoint
        try:
            endpoint.expire(message_id, message)
        except Exception:
            endpoint.mend(message_id, message)
            self.expiring.add(message_id, endpoint.vpn.context.now_ns)
            raise

    def _oldest(self, now_ns: int, left: int) -> None:
        """Expire the oldest messages, and find out when the next one is due."""
        endpoint = self._endpoint
        first_ns = 0
        for pool in endpoint.pools():
            for priority in range(PRIORITIES):
                while True:
                    ids = pool.of_priority(priority, 0, 1)
                    if not ids:
                        break
                    message_id = ids[0]
                    message = endpoint.readable(message_id)
                    if message is None:
                        left -= 1
                        pool.remove(message_id)
                        if left > 0:
                            continue
                        first_ns = now_ns + 1
                        break
                    end_ns = self.expires_ns(message)
                    if end_ns > now_ns or left <= 0:
                        first_ns = min(first_ns, end_ns) if first_ns else end_ns
                        break
                    left -= 1
                    pool.remove(message_id)
                    self._expire(message_id, message)
        if first_ns:
            # Whole seconds, so that a stream of messages costs one look a second.
            self._oldest_due_ns = max(-(-first_ns // SECOND_NS) * SECOND_NS, now_ns + 1)
        elif endpoint.spooled_count:
            # Flows hold the rest: those that come back are looked at then.
            self._oldest_due_ns = now_ns + endpoint.settings.max_ttl * SECOND_NS

    def _sweep(self) -> None:
        """Forget the life times of messages that are settled."""
        expiring = self.expiring
        for second, ids in expiring.take_all().items():
            for message_id in ids:
                if self._endpoint.holds(message_id):
                    expiring.add(message_id, second * SECOND_NS)

    # -- delays ----------------------------------------------------------------------------------

    def redeliver(self, message_id: int, delay_ns: int) -> None:
        """Have a message wait for so long before it is delivered again."""
        self.delayed.add(message_id, self._endpoint.vpn.context.now_ns + delay_ns)
        self.arm()

    def keep_back(self, message_id: int, message: Message) -> None:
        """Have a message wait until it is due, as its publisher wants."""
        self.delayed.add(message_id, max(message.due_ns, self._endpoint.vpn.context.now_ns))
        self.arm()

    def hold(self, message_id: int, message: Message) -> None:
        """Keep a message back that has just arrived."""
        held = self.held
        if held is None:
            held = WaitingList()
            self.held = held
        held.add(message_id, 0)
        if self._held_due_ns == 0:
            self._held_due_ns = self._due(message)
            self.arm()

    def hold_recovered(self, ids: array[int]) -> None:
        """Delay messages that were here before a restart; those whose delay is over leave in rounds."""
        held = self.held
        if held is None:
            held = WaitingList()
            self.held = held
        held.extend(ids, 0)
        self._held_due_ns = self._endpoint.vpn.context.now_ns + 1

    def _run_delay(self, now_ns: int) -> None:
        """Release messages whose delay is over; a bounded number now, the rest in the next round."""
        endpoint = self._endpoint
        for message_id in self.delayed.due(now_ns, EXPIRIES_AT_ONCE):
            message = endpoint.readable(message_id)
            if message is not None:
                endpoint.ready(message_id, message)
        held = self.held
        if held is None or self._held_due_ns == 0 or self._held_due_ns > now_ns:
            return
        self._held_due_ns = 0
        left = EXPIRIES_AT_ONCE
        while held.count:
            if left == 0:
                self._held_due_ns = now_ns + 1
                return
            left -= 1
            message_id = held.first()
            message = endpoint.readable(message_id)
            if message is None:
                held.pop()
                continue
            due_ns = self._due(message)
            if due_ns > now_ns:
                self._held_due_ns = due_ns
                return
            held.pop()
            endpoint.ready(message_id, message)
        self.held = None

    def _due(self, message: Message) -> int:
        """When the delivery delay of a message is over (monotonic)."""
        endpoint = self._endpoint
        context = endpoint.vpn.context
        arrived_ns = message.ingress_ns - context.steady_ns + context.now_ns
        return max(1, arrived_ns + endpoint.settings.delivery_delay * SECOND_NS)

    def recovered(self, some: bool, expires: list[tuple[int, int]]) -> None:
        """Note what was in the endpoint before a restart: whether it was anything, and pairs of id and its end
        (monotonic).
        """
        endpoint = self._endpoint
        settings = endpoint.settings
        if settings.respect_ttl_enabled:
            if some and settings.max_ttl:
                self._oldest_due_ns = endpoint.vpn.context.now_ns + 1
            for message_id, due_ns in expires:
                self.expiring.add(message_id, due_ns)
        self.arm()

    # -- changes ---------------------------------------------------------------------------------

    def clear(self) -> None:
        """Forget all messages: the endpoint is being emptied."""
        self.held = None
        self._held_due_ns = 0
        self.delayed.clear()
        self.expiring.take_all()

    def take_settings(self, before: EndpointSettings) -> None:
        """Go on under the attributes that the endpoint has now, where it had those `before`."""
        self._take_life_times(before)
        endpoint = self._endpoint
        if self.held is not None and before.delivery_delay != endpoint.settings.delivery_delay:
            self._held_due_ns = endpoint.vpn.context.now_ns + 1
        self.arm()

    def _take_life_times(self, before: EndpointSettings) -> None:
        settings = self._endpoint.settings
        if not settings.respect_ttl_enabled:
            self._oldest_due_ns = 0
            self.expiring.take_all()
            return
        if settings.max_ttl and (
            settings.max_ttl != before.max_ttl or not before.respect_ttl_enabled
        ):
            self._oldest_due_ns = self._endpoint.vpn.context.now_ns + 1
