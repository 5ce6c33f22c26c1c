"""Selectors on the headers of JMS and on properties with types, whoever sent the message and whoever consumes it."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from vpnrouter.wire.amqp.performatives import Detach, Header, MessageProperties
from vpnrouter.wire.amqp.types import Described, Symbol, Typed
from vpnrouter.wire.mqtt.properties import Properties

if TYPE_CHECKING:
    from tests.core.mqtt.spooled import SpooledWorld

SELECTOR = 0x0000_468C_0000_0004

SAID = MessageProperties(
    "ID:1",
    user_id=b"ann",
    subject="car",
    correlation_id="c-1",
    creation_time=1_700_000_000_000,
    group_id="g",
    group_sequence=3,
)
TYPED: dict[object, object] = {
    "i": 42,
    "l": Typed("long", 42),
    "b": Typed("byte", 7),
    "d": 1.5,
    "s": "42",
    "t": True,
    "u": "true",
    "n": None,
}

AMQP_CASES = [
    ("JMSDeliveryMode = 'PERSISTENT'", True),
    ("JMSDeliveryMode <> 'NON_PERSISTENT'", True),
    ("JMSDeliveryMode = 1", False),
    ("JMSPriority = 7", True),
    ("JMSPriority > 4 AND JMSPriority BETWEEN 5 AND 9", True),
    ("JMSPriority = '7'", False),
    ("JMSMessageID = 'ID:1'", True),
    ("JMSMessageID LIKE 'ID:%'", True),
    ("JMSTimestamp > 1600000000000L AND JMSTimestamp < 1800000000000", True),
    ("JMSCorrelationID IN ('c-1', 'c-2')", True),
    ("JMSType = 'car'", True),
    ("JMSXUserID = 'ann'", True),
    ("JMSXGroupID = 'g' AND JMSXGroupSeq = 3", True),
    ("i = 42 AND l = 42L AND i = l AND b = 7 AND d = 1.5", True),
    ("i = '42'", False),
    ("i <> '42'", False),
    ("s = 42", False),
    ("s = '42'", True),
    ("i = s OR i <> s", False),
    ("t AND t = TRUE", True),
    ("u OR u = TRUE OR u <> TRUE", False),
    ("i LIKE '4%' OR i NOT LIKE '4%' OR i IN ('42') OR i NOT IN ('42')", False),
    ("n IS NULL AND missing IS NULL AND i IS NOT NULL", True),
]


def _filter(text: str) -> dict[object, object]:
    return {Symbol("jms-selector"): Described(SELECTOR, text)}


@pytest.mark.parametrize("source", ["queue://q", "topic://a", "direct", "mqtt"])
@pytest.mark.parametrize(("text", "expected"), AMQP_CASES)
def test_message_of_jms(
    router: SpooledWorld, join: Any, amqp: ModuleType, text: str, expected: bool, source: str
) -> None:
    """From a queue, a topic with an endpoint, as a Direct message, and for a consumer of MQTT."""
    router.queue("q", "a")
    peer = join()
    peer.sender("topic://a")
    mqtt = router.join("m")
    if source == "direct":
        # A Direct message is not persistent, whatever its header says.
        if "DeliveryMode" in text:
            text = text.replace("NON_PERSISTENT", "x").replace("PERSISTENT", "NON_PERSISTENT")
        peer.receiver("topic://a", 1, mode=1, filter=_filter(text))
    elif source == "mqtt":
        mqtt.sub("$queue/q", user=[("selector", text)])
    else:
        peer.receiver(source, 1, filter=_filter(text))
    data = amqp.message(
        b"x", header=Header(durable=True, priority=7), properties=SAID, application=TYPED
    )
    if source == "direct":
        peer.send(data, settled=True)
    else:
        peer.sent(data)
    found = mqtt.messages() if source == "mqtt" else peer.messages()
    assert len(found) == int(expected)


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("priority", [0, 4, 9, 200])
def test_header_over_a_restart(
    router: SpooledWorld, join: Any, amqp: ModuleType, durable: bool, priority: int
) -> None:
    """Mode and priority are those of the message that was stored."""
    router.queue("q")
    peer = join()
    peer.sender("queue://q")
    peer.sent(amqp.message(header=Header(durable=durable, priority=priority)))
    later = amqp.Peer(router.restart())
    later.join()
    mode = "PERSISTENT" if durable else "NON_PERSISTENT"
    text = f"JMSDeliveryMode = '{mode}' AND JMSPriority = {min(priority, 9)}"
    later.receiver("queue://q", 1, filter=_filter(f"NOT ({text})"))
    assert later.messages() == []
    later.say(Detach(1, True))
    later.drain()
    later.receiver("queue://q", 2, filter=_filter(text))
    assert len(later.messages()) == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Properties of MQTT have no types: they read as what they are compared with.
        ("i = 42 AND i = '42' AND i = 42L", True),
        ("t AND t = 'true' AND t = TRUE", True),
        ("JMSXUserID = 'ann'", True),
        ("JMSPriority = 8", True),
        ("JMSDeliveryMode = 'PERSISTENT'", True),
        ("JMSType = 'car'", True),
        ("JMSTimestamp = 5", True),
    ],
)
@pytest.mark.parametrize("qos", [0, 1])
def test_message_of_mqtt(
    router: SpooledWorld, join: Any, text: str, expected: bool, qos: int
) -> None:
    """A consumer of AMQP sees what a message of MQTT says, by the same names."""
    peer = join()
    if qos == 0:
        text = text.replace("PERSISTENT", "NON_PERSISTENT")
    peer.receiver("topic://a", 1, mode=int(qos == 0), filter=_filter(text))
    mqtt = router.join("m")
    properties = [
        ("i", "42"),
        ("t", "true"),
        ("user-id", "ann"),
        ("priority", "8"),
        ("subject", "car"),
        ("creation-time", "5"),
        # It stands for nothing.
        ("JMSPriority", "1"),
        ("JMSDeliveryMode", "x"),
    ]
    mqtt.publish("a", qos=qos, packet_id=qos, properties=Properties(user_properties=properties))
    assert len(peer.messages()) == int(expected)
