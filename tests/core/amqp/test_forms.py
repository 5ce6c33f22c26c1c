"""Messages of every legal combination of sections come out as they went in, to AMQP and MQTT, stored and live."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from vpnrouter.wire.amqp import performatives, types
from vpnrouter.wire.amqp.performatives import (
    Accepted,
    Header,
    MessageProperties,
    Rejected,
    TransactionalState,
)
from vpnrouter.wire.amqp.sections import sections
from vpnrouter.wire.amqp.types import Symbol, Typed

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.core.mqtt.spooled import SpooledWorld


def section(code: int, value: object) -> bytes:
    """One section."""
    return b"\x00\x53" + bytes((code,)) + types.write(value)


def long_form(code: int, value: object) -> bytes:
    """One section, with its descriptor in the long form."""
    return b"\x00\x80" + code.to_bytes(8, "big") + types.write(value)


HEADER = performatives.write(Header(durable=True))
ANNOTATIONS = section(0x72, {Symbol("x-opt-jms-msg-type"): Typed("byte", 0)})
PROPERTIES = performatives.write(MessageProperties("id-1"))
APPLICATION = section(0x74, {"k": "v"})
DATA = section(0x75, b"x")
FOOTER = section(0x78, {Symbol("sum"): 1})

FORMS = {
    # A plain JMS message, as Qpid JMS, Camel, go-amqp and Proton send it.
    "nothing": (b"", b"", b""),
    "header": (HEADER, b"", b""),
    "delivery-annotations": (section(0x71, {Symbol("hop"): 1}), b"", b""),
    "annotations": (HEADER, ANNOTATIONS, b""),
    "properties": (HEADER, PROPERTIES, b""),
    "no-header": (b"", PROPERTIES, b""),
    "application": (b"", APPLICATION, b""),
    "jms-message": (HEADER, ANNOTATIONS + PROPERTIES + APPLICATION, b""),
    "footer": (b"", FOOTER, b""),
    "properties-footer": (HEADER, PROPERTIES + FOOTER, b""),
    "long-forms": (long_form(0x70, [True]), long_form(0x74, {"k": "v"}), b""),
    "empty-lists": (b"\x00\x53\x70\x45", b"\x00\x53\x73\x45", b""),
    "null": (b"", section(0x77, None), b""),
    "empty-data": (b"", section(0x75, b""), b""),
    "empty-text": (b"", section(0x77, ""), b""),
    "data": (HEADER, ANNOTATIONS + DATA, b"x"),
    "more-data": (b"", DATA + DATA + FOOTER, b"xx"),
    "sequences": (b"", section(0x76, []) + section(0x76, [1]), b"[1]"),
    "all": (
        HEADER + section(0x71, {}),
        ANNOTATIONS + PROPERTIES + APPLICATION + DATA + FOOTER,
        b"x",
    ),
}
"""What belongs to a hop, what is kept, and the payload that MQTT clients get."""


def _amqp(join: Any, address: str, **more: Any) -> Callable[[], list[bytes]]:
    peer = join("receiver")
    peer.receiver(address, **more)

    def take() -> list[bytes]:
        # The header is the router's.
        found = [got.data for got in peer.messages()]
        return [data[sections(data)[0].end :] for data in found]

    return take


def _mqtt(router: SpooledWorld, topic: str, qos: int) -> Callable[[], list[bytes]]:
    client = router.join("mqtt")
    client.sub(topic, qos)
    first = [client.resolved(client.rest)]

    def take() -> list[bytes]:
        came = first.pop() if first else []
        client.puback(*[one for one in came if one.qos])
        return [one.payload for one in came] + client.take()

    return take


RECEIVERS: dict[str, Callable[[SpooledWorld, Any], Callable[[], list[bytes]]]] = {
    "amqp-queue": lambda _, join: _amqp(join, "queue://q"),
    "amqp-browser": lambda _, join: _amqp(join, "queue://q", distribution_mode=Symbol("copy")),
    "amqp-topic": lambda _, join: _amqp(join, "topic://a"),
    "amqp-direct": lambda _, join: _amqp(join, "topic://a", mode=1),
    "mqtt-queue": lambda router, _: _mqtt(router, "$queue/q", 1),
    "mqtt-session": lambda router, _: _mqtt(router, "a", 1),
    "mqtt-direct": lambda router, _: _mqtt(router, "a", 0),
}


def _settled(peer: Any, data: bytes) -> None:
    peer.send(data, settled=True)


def _unsettled(peer: Any, data: bytes) -> None:
    assert peer.sent(data) == Accepted()


def _burst(peer: Any, data: bytes) -> None:
    # The second finds the route of the first: settled transfers of one link are forwarded together.
    peer.send(data, settled=True)
    peer.send(data, settled=True)


def _transacted(peer: Any, data: bytes) -> None:
    txn_id = peer.declare()
    peer.sent(data, state=TransactionalState(txn_id))
    assert peer.discharge(txn_id) == Accepted()


def _in_parts(peer: Any, data: bytes) -> None:
    assert peer.sent(data, frame=max(1, len(data) // 2)) == Accepted()


SENDERS = {
    "settled": _settled,
    "burst": _burst,
    "unsettled": _unsettled,
    "transaction": _transacted,
    "parts": _in_parts,
}


@pytest.mark.parametrize("sender", SENDERS)
@pytest.mark.parametrize("receiver", [name for name in RECEIVERS if name != "amqp-browser"])
def test_live(router: SpooledWorld, join: Any, receiver: str, sender: str) -> None:
    """Who is there gets what was sent, in the terms of its protocol."""
    router.queue("q", "a")
    peer = _sender(join)
    take = RECEIVERS[receiver](router, join)
    for hop, content, payload in FORMS.values():
        SENDERS[sender](peer, hop + content)
        expected = content if receiver.startswith("amqp") else payload
        assert take() == [expected] * (2 if sender == "burst" else 1)


@pytest.mark.parametrize("sender", SENDERS)
@pytest.mark.parametrize("receiver", ["amqp-queue", "amqp-browser", "mqtt-queue"])
def test_stored(router: SpooledWorld, join: Any, receiver: str, sender: str) -> None:
    """Who comes later gets the same."""
    router.queue("q", "a")
    peer = _sender(join)
    expected = []
    for hop, content, payload in FORMS.values():
        SENDERS[sender](peer, hop + content)
        expected += [content if receiver.startswith("amqp") else payload] * (
            2 if sender == "burst" else 1
        )
    assert RECEIVERS[receiver](router, join)() == expected


def _sender(join: Any) -> Any:
    peer = join("sender")
    peer.sender("topic://a")
    peer.coordinator()
    return peer


def test_stored_over_a_restart(router: SpooledWorld, join: Any, amqp: ModuleType) -> None:
    """The store gives back what it was given, also nothing at all."""
    router.queue("q")
    peer = join()
    peer.sender("queue://q")
    for hop, content, _ in FORMS.values():
        assert peer.sent(hop + content) == Accepted()
    later = amqp.Peer(router.restart())
    later.join()
    later.receiver("queue://q")
    found = [got.data for got in later.messages()]
    kept = [data[sections(data)[0].end :] for data in found]
    assert kept == [content for _, content, _ in FORMS.values()]


@pytest.mark.parametrize("form", FORMS)
def test_dead_letter_of_each_form(router: SpooledWorld, join: Any, form: str) -> None:
    """What the router adds to the annotations leaves the rest of a message as it is."""
    router.queue("dead")
    router.queue("q", dead_msg_queue="dead")
    hop, content, _ = FORMS[form]
    peer = join()
    peer.sender("queue://q")
    peer.receiver("queue://q", 1)
    peer.receiver("queue://dead", 2)
    assert peer.sent(hop + content) == Accepted()
    (got,) = peer.messages()
    peer.settle(got, Rejected())
    (dead,) = peer.messages()
    assert dead.sections[0x72][Symbol("x-opt-dead-letter-queue")] == "q"
    assert dead.bare == content.removeprefix(ANNOTATIONS)
