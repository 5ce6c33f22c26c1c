"""What bridges keep of guaranteed messages over all their connections: the positions taken, and parking lots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.bridges.accepted import Accepted, decode_accepted
from vpnrouter.bridges.guaranteed_in import GuaranteedIn
from vpnrouter.bridges.parking_lot import ParkingLot
from vpnrouter.core.guaranteed.kinds import PARKING
from vpnrouter.core.guaranteed.terms import EndpointTerms
from vpnrouter.errors import OperationError, SpoolError
from vpnrouter.server.bridge_terms import flow_terms
from vpnrouter.spool import keys

if TYPE_CHECKING:
    from vpnrouter.config.bridge import Bridge
    from vpnrouter.config.msg_vpn import MsgVpn
    from vpnrouter.core.guaranteed.spool import Spool
    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.server.endpoints import Endpoints
    from vpnrouter.spool.store import Store

MEGABYTE: Final = 1_000_000


def lot_terms(written: Bridge) -> EndpointTerms:
    """The attributes of a bridge's parking lot: nothing in it expires, and all of it is delivered at once."""
    terms = EndpointTerms()
    # 0 would keep the last message only.
    terms.max_msg_spool_usage = max(1, written.max_parked_msg_spool_usage * MEGABYTE)
    terms.max_spooled_msg_count = limits.LINK_PARKED
    terms.max_delivered_unacked_msgs_per_flow = limits.LINK_PARKED
    terms.max_bind_count = 1
    return terms


def have_lots(endpoints: Endpoints, vpn: MessageVpn, written: MsgVpn) -> None:
    """Let the bridges of `vpn` have their parking lots, before what is in them is recovered.

    A bridge that parks no more may have left something in its own.
    """
    for name, bridge in written.bridges.items():
        if bridge.on_reject == "park" or endpoints.knows(vpn, PARKING, name):
            endpoints.have(vpn, PARKING, name, lot_terms(bridge))


@final
class BridgeFlow:
    """What one bridge keeps: `taker` is the receiver of its guaranteed messages."""

    def __init__(self, taker: GuaranteedIn, name: str, endpoints: Endpoints) -> None:
        self.taker = taker
        self._name = name
        self._endpoints = endpoints

    def change(self, written: Bridge) -> None:
        """Go on under what is written now."""
        taker, name, endpoints = self.taker, self._name, self._endpoints
        terms = flow_terms(written)
        taker.take(terms)
        if taker.lot is not None and taker.lot.lanes_by != terms.lanes:
            # What is parked is found again, in its new lanes.
            self._close()
        endpoint = taker.vpn.endpoints.get((PARKING, name))
        if written.on_reject == "park":
            endpoint = endpoints.have(taker.vpn, PARKING, name, lot_terms(written))
        elif endpoint is not None and not endpoint.spooled_count:
            self._close()
            endpoints.delete(endpoint)
            endpoint = None
        elif endpoint is not None:
            # What was parked goes on being tried.
            endpoints.have(taker.vpn, PARKING, name, lot_terms(written))
        if endpoint is not None and taker.lot is None:
            taker.lot = ParkingLot(endpoint, name, limits.LINK_PARKED, taker.lanes, terms.lanes)
        taker.flush()

    def remove(self) -> None:
        """The bridge is not configured any more: what is parked stays, shut down, as queues do."""
        self._close()
        endpoint = self.taker.vpn.endpoints.get((PARKING, self._name))
        if endpoint is not None:
            self._endpoints.let_go(endpoint)

    def _close(self) -> None:
        taker = self.taker
        if taker.lot is not None:
            taker.lot.close()
            taker.lot = None
            taker.lanes.parked.clear()


@final
class BridgeFlows:
    """The receivers of all bridges of a router, by message VPN and name.

    That of a bridge which is not configured any more stays, since its positions may not be stored yet when it
    comes back.
    """

    def __init__(self, spool: Spool, store: Store, endpoints: Endpoints) -> None:
        self._spool = spool
        self._store = store
        self._endpoints = endpoints
        self._takers: dict[tuple[str, str], GuaranteedIn] = {}

    def of(self, vpn: MessageVpn, name: str, written: Bridge) -> BridgeFlow:
        """What a bridge keeps, as it is written. Raises OperationError for positions that are damaged."""
        taker = self._takers.get((vpn.name, name))
        if taker is None or taker.vpn is not vpn:
            key = keys.bridge(vpn.name, name)
            # The message VPN may have been removed, and be there again.
            accepted = self._stored(key, vpn.name, name) if taker is None else taker.accepted
            taker = GuaranteedIn(vpn, self._spool, key, accepted, flow_terms(written))
            self._takers[vpn.name, name] = taker
        flow = BridgeFlow(taker, name, self._endpoints)
        flow.change(written)
        return flow

    def _stored(self, key: bytes, vpn: str, name: str) -> Accepted:
        try:
            return decode_accepted(self._store.get(key) or b"")
        except SpoolError as error:
            raise OperationError(f"bridge {name} of message VPN {vpn}: {error}") from error
