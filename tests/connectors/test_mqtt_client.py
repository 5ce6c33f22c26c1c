"""Connectors over MQTT in memory: what crosses how often, whatever was published and wherever the connection breaks."""

from collections import Counter
from typing import Any

import pytest

from vpnrouter.connectors.visited import PATH_NAME, shown
from vpnrouter.core.message import Message
from vpnrouter.wire.link.extension import encode_extension
from vpnrouter.wire.link.frames import Extension
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.packets import (
    Ack,
    Connack,
    Disconnect,
    Packet,
    Publish,
    Suback,
    Subscribe,
    Unsubscribe,
)
from vpnrouter.wire.mqtt.properties import Properties
from vpnrouter.wire.mqtt.reason import PUBACK, PUBCOMP, PUBREC, PUBREL
from vpnrouter.wire.mqtt.user_properties import take_out

ONCE = {"quality_of_service": "once-and-only-once"}
MOST_ONCE = {"quality_of_service": "at-most-once"}
QUALITIES = {"at-most-once": 0, "duplicates-ok": 1, "once-and-only-once": 2}
LEVELS = (5, 0x84, 4)


def publish(router: Any, topic: str, payload: bytes, qos: int, name: str = "p") -> None:
    """Let a client of the router publish, as far as the router goes without its answers."""
    client = router.world.join(f"{name}{topic.replace('/', '-')}{payload.decode()}")
    client.pub(topic, payload, qos, 1 if qos else 0)
    if qos == 2:
        client.got()
        client.ack(PUBREL, 1)
    client.got()
    client.disconnect()


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("quality", QUALITIES)
@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("source", ["topic", "queue"])
def test_the_link_decides_how_a_message_leaves(
    connected: Any, source: str, qos: int, quality: str, level: int
) -> None:
    """However it was published, it leaves with the QoS of the link, once."""
    there = connected(
        {
            "out": {
                "source": {source: "out/>" if source == "topic" else "work"},
                "quality_of_service": quality,
            }
        },
        level=level,
    )
    there.world.queue("work", "out/#")
    there.join()
    publish(there, "out/a", b"1", qos)
    (message,) = there.published()
    assert (message.topic, message.payload, message.qos) == (b"out/a", b"1", QUALITIES[quality])


@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("at", ["PUBLISH", "PUBREC", "PUBREL", "PUBCOMP"])
@pytest.mark.parametrize("dies", ["connection", "router"])
def test_once_outward_wherever_it_breaks(connected: Any, qos: int, at: str, dies: str) -> None:
    """A message leaves under one packet identifier until the provider has it, and then no more."""
    there = connected({"out": {"source": {"topic": "out/>"}, **ONCE}})
    there.join()
    publish(there, "out/a", b"1", qos)
    (message,) = there.published()
    took = 0
    if at != "PUBLISH":
        # The provider has it; its answer may be lost.
        took = 1
    if at in ("PUBREL", "PUBCOMP"):
        there.send(Ack(PUBREC, message.packet_id))
        (release,) = there.got()
        assert (release.packet_type, release.packet_id) == (PUBREL, message.packet_id)
    if at == "PUBCOMP":
        there.send(Ack(PUBCOMP, message.packet_id))
        there.got()
    if dies == "connection":
        there.cut()
    else:
        there.lose_router(there.world.restart())
    said = there.join(present=True)
    again = [each for each in said if isinstance(each, Publish)]
    released = [each for each in said if isinstance(each, Ack)]
    if at in ("PUBLISH", "PUBREC"):
        assert [(each.packet_id, each.dup, each.payload) for each in again] == [
            (message.packet_id, True, b"1")
        ]
        there.send(Ack(PUBREC, message.packet_id))
        (release,) = there.got()
        assert release.packet_id == message.packet_id
    else:
        assert again == []
        assert [each.packet_id for each in released] == [message.packet_id] * (at == "PUBREL")
    there.send(Ack(PUBCOMP, message.packet_id))
    assert there.got() == []
    assert took in (0, 1)
    # The identifier is free again, in the store as well.
    there.lose_router(there.world.restart())
    assert there.join(present=True) == []


def test_messages_are_released_in_order_after_a_crash(connected: Any) -> None:
    """PUBRELs follow the PUBRECs (MQTT-4.6.0-4), whatever the identifiers: a provider may pass messages on then."""
    there = connected({"out": {"source": {"topic": "out/>"}, **ONCE}})

    def publishes(*payloads: bytes) -> list[int]:
        for payload in payloads:
            publish(there, "out/a", payload, 1)
        return [message.packet_id for message in there.published()]

    def breaks() -> list[int]:
        there.lose_router(there.world.restart())
        said = there.join(present=True)
        return [each.packet_id for each in said if isinstance(each, Ack)]

    there.join()
    first, second, third = publishes(b"1", b"2", b"3")
    there.send(Ack(PUBREC, first))
    assert there.acks() == [(PUBREL, first)]
    assert breaks() == [first]
    there.send(Ack(PUBCOMP, first))
    # The identifier is used again, while older messages have higher ones.
    assert publishes(b"4") == [first]
    there.send(*[Ack(PUBREC, each) for each in (second, third, first)])
    assert there.acks() == [(PUBREL, each) for each in (second, third, first)]
    assert breaks() == [second, third, first]
    there.send(Ack(PUBCOMP, second))
    assert publishes(b"5") == [second]
    there.send(Ack(PUBREC, second))
    assert there.acks() == [(PUBREL, second)]
    assert breaks() == [third, first, second]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("quality", QUALITIES)
