"""Lists of dead message queues of links: which entry takes a message, when, with what it says, and where it breaks."""

import re
from typing import Any

import pytest

from vpnrouter.core.guaranteed.dead_letters import NAMES
from vpnrouter.wire.mqtt.packets import Ack, Publish
from vpnrouter.wire.mqtt.properties import Properties, decode_properties
from vpnrouter.wire.mqtt.publish_block import publish_block_with
from vpnrouter.wire.mqtt.reason import PUBACK, PUBLISH, PUBREC
from vpnrouter.wire.mqtt.user_properties import take_out

INTERVAL_S = 2
ATTEMPTS = 3

QUEUES: dict[str, dict[str, Any]] = {
    "full": {"max_msg_spool_usage": 1},
    "shut": {"ingress_enabled": False},
    "small": {"max_msg_size": 1},
    "takes": {},
}
"""Queues that may stand in a list; `absent` is one that is not there."""

TOPICS = {"t/full": "full", "t/takes": "takes"}
"""Topics that may stand in a list, and the queue that has each; nothing has `t/nobody`, and the link has `out/own`."""


def entry(name: str, **more: Any) -> dict[str, Any]:
    """An entry of a list."""
    kind = "topic" if "/" in name else "queue"
    return {kind: name, "attempts": ATTEMPTS, "interval": INTERVAL_S * 1000, **more}


def linked(connected: Any, *entries: dict[str, Any], **more: Any) -> Any:
    """A connector whose link has this list, and the queues."""
    link = {
        "source": {"topic": "out/>"},
        "reject_attempts": 1,
        "dead_msg_queues": list(entries),
        **more,
    }
    there = connected({"out": link})
    for name, settings in QUEUES.items():
        topics = [topic for topic, queue in TOPICS.items() if queue == name]
        there.world.queue(name, *topics, **settings)
    there.world.queue("work", "out/#")
    there.join()
    return there


def publish(there: Any, payload: bytes = b"bad", topic: str = "out/a", **more: Any) -> None:
    """Let a client publish, with these properties."""
    client = there.world.join("p")
    client.pub(topic, payload, 1, 1, properties=Properties(**more))
    client.got()
    client.disconnect()


def refuse(there: Any, code: int = 0x87, found: list[Any] | None = None) -> list[Any]:
    """Have the provider refuse what is called bad, of what comes or was `found`, and take the rest; what comes then."""
    for packet in there.got() if found is None else found:
        if isinstance(packet, Publish):
            bad = packet.payload.startswith(b"bad")
            said = Properties(reason_string="no" if bad else None)
            there.send(Ack(PUBACK, packet.packet_id, code if bad else 0, said))
    return there.got()


def places(there: Any) -> dict[str, list[bytes]]:
    """Queues with something in them."""
    return {name: held for name in QUEUES if (held := there.held(name))}


def wait(there: Any, seconds: float) -> None:
    """Let time pass."""
    there.world.advance(seconds)
    there.got()


LISTS = {
    "the first": (["takes"], 0),
    "after a full one": (["full", "takes"], 1),
    "after a full one and an absent one": (["full", "absent", "takes"], 2),
    "after those that never can": (["shut", "small", "takes"], 2),
    "a topic": (["t/takes"], 0),
    "after topics that nobody keeps": (["t/nobody", "t/full", "t/takes"], 2),
    "mixed": (["full", "t/nobody", "takes"], 2),
}


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("source", ["topic", "queue"])
def test_entries_are_tried_in_order(connected: Any, name: str, source: str) -> None:
    """Each as often as it says, with its interval between; then the next one, at once."""
    names, refusing = LISTS[name]
    there = linked(
        connected, *map(entry, names), source={source: "out/>" if source == "topic" else "work"}
    )
    publish(there, b"good")
    publish(there, b"bad")
    refuse(there)
    waits = refusing * (ATTEMPTS - 1)
    for number in range(waits):
        assert places(there) == {}, number
        assert there.links.all["out"].in_flight == 1
        wait(there, INTERVAL_S)
    assert places(there) == {"takes": [b"bad"]}
    counters = there.counters["out"]
    assert (counters.delivered, counters.dead_letters, counters.discarded.total()) == (1, 1, 0)
    assert there.balanced()
    ((told,), stays) = there.told, there.stays
    shown = f"{'topic' if names[-1].startswith('t/') else 'queue'} {names[-1]}"
    assert told.startswith(f"out: {shown} has a message as a dead letter: out/a, id ")
    assert "0x87" in told
    assert stays == []
    assert there.links.all["out"].endpoint.counters.imbalance(0) == 0


