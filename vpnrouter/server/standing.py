"""How a bridge stands: its record moved through its states, and the operator told of what matters."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from vpnrouter.bridges.bridge import Bridge, BridgeFacts
from vpnrouter.bridges.states import Inbound, Input
from vpnrouter.server.narrate import DOWN, REJECTED, UP, narrate

if TYPE_CHECKING:
    from vpnrouter.bridges.link import Link
    from vpnrouter.server.approach import Approach


@final
class Standing:
    """The record of one bridge. Times are nanoseconds of one clock. `told` is the last failure told."""

    def __init__(self, facts: BridgeFacts, now_ns: int) -> None:
        self.record = Bridge(facts, now_ns)
        self.told = ""
        self._announced = False

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
                narrate(record, "", f"stays down: {why}")
            return False
        return True

    def failed(self, why: str, now_ns: int) -> None:
        """An attempt came to nothing before HELLO."""
        record = self.record
        if record.inbound_state in {Inbound.PREPARE_FETCHING_DNS, Inbound.NOT_READY_CONNECTING}:
            record.handle(Input.FAILED, now_ns, why)
        self._not_connected(why)

    def _not_connected(self, why: str) -> None:
        # Told once and not at every attempt: a remote may be away for days.
        if why != self.told:
            self.told = why
            narrate(self.record, "", f"not connected: {why}")

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
            narrate(record, "", f"remote subscription refused: {refusal}")
        if record.inbound_state is Inbound.READY_SUBSCRIBING:
            record.handle(Input.SUBSCRIBED, now_ns)
            if not self._announced:
                self._announced = True
                narrate(record, UP, "up")

    def refused(self, given: Input, why: str, now_ns: int) -> None:
        """The remote did not let the bridge in."""
        self.record.handle(given, now_ns, why)
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

    def stranded(self) -> None:
        """The half is over that was left, and no other has taken its place."""
        if self._announced:
            self._announced = False
            narrate(self.record, DOWN, f"down: {self.record.inbound_failure_reason}")

    def moved(self, now_ns: int) -> None:
        """Another connection has taken the place of the one before."""
        record = self.record
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