@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("lost", ["message", "answer", "nothing"])
@pytest.mark.parametrize("dies", ["connection", "router"])
def test_inward_wherever_it_breaks(
    connected: Any, qos: int, quality: str, level: int, lost: str, dies: str
) -> None:
    """Once and only once is kept for messages of each QoS; the others lose or double as they may, and no more."""
    there = connected(
        {"in": {"source": {"address": "in/#"}, "quality_of_service": quality}}, level=level
    )
    there.world.queue("q", "in/#")
    there.join()
    arrives = min(qos, QUALITIES[quality])
    first = Publish(b"in/a", b"1", arrives, False, False, 7 if arrives else 0)
    if lost != "message":
        there.send(first)
        answers = there.got()
        assert len(answers) == (1 if arrives else 0)
    if lost == "nothing" and arrives == 2:
        there.send(Ack(PUBREL, 7))
        assert there.acks() == [(PUBCOMP, 7)]
    if dies == "connection":
        there.cut()
    else:
        world = there.world.restart()
        world.attract("q", "in/#")
        there.lose_router(world)
    there.join(present=True)
    if arrives and lost != "nothing":
        there.send(Publish(b"in/a", b"1", arrives, False, True, 7))
        kind = PUBACK if arrives == 1 else PUBREC
        assert there.acks() == [(kind, 7)]
    doubled = lost == "answer" and arrives == 1 and quality == "duplicates-ok"
    missing = arrives == 0 and lost == "message"
    assert there.held("q") == [] if missing else [b"1"] * (2 if doubled else 1)
    # What comes later under the same identifier is another message.
    if arrives:
        if arrives == 2 and lost != "nothing":
            there.send(Ack(PUBREL, 7))
            there.got()
        there.send(Publish(b"in/a", b"1", arrives, False, False, 7))
        there.got()
        assert there.held("q").count(b"1") == (2 if doubled else 1) + 1


def test_a_connection_that_comes_before_the_sync(connected: Any) -> None:
    """PUBREL leaves over the new connection when it is synced that the message has left its queue, and at once then."""
    there = connected({"out": {"source": {"topic": "out/>"}, **ONCE}})
    there.join()
    publish(there, "out/a", b"1", 1)
    (message,) = there.published()
    there.send(Ack(PUBREC, message.packet_id))
    there.client.connection.lost("connection lost")
    there.dial()
    there.send(Connack(True, 0))
    assert there.received() == []
    (release,) = there.got()
    assert (release.packet_type, release.packet_id) == (PUBREL, message.packet_id)
    there.send(Ack(PUBCOMP, message.packet_id))
    assert there.got() == []


def test_a_qos_1_message_is_forgotten_when_the_provider_has_the_answer(connected: Any) -> None:
    """A PINGRESP to a later PINGREQ proves it; then an equal one with DUP is another message."""
    there = connected({"in": {"source": {"address": "in/#"}, **ONCE}})
    there.world.queue("q", "in/#")
    there.join()
    there.send(Publish(b"in/a", b"1", 1, False, False, 7))
    assert there.acks() == [(PUBACK, 7)]
    assert there.session.known
    there.world.advance(0.2)
    assert there.got() == []
    there.got()
    assert not there.session.known
    there.cut()
    there.join(present=True)
    there.send(Publish(b"in/a", b"1", 1, False, True, 7))
    assert there.acks() == [(PUBACK, 7)]
    assert there.held("q") == [b"1", b"1"]


def test_a_full_queue_holds_its_link_alone(connected: Any) -> None:
    """What it refuses is set aside and acknowledged; others go on, and all comes in order when there is room."""
    there = connected(
        {
            "in": {"source": {"address": "in/#"}},
            "other": {"source": {"address": "other/#"}},
            "alarms": {"source": {"address": "alarms/#"}, **MOST_ONCE},
            "out": {"source": {"topic": "out/>"}},
        }
    )
    full = there.world.queue("full", "in/#", max_spooled_msg_count=2)
    there.world.queue("others", "other/#", "alarms/#")
    there.join()
    for number in range(6):
        there.send(Publish(b"in/a", b"%d" % number, 1, False, False, number + 1))
    assert there.acks() == [(PUBACK, number + 1) for number in range(6)]
    assert there.held("full") == [b"0", b"1"]
    assert there.state("in")[0] == "held"
    assert there.changes.count(("in", "held")) == 1
    there.send(Publish(b"other/a", b"o", 1, False, False, 20), Publish(b"alarms/a", b"a"))
    assert there.acks() == [(PUBACK, 20)]
    assert there.held("others") == [b"o", b"a"]
    publish(there, "out/a", b"x", 1)
    assert there.take() == [b"x"]
    before = there.world.vpn().rejected
    for _ in range(6):
        there.world.advance(10)
        there.got()
    # One refusal, not one for each time that it is tried again.
    assert there.world.vpn().rejected == before
    assert there.counters["in"].refused == 1
    taken = []
    while full.spooled_count:
        for row in full.browse(0, 10):
            taken.append(row.message.payload)
            assert full.delete_message(row.msg_id) == ""
        there.world.advance(1)
        there.got()
    assert taken == [b"%d" % number for number in range(6)]
    assert there.state("in") == ("up", "")
    assert there.balanced()


@pytest.mark.parametrize("ends", ["cut", "queue"])
def test_what_was_on_its_way_goes_back(connected: Any, ends: str) -> None:
    """Its outcome is known when the connection breaks, and when the queue is taken from the link."""
    there = connected({"out": {"source": {"queue": "work"}}})
    work = there.world.queue("work", "work")
    there.join()
    publish(there, "work", b"1", 1)
    assert [each.payload for each in there.published()] == [b"1"]
    assert not there.balanced()
    if ends == "cut":
        there.cut()
    else:
        work.unbind_all("Queue Shutdown")
        there.world.settle()
    assert there.counters["out"].returned == 1
    assert there.balanced()


def test_what_was_set_aside_outlives_the_router(connected: Any) -> None:
    """It enters after a restart, in order, though the provider is away."""
    there = connected({"in": {"source": {"address": "in/#"}}})
    there.world.queue("full", "in/#", max_spooled_msg_count=1)
    there.join()
    for number in range(4):
        there.send(Publish(b"in/a", b"%d" % number, 1, False, False, number + 1))
    there.got()
    world = there.world.restart()
    world.attract("full", "in/#")
    there.lose_router(world)
    world.settle()
    assert there.held("full") == [b"0", b"1", b"2", b"3"]
    there.join(present=True)
    assert there.state("in") == ("up", "")


CODES = (0x80, 0x83, 0x87, 0x90, 0x91, 0x95, 0x97, 0x99, 0xFE)
"""Reason codes of refusals; 0x95 may not stand in a PUBACK, and 0xFE is none of the standard's."""