def test_no_wait_is_cut_short(connected: Any) -> None:
    """An interval is over when it is over, and not a moment before."""
    there = linked(connected, entry("full"), entry("takes"))
    publish(there)
    refuse(there)
    wait(there, INTERVAL_S)
    wait(there, INTERVAL_S - 0.001)
    assert places(there) == {}
    wait(there, 0.001)
    assert places(there) == {"takes": [b"bad"]}


NONE_TAKES = (["full"], ["absent", "shut"], ["t/nobody", "t/full"], ["t/+"], ["out/own"])


@pytest.mark.parametrize("names", NONE_TAKES, ids=str)
def test_where_all_refuse(connected: Any, names: list[str]) -> None:
    """It is told once, with what is essential of the message, which stays and is tried again; the rest crosses."""
    there = linked(connected, *map(entry, names))
    there.links.all["out"].endpoint.settings.reject_behavior = 0
    there.world.vpn().queue("full").settings.reject_behavior = 2
    publish(there, b"good")
    publish(there, b"bad", correlation_data=b"c-1", response_topic="answers/1")
    publish(there, b"rest")
    refuse(there)
    link = there.links.all["out"]
    for _ in range(2 * ATTEMPTS * len(names) + 1):
        wait(there, INTERVAL_S)
    assert (places(there), there.told) == ({}, [])
    (text,) = there.stays
    assert "out/a, id " in text
    assert "JMSReplyTo answers/1" in text
    assert "priority 4, 3 bytes" in text
    assert "0x87" in text
    for name in names:
        assert f" {name}: " in text
    assert (link.in_flight, link.counters.delivered) == (1, 2)
    assert there.held("full") == []
    # What is in its queue is nobody else's; room lets it go where it is to go.
    assert [row.undelivered for row in link.endpoint.browse(0, 10)] == [False]
    there.world.queue("late", "t/nobody", "t/full")
    if "t/nobody" in names:
        for _ in range(ATTEMPTS * len(names)):
            wait(there, INTERVAL_S)
        assert there.held("late") == [b"bad"]
        assert there.balanced()


@pytest.mark.parametrize("ends", ["connection", "connector", "router"])
def test_what_waits_for_a_dead_message_queue_is_not_lost(connected: Any, ends: str) -> None:
    """It goes on waiting over connections; a connector that begins anew, and a router, have it in the queue again."""
    there = linked(connected, entry("full"))
    publish(there)
    refuse(there)
    if ends == "connection":
        there.cut()
        assert there.links.all["out"].in_flight == 1
        there.world.vpn().queue("full").settings.max_msg_spool_usage = 1 << 20
        wait(there, INTERVAL_S)
        wait(there, INTERVAL_S)
        assert places(there) == {"full": [b"bad"]}
        assert there.join(present=True) == []
    else:
        if ends == "connector":
            there.cut()
            there.links.close()
            assert there.counters["out"].returned == 1
            there.world.settle()
            there.begin(there.session)
        else:
            there.counters.clear()
            there.lose_router(there.world.restart())
        there.world.vpn().queue("full").settings.max_msg_spool_usage = 1 << 20
        (again,) = [each for each in there.join(present=True) if isinstance(each, Publish)]
        assert again.payload == b"bad"
        there.send(Ack(PUBACK, again.packet_id, 0x87))
        there.got()
        assert places(there) == {"full": [b"bad"]}
    assert there.balanced()


@pytest.mark.parametrize("synced", [False, True])
@pytest.mark.parametrize("names", [["takes"], ["t/takes"], ["full", "takes"]], ids=str)
def test_a_crash_neither_loses_nor_doubles(connected: Any, names: list[str], synced: bool) -> None:
    """The dead letter is there in the unit in which the message leaves: both are in the store, or neither."""
    there = linked(connected, *map(entry, names))
    publish(there)
    (packet,) = there.published()
    there.send(Ack(PUBACK, packet.packet_id, 0x87))
    for _ in range((len(names) - 1) * (ATTEMPTS - 1)):
        there.world.settle()
        there.world.advance(INTERVAL_S)
    if synced:
        there.world.settle()
    there.lose_router(there.world.restart())
    own = [row.message.payload for row in there.links.all["out"].endpoint.browse(0, 10)]
    dead = there.held("takes")
    assert (own, dead) == (([], [b"bad"]) if synced else ([b"bad"], []))


