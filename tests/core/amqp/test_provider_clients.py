"""Clients by which the provider of a connector is connected: what the connector carries does not go by them."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from vpnrouter.core.access import ProviderClient
from vpnrouter.core.amqp.subscriptions import belong_to_providers
from vpnrouter.core.discard_reasons import NO_LOCAL_DELIVERY
from vpnrouter.topics.grammar import SMF, parse_filter
from vpnrouter.wire.amqp.performatives import Accepted, TransactionalState
from vpnrouter.wire.amqp.types import Symbol

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.core.mqtt.spooled import SpooledWorld

NAME = "connector"


@pytest.fixture
def provided(router: SpooledWorld) -> None:
    """Clients of the container `theirs` belong to the provider of a connector that carries in/> in, and out/> out."""
    into, out = ([parse_filter(text, SMF)] for text in ("in/>", "out/>"))
    router.vpn().provider_clients["theirs"] = ProviderClient(NAME, into, out)


@pytest.mark.usefixtures("provided")
@pytest.mark.parametrize("kind", ["settled", "unsettled", "in a transaction"])
def test_what_the_connector_brings_in(
    router: SpooledWorld, amqp: ModuleType, join: Callable[..., Any], kind: str
) -> None:
    """It is accepted from the client, and discarded; what the connector does not carry is the client's."""
    peer = join("theirs")
    for handle, topic in enumerate(("in/1", "other")):
        peer.sender(f"topic://{topic}", handle)
    here = join("here")
    here.receiver("topic://>", mode=1)
    settled = kind == "settled"
    state, txn_id = None, b""
    if kind == "in a transaction":
        peer.coordinator()
        txn_id = peer.declare()
        state = TransactionalState(txn_id)
    for handle, text in enumerate((b"twice", b"once")):
        data = amqp.message(text)
        if settled:
            peer.send(data, handle, settled=True)
        else:
            said = peer.sent(data, handle, state=state)
            assert said == (TransactionalState(txn_id, Accepted()) if txn_id else Accepted())
    if txn_id:
        assert peer.discharge(txn_id) == Accepted()
    assert here.bodies() == [b"once"]
    assert router.vpn().discards.counts == {NO_LOCAL_DELIVERY: 1}


@pytest.mark.usefixtures("provided")
@pytest.mark.parametrize("durable", [False, True])
def test_what_the_connector_takes_out(
    router: SpooledWorld, amqp: ModuleType, join: Callable[..., Any], durable: bool
) -> None:
    """The client is not sent it, nor what came by the connector."""
    peer = join("theirs")
    terms = {"durable": 2, "expiry_policy": Symbol("never")} if durable else {}
    peer.receiver("topic://>", mode=0 if durable else 1, name="s", **terms)
    connector = router.connect(NAME)
    here = router.connect("here")
    for client, topic in ((here, "out/1"), (here, "other"), (connector, "came")):
        client.pub(topic, topic.encode())
    assert peer.bodies() == [b"other"]


def test_a_connector_that_is_changed(
    router: SpooledWorld, amqp: ModuleType, join: Callable[..., Any], request: Any
) -> None:
    """Clients of its provider have to log in again, and what they have subscribed to is judged anew."""
    peer, other = join("theirs"), join("other")
    peer.receiver("topic://>", name="s", durable=2, expiry_policy=Symbol("never"))
    request.getfixturevalue("provided")
    belong_to_providers(router.vpn(), {"theirs"})
    assert peer.closed
    assert not other.closed
    here = router.connect("here")
    for topic in ("out/1", "other"):
        here.pub(topic, topic.encode())
    peer = join("theirs")
    peer.receiver("topic://>", name="s", durable=2, expiry_policy=Symbol("never"))
    assert peer.bodies() == [b"other"]