def dead_letters(there: Any) -> list[tuple[bytes, str]]:
    """Payloads in the dead message queue, with their reasons."""
    queue = there.world.vpn().queue("#DEAD_MSG_QUEUE")
    found = []
    for row in queue.browse(0, 100):
        ((_, reason),) = take_out(row.message.block, ("dead-letter-reason",))[1]
        found.append((row.message.payload, reason))
    return found


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("quality", ["duplicates-ok", "once-and-only-once"])
@pytest.mark.parametrize("attempts", [1, 3])
def test_a_refusal_by_code(connected: Any, quality: str, code: int, attempts: int) -> None:
    """Any code is a refusal. After so many the message is a dead letter that says why; the rest crosses, once."""
    there = connected(
        {
            "out": {
                "source": {"topic": "out/>"},
                "quality_of_service": quality,
                "reject_attempts": attempts,
            }
        }
    )
    there.world.queue("#DEAD_MSG_QUEUE")
    there.join()
    for payload in (b"a", b"bad", b"c"):
        publish(there, "out/a", payload, 1)
    kind = PUBACK if quality == "duplicates-ok" else PUBREC
    taken: list[bytes] = []
    refused = 0
    while found := there.got():
        for packet in found:
            if isinstance(packet, Publish) and packet.payload == b"bad":
                refused += 1
                there.send(Ack(kind, packet.packet_id, code, Properties(reason_string="no")))
            elif isinstance(packet, Publish):
                taken.append(packet.payload)
                there.send(Ack(kind, packet.packet_id))
            elif isinstance(packet, Ack):
                there.send(Ack(PUBCOMP, packet.packet_id))
    assert (sorted(taken), refused) == ([b"a", b"c"], attempts)
    ((payload, why),) = dead_letters(there)
    assert payload == b"bad"
    assert f"0x{code:02x}" in why
    assert "(no)" in why
    assert len(there.told) == 1
    assert "out/a" in there.told[0]
    assert there.balanced()


@pytest.mark.parametrize("queue", ["none", "full", "there"])
def test_where_no_dead_message_queue_takes_it(connected: Any, queue: str) -> None:
    """What is refused is told and counted as discarded, unless a dead message queue has it."""
    there = connected({"out": {"source": {"topic": "out/>"}, "reject_attempts": 1}})
    if queue != "none":
        there.world.queue("#DEAD_MSG_QUEUE", max_msg_spool_usage=1 if queue == "full" else 1 << 20)
    there.join()
    publish(there, "out/a", b"bad", 1)
    (packet,) = there.published()
    there.send(Ack(PUBACK, packet.packet_id, 0x87, Properties()))
    there.got()
    counters = there.counters["out"]
    (told,) = there.told
    if queue == "there":
        assert [payload for payload, _ in dead_letters(there)] == [b"bad"]
        assert (counters.dead_letters, counters.discarded.total()) == (1, 0)
        assert "a message was rejected as a dead letter: out/a" in told
    else:
        assert (counters.dead_letters, counters.discarded.counts) == (0, {"refused": 1})
        assert "a message was discarded, since no dead message queue took it: out/a" in told
    assert there.balanced()


@pytest.mark.parametrize(
    ("how", "level"), [("DISCONNECT", 5), *[("closes", level) for level in LEVELS]]
)
@pytest.mark.parametrize("then", ["dead-letter", "park", "skip", "stop"])
@pytest.mark.parametrize("quality", ["duplicates-ok", "once-and-only-once"])
def test_a_refusal_by_closing(
    connected: Any, how: str, quality: str, then: str, level: int
) -> None:
    """The message that ends three connections goes where the link says; nothing else does, or is lost or doubled."""
    links = {
        "out": {"source": {"topic": "out/>"}, "quality_of_service": quality, "then": then},
        "in": {"source": {"address": "in/#"}, **ONCE},
    }
    there = connected(links, level=level)
    there.world.queue("#DEAD_MSG_QUEUE")
    there.world.queue("q", "in/#")
    for payload in (b"a", b"bad", b"c"):
        publish(there, "out/a", payload, 1)
    kind = PUBACK if quality == "duplicates-ok" else PUBREC
    taken: list[bytes] = []
    present = False
    ends = 0
    for _ in range(10):
        found = there.join(present=present)
        present = True
        there.send(Publish(b"in/a", b"i", 1, False, ends > 0, 9))
        ended = False
        while found and not ended:
            for packet in found:
                if isinstance(packet, Publish) and packet.payload == b"bad":
                    ended = True
                    break
                if isinstance(packet, Publish):
                    taken.append(packet.payload)
                    there.send(Ack(kind, packet.packet_id))
                elif isinstance(packet, Ack) and packet.packet_type == PUBREL:
                    there.send(Ack(PUBCOMP, packet.packet_id))
            found = there.got()
        if not ended:
            break
        ends += 1
        if how == "DISCONNECT":
            there.send(Disconnect(0x99))
            there.world.settle()
        else:
            there.cut()
    assert ends == 3
    assert there.held("q") == [b"i"]
    assert len(there.told) == 1
    stays = {
        "dead-letter": lambda: [payload for payload, _ in dead_letters(there)],
        "park": lambda: [
            row.message.payload for row in there.links.all["out"].parking.browse(0, 10)
        ],
        "skip": lambda: [b"bad"] * (there.counters["out"].discarded.total() == 1),
        "stop": lambda: [
            row.message.payload for row in there.links.all["out"].endpoint.browse(0, 1)
        ],
    }
    assert stays[then]() == [b"bad"]
    assert taken == ([b"a"] if then == "stop" else [b"a", b"c"])
    assert there.state("out")[0] == ("stopped" if then == "stop" else "up")
    assert there.balanced()


def test_what_is_innocent_is_not_given_up(connected: Any) -> None:
    """A message that happens to be on its way when connections end, before the provider has proved to live, stays."""
    there = connected({"out": {"source": {"topic": "out/>"}}})
    publish(there, "out/a", b"1", 1)
    for _ in range(10):
        there.join(present=True, pong=False)
        there.cut()
    assert there.told == []
    there.join(present=True)
    assert there.counters["out"].delivered == 0
    assert there.take() == []