TTLS = {
    "its own": (0, 100, 100),
    "of the entry": (30, 100, 30),
    "of the entry, longer": (300, 100, 300),
    "none": (0, None, 0),
    "one for a message without": (30, None, 30),
}


@pytest.mark.parametrize("name", TTLS)
@pytest.mark.parametrize("to", ["takes", "t/takes"])
def test_life_time_of_the_dead_letter(connected: Any, to: str, name: str) -> None:
    """What the entry says counts from now on; else the message keeps what it has left."""
    ttl, own, left = TTLS[name]
    there = linked(connected, entry(to, ttl=ttl))
    publish(there, message_expiry_interval=own)
    there.world.advance(10)
    refuse(there)
    ((row,), now_ns) = there.world.vpn().queue("takes").browse(0, 10), there.world.now_ns
    expected = 0 if not left else left - 10 * (ttl == 0)
    seconds = (row.message.expires_ns - now_ns) / 1e9 if row.message.expires_ns else 0
    assert seconds == pytest.approx(expected, abs=1)


def test_a_dead_letter_that_would_have_expired(connected: Any) -> None:
    """Where the life time is over already, the dead letter has none."""
    there = linked(connected, entry("takes"))
    there.links.all["out"].endpoint.settings.respect_ttl_enabled = False
    publish(there, message_expiry_interval=5)
    found = there.got()
    there.world.advance(6)
    there.send(Ack(PUBACK, found[0].packet_id, 0x87))
    there.got()
    (row,) = there.world.vpn().queue("takes").browse(0, 10)
    assert row.message.expires_ns == 0


def said(message: Any) -> dict[str, list[str]]:
    """What a dead letter says, by property."""
    found: dict[str, list[str]] = {}
    for name, text in take_out(message.block, NAMES)[1]:
        found.setdefault(name, []).append(text)
    return found


MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("forged", [False, True])
def test_what_a_dead_letter_says(connected: Any, listed: bool, forged: bool) -> None:
    """Each property once, with or without a list; what a publisher says under these names is replaced."""
    more = {"source": {"queue": "work"}, "target": {"address": "far/{1}"}}
    there = linked(connected, *([entry("takes")] if listed else []), **more)
    there.world.queue("#DEAD_MSG_QUEUE")
    forgeries = [(name, "forged") for name in NAMES]
    publish(there, user_properties=[("colour", "red"), ("message-id", "id-7"), *forgeries * forged])
    refuse(there)
    (row,) = there.world.vpn().queue("takes" if listed else "#DEAD_MSG_QUEUE").browse(0, 10)
    found = said(row.message)
    times = [found.pop(name) for name in ("dead-letter-time", "dead-letter-arrival-time")]
    assert all(MOMENT.fullmatch(text) for (text,) in times)
    (reason,) = found.pop("dead-letter-reason")
    assert "0x87" in reason
    assert found == {
        "dead-letter-queue": ["forged"] * forged + ["work"],
        "dead-letter-cause": ["refused"],
        "dead-letter-by": ["connector there/out"],
        "dead-letter-source": ["work"],
        "dead-letter-source-at": ["here/blue"],
        "dead-letter-topic": ["out/a"],
        "dead-letter-target": ["far/out/a"],
        "dead-letter-target-at": ["mqtt://provider:1"],
        "dead-letter-message-id": ["id-7"],
    }
    assert row.message.text_property("colour") == "red"
    assert there.balanced()


def test_what_is_not_eligible(connected: Any) -> None:
    """Where its queue respects that, it is discarded and counted, and no dead message queue gets it."""
    there = linked(connected, entry("takes"))
    there.links.all["out"].endpoint.settings.respect_dmq_eligible_enabled = True
    publish(there, user_properties=[("dmq-eligible", "false")])
    refuse(there)
    assert places(there) == {}
    assert there.counters["out"].discarded.counts == {"refused": 1}
    assert there.balanced()


