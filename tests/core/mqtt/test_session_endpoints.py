"""vpnrouter.core.mqtt.session: the queues behind MQTT sessions."""

from __future__ import annotations

import pytest

from vpnrouter.core.credentials import Credentials
from vpnrouter.core.guaranteed import reasons
from vpnrouter.core.guaranteed.definition import read_definitions
from vpnrouter.core.guaranteed.endpoint import Endpoint
from vpnrouter.core.guaranteed.spool import Spool
from vpnrouter.core.guaranteed.terms import SESSION
from vpnrouter.core.message import Message
from vpnrouter.core.mqtt.session import MqttSession
from vpnrouter.core.outbox import Outbox
from vpnrouter.core.router import Router
from vpnrouter.core.vpn import MessageVpn, VpnLimits
from vpnrouter.errors import Refused
from vpnrouter.spool.ledger import Ledger
from vpnrouter.spool.store import MemoryStore
from vpnrouter.trace.recorder import Recorder


class Place:
    """A message VPN with a spool over a store that forgets."""

    def __init__(self, bounds: VpnLimits | None = None) -> None:
        self.store = MemoryStore(bytes(16))
        router = Router("here", 7, Recorder())
        router.tick(1_000, 1_700_000_000_000_000_000)
        self.spool = Spool(router.plane, Ledger(self.store))
        router.plane.spool = self.spool
        self.vpn = MessageVpn("blue", router.plane, Credentials(False, ()), {}, {}, bounds)

    def make(self, client_id: str, *, durable: bool, owner: str = "") -> Endpoint:
        """The queue of a new session, written down where it lasts."""
        session = MqttSession(self.vpn, client_id, Outbox([], 0), owner)
        session.number = self.spool.number()
        session.durable = durable
        endpoint = session.make_endpoint(self.spool)
        if durable:
            endpoint.define()
        return endpoint

    def settle(self) -> None:
        """Commit what is due."""
        for _ in range(100):
            batch = self.spool.end_round()
            if batch is not None:
                self.store.commit(batch)
                self.spool.committed()
            elif not self.spool.busy:
                return
        raise AssertionError("the spool does not come to rest")


@pytest.mark.parametrize("durable", [False, True])
def test_a_durable_one_is_written_down(durable: bool) -> None:
    """Its definition is in the store until it is dropped; one that does not last leaves nothing there."""
    place = Place()
    endpoint = place.make("c", durable=durable)
    number = endpoint.number
    place.settle()
    definitions, following = read_definitions(place.store)
    assert [(one.number, one.kind, one.name) for one in definitions] == (
        [(number, SESSION, "#mqtt/c")] if durable else []
    )
    assert following == number + 1
    assert place.vpn.endpoints == {(SESSION, "#mqtt/c"): endpoint}
    endpoint.delete(reasons.SESSION_ENDED)
    place.settle()
    assert read_definitions(place.store) == ([], following)
    assert place.vpn.endpoints == {}


def test_what_it_held_goes_with_it() -> None:
    """Messages are counted as deleted and leave the store."""
    place = Place()
    endpoint = place.make("c", durable=True)
    for _ in range(3):
        assert place.spool.place(endpoint, Message(b"a", b"x")) == ""
    place.settle()
    assert endpoint.spooled_count == 3
    endpoint.delete(reasons.SESSION_ENDED)
    place.settle()
    assert endpoint.counters.deleted == 3
    assert endpoint.counters.imbalance(0) == 0
    assert place.vpn.spooled_bytes == 0
    assert list(place.store.scan(b"m")) == []


def test_its_terms_are_the_vpns() -> None:
    """A copy of them: what changes for one session changes for no other."""
    place = Place()
    place.vpn.session_terms.max_spooled_msg_count = 5
    endpoint = place.make("c", durable=True)
    assert endpoint.terms.max_spooled_msg_count == 5
    assert endpoint.terms is not place.vpn.session_terms


@pytest.mark.parametrize("bound", [0, 2])
def test_the_bound_of_the_vpn(bound: int) -> None:
    """No more than max_endpoint_count; 0 is no bound."""
    place = Place(VpnLimits(max_endpoint_count=bound))
    for name in ("a", "b"):
        place.vpn.check_endpoint_count("", 0)
        place.make(name, durable=False)
    if bound:
        with pytest.raises(Refused, match="503 Endpoint Max Exceeded"):
            place.vpn.check_endpoint_count("", 0)
    else:
        place.vpn.check_endpoint_count("", 0)


def test_the_bound_of_a_client_username() -> None:
    """No more than the profile of their creator lets be; those of others do not count, nor do those that went."""
    place = Place()
    vpn = place.vpn
    mine = place.make("a", durable=True, owner="ann")
    place.make("b", durable=False, owner="bob")
    vpn.check_endpoint_count("ann", 2)
    place.make("c", durable=False, owner="ann")
    with pytest.raises(Refused, match="503 Endpoint Max Exceeded"):
        vpn.check_endpoint_count("ann", 2)
    vpn.check_endpoint_count("ann", 0)
    vpn.check_endpoint_count("bob", 2)
    mine.delete(reasons.SESSION_ENDED)
    vpn.count_endpoint("ann", -1)
    vpn.check_endpoint_count("ann", 2)
    assert vpn.endpoints_of == {"ann": 1, "bob": 1}