@pytest.mark.parametrize("quality", ["duplicates-ok", "once-and-only-once"])
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("away", ["", "unreachable", "ends the login"])
def test_a_provider_that_goes_refuses_nothing(
    connected: Any, quality: str, level: int, away: str
) -> None:
    """A connection that ends is a refusal only where the next attempt reaches the provider."""
    links = {
        "out": {"source": {"topic": "out/>"}, "quality_of_service": quality, "reject_attempts": 1}
    }
    there = connected(links, level=level)
    there.world.queue("#DEAD_MSG_QUEUE")
    there.join()
    publish(there, "out/a", b"1", 1)
    sent = there.published()
    for _ in range(3 if away else 1):
        assert [each.payload for each in sent] == [b"1"]
        there.cut()
        if away == "unreachable":
            there.links.attempt_failed()
        elif away:
            there.dial()
            there.cut()
        sent = [each for each in there.join(present=True) if isinstance(each, Publish)]
    assert [each.payload for each in sent] == ([b"1"] if away else [])
    assert there.counters["out"].refused == (0 if away else 1)
    assert [payload for payload, _ in dead_letters(there)] == ([] if away else [b"1"])
    assert len(there.told) == (0 if away else 1)


def test_subscriptions_of_a_session_that_is_there(connected: Any) -> None:
    """Only what is new is asked for, and what has gone is given up; a lost session asks for all again."""
    there = connected({"a": {"source": {"address": "a/#"}}, "b": {"source": {"address": "b/#"}}})
    assert there.join() == []
    assert there.asked == {"a/#": 1, "b/#": 1}
    there.cut()
    there.dial()
    there.send(Connack(True, 0))
    assert there.got() == []
    assert there.state("a") == there.state("b") == ("up", "")
    there.cut()
    there.dial()
    there.send(Connack(False, 0))
    assert [type(each) for each in there.got()] == [Subscribe, Subscribe]


@pytest.mark.parametrize("level", LEVELS)
def test_what_is_retained_here_does_not_come_again(connected: Any, level: int) -> None:
    """A provider that has lost its session sends all that it retains; the same is not new, another one is."""
    there = connected({"in": {"source": {"address": "in/#"}}}, level=level)
    there.world.queue("q", "in/#")
    there.join()
    there.send(Publish(b"in/a", b"1", 1, True, False, 1), Publish(b"in/b", b"1", 1, True, False, 2))
    there.got()
    there.cut()
    there.dial()
    there.send(Connack(False, 0))
    (request,) = there.got(pings=False)
    there.send(
        Suback(request.packet_id, [1]),
        Publish(b"in/a", b"1", 1, True, False, 1),
        Publish(b"in/b", b"2", 1, True, False, 2),
    )
    assert there.acks() == [(PUBACK, 1), (PUBACK, 2)]
    assert there.held("q") == [b"1", b"1", b"2"]
    assert there.counters["in"].duplicates == 1


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("retained", ["keep", "clear"])
def test_what_is_at_most_once_is_asked_for_again(connected: Any, level: int, retained: str) -> None:
    """Not every provider keeps subscriptions of QoS 0, though it keeps the session; what it retains is not new then.

    Over plain MQTT 3.1.1 what is published to be retained comes first without RETAIN, to who has subscribed.
    """
    source = {"address": "in/#"}
    link = {"source": source, "quality_of_service": "at-most-once", "retained": retained}
    there = connected({"in": link}, level=level)
    there.world.queue("q", "in/#")
    there.join()
    there.send(Publish(b"in/a", b"1", 0, level != 4, False, 0))
    assert there.got() == []
    there.cut()
    there.dial()
    there.send(Connack(True, 0))
    (request,) = there.got(pings=False)
    assert isinstance(request, Subscribe)
    there.send(
        Suback(request.packet_id, [0]),
        Publish(b"in/a", b"1", 0, True, False, 0),
        Publish(b"in/a", b"2", 0, False, False, 0),
    )
    assert there.got() == []
    assert there.held("q") == [b"1", b"2"]
    assert there.counters["in"].duplicates == 1
    assert there.state("in") == ("up", "")


def test_the_path_is_told_and_stops_what_goes_round(connected: Any) -> None:
    """What leaves says where it has been; what has been here does not come in, nor what has gone too far."""
    there = connected(
        {"in": {"source": {"address": "in/#"}}, "out": {"source": {"topic": "out/>"}}}, max_ttl=2
    )
    there.world.queue("q", "in/#")
    there.join()
    publish(there, "out/a", b"1", 1)
    (message,) = there.published()
    assert message.properties.user_properties == [(PATH_NAME, "here/blue")]
    paths = {b"mine": "far/red here/blue", b"far": "a/b c/d", b"good": "a/b", b"none": ""}
    for number, (payload, path) in enumerate(paths.items(), 10):
        pairs = [(PATH_NAME, path), ("colour", "red")] if path else []
        there.send(
            Publish(b"in/a", payload, 1, False, False, number, Properties(user_properties=pairs))
        )
    there.got()
    assert there.held("q") == [b"good", b"none"]
    (first, _) = there.world.vpn().queue("q").browse(0, 10)
    assert first.message.path == ["a/b", "mqtt://provider:1"]
    assert first.message.properties()["colour"] == "red"
    assert PATH_NAME not in first.message.properties()
    assert there.counters["in"].discarded.counts == {"loop-detected": 1, "ttl-exceeded": 1}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("quality", QUALITIES)
def test_nothing_goes_back_to_a_provider(connected: Any, quality: str, level: int) -> None:
    """What has come from it, by another connector or router, stays away from it, in each version."""
    there = connected(
        {
            "out": {"source": {"topic": "out/>"}, "quality_of_service": quality},
            "queue": {"source": {"queue": "work"}, "quality_of_service": quality},
        },
        level=level,
    )
    there.world.queue("work", "work/#")
    there.join()
    for topic in (b"out/a", b"work/a"):
        for path in (["mqtt://provider:1", "far/red"], ["mqtt://other:1"]):
            message = Message(topic, path[0].encode())
            message.path = path
            message.hops = len(path)
            there.world.vpn().publish(message)
    assert there.take() == [b"mqtt://other:1"] * 2
    for link in ("out", "queue"):
        assert there.counters[link].discarded.counts == {"loop-detected": 1}
    assert there.balanced()


