"""Keeps the flow receivers and parking lots of bridges over all their connections."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, final

from vpnrouter import limits
from vpnrouter.bridges.dead_letters import DeadLetters, dead_letters_of
from vpnrouter.bridges.flow_receiver import FlowReceiver
from vpnrouter.bridges.parking_lot import ParkingLot
from vpnrouter.bridges.received_positions import ReceivedPositions, decode_positions
from vpnrouter.config.configured_bridge import flow_settings_of
from vpnrouter.core.guaranteed.endpoint import endpoints_of
from vpnrouter.core.guaranteed.endpoint_settings import PARKING, EndpointSettings
from vpnrouter.errors import OperationError, SpoolError
from vpnrouter.spool import keys
from vpnrouter.units import MEGABYTE

if TYPE_CHECKING:
    from vpnrouter.config.bridge import Bridge
    from vpnrouter.config.msg_vpn import MsgVpn
    from vpnrouter.core.guaranteed.failure_policy import DeadMsgQueue
    from vpnrouter.core.guaranteed.spool import Spool
    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.server.spool.endpoints import Endpoints
    from vpnrouter.spool.store import Store


def lot_terms(configured: Bridge) -> EndpointSettings:
    """The attributes of a bridge's parking lot: nothing in it expires, and all of it is delivered at once."""
    terms = EndpointSettings()
    # 0 would keep the last message only.
    terms.max_msg_spool_usage = max(1, configured.max_parked_msg_spool_usage * MEGABYTE)
    terms.max_spooled_msg_count = limits.LINK_PARKED
    terms.max_delivered_unacked_msgs_per_flow = limits.LINK_PARKED
    terms.max_bind_count = 1
    return terms


def have_lots(endpoints: Endpoints, vpn: MessageVpn, configured: MsgVpn) -> None:
    """Let the bridges of `vpn` have their parking lots, before what is in them is recovered.

    A bridge that parks no more may have left something in its own.
    """
    for name, bridge in configured.bridges.items():
        if parks(bridge) or endpoints.knows(vpn, PARKING, name):
            endpoints.have(vpn, PARKING, name, lot_terms(bridge))
        dead = dead_letters_of(name)
        if bridge.dead_msg_queues or endpoints.knows(vpn, PARKING, dead):
            endpoints.have(vpn, PARKING, dead, EndpointSettings())


def parks(configured: Bridge) -> bool:
    """Return whether a bridge sets messages aside that are refused, at once or after some attempts."""
    then = configured.reject_attempts > 0 and configured.then == "park"
    return configured.on_reject == "park" or then


@final
class BridgeFlow:
    """What one bridge keeps: `taker` is the receiver of its guaranteed messages."""

    def __init__(
        self, taker: FlowReceiver, name: str, endpoints: Endpoints, flows: BridgeFlows
    ) -> None:
        self.taker = taker
        self._name = name
        self._endpoints = endpoints
        self._flows = flows

    def change(self, configured: Bridge) -> None:
        """Go on with its configuration of now."""
        taker, name, endpoints = self.taker, self._name, self._endpoints
        settings = flow_settings_of(configured)
        taker.take(settings)
        if taker.lot is not None and taker.lot.lanes_by != settings.lanes:
            # What is parked is found again, in its new lanes.
            self._close()
        endpoint = endpoints_of(taker.vpn).get((PARKING, name))
        if parks(configured):
            endpoint = endpoints.have(taker.vpn, PARKING, name, lot_terms(configured))
        elif endpoint is not None and not endpoint.spooled_count:
            self._close()
            endpoints.delete(endpoint)
            endpoint = None
        elif endpoint is not None:
            # What was parked goes on being tried.
            endpoints.have(taker.vpn, PARKING, name, lot_terms(configured))
        if endpoint is not None and taker.lot is None:
            taker.lot = ParkingLot(endpoint, name, limits.LINK_PARKED, taker.lanes, settings.lanes)
        self._have_dead_letters(settings.failures.dead_msg_queues)
        taker.flush()

    def _have_dead_letters(self, places: list[DeadMsgQueue]) -> None:
        """Let the bridge keep what it gives up, for these dead message queues; without any, nothing new."""
        taker, endpoints = self.taker, self._endpoints
        name = dead_letters_of(self._name)
        if places and taker.dead_letters is not None:
            taker.dead_letters.take(places)
            return
        endpoint = endpoints_of(taker.vpn).get((PARKING, name))
        if places:
            endpoint = endpoints.have(taker.vpn, PARKING, name, EndpointSettings())
            taker.dead_letters = DeadLetters(endpoint, self._name, places)
            return
        self._close_dead_letters()
        if endpoint is not None and not endpoint.spooled_count:
            endpoints.delete(endpoint)

    def _close_dead_letters(self) -> None:
        dead_letters, self.taker.dead_letters = self.taker.dead_letters, None
        if dead_letters is not None:
            dead_letters.close()

    def remove(self) -> None:
        """The bridge is not configured any more: what is parked stays, shut down, as queues do."""
        self._close()
        self._close_dead_letters()
        for name in (self._name, dead_letters_of(self._name)):
            endpoint = endpoints_of(self.taker.vpn).get((PARKING, name))
            if endpoint is not None:
                self._endpoints.let_go(endpoint)
        self._flows.gone(self.taker, self._name)

    def _close(self) -> None:
        taker = self.taker
        if taker.lot is not None:
            taker.lot.close()
            taker.lot = None
            taker.lanes.parked.clear()