def test_so_much_waits_that_the_link_takes_no_more(connected: Any) -> None:
    """One message beyond the bound is taken out; then the link is held until there is room."""
    there = linked(connected, entry("full"))
    for number in range(4):
        publish(there, b"bad%d" % number + bytes(3_000_000))
    found = refuse(there)
    while found:
        found = refuse(there, found=found)
    assert there.state("out") == ("held", "no dead message queue takes what it has given up")
    link = there.links.all["out"]
    assert (len(link.undelivered.unacked), link.endpoint.spooled_count) == (3, 4)
    there.world.vpn().queue("full").settings.max_msg_spool_usage = 1 << 30
    there.world.advance(INTERVAL_S)
    refuse(there)
    assert there.state("out") == ("up", "")
    assert len(there.held("full")) == 4
    assert there.balanced()


# -- an address at the provider ----------------------------------------------------------------------


def address(**more: Any) -> dict[str, Any]:
    """An entry that is an address."""
    return {"address": "dead/{1}", "attempts": 2, "interval": INTERVAL_S * 1000, **more}


def test_an_address_at_the_provider(connected: Any) -> None:
    """The dead letter is sent there, and leaves when the provider has it; each link is in balance."""
    there = linked(connected, entry("full"), address())
    publish(there)
    refuse(there)
    for _ in range(ATTEMPTS - 2):
        wait(there, INTERVAL_S)
        assert there.counters["out"].dead_letters == 0
    there.world.advance(INTERVAL_S)
    (letter,) = there.published()
    assert (letter.topic, letter.payload, letter.qos) == (b"dead/out/a", b"bad", 1)
    pairs = dict(letter.properties.user_properties)
    assert pairs["dead-letter-by"] == "connector there/out"
    assert there.counters["out"].dead_letters == 1
    there.send(Ack(PUBACK, letter.packet_id))
    assert there.got() == []
    assert there.counters["out/dead/2"].delivered == 1
    assert there.balanced()


def test_a_dead_letter_at_least_once(connected: Any) -> None:
    """A connection or a router that ends before the answer costs a second copy, and none is lost."""
    there = linked(connected, address())
    publish(there)
    (letter,) = refuse(there)
    there.cut()
    (again,) = [each for each in there.join(present=True) if isinstance(each, Publish)]
    assert (again.topic, again.payload) == (b"dead/out/a", b"bad")
    there.counters.clear()
    there.lose_router(there.world.restart())
    (again,) = [each for each in there.join() if isinstance(each, Publish)]
    there.send(Ack(PUBACK, again.packet_id))
    assert there.got() == []
    assert there.held("takes") == []
    assert there.balanced()
    assert letter.payload == again.payload


@pytest.mark.parametrize("listed", [["takes"], ["shut", "takes"], []], ids=str)
def test_an_address_that_refuses(connected: Any, listed: list[str]) -> None:
    """After its attempts the next entries have their turn, and without any it is told, and sent again."""
    there = linked(connected, address(), *map(entry, listed))
    publish(there)
    (letter,) = refuse(there)
    there.send(Ack(PUBACK, letter.packet_id, 0x97))
    assert there.got() == []
    there.world.advance(INTERVAL_S)
    (letter,) = there.published()
    there.send(Ack(PUBACK, letter.packet_id, 0x97))
    there.got()
    for _ in range(max(0, len(listed) - 1) * (ATTEMPTS - 1)):
        wait(there, INTERVAL_S)
    if listed:
        assert places(there) == {"takes": [b"bad"]}
        assert there.balanced()
        return
    (text,) = there.stays
    assert text.startswith("out/dead/1: no dead message queue takes a message, which stays: out/a")
    there.world.advance(5)
    (letter,) = there.published()
    there.send(Ack(PUBACK, letter.packet_id))
    there.got()
    assert there.balanced()


def test_what_an_address_refuses_goes_round_the_list(connected: Any) -> None:
    """Entries before the address have their turn again behind it, since they may have room by now."""
    there = linked(connected, entry("full", attempts=1), address(attempts=1))
    publish(there)
    (letter,) = refuse(there)
    there.world.vpn().queue("full").settings.max_msg_spool_usage = 1 << 20
    there.send(Ack(PUBACK, letter.packet_id, 0x97))
    there.got()
    assert places(there) == {"full": [b"bad"]}
    assert there.balanced()