@pytest.mark.parametrize("level", LEVELS)
def test_what_is_too_large_is_passed_over(connected: Any, level: int) -> None:
    """A message beyond what may enter is acknowledged, in whatever pieces it comes, and the next one enters."""
    there = connected({"in": {"source": {"address": "in/#"}}}, level=level)
    there.world.queue("q", "in/#")
    there.join()
    if level == 5:
        assert (
            there.connect_packet.properties.maximum_packet_size == there.client.mqtt_connection.most
        )
    huge = encode(Publish(b"in/a", bytes(12_000_000), 1, False, False, 1), level & 0x7F)
    rest = encode(Publish(b"in/a", b"next", 1, False, False, 2), level & 0x7F)
    data = huge + rest
    for at in range(0, len(data), 1_000_003):
        there.raw(data[at : at + 1_000_003])
    assert there.acks() == [(PUBACK, 1), (PUBACK, 2)]
    assert there.held("q") == [b"next"]
    assert there.counters["in"].discarded.counts == {"msg-too-big": 1}


@pytest.mark.parametrize(
    ("topic", "why"),
    [
        (b"in/\xff", "topic-parse-error"),
        (b"in/+", "topic-parse-error"),
        (b"other/a", "not-subscribed"),
    ],
)
def test_topics_that_cannot_enter(connected: Any, topic: bytes, why: str) -> None:
    """What no link takes, and what is no topic, is acknowledged and counted by its reason."""
    there = connected({"in": {"source": {"address": "in/#"}}})
    there.join()
    frame = b"\x32" + bytes((len(topic) + 6,)) + b"\0" + bytes((len(topic),)) + topic
    there.raw(frame + b"\0\x05\0x")
    assert there.acks() == [(PUBACK, 5)]
    found = {**there.client.unclaimed, **there.counters["in"].discarded.counts}
    assert found == {why: 1}


def test_server_keep_alive(connected: Any) -> None:
    """The provider's interval counts, not ours (MQTT 5, 3.2.2.3.14)."""
    there = connected({"in": {"source": {"address": "in/#"}}})
    there.join(server_keep_alive=4)
    there.received(pings=False)
    before = there.client._pings
    there.world.advance(4.1)
    there.received(pings=False)
    assert there.client._pings == before + 1
    there.world.advance(4.1)
    assert there.losses[-1].why == "the provider gives no sign of life"


def test_links_that_overlap(connected: Any) -> None:
    """A provider that sends a copy for each subscription brings a message once, by the first link that takes it."""
    there = connected(
        {
            "one": {"source": {"address": "in/#"}, "target": {"topic": "one/{1}"}},
            "all": {"source": {"address": "#"}, "target": {"topic": "all/{1}"}},
        }
    )
    there.world.queue("q", "#")
    there.join()
    for number, identifiers in enumerate(([1], [2], [2, 1]), 1):
        properties = Properties(subscription_identifiers=identifiers)
        there.send(Publish(b"in/a", b"%d" % number, 1, False, False, number, properties))
    assert [kind for kind, _ in there.acks()] == [PUBACK] * 3
    assert there.held("q") == [b"1", b"3"]


def test_a_link_that_goes_is_given_up_at_the_provider(connected: Any) -> None:
    """What no link brings in any more is unsubscribed over the next connection."""
    there = connected({"a": {"source": {"address": "a/#"}}, "b": {"source": {"address": "b/#"}}})
    there.join()
    there.cut()
    del there.configured.links["b"]
    there.begin(there.session)
    there.dial()
    there.send(Connack(True, 0))
    (packet,) = there.got()
    assert isinstance(packet, Unsubscribe)
    assert packet.filters == ["b/#"]


@pytest.mark.parametrize("level", LEVELS)
def test_an_echo_is_refused(connected: Any, level: int) -> None:
    """A provider of plain MQTT 3.1.1 would send back what leaves: the link that takes it in is refused, no other."""
    there = connected(
        {
            "in": {"source": {"address": "t/#"}},
            "other": {"source": {"address": "u/#"}},
            "out": {"source": {"topic": "t/>"}},
        },
        level=level,
    )
    there.join()
    states = {name: there.state(name)[0] for name in ("in", "other", "out")}
    assert states == {"in": "refused" if level == 4 else "up", "other": "up", "out": "up"}
    assert ("would bring back what link out takes out" in there.state("in")[1]) == (level == 4)


@pytest.mark.parametrize("level", LEVELS)
def test_a_link_with_nowhere_to_go_stops_nothing(connected: Any, level: int) -> None:
    """Where its own queue is full too, some messages wait in memory, counted, and the rest is left to the provider.

    What leaves goes on, and all come in order over a new connection when there is room.
    """
    links = {"in": {"source": {"address": "in/#"}, **ONCE}, "out": {"source": {"topic": "out/>"}}}
    there = connected(links, level=level)
    full = there.world.queue("full", "in/#", max_spooled_msg_count=1)
    there.links.all["in"].aside.endpoint.settings.max_spooled_msg_count = 1
    there.join()
    size = 100_000
    for number in range(300):
        payload = b"%d " % number + bytes(size)
        there.send(Publish(b"in/a", payload, 2, False, False, number + 1))
        if number % 50 == 49:
            there.got()
    link = there.links.all["in"]
    assert link.shed
    assert 0 < len(link.waiting) < 100
    assert there.account.held >= len(link.waiting) * size
    assert not there.client.connection.paused
    publish(there, "out/a", b"x", 1)
    assert there.take() == [b"x"]
    waiting = len(link.waiting)
    for _ in range(waiting + 10):
        for row in full.browse(0, 10):
            assert full.delete_message(row.msg_id) == ""
        there.world.settle()
        if there.losses:
            break
    assert there.losses[-1].renews
    assert there.account.held == 0
    assert there.balanced()


def test_what_is_set_aside_takes_little_memory(connected: Any) -> None:
    """Large messages that wait in the link's own queue stay in the store."""
    there = connected({"in": {"source": {"address": "in/#"}}})
    there.world.queue("full", "in/#", max_spooled_msg_count=1)
    there.join()
    for number in range(30):
        there.send(Publish(b"in/a", bytes(3_000_000), 1, False, False, number + 1))
        there.got()
    aside = there.links.all["in"].aside
    assert aside.endpoint.spooled_count == 29
    assert aside.bytes_out < 12_000_000


