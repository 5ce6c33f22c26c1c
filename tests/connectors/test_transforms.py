"""Links that change what they carry: where in their work that happens, and what becomes of what cannot be changed."""

from typing import Any, Final

import pytest

from vpnrouter import limits
from vpnrouter.wire.mqtt.packets import Ack, Publish
from vpnrouter.wire.mqtt.properties import Properties
from vpnrouter.wire.mqtt.reason import PUBACK, PUBREC
from vpnrouter.wire.mqtt.user_properties import take_out

STEPS: Final = [
    {"set_property": {"from": "{topic}"}},
    {"topic": "{payload:/to}"},
    {"payload_at": "/data"},
]
GOOD: Final = b'{"to":"t/new","data":"text"}'
BAD: Final = b"no JSON"
WHY: Final = "step 2 (topic {payload:/to}): its payload is no JSON"
QUALITIES: Final = ("at-most-once", "duplicates-ok", "once-and-only-once")


def inward(connected: Any, **more: Any) -> Any:
    """A connector whose link brings in/# in; the queue `q` has all that enters, `dead` may have dead letters."""
    there = connected({"in": {"source": {"address": "in/#"}, "transform": STEPS, **more}})
    there.world.queue("q", "#")
    there.world.queue("dead")
    there.join()
    return there


def outward(connected: Any, **more: Any) -> Any:
    """A connector whose link takes out/> out."""
    there = connected({"out": {"source": {"topic": "out/>"}, "transform": STEPS, **more}})
    there.world.queue("dead")
    there.join()
    return there


def give(there: Any, payload: bytes, packet_id: int, qos: int) -> list[int]:
    """Let the provider publish; what the router answers."""
    there.send(Publish(b"in/a", payload, qos, False, False, packet_id if qos else 0))
    return [each.packet_type for each in there.got()]


def publish(there: Any, payload: bytes, qos: int = 1) -> None:
    """Let a client publish."""
    client = there.world.join("p")
    client.pub("out/a", payload, qos, 1 if qos else 0)
    client.got()
    client.disconnect()


def rows(there: Any, queue: str) -> list[tuple[bytes, bytes, list[tuple[str, str]]]]:
    """Topic, payload and the property `from` of what is in a queue."""
    found = there.world.vpn().queue(queue).browse(0, 100)
    return [
        (each.message.topic, each.message.payload, take_out(each.message.block, ("from",))[1])
        for each in found
    ]


CHANGED: Final = (b"t/new", b"text", [("from", "in/a")])


@pytest.mark.parametrize("qos", [1, 2])
def test_what_enters_is_changed(connected: Any, qos: int) -> None:
    """It is acknowledged, counted and kept as one message; one that comes again is known."""
    there = inward(connected, quality_of_service=QUALITIES[qos])
    kind = {1: PUBACK, 2: PUBREC}[qos]
    assert give(there, GOOD, 1, qos) == [kind]
    if qos == 2:
        assert give(there, GOOD, 1, qos) == [kind]
    assert rows(there, "q") == [CHANGED]
    assert there.balanced()


def test_what_enters_at_most_once(connected: Any) -> None:
    """It is changed too; what cannot be is discarded, and told."""
    there = inward(connected, quality_of_service="at-most-once")
    client = there.world.join("c")
    client.sub("t/#", 0)
    client.got()
    give(there, GOOD, 0, 0)
    give(there, BAD, 0, 0)
    (packet,) = client.got()
    assert (packet.topic, packet.payload) == (b"t/new", b"text")
    assert there.counters["in"].discarded.counts == {"not-transformed": 1}
    assert there.told == [f"in: a message was discarded: {WHY}"]
    assert there.balanced()