# -- what has expired --------------------------------------------------------------------------------


EXPIRED = {
    ("deliver", False): "crosses",
    ("deliver", True): "of its queue",
    ("discard", False): "discarded",
    ("discard", True): "of its queue",
    ("dead-letter", False): "takes",
    ("dead-letter", True): "of its queue",
}
"""What becomes of a message whose life time is over, by the policy of the link and whether its queue respects that."""


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("quality", ["at-most-once", "duplicates-ok", "once-and-only-once"])
@pytest.mark.parametrize(("policy", "respected"), EXPIRED)
def test_expired_before_it_could_leave(
    connected: Any, policy: str, respected: bool, quality: str, listed: bool
) -> None:
    """The queue goes first where it respects life times; then the policy of the link decides, and it is counted."""
    there = linked(
        connected,
        *([entry("takes")] if listed else []),
        source={"queue": "work"},
        expired=policy,
        quality_of_service=quality,
    )
    there.world.queue("#DEAD_MSG_QUEUE")
    there.cut()
    there.world.vpn().queue("work").settings.respect_ttl_enabled = respected
    publish(there, message_expiry_interval=5)
    there.world.advance(6)
    crossed = [each for each in there.join(present=True) if isinstance(each, Publish)]
    what = EXPIRED[policy, respected]
    dead = "takes" if listed and what == "takes" else "#DEAD_MSG_QUEUE"
    counters = there.counters["out"]
    assert [each.payload for each in crossed] == [b"bad"] * (what == "crosses")
    assert there.held(dead) == [b"bad"] * (what in ("takes", "of its queue"))
    assert counters.discarded.counts == ({"ttl-expired": 1} if what == "discarded" else {})
    assert counters.dead_letters == (what == "takes")
    if what == "takes":
        ((row,),) = (there.world.vpn().queue(dead).browse(0, 10),)
        assert said(row.message)["dead-letter-cause"] == ["ttl-expired"]
        assert row.message.expires_ns == 0
    if what != "crosses":
        assert there.balanced()


def test_what_the_provider_may_have_is_not_expired(connected: Any) -> None:
    """Sent once and only once, a message that may have arrived is sent again, however old it is."""
    once = {"quality_of_service": "once-and-only-once", "reject_attempts": 0}
    there = linked(connected, entry("takes"), expired="dead-letter", **once)
    publish(there, message_expiry_interval=5)
    (first,) = there.published()
    there.cut()
    there.world.advance(6)
    (again,) = [each for each in there.join(present=True) if isinstance(each, Publish)]
    assert (again.packet_id, again.dup) == (first.packet_id, True)
    assert places(there) == {}


# -- links that bring messages in --------------------------------------------------------------------


def inward(connected: Any, *entries: dict[str, Any], **more: Any) -> Any:
    """A connector whose link brings messages in, into the queue `q`, and has this list."""
    link = {"source": {"address": "in/#"}, "dead_msg_queues": list(entries), **more}
    there = connected({"in": link})
    for name, settings in QUEUES.items():
        topics = [topic for topic, queue in TOPICS.items() if queue == name]
        there.world.queue(name, *topics, **settings)
    there.world.queue("q", "in/#")
    there.world.vpn().limits.max_msg_size = 10
    there.join()
    return there


def give(there: Any, payload: bytes, packet_id: int, qos: int = 1, **more: Any) -> list[Any]:
    """Let the provider publish; what the router says."""
    there.send(Publish(b"in/a", payload, qos, False, False, packet_id, Properties(**more)))
    return [each.packet_type for each in there.got()]


LARGE = b"larger than ten bytes"