@final
class BridgeFlows:
    """The receivers of all bridges of a router, by message VPN and name.

    The receiver of a deleted bridge stays while it has positions: the remote may not have settled those messages,
    and would send them again to a new bridge of the same name (promise ONCE). Positions go when the remote has said
    that it settled them. The receivers that stay are bounded in number and time.
    """

    def __init__(self, spool: Spool, store: Store, endpoints: Endpoints) -> None:
        self._spool = spool
        self._store = store
        self._endpoints = endpoints
        self._takers: dict[tuple[str, str], FlowReceiver] = {}
        # Deleted bridges and when they were deleted, in seconds since 1970, oldest first.
        self._gone: dict[tuple[str, str], float] = {}
        for vpn, name, at_s in _gone_in(store):
            self._gone[vpn, name] = at_s

    def of(self, vpn: MessageVpn, name: str, configured: Bridge) -> BridgeFlow:
        """What a bridge keeps, as it is written. Raises OperationError for positions that are damaged."""
        taker = self._takers.get((vpn.name, name))
        if taker is None or taker.vpn is not vpn:
            key = keys.bridge(vpn.name, name)
            # The message VPN may have been removed, and be there again.
            accepted = self._stored(key, vpn.name, name) if taker is None else taker.accepted
            terms = flow_settings_of(configured)
            taker = FlowReceiver(vpn, self._spool, key, accepted, terms, name)
            self._takers[vpn.name, name] = taker
        if self._gone.pop((vpn.name, name), 0.0):
            self._write_gone()
        flow = BridgeFlow(taker, name, self._endpoints, self)
        flow.change(configured)
        return flow

    def gone(self, taker: FlowReceiver, name: str) -> None:
        """Keep or forget the receiver of a bridge that is not configured any more."""
        place = (taker.vpn.name, name)
        if not taker.accepted.encode():
            self._takers.pop(place, None)
            return
        self._gone[place] = time.time()
        self._forget_oldest()

    def look_for_gone(self) -> None:
        """Note bridges that were deleted while the router was down. Call it at the start, with all bridges made."""
        now_s = time.time()
        for key, _ in self._store.scan(keys.BRIDGE):
            vpn, rest = keys.vpn_and_rest(key)
            place = (vpn, rest.decode())
            if place not in self._takers:
                self._gone.setdefault(place, now_s)
        self._forget_oldest()

    def _forget_oldest(self) -> None:
        oldest_s = time.time() - limits.LINK_GONE_DAYS * 86_400
        before = len(self._gone)
        for place, at_s in list(self._gone.items()):
            if len(self._gone) <= limits.LINK_GONE_BRIDGES and at_s >= oldest_s:
                break
            del self._gone[place]
            self._takers.pop(place, None)
            self._spool.ledger.delete(keys.bridge(*place))
        if before:
            self._write_gone()

    def _write_gone(self) -> None:
        rows = [[vpn, name, at_s] for (vpn, name), at_s in self._gone.items()]
        if rows:
            self._spool.ledger.put(keys.GONE, json.dumps(rows).encode())
        else:
            self._spool.ledger.delete(keys.GONE)

    def _stored(self, key: bytes, vpn: str, name: str) -> ReceivedPositions:
        try:
            return decode_positions(self._store.get(key) or b"")
        except SpoolError as error:
            raise OperationError(f"bridge {name} of message VPN {vpn}: {error}") from error


def _gone_in(store: Store) -> list[tuple[str, str, float]]:
    """The deleted bridges that the store knows. A damaged row loses the times alone."""
    try:
        rows = json.loads(store.get(keys.GONE) or b"[]")
        return [(str(vpn), str(name), float(at_s)) for vpn, name, at_s in rows]
    except (SpoolError, ValueError, TypeError):
        return []