@pytest.mark.parametrize("qos", [1, 2])
@pytest.mark.parametrize("listed", [True, False])
def test_a_dead_letter_inward(connected: Any, qos: int, listed: bool) -> None:
    """It is acknowledged when it is safe, as it came, and says which step could not change it."""
    more = {"dead_msg_queues": [{"queue": "dead"}]} if listed else {}
    there = inward(connected, quality_of_service=QUALITIES[qos], **more)
    kind = {1: PUBACK, 2: PUBREC}[qos]
    assert give(there, BAD, 1, qos) == [kind]
    assert give(there, GOOD, 2, qos) == [kind]
    assert rows(there, "q") == [CHANGED]
    assert there.balanced()
    counters = there.counters["in"]
    if not listed:
        assert counters.discarded.counts == {"not-transformed": 1}
        assert there.told == [f"in: a message was discarded: {WHY}"]
        return
    (row,) = there.world.vpn().queue("dead").browse(0, 10)
    assert row.message.payload == BAD
    said = dict(take_out(row.message.block, ("dead-letter-reason", "dead-letter-cause"))[1])
    assert said == {"dead-letter-reason": WHY, "dead-letter-cause": "not-transformed"}


@pytest.mark.parametrize("qos", [1, 2])
def test_pass(connected: Any, qos: int) -> None:
    """What cannot be changed enters, or leaves, as it was."""
    there = inward(connected, quality_of_service=QUALITIES[qos], on_transform_error="pass")
    give(there, BAD, 1, qos)
    give(there, GOOD, 2, qos)
    assert rows(there, "q") == [(b"in/a", BAD, []), CHANGED]
    out = outward(connected, quality_of_service=QUALITIES[qos], on_transform_error="pass")
    publish(out, BAD)
    publish(out, GOOD)
    assert sorted(out.take()) == [BAD, b"text"]
    assert out.balanced()
    assert there.balanced()


@pytest.mark.parametrize("qos", [1, 2])
def test_stop_inward(connected: Any, qos: int) -> None:
    """What cannot be changed is set aside and acknowledged, with what comes behind it; nothing is lost over a crash,
    and it goes on when the steps can change it.
    """
    there = inward(connected, quality_of_service=QUALITIES[qos], on_transform_error="stop")
    kind = {1: PUBACK, 2: PUBREC}[qos]
    for packet_id, payload in enumerate((GOOD, BAD, GOOD), 1):
        assert give(there, payload, packet_id, qos) == [kind]
    assert rows(there, "q") == [CHANGED]
    assert there.state("in") == ("held", WHY)
    there.world.advance(1)
    assert there.state("in") == ("held", WHY)
    assert there.links.all["in"].in_flight == 2
    there.lose_router(there.world.restart())
    there.world.attract("q", "#")
    there.join(present=True)
    there.world.advance(1)
    assert rows(there, "q") == [CHANGED]
    there.links.close()
    links = {
        "in": {"source": {"address": "in/#"}, "transform": STEPS, "on_transform_error": "pass"}
    }
    links["in"]["quality_of_service"] = QUALITIES[qos]
    there.configured = there.configured.__class__.model_validate(
        {"provider": {"url": "mqtt://127.0.0.1:1"}, "links": links}
    )
    there.begin(there.session)
    there.join(present=True)
    there.world.advance(1)
    assert rows(there, "q") == [CHANGED, (b"in/a", BAD, []), CHANGED]


LEAVING: Final = (b"t/new", b"text", [("from", "out/a")])


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_what_leaves_is_changed(connected: Any, qos: int) -> None:
    """The provider gets it changed, and the same way once more when it has to be sent again."""
    there = outward(connected, quality_of_service=QUALITIES[qos])
    publish(there, GOOD, qos)

    def said(packet: Any) -> tuple[Any, ...]:
        assert isinstance(packet, Publish)
        return (
            packet.topic,
            packet.payload,
            [pair for pair in packet.properties.user_properties if pair[0] == "from"],
        )

    (packet,) = there.got()
    assert said(packet) == LEAVING
    if not qos:
        assert there.balanced()
        return
    there.cut()
    again = [each for each in there.join(present=True) if isinstance(each, Publish)]
    assert [said(each) for each in again] == [LEAVING]
    assert again[0].dup
    there.send(Ack({1: PUBACK, 2: PUBREC}[qos], again[0].packet_id))
    there.got()
    assert there.counters["out"].delivered == 1