@pytest.mark.parametrize("qos", [1, 2])
@pytest.mark.parametrize("name", LISTS)
def test_what_can_never_enter_is_a_dead_letter(connected: Any, name: str, qos: int) -> None:
    """It is acknowledged when it is safe, and goes to the first entry that takes it; what is behind it enters."""
    names, refusing = LISTS[name]
    if "small" in names:
        names = [each for each in names if each != "small"]
        refusing -= 1
    there = inward(
        connected,
        *map(entry, names),
        quality_of_service=["", "duplicates-ok", "once-and-only-once"][qos],
    )
    kind = {1: PUBACK, 2: PUBREC}[qos]
    assert give(there, LARGE, 1, qos) == [kind]
    assert give(there, b"good", 2, qos) == [kind]
    assert there.held("q") == [b"good"]
    # It is known again, also by a router that comes after a crash.
    if qos == 2:
        assert give(there, LARGE, 1, qos) == [kind]
    for _ in range(refusing * (ATTEMPTS - 1)):
        assert places(there) == {}
        wait(there, INTERVAL_S)
    assert places(there) == {"takes": [LARGE]}
    counters = there.counters["in"]
    assert (counters.delivered, counters.dead_letters, counters.discarded.total()) == (1, 1, 0)
    assert there.balanced()
    (told,) = there.told
    assert "has a message as a dead letter: in/a, id " in told
    ((row,),) = (there.world.vpn().queue("takes").browse(0, 10),)
    found = said(row.message)
    del found["dead-letter-time"]
    found.pop("dead-letter-arrival-time", None)
    assert found == {
        "dead-letter-reason": ["it is too large for the message VPN"],
        "dead-letter-cause": ["msg-too-big"],
        "dead-letter-by": ["connector there/in"],
        "dead-letter-source": ["in/#"],
        "dead-letter-source-at": ["mqtt://provider:1"],
        "dead-letter-topic": ["in/a"],
        "dead-letter-target": ["in/a"],
        "dead-letter-target-at": ["here/blue"],
    }


@pytest.mark.parametrize("synced", [False, True])
def test_a_crash_inward(connected: Any, synced: bool) -> None:
    """What was acknowledged is a dead letter, once; what was not comes again, and is one then."""
    there = inward(connected, entry("takes"), quality_of_service="once-and-only-once")
    there.send(Publish(b"in/a", LARGE, 2, False, False, 1))
    if synced:
        assert [each.packet_type for each in there.got()] == [PUBREC]
    there.counters.clear()
    there.lose_router(there.world.restart())
    there.world.vpn().limits.max_msg_size = 10
    there.join(present=True)
    there.send(Publish(b"in/a", LARGE, 2, False, True, 1))
    there.got()
    assert places(there) == {"takes": [LARGE]}


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("qos", [1, 2])
def test_too_large_for_a_queue(connected: Any, qos: int, listed: bool, waits: bool) -> None:
    """No room would help: it is a dead letter or discarded, also behind what waits, and what is behind it enters."""
    quality = ["", "duplicates-ok", "once-and-only-once"][qos]
    there = inward(connected, *([entry("takes")] if listed else []), quality_of_service=quality)
    queue = there.world.vpn().queue("q")
    queue.settings.max_msg_size = 5
    if waits:
        queue.settings.max_msg_spool_usage = 1
    kind = {1: PUBACK, 2: PUBREC}[qos]
    for packet_id, payload in enumerate((b"one", b"too large", b"two"), 1):
        assert give(there, payload, packet_id, qos) == [kind]
    if waits:
        assert there.state("in")[0] == "held"
        queue.settings.max_msg_spool_usage = 1 << 20
        there.world.advance(1)
    there.got()
    assert there.held("q") == [b"one", b"two"]
    assert places(there) == ({"takes": [b"too large"]} if listed else {})
    counters = there.counters["in"]
    assert counters.delivered == 2
    assert (counters.dead_letters, counters.discarded.counts) == (
        (1, {}) if listed else (0, {"msg-too-big": 1})
    )
    assert there.state("in") == ("up", "")
    assert there.balanced()


@pytest.mark.parametrize("listed", [True, False])
def test_a_topic_that_becomes_none(connected: Any, listed: bool) -> None:
    """What the target makes no topic of is a dead letter under the topic that it came with, or counted as discarded."""
    link = {"source": {"address": "in/+/#"}, "target": {"topic": "{1}/{2}"}}
    if listed:
        link["dead_msg_queues"] = [entry("takes")]
    there = connected({"in": link})
    there.world.queue("takes")
    there.join()
    there.send(Publish(b"in/$queue/takes", b"x", 1, False, False, 1))
    assert [each.packet_type for each in there.got()] == [PUBACK]
    counters = there.counters["in"]
    assert (counters.dead_letters, counters.discarded.counts) == (
        (1, {}) if listed else (0, {"topic-parse-error": 1})
    )
    assert there.held("takes") == ([b"x"] if listed else [])
    assert there.balanced()


