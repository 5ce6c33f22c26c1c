"""vpnrouter.core.mqtt.qos_sender: what PUBACK, PUBREC, PUBREL and PUBCOMP do, expected or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from vpnrouter.spool import keys
from vpnrouter.wire.mqtt.packets import Ack
from vpnrouter.wire.mqtt.reason import PUBACK, PUBCOMP, PUBREC, PUBREL

if TYPE_CHECKING:
    from tests.core.mqtt.spooled import SpooledClient, SpooledWorld


def publisher(router: SpooledWorld) -> SpooledClient:
    """A client that publishes; its answers are not looked at."""
    return router.join("publisher")


@pytest.mark.parametrize("kind", [PUBACK, PUBREC])
def test_a_reason_from_0x80_on_rejects(router: SpooledWorld, kind: int) -> None:
    """The message goes to the dead message queue, and its identifier is free."""
    dead = router.queue("#DEAD_MSG_QUEUE")
    client = router.lasting("c")
    assert client.sub("a", 2) == 2
    publisher(router).pub("a", qos=1 if kind == PUBACK else 2)
    (message,) = client.messages()
    client.ack(kind, message.packet_id, 0x83)
    assert client.got() == []
    assert dead.spooled_count == 1
    session = router.vpn().clients["c"]
    assert session.outbound.held == {}
    assert list(router.store.scan(keys.OUTBOUND)) == []


def test_unknown_acknowledgements(router: SpooledWorld) -> None:
    """PUBACK and PUBCOMP for nothing mean nothing; PUBREC and PUBREL are answered 0x92."""
    client = router.join("c")
    client.send(Ack(PUBACK, 9), Ack(PUBCOMP, 9), Ack(PUBREC, 9), Ack(PUBREL, 9))
    assert client.got() == [Ack(PUBREL, 9, 0x92), Ack(PUBCOMP, 9, 0x92)]
    old = router.join("old", 4)
    old.send(Ack(PUBACK, 9), Ack(PUBCOMP, 9), Ack(PUBREC, 9), Ack(PUBREL, 9))
    assert old.got() == [Ack(PUBREL, 9), Ack(PUBCOMP, 9)]


@pytest.mark.parametrize(("level", "long"), [(4, False), (5, False), (5, True)])
@pytest.mark.parametrize(
    ("qos", "before", "kind"),
    [
        (1, (), PUBREC),
        (1, (), PUBCOMP),
        (2, (), PUBACK),
        (2, (), PUBCOMP),
        # PUBREL is out, or waits for the store.
        (2, (PUBREC,), PUBACK),
        (2, (PUBREC, None), PUBACK),
        (2, (PUBREC,), PUBCOMP),
    ],
)
def test_the_wrong_acknowledgement(
    router: SpooledWorld,
    level: int,
    long: bool,
    qos: int,
    before: tuple[int | None, ...],
    kind: int,
) -> None:
    """What is not the acknowledgement that is due breaks the protocol, and the message is not taken for delivered."""
    client = router.lasting("c", level)
    assert client.sub("a", qos) == qos
    publisher(router).pub("a", qos=qos)
    (message,) = client.messages()
    for step in before:
        if step is None:
            router.settle()
            client.received()
        else:
            client.ack(step, message.packet_id)
    wrong = Ack(kind, message.packet_id)
    if long:
        wrong.properties.user_properties = [("k", "v")]
    client.send(wrong)
    assert client.closed
    if level == 5:
        assert client.reason() == 0x82
    assert router.router.protocol_errors == 1
    back = router.lasting("c", level)
    if before:
        assert back.rest == [Ack(PUBREL, message.packet_id)]
    else:
        assert [(one.packet_id, one.dup) for one in back.resolved(back.rest)] == [
            (message.packet_id, True)
        ]