def test_a_path_that_nobody_could_carry(connected: Any) -> None:
    """Whatever a client writes into the property, its message enters, and bridges and connectors can send it on."""
    there = connected({"in": {"source": {"address": "in/#"}}})
    there.world.queue("q", "in/#")
    there.join()
    paths = ("x" * 300, "%ff/%00", "/", "a" * 60_000, " " * 500, "é" * 200)
    for number, path in enumerate(paths, 1):
        properties = Properties(user_properties=[(PATH_NAME, path)])
        there.send(Publish(b"in/a", b"%d" % number, 1, False, False, number, properties))
    assert [kind for kind, _ in there.acks()] == [PUBACK] * len(paths)
    rows = there.world.vpn().queue("q").browse(0, 10)
    assert len(rows) == len(paths)
    for row in rows:
        extension = Extension(row.message.path)
        extension.hops = row.message.hops
        assert encode_extension(extension)
        there.client.publishing.frame(row.message, b"out", False, 0)
    # A path of many long names is told as far as a string of MQTT goes.
    assert 50 < len(shown(["é" * 120] * 250).split(" ")) < 250


def test_a_connector_is_one_connection(connected: Any) -> None:
    """However many links it has, and none while it is down; what it sends and receives counts for its message VPN."""
    links = {f"in{number}": {"source": {"address": f"in/{number}"}} for number in range(20)}
    there = connected({**links, "out": {"source": {"topic": "out/>"}}})
    vpn = there.world.vpn()
    assert len(vpn.publishers) == 0
    there.join()
    assert len(vpn.publishers) == 1
    there.send(Publish(b"in/3", b"12", 1, False, False, 1))
    there.got()
    publish(there, "out/a", b"x", 1)
    assert there.take() == [b"x"]
    there.cut()
    assert len(vpn.publishers) == 0
    totals = vpn.totals()
    # The message that came in, the one of the local publisher, and the one that left.
    assert (totals.rx_msg_count, totals.tx_msg_count) == (2, 1)


@pytest.mark.parametrize("quality", ["duplicates-ok", "once-and-only-once"])
@pytest.mark.parametrize("level", LEVELS)
def test_a_provider_that_answers_all_but_one(connected: Any, quality: str, level: int) -> None:
    """A message without an answer for too long counts as one that ends the connection; the rest crosses, once."""
    there = connected(
        {"out": {"source": {"topic": "out/>"}, "quality_of_service": quality}},
        level=level,
        provider={"url": "mqtt://127.0.0.1:1", "answer_timeout": 10},
    )
    there.world.queue("#DEAD_MSG_QUEUE")
    for payload in (b"a", b"bad", b"c"):
        publish(there, "out/a", payload, 1)
    kind = PUBACK if quality == "duplicates-ok" else PUBREC
    taken: list[bytes] = []
    present, lives = False, 0

    def take(packets: list[Packet]) -> None:
        stuck = False
        for packet in packets:
            # From the bad one on this provider answers no message, as RabbitMQ does whose channel has failed.
            stuck = stuck or (isinstance(packet, Publish) and packet.payload == b"bad")
            if isinstance(packet, Publish) and not stuck:
                taken.append(packet.payload)
                there.send(Ack(kind, packet.packet_id))
            elif isinstance(packet, Ack):
                there.send(Ack(PUBCOMP, packet.packet_id))

    while not there.told and lives < 10:
        lives += 1
        ended = len(there.losses)
        take(there.join(present=present))
        present = True
        for _ in range(40):
            take(there.got())
            if len(there.losses) > ended:
                break
            there.world.advance(1)
        else:
            break
        assert "has not answered a message for" in there.losses[-1].why
    take(there.join(present=True))
    for _ in range(5):
        take(there.got())
    assert sorted(taken) == [b"a", b"c"]
    ((payload, why),) = dead_letters(there)
    assert payload == b"bad"
    assert "has not answered a message for 1" in why
    assert there.balanced()


@pytest.mark.parametrize("level", LEVELS)
def test_a_provider_that_answers_no_subscribe(connected: Any, level: int) -> None:
    """After three connections the link is refused, which says why; the others of the connector go on."""
    there = connected(
        {"in": {"source": {"address": "in/#"}}, "out": {"source": {"topic": "out/>"}}},
        level=level,
        provider={"url": "mqtt://127.0.0.1:1", "answer_timeout": 10},
    )
    for number in range(3):
        there.join(present=number > 0, answers=False)
        for _ in range(20):
            there.world.advance(1)
            there.got()
            if len(there.losses) > number:
                break
        loss = there.losses[-1]
        assert "has not answered SUBSCRIBE for 1" in loss.why
        assert (loss.asked, loss.link) == ("in", "")
    there.join(present=True, answers=False)
    state, why = there.state("in")
    assert state == "refused"
    assert "has not answered SUBSCRIBE" in why
    assert "in/#" in why
    publish(there, "out/a", b"x", 1)
    assert there.take() == [b"x"]
    assert len(there.losses) == 3


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("code", [3, 0x10, 0x7F])
def test_a_grant_that_mqtt_has_not(connected: Any, level: int, code: int) -> None:
    """It is no grant (MQTT-3.9.3-2)."""
    there = connected({"in": {"source": {"address": "in/#"}}}, level=level)
    there.dial()
    there.send(Connack(False, 0))
    (request,) = there.got(pings=False)
    body = request.packet_id.to_bytes(2, "big") + (b"\0" if level == 5 else b"") + bytes([code])
    there.raw(bytes([0x90, len(body)]) + body)
    assert there.state("in") == (
        "refused",
        f"the provider grants QoS {code} for in/#, which MQTT has not",
    )


@pytest.mark.parametrize("alive", [True, False])
@pytest.mark.parametrize("timeout_s", [0, 10])
def test_a_slow_provider(connected: Any, alive: bool, timeout_s: int) -> None:
    """It is given its time, without end where that is 0; whether it lives is asked before it is given up."""
    there = connected(
        {"out": {"source": {"topic": "out/>"}}},
        provider={"url": "mqtt://127.0.0.1:1", "answer_timeout": timeout_s},
    )
    there.join()
    publish(there, "out/a", b"1", 1)
    (message,) = there.published()
    for _ in range(9):
        there.world.advance(1)
        assert there.received(pings=alive) == []
    assert there.losses == []
    for _ in range(15):
        there.world.advance(1)
        there.received(pings=alive)
    # One that does not even answer PINGREQ is for the keep-alive.
    assert len(there.losses) == (1 if alive and timeout_s else 0)
    if not there.losses:
        there.send(Ack(PUBACK, message.packet_id))
        assert there.counters["out"].delivered == 1


