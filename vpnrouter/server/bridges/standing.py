"""How a bridge stands: its record moved through its states, and the operator told of what matters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter.bridges.bridge import Bridge, BridgeFacts, Inbound, Input
from vpnrouter.bridges.terms import LinkEvent
from vpnrouter.events.table import (
    NO_REMOTE,
    NOT_BOUND,
    NOT_CONNECTED,
    STALLED,
    STALLED_CLEAR,
    SUBSCRIPTION_REFUSED,
)
from vpnrouter.server.events.narrate import DOWN, REJECTED, UP, narrate

if TYPE_CHECKING:
    from vpnrouter.bridges.link import Link
    from vpnrouter.server.bridges.approach import Approach


STALL_TELLS_NS: Final = 60_000_000_000
"""How long it is not told again that a bridge stalls."""


@final
class Standing:
    """The record of one bridge. Times are nanoseconds of one clock. `told` is the last failure told."""

    def __init__(self, facts: BridgeFacts, now_ns: int) -> None:
        self.record = Bridge(facts, now_ns)
        self.told = ""
        self._announced = False
        self._stall_told = False
        self._stall_tells_ns = now_ns

    def may_run(self, approach: Approach, now_ns: int) -> bool:
        """Whether there is anything to connect to; sets the state that says why not."""
        record = self.record
        why = ""
        if not approach.written.enabled:
            why = "Bridge disabled"
        elif not approach.vpn.enabled:
            why = "Local message-vpn is disabled"
        if why:
            if record.inbound_state is not Inbound.DISABLED:
                record.handle(Input.DISABLE, now_ns)
                if self._announced:
                    self._announced = False
                    narrate(record, DOWN, f"down: {why}")
            record.inbound_failure_reason = why
            return False
        if record.inbound_state in {Inbound.INIT, Inbound.DISABLED}:
            record.handle(Input.ENABLE, now_ns)
        if approach.remotes.current is None:
            why = "No remote message-vpns configured"
            if approach.written.remote_msg_vpns:
                why = "Remote message-vpns disabled"
            if record.inbound_failure_reason != why:
                record.inbound_failure_reason = why
                narrate(record, NO_REMOTE.name, f"stays down: {why}")
            return False
        return True

    def failed(self, why: str, now_ns: int) -> None:
        """An attempt came to nothing before HELLO."""
        record = self.record
        if record.inbound_state in {Inbound.PREPARE_FETCHING_DNS, Inbound.NOT_READY_CONNECTING}:
            record.handle(Input.FAILED, now_ns, why)
        self._not_connected(why)

    def overtaken(self, now_ns: int) -> bool:
        """Another way was found while one was being tried; False where that had come further already."""
        record = self.record
        if record.inbound_state is not Inbound.NOT_READY_CONNECTING:
            return False
        record.handle(Input.FAILED, now_ns)
        record.inbound_failure_reason = ""
        return True

    def _not_connected(self, why: str) -> None:
        # Told once and not at every attempt: a remote may be away for days.
        if why != self.told:
            self.told = why
            narrate(self.record, NOT_CONNECTED.name, f"not connected: {why}")

    def welcomed(self, link: Link, now_ns: int) -> None:
        """The bridge is logged in."""
        record = self.record
        record.remote_router_name = link.peer_router
        record.client_name = link.client.client_name if link.client is not None else ""
        record.encrypted = link.tls
        record.establisher = "local" if link.dialed else "remote"
        record.handle(Input.WELCOMED, now_ns)
        self.told = ""

    def subscribed(self, refusal: str, now_ns: int) -> None:
        """Everything asked for is answered; `refusal` names a filter that was not granted, or is ""."""
        record = self.record
        if refusal:
            narrate(record, SUBSCRIPTION_REFUSED.name, f"remote subscription refused: {refusal}")
        if record.inbound_state is Inbound.READY_SUBSCRIBING:
            record.handle(Input.SUBSCRIBED, now_ns)
            if not self._announced:
                self._announced = True
                narrate(record, UP, "up")

    def flow_event(self, event: LinkEvent, why: str, now_ns: int, *, in_sync: bool) -> None:
        """Act on an event of the flow of guaranteed messages; `in_sync`: all subscriptions are answered."""
        record = self.record
        if event == LinkEvent.UNBOUND:
            narrate(record, NOT_BOUND.name, f"not bound to its queue: {why}")
        elif event == LinkEvent.STALLED and record.is_up:
            if record.inbound_state is not Inbound.STALLED:
                record.handle(Input.STALL, now_ns, why)
                # A queue that is full and read from stalls all the time.
                self._stall_told = now_ns >= self._stall_tells_ns
                if self._stall_told:
                    self._stall_tells_ns = now_ns + STALL_TELLS_NS
                    narrate(record, STALLED.name, f"stalled: {why}")
        elif event == LinkEvent.RELEASED and record.inbound_state is Inbound.STALLED:
            record.handle(Input.RELEASE, now_ns)
            if self._stall_told:
                narrate(record, STALLED_CLEAR.name, "goes on")
            if in_sync:
                self.subscribed("", now_ns)

    def refused(self, event: LinkEvent, why: str, now_ns: int) -> None:
        """The remote did not let the bridge in: REFUSED or VERSION_MISMATCH."""
        given = Input.REFUSED if event == LinkEvent.REFUSED else Input.VERSION_MISMATCH
        self.record.handle(given, now_ns, why)
        # It is told once, not at every attempt, as in `_not_connected`.
        if why != self.told:
            self.told = why
            narrate(self.record, REJECTED, f"rejected: {why}")

    def lost(self, why: str, now_ns: int, *, moving: bool) -> None:
        """The half is over; `moving` when another one takes its place."""
        record = self.record
        if not (record.is_up or record.inbound_state is Inbound.NOT_READY_HANDSHAKING):
            return
        was_up = record.is_up
        record.handle(Input.LOST, now_ns, why)
        if moving:
            return
        if was_up:
            self._announced = False
            narrate(record, DOWN, f"down: {why}")
        else:
            # Somebody took the connection and ended it without an answer to HELLO: no link went down.
            self._not_connected(why)

    def broken(self, why: str, now_ns: int) -> None:
        """Start again after a fault of the router, as if the bridge were disabled and enabled."""
        record = self.record
        if record.inbound_state is not Inbound.INIT:
            if record.inbound_state is not Inbound.DISABLED:
                record.handle(Input.DISABLE, now_ns)
            record.handle(Input.ENABLE, now_ns)
        record.inbound_failure_reason = why
        record.last_failure_ns = now_ns
        record.failures += 1
        if self._announced:
            self._announced = False
            narrate(record, DOWN, f"down: {why}")

    def stranded(self) -> None:
        """The half is over that was left, and no other has taken its place."""
        if self._announced:
            self._announced = False
            narrate(self.record, DOWN, f"down: {self.record.inbound_failure_reason}")

    def moved(self, link: Link, now_ns: int) -> None:
        """Another connection has taken the place of the one before."""
        record = self.record
        record.remote_router_name = link.peer_router
        if record.inbound_state is Inbound.NOT_READY_WAIT_CLEANUP:
            record.handle(Input.CLEANED, now_ns)
            record.handle(Input.REUSE, now_ns)
            record.handle(Input.REUSED, now_ns)
        if self._announced:
            narrate(record, UP, "moved here")


def facts_of(approach: Approach) -> BridgeFacts:
    """What the configuration says of a bridge."""
    written = approach.written
    return BridgeFacts(
        approach.book.router.name,
        approach.vpn.name,
        approach.name,
        written.remote_authentication.basic.client_username or "",
        written.max_ttl,
        written.remote_deliver_to_one_priority,
    )