def test_an_old_life_time(connected: Any) -> None:
    """A dead letter says nothing of the life time that its publisher had given the message."""
    there = inward(connected, entry("takes"), expired="dead-letter")
    there.world.vpn().queue("q").settings.max_msg_spool_usage = 1
    give(there, b"old", 1, message_expiry_interval=5)
    there.world.advance(6)
    there.world.vpn().queue("q").settings.max_msg_spool_usage = 1 << 20
    there.world.advance(1)
    there.got()
    (row,) = there.world.vpn().queue("takes").browse(0, 10)
    field = publish_block_with(row.message.block)
    assert decode_properties(field, 0, len(field), PUBLISH)[0].message_expiry_interval is None


def test_where_all_refuse_inward(connected: Any) -> None:
    """It is told, and stays in the link's own queue, also over a restart."""
    there = inward(connected, entry("full"))
    there.world.vpn().queue("full").settings.max_msg_spool_usage = 1
    give(there, LARGE, 1)
    for _ in range(ATTEMPTS):
        wait(there, INTERVAL_S)
    (text,) = there.stays
    assert text.startswith("in: no dead message queue takes a message, which stays: in/a, id ")
    assert there.balanced()
    there.lose_router(there.world.restart())
    there.world.settle()
    assert there.links.all["in"].undelivered.endpoint.spooled_count == 0
    assert there.held("full") == [LARGE]


def test_no_room_for_a_dead_letter(connected: Any) -> None:
    """It is not acknowledged, and what comes behind it waits: nothing is lost."""
    there = inward(connected, entry("takes"))
    there.links.all["in"].undelivered.endpoint.settings.ingress_enabled = False
    assert give(there, LARGE, 1) == []
    assert there.state("in") == ("held", "there is no room for a dead letter")
    there.links.all["in"].undelivered.endpoint.settings.ingress_enabled = True
    there.world.advance(1)
    assert [each.packet_type for each in there.got()] == [PUBACK]
    assert there.state("in") == ("up", "")
    assert places(there) == {"takes": [LARGE]}
    assert there.balanced()


def test_back_to_an_address_at_the_provider(connected: Any) -> None:
    """What came from the provider and can never enter may go back to it, elsewhere."""
    there = inward(connected, {"address": "dead/{1}"})
    there.send(Publish(b"in/a", LARGE, 1, False, False, 1))
    answer, letter = sorted(there.got(), key=lambda each: type(each).__name__)
    assert answer.packet_type == PUBACK
    assert (letter.topic, letter.payload) == (b"dead/in/a", LARGE)
    there.send(Ack(PUBACK, letter.packet_id))
    assert there.got() == []
    assert there.counters["in/dead/1"].delivered == 1
    assert there.balanced()


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize(
    ("policy", "place"), [("deliver", "q"), ("discard", ""), ("dead-letter", "takes")]
)
@pytest.mark.parametrize("waits", ["in memory", "set aside"])
def test_expired_before_it_could_enter(
    connected: Any, waits: str, policy: str, place: str, listed: bool
) -> None:
    """What waits here for room, and expires meanwhile, goes where the policy says, and is counted."""
    there = inward(connected, *([entry("takes")] if listed else []), expired=policy)
    queue = there.world.vpn().queue("q")
    queue.settings.max_msg_spool_usage = 1
    aside = there.links.all["in"].aside.endpoint
    aside.settings.ingress_enabled = waits == "set aside"
    give(there, b"old", 1, message_expiry_interval=5)
    assert there.state("in")[0] == "held"
    assert there.held("q") == []
    there.world.advance(6)
    queue.settings.max_msg_spool_usage = 1 << 20
    there.world.advance(1)
    there.got()
    if not listed and place == "takes":
        place = ""
    counters = there.counters["in"]
    assert there.held("q") == [b"old"] * (place == "q")
    assert there.held("takes") == [b"old"] * (place == "takes")
    assert counters.discarded.counts == ({} if place else {"ttl-expired": 1})
    assert there.state("in") == ("up", "")
    assert there.balanced()