def test_a_release_without_an_answer(connected: Any) -> None:
    """A provider that never says PUBCOMP is connected to anew, and no message is blamed."""
    there = connected(
        {"out": {"source": {"topic": "out/>"}, **ONCE}},
        provider={"url": "mqtt://127.0.0.1:1", "answer_timeout": 10},
    )
    there.join()
    publish(there, "out/a", b"1", 1)
    (message,) = there.published()
    there.send(Ack(PUBREC, message.packet_id))
    there.got()
    for _ in range(20):
        there.world.advance(1)
        there.got()
    (loss,) = there.losses
    assert (loss.link, loss.message_id) == ("", 0)
    (release,) = there.join(present=True)
    assert isinstance(release, Ack)
    there.send(Ack(PUBCOMP, release.packet_id))
    assert there.session.releasing == {}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("first", ["disabled", "refused", "carried"])
def test_the_next_link_takes_what_the_first_does_not(
    connected: Any, first: str, level: int
) -> None:
    """A link that is disabled or refused hides no other one that takes the same topics."""
    there = connected(
        {
            "one": {
                "source": {"address": "in/+"},
                "target": {"topic": "one/{1}"},
                "enabled": first != "disabled",
            },
            "two": {"source": {"address": "in/#"}, "target": {"topic": "two/{1}"}},
        },
        level=level,
    )
    for name in ("one", "two"):
        there.world.queue(name, f"{name}/#")
    there.dial()
    there.send(Connack(False, 0, Properties()))
    for packet in there.got():
        if isinstance(packet, Subscribe):
            refused = first == "refused" and packet.requests[0].filter == "in/+"
            there.send(Suback(packet.packet_id, [0x80 if refused else 1]))
    there.got()
    there.send(Publish(b"in/a", b"1", 1, packet_id=1))
    there.acks()
    held = {name: there.held(name) for name in ("one", "two")}
    assert held == (
        {"one": [b"1"], "two": []} if first == "carried" else {"one": [], "two": [b"1"]}
    )


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_what_nobody_wants_counts_once(connected: Any, qos: int) -> None:
    """At the link and at the message VPN, however it came."""
    there = connected({"in": {"source": {"address": "in/#"}, **ONCE}})
    there.join()
    there.send(Publish(b"in/1", b"x", qos, packet_id=1 if qos else 0))
    there.got()
    assert dict(there.counters["in"].discarded.counts) == {"no-subscription-match": 1}
    assert there.world.vpn().totals().discards == {"no-subscription-match": 1}


class EndsForOne:
    """A provider that ends the connection when it gets the payload `bad`, so that its last answers are lost with it.

    `taken` counts what it has taken, `owed` are the identifiers of messages of its own that are not acknowledged.
    """

    def __init__(self, there: Any) -> None:
        self._there = there
        self._known: set[int] = set()
        self.taken: Counter[bytes] = Counter()
        self.owed = [1, 2, 3]
        self.lives = 0

    def live(self) -> None:
        """Serve one connection, until it ends or nothing more comes."""
        there = self._there
        there.dial()
        self.lives += 1
        again = self.lives > 1
        messages = [Publish(b"in/a", b"%d" % one, 1, False, again, one) for one in self.owed]
        there.send(Connack(again, 0, Properties()), *messages)
        while found := there.got():
            answers: list[Packet] = []
            for packet in found:
                if isinstance(packet, Publish) and packet.payload == b"bad":
                    there.cut()
                    return
                answers += self._answers(packet)
            there.send(*answers)

    def _answers(self, packet: Packet) -> list[Packet]:
        if isinstance(packet, Subscribe):
            return [Suback(packet.packet_id, [1])]
        if isinstance(packet, Ack) and packet.packet_type == PUBACK:
            self.owed.remove(packet.packet_id)
        elif isinstance(packet, Ack):
            self._known.discard(packet.packet_id)
            return [Ack(PUBCOMP, packet.packet_id)]
        elif isinstance(packet, Publish):
            if packet.qos == 1 or packet.packet_id not in self._known:
                self.taken[packet.payload] += 1
            if packet.qos == 1:
                return [Ack(PUBACK, packet.packet_id)]
            self._known.add(packet.packet_id)
            return [Ack(PUBREC, packet.packet_id)]
        return []


@pytest.mark.parametrize("quality", ["duplicates-ok", "once-and-only-once"])
@pytest.mark.parametrize("before", [0, 1, 30, 200])
def test_the_one_that_ends_connections_is_found(connected: Any, quality: str, before: int) -> None:
    """Within few connections, behind however many; what came with one is acknowledged before the suspect is sent."""
    links = {
        "out": {"source": {"topic": "out/>"}, "quality_of_service": quality},
        "in": {"source": {"address": "in/#"}},
    }
    there = connected(links)
    there.world.queue("#DEAD_MSG_QUEUE")
    there.world.queue("q", "in/#")
    payloads = [b"%d" % number for number in range(before + 10)]
    for payload in [*payloads[:before], b"bad", *payloads[before:]]:
        publish(there, "out/a", payload, 1)
    provider = EndsForOne(there)
    while provider.lives < 30 and set(provider.taken) != set(payloads):
        provider.live()
    assert set(provider.taken) == set(payloads)
    assert provider.lives <= 13
    # The first connection may end before the acknowledgements are out, no other one.
    assert provider.owed == []
    assert len(there.held("q")) <= 6
    most = 1 if quality == "once-and-only-once" else 8
    assert max(provider.taken.values()) <= most
    assert [payload for payload, _ in dead_letters(there)] == [b"bad"]
    assert there.balanced()