@pytest.mark.parametrize("qos", [1, 2])
@pytest.mark.parametrize("listed", [True, False])
def test_a_dead_letter_outward(connected: Any, qos: int, listed: bool) -> None:
    """What cannot be changed is given up, whatever is done with what the provider refuses; the rest leaves."""
    more = {"dead_msg_queues": [{"queue": "dead"}]} if listed else {}
    there = outward(connected, quality_of_service=QUALITIES[qos], then="skip", **more)
    publish(there, BAD)
    publish(there, GOOD)
    assert there.take() == [b"text"]
    assert [each.message.payload for each in there.world.vpn().queue("dead").browse(0, 9)] == (
        [BAD] if listed else []
    )
    (told,) = there.told
    assert WHY in told
    assert there.balanced()


@pytest.mark.parametrize("qos", [1, 2])
def test_stop_outward(connected: Any, qos: int) -> None:
    """What cannot be changed stays in the link's queue, and the link stops."""
    there = outward(connected, quality_of_service=QUALITIES[qos], on_transform_error="stop")
    publish(there, GOOD)
    assert there.take() == [b"text"]
    publish(there, BAD)
    publish(there, GOOD)
    there.take()
    assert there.state("out")[0] == "stopped"
    endpoint = there.links.all["out"].endpoint
    assert [each.message.payload for each in endpoint.browse(0, 9)] == [BAD, GOOD]


TOPICS: Final = ("t/+", "t/#", "", "x/" * 200, "a\0b")


@pytest.mark.parametrize("topic", TOPICS, ids=range(len(TOPICS)))
def test_a_topic_that_no_message_can_have(connected: Any, topic: str) -> None:
    """A step that gives it such a one has it end as one that can have no topic, inward and outward."""
    steps = [{"topic": "{property:to}"}]
    properties = Properties(user_properties=[("to", topic.replace("\0", ""))])
    if "\0" in topic:
        steps = [{"topic": "{payload}"}]
    payload = topic.encode()
    there = inward(connected, transform=steps)
    there.send(Publish(b"in/a", payload, 1, False, False, 1, properties))
    assert [each.packet_type for each in there.got()] == [PUBACK]
    assert there.counters["in"].discarded.counts == {"topic-parse-error": 1}
    out = outward(connected, transform=steps)
    client = out.world.join("p")
    client.pub("out/a", payload, 1, 1, properties=properties)
    client.got()
    assert out.take() == []
    assert out.balanced()


GROWS: Final = [{"payload": "{payload}" * 1_800}]
"""Makes of a message of 100 bytes one of 180,000."""

MORE: Final = 60
"""So many of these are more than a link keeps in memory, or puts on the way at once."""


def test_what_grows_inward_is_counted(connected: Any) -> None:
    """What waits in memory counts with what the steps have made of it: the rest is left to the provider."""
    there = inward(connected, transform=GROWS)
    queue = there.world.vpn().queue("q")
    queue.settings.max_msg_spool_usage = 1
    link = there.links.all["in"]
    link.aside.endpoint.settings.ingress_enabled = False
    for packet_id in range(1, MORE + 1):
        give(there, b"x" * 100, packet_id, 1)
    assert 0 < sum(each.size for each in link.waiting) <= limits.LINK_WAITING_BYTES
    assert len(link.waiting) < MORE
    assert there.account.held >= sum(each.size for each in link.waiting)


@pytest.mark.parametrize("qos", [1, 2])
def test_what_grows_outward_waits(connected: Any, qos: int) -> None:
    """No more is on the way than a few megabytes, whatever the steps make of small messages; each one leaves."""
    there = outward(connected, transform=GROWS, quality_of_service=QUALITIES[qos])
    client = there.world.join("p")
    for packet_id in range(1, MORE + 1):
        client.pub("out/a", b"x" * 100, 1, packet_id)
    client.got()
    sent: list[Any] = []
    for _ in range(5):
        # The provider reads, and answers nothing.
        on_the_way = len(there.links.all["out"].flow.unacked)
        assert 0 < on_the_way * 180_000 <= limits.GUARANTEED_AHEAD_BYTES + 2 * 180_000
        sent += there.got()
        there.world.advance(0.2)
    for packet in sent:
        there.send(Ack(PUBACK if qos == 1 else PUBREC, packet.packet_id))
    rest = there.take()
    assert [len(each.payload) for each in sent] + [len(each) for each in rest] == [180_000] * MORE
    assert there.balanced()
