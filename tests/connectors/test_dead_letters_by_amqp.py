"""Dead letters of links to a provider of AMQP: what they say, and addresses that the provider does not take."""

from typing import Any

import pytest

from vpnrouter.core.guaranteed.dead_letters import NAMES
from vpnrouter.wire.amqp import types
from vpnrouter.wire.amqp.performatives import Attach, Detach, Error, Rejected
from vpnrouter.wire.amqp.sections import sections
from vpnrouter.wire.amqp.types import Symbol

ADDRESS = {"address": "queue://dead", "attempts": 2, "interval": 1000}
OUT = {
    "source": {"queue": "work"},
    "target": {"address": "queue://far"},
    "reject_attempts": 1,
}
AGAIN_S = 10.1
"""After that a link is asked for again that the provider does not take."""

NOTES = 0x72
"""Descriptor of message annotations (3.2.3)."""


def linked(amqp_connected: Any, *entries: dict[str, Any], **join: Any) -> Any:
    """A connector whose link takes out of the queue `work` and has this list, with the queue `takes`."""
    there = amqp_connected({"out": {**OUT, "dead_msg_queues": list(entries)}})
    there.world.queue("work", "out/#")
    there.world.queue("takes")
    there.join(**join)
    return there


def publish(there: Any, **more: Any) -> None:
    """Let a client publish."""
    client = there.world.join("p")
    client.pub("out/a", b"bad", 1, 1, **more)
    client.got()
    client.disconnect()


def refuse(there: Any) -> Any:
    """Have the provider reject what comes; what comes then."""
    ((transfer, _),) = there.transfers()
    there.answer(transfer, Rejected(Error(Symbol("amqp:not-allowed"), "no")))
    return there.transfers()


def notes_of(payload: bytes) -> dict[str, object]:
    """The message annotations of a message."""
    for one in sections(payload):
        if one.code == NOTES:
            found = types.read(payload, one.value, one.end)[0]
            assert isinstance(found, dict)
            return {str(name): value for name, value in found.items()}
    return {}


def test_an_address_at_the_provider(amqp_connected: Any, amqp_kit: Any) -> None:
    """The dead letter goes there over a link of its own, with what it says among its properties."""
    there = linked(amqp_connected, ADDRESS)
    assert there.attached["out/dead/1"].target.address == "dead"
    publish(there)
    ((transfer, payload),) = refuse(there)
    assert amqp_kit.body_of(payload) == "bad"
    application = amqp_kit.application_of(payload)
    assert application["dead-letter-by"] == "connector there/out"
    assert application["dead-letter-target"] == "queue://far"
    there.answer(transfer)
    there.got()
    assert there.counters["out/dead/1"].delivered == 1
    assert there.balanced()


@pytest.mark.parametrize("comes_back", [False, True])
def test_an_address_that_is_not_there(amqp_connected: Any, comes_back: bool) -> None:
    """After as many attempts the next entry has the letters, until the provider takes the link."""
    there = linked(amqp_connected, ADDRESS, {"queue": "takes"}, grants=False)
    there.grant(there.attached["out"])
    asked = there.attached["out/dead/1"]

    def not_found() -> None:
        there.grant(asked, target=None)
        there.send(Detach(asked.handle + 100, True, Error("amqp:not-found", "no queue dead")))

    not_found()
    publish(there)
    assert refuse(there) == []
    assert there.state("out/dead/1")[0] == "refused"
    assert there.held("takes") == []
    there.world.advance(AGAIN_S)
    (asked,) = [each for each in there.got() if isinstance(each, Attach)]
    not_found()
    there.got()
    assert there.held("takes") == [b"bad"]
    assert there.balanced()
    if not comes_back:
        return
    there.world.advance(AGAIN_S)
    (asked,) = [each for each in there.got() if isinstance(each, Attach)]
    there.grant(asked)
    publish(there)
    ((transfer, _),) = refuse(there)
    there.answer(transfer)
    there.got()
    assert there.held("takes") == [b"bad"]
    assert there.balanced()


@pytest.mark.parametrize("listed", [True, False])
def test_too_large_to_enter(amqp_connected: Any, amqp_kit: Any, listed: bool) -> None:
    """With a list it is accepted and a dead letter; without one it is rejected, and the provider's matter."""
    link = {"source": {"address": "queue://far"}, "target": {"queue": "near"}}
    more = {"dead_msg_queues": [{"queue": "takes"}]} if listed else {}
    there = amqp_connected({"in": {**link, **more}})
    there.world.queue("near")
    there.world.queue("takes")
    there.world.vpn().limits.max_msg_size = 100
    there.join()
    forged: dict[object, object] = {**dict.fromkeys(NAMES, "forged"), "colour": "red"}
    there.gives(
        "in", amqp_kit.message("x" * 200, message_id="id-7", more=forged), amqp_kit.message("y")
    )
    assert there.outcomes() == {0: "Accepted" if listed else "Rejected", 1: "Accepted"}
    assert there.bodies("near") == ["y"]
    assert there.balanced()
    if not listed:
        return
    assert there.bodies("takes") == ["x" * 200]
    (row,) = there.world.vpn().queue("takes").browse(0, 10)
    properties = row.message.properties()
    assert properties["colour"] == "red"
    assert "forged" not in properties.values()
    assert properties["dead-letter-cause"] == "msg-too-big"
    assert properties["dead-letter-message-id"] == "id-7"
    assert properties["dead-letter-source"] == "queue://far"
    assert properties["dead-letter-target"] == "near"
    # A consumer of AMQP sees it once, as annotations; so does one of MQTT, as user properties.
    content = row.message.amqp()
    assert notes_of(content)["x-opt-dead-letter-cause"] == "msg-too-big"
    assert amqp_kit.application_of(content) == {"colour": "red"}
    assert row.message.mqtt().block.count(b"dead-letter-cause") == 1