class Forgetful:
    """A provider that has room for `room` unfinished messages of QoS 2, and drops others without a word."""

    def __init__(self, there: Any, room: int) -> None:
        self._there = there
        self._room = room
        self._held: dict[int, bytes] = {}
        self.most = 0
        self.taken: Counter[bytes] = Counter()
        self.lives = 0

    def live(self, packets: int = 1 << 30) -> None:
        """Serve one connection, until so many packets have come, or nothing more comes."""
        there = self._there
        there.dial()
        self.lives += 1
        there.send(Connack(self.lives > 1, 0, Properties()))
        while found := there.got():
            answers: list[Packet] = []
            for packet in found:
                packets -= 1
                answers += self._answers(packet)
            if packets <= 0:
                # The answers are lost.
                there.cut()
                return
            there.send(*answers)

    def _answers(self, packet: Packet) -> list[Packet]:
        if isinstance(packet, Publish):
            if packet.packet_id in self._held or len(self._held) < self._room:
                self._held[packet.packet_id] = packet.payload
            self.most = max(self.most, len(self._held))
            return [Ack(PUBREC, packet.packet_id)]
        if isinstance(packet, Ack) and packet.packet_type == PUBREL:
            payload = self._held.pop(packet.packet_id, None)
            if payload is not None:
                self.taken[payload] += 1
            return [Ack(PUBCOMP, packet.packet_id)]
        return []


@pytest.mark.parametrize("level", [0x84, 4])
@pytest.mark.parametrize("source", ["topic", "queue", "both"])
@pytest.mark.parametrize("cuts", [[], [1], [3, 7, 12, 25], [30, 31, 2, 2, 2, 50]])
def test_a_provider_that_cannot_say_how_many_it_takes(
    connected: Any, level: int, source: str, cuts: list[int]
) -> None:
    """Over MQTT 3.1.1 no more messages of QoS 2 are unfinished than mosquitto takes, and none is lost."""
    links = {
        "out": {"source": {"topic": "out/>"}, **ONCE},
        "work": {"source": {"queue": "w"}, **ONCE},
    }
    if source != "both":
        del links["work" if source == "topic" else "out"]
    there = connected(links, level=level)
    there.world.queue("w", "w/#")
    payloads = [b"%d" % number for number in range(60)]
    for number, payload in enumerate(payloads):
        work = source == "queue" or (source == "both" and number % 2)
        publish(there, "w/a" if work else "out/a", payload, 1)
    provider = Forgetful(there, 20)
    for packets in cuts:
        provider.live(packets)
    provider.live()
    assert provider.taken == Counter(payloads)
    # One more where all that is unfinished is of a link that has its turn later.
    assert provider.most <= 11
    assert there.balanced()


@pytest.mark.parametrize("source", ["topic", "queue"])
def test_a_link_that_goes_and_comes(connected: Any, source: str) -> None:
    """What the provider has not taken when a link goes is sent again, under its identifier, when the link is back."""
    links = {
        "out": {"source": {"topic": "out/>"} if source == "topic" else {"queue": "w"}, **ONCE},
        "other": {"source": {"topic": "other/>"}},
    }
    there = connected(links)
    there.world.queue("w", "w/#")
    there.join()
    publish(there, "out/a" if source == "topic" else "w/a", b"1", 1)
    (message,) = there.published()
    there.cut()
    configured = there.configured
    there.configured = configured.model_copy(update={"links": {"other": configured.links["other"]}})
    there.links.close()
    there.begin(there.session)
    assert there.join(present=True) == []
    there.cut()
    there.configured = configured
    there.links.close()
    there.begin(there.session)
    (again,) = there.join(present=True)
    assert isinstance(again, Publish)
    assert (again.packet_id, again.dup, again.payload) == (message.packet_id, True, b"1")


@pytest.mark.parametrize("answers", [True, False])
def test_a_connector_that_goes(connected: Any, answers: bool) -> None:
    """What has left its queue is released before the session at the provider ends, also after a lost answer."""
    there = connected({"out": {"source": {"topic": "out/>"}, **ONCE}})
    there.join()
    publish(there, "out/a", b"1", 1)
    (message,) = there.published()
    there.send(Ack(PUBREC, message.packet_id))
    if answers:
        there.got()
    there.cut()
    there.session.leave()
    there.dial(leaving=True)
    assert not there.connect_packet.clean_start
    there.send(Connack(True, 0, Properties()))
    (release,) = there.got()
    assert isinstance(release, Ack)
    assert (release.packet_type, release.packet_id) == (PUBREL, message.packet_id)
    there.send(Ack(PUBCOMP, release.packet_id))
    assert isinstance(there.got()[-1], Disconnect)
    assert there.session.releasing == {}
    there.dial(leaving=True)
    assert there.connect_packet.clean_start


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("source", ["topic", "queue"])
@pytest.mark.parametrize("answered", ["before", "behind", "never"])
@pytest.mark.parametrize("removed", [True, False])
def test_a_queue_that_is_shut_down(
    connected: Any, source: str, answered: str, level: int, removed: bool
) -> None:
    """What is on its way then is released when it leaves the queue, and not before: the provider has it once."""
    links = {"out": {"source": {"topic": "out/>"} if source == "topic" else {"queue": "w"}, **ONCE}}
    there = connected(links, level=level)
    there.world.queue("w", "w/#")
    there.join()
    publish(there, "out/a" if source == "topic" else "w/a", b"1", 1)
    (message,) = there.published()
    if answered == "before":
        there.send(Ack(PUBREC, message.packet_id))
        assert [kind for kind, _ in there.acks()] == [PUBREL]
    queue = there.links.outward[0].endpoint
    open_, shut = queue.settings, queue.settings.copy()
    shut.egress_enabled = False
    queue.take_settings(shut)
    if answered == "behind":
        there.send(Ack(PUBREC, message.packet_id))
        assert there.got() == []
    if removed:
        # As a change of the configuration does: first the queues, then the links.
        there.links.close()
    there.cut()
    if removed:
        there.begin(there.session)
    released = there.join(present=True)
    assert [each for each in released if isinstance(each, Publish)] == []
    assert bool(released) == (answered == "before")
    there.cut()
    queue.take_settings(open_)
    again = [each for each in there.join(present=True) if isinstance(each, Publish)]
    expected = [] if answered == "before" else [(message.packet_id, True, b"1")]
    assert [(each.packet_id, each.dup, each.payload) for each in again] == expected
