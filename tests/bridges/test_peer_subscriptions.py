"""What a peer's bridge asks for: exceptions, selectors, share groups, deliver-always, renamed topics."""

import gc
import importlib.util
import random
from pathlib import Path
from typing import Any

import pytest

from vpnrouter import limits
from vpnrouter.bridges.peer_subscriptions import PeerSubscriptions
from vpnrouter.core.access import AclProfile, TopicRule
from vpnrouter.core.guaranteed.endpoint_settings import CONSUME, NO_ACCESS
from vpnrouter.core.profile import ClientProfile
from vpnrouter.server.apply.message_vpn_change import judge_all
from vpnrouter.topics.grammar import SMF, queue_topic
from vpnrouter.topics.mapping import TopicMapping, add_prefix, parse_rule, strip_prefix
from vpnrouter.wire.link import encode, frames
from vpnrouter.wire.mqtt.encode import encode as mqtt_encode
from vpnrouter.wire.mqtt.packets import Publish
from vpnrouter.wire.mqtt.properties import Properties


def bridged(world: Any, *filters: str, out: list[Any] | None = None, **terms: Any) -> Any:
    """A link into yellow, a publisher in blue, a subscriber in yellow; `out` renames what leaves blue."""
    local, remote = world.vpn("yellow", "core"), world.vpn("blue", "edge")
    if out:
        world.book("edge").out_mappings["blue", "core", "yellow"] = TopicMapping(out)
    link = world.link(local, "edge", "blue", filters, terms=terms)
    subscriber = world.client(local, "s")
    subscriber.subscribe("#")
    return link, world.client(remote, "p"), subscriber


def topics(client: Any) -> list[str]:
    """The topics of what arrived since the last call."""
    return [packet.topic.decode() for packet in client.take()]


def test_an_exception_needs_no_permission(world: Any) -> None:
    """Whoever may not subscribe to a filter may still say that it does not want it."""
    acl = AclProfile("default", subscribe=TopicRule(True, [("secret/>", SMF)]))
    world.vpn("blue", "edge", acl=acl)
    link = world.link(world.vpn("yellow", "core"), "edge", "blue", ["!secret/>", "a"])
    assert link.events.told[-1] == ("subscribed", "")


def test_selectors(world: Any) -> None:
    """Only messages that fulfil the selector cross; another one replaces it."""
    link, publisher, subscriber = bridged(world, "a", selectors={"a": "severity > 3"})
    for severity in ("2", "4"):
        publisher.publish(
            "a", severity.encode(), properties=Properties(user_properties=[("severity", severity)])
        )
    assert subscriber.payloads() == [b"4"]
    link.half.want([(0, "a")], {"a": "severity = 2"})
    world.settle()
    publisher.publish("a", b"2", properties=Properties(user_properties=[("severity", "2")]))
    publisher.publish("a", b"4", properties=Properties(user_properties=[("severity", "4")]))
    assert subscriber.payloads() == [b"2"]


def test_a_selector_that_is_none(world: Any) -> None:
    """A selector that cannot be read refuses its filter alone."""
    link, publisher, subscriber = bridged(world, "a", "b", selectors={"a": "severity >"})
    assert link.events.told[-1] == ("subscribed", "406 Invalid Selector: a")
    publisher.publish("a")
    publisher.publish("b")
    assert topics(subscriber) == ["b"]


def test_topics_renamed_on_the_way_out(world: Any) -> None:
    """The peer subscribes to topics as it sees them, and gets them under these names."""
    link, publisher, subscriber = bridged(
        world, "edge/a/>", "!edge/a/secret", out=[add_prefix("edge")]
    )
    for topic in ("a/1", "b/1", "a/secret", "edge/a/1"):
        publisher.publish(topic)
    assert topics(subscriber) == ["edge/a/1"]
    link.half.want([(0, "edge/b/>")], {})
    world.settle()
    publisher.publish("a/1")
    publisher.publish("b/1")
    assert topics(subscriber) == ["edge/b/1"]
    assert link.accepted.client.offered == 2


def test_filters_that_need_the_same_source(world: Any) -> None:
    """A subscription here that two filters of the peer stand for stays until both are gone."""
    out = [parse_rule("a/*", "x/{1}"), parse_rule("b/*", "y/{1}")]
    link, publisher, subscriber = bridged(world, "x/1", "x/*", "y/>", out=out)
    publisher.publish("a/1")
    publisher.publish("a/2")
    publisher.publish("b/2")
    assert topics(subscriber) == ["x/1", "x/2", "y/2"]
    link.half.want([(0, "x/1")], {})
    world.settle()
    publisher.publish("a/1")
    publisher.publish("a/2")
    publisher.publish("b/2")
    assert topics(subscriber) == ["x/1"]
    link.half.want([], {})
    world.settle()
    assert world.routers["edge"].vpns["blue"].subscription_count == 0


def test_a_topic_that_cannot_be_renamed(world: Any) -> None:
    """A topic whose new name would have too many levels is discarded, counted, and the link stays."""
    link, publisher, subscriber = bridged(world, ">", out=[add_prefix("p")])
    publisher.publish("/".join("t" * limits.TOPIC_LEVELS))
    publisher.publish("t")
    assert topics(subscriber) == ["p/t"]
    assert link.accepted.client.discarded.counts == {"topic-parse-error": 1}
    link.accepted.tally()
    (record,) = world.book("edge").records.values()
    assert record.counters.tx_imbalance(0) == 0


def test_renamed_topics_are_remembered_up_to_a_bound(world: Any) -> None:
    """What is remembered of renamed topics is forgotten beyond the bound, and renamed anew."""
    link, publisher, subscriber = bridged(world, ">", out=[add_prefix("p")])
    client = link.accepted.client
    known = client._renamed
    for number in range(limits.REMEMBERED_TOPIC_BYTES // 1_070):
        known.keep((b"%d/" % number).ljust(1_000, b"x"), b"")
    before = len(known.answers)
    publisher.publish("n" * 900)
    assert topics(subscriber) == ["p/" + "n" * 900]
    assert before > 400
    assert list(known.answers) == [b"n" * 900]


def test_topics_renamed_on_the_way_in(world: Any) -> None:
    """What comes in is renamed by the bridge's own mapping; it subscribes in the remote's names."""
    mapping = TopicMapping([strip_prefix("edge")])
    link, publisher, subscriber = bridged(world, "edge/>", mapping=mapping)
    publisher.publish("edge/a/1")
    publisher.publish("a/1")
    assert topics(subscriber) == ["a/1"]
    link.dialed.tally()
    assert link.half.record.counters.rx_imbalance(0) == 0


def test_bounds_count_what_is_subscribed_here(world: Any) -> None:
    """Where one filter stands for several here, all of them count towards the bound."""
    profile = ClientProfile("b", allow_bridge_connections_enabled=True, max_subscription_count=2)
    remote = world.vpn("blue", "edge", profile=profile)
    out = [parse_rule("a/*", "x/{1}"), parse_rule("b/*", "x/{1}"), parse_rule("c/*", "y/{1}")]
    world.book("edge").out_mappings["blue", "core", "yellow"] = TopicMapping(out)
    link = world.link(world.vpn("yellow", "core"), "edge", "blue", ["x/1", "y/1"])
    assert link.events.told[-1][1].startswith("400 Max Num Subscriptions Exceeded: ")
    assert remote.subscription_count <= 2


@pytest.mark.parametrize("always", [False, True])
def test_deliver_always(world: Any, always: bool) -> None:
    """A message for one consumer crosses besides where the subscription wants everything."""
    local, remote = world.vpn("yellow", "core"), world.vpn("blue", "edge")
    link = world.link(local, "edge", "blue", [])
    link.half.want([(0b0010 | always, "a")], {})
    world.settle()
    far, near = world.client(local, "far"), world.client(remote, "near")
    far.subscribe("#")
    near.subscribe("#")
    one = Properties(user_properties=[("deliver-to-one", "true")])
    world.client(remote, "p").publish("a", b"x", properties=one)
    assert near.payloads() == [b"x"]
    assert far.payloads() == ([b"x"] if always else [])


def denying(*filters: str) -> AclProfile:
    """An ACL profile that lets a client be sent everything but these."""
    return AclProfile("default", subscribe=TopicRule(True, [(text, SMF) for text in filters]))


def judged(world: Any, acl: AclProfile, **profile: bool) -> None:
    """Another ACL profile and client profile for those who log in to blue, as a reload brings them."""
    vpn = world.routers["edge"].vpns["blue"]
    vpn.acl_profiles = {"default": acl}
    allowed = {"allow_bridge_connections_enabled": True, **profile}
    vpn.profiles = {"default": ClientProfile("default", **allowed)}
    judge_all(vpn, world.book("edge"))
    world.settle()


def test_denied_topics_do_not_leave(world: Any) -> None:
    """A bridge that asks for everything gets all but what its ACL profile denies, and what changes at once."""
    link, publisher, subscriber = bridged(world, ">")
    for acl, crossing in (
        (denying("secret/>"), ["open/1"]),
        (denying("open/>"), ["secret/1"]),
        (AclProfile("default"), ["secret/1", "open/1"]),
    ):
        judged(world, acl)
        for topic in ("secret/1", "open/1"):
            publisher.publish(topic)
        assert topics(subscriber) == crossing
    assert link.up


def test_a_filter_that_is_denied_as_a_whole(world: Any) -> None:
    """A filter that the ACL denies as a whole is refused; one that is denied in part is granted and gets the rest."""
    world.vpn("blue", "edge", acl=denying("secret/>"))
    local = world.vpn("yellow", "core")
    link = world.link(local, "edge", "blue", ["secret/a", ">"])
    assert link.events.told[-1] == ("subscribed", "403 Subscription ACL Denied: secret/a")
    subscriber = world.client(local, "s")
    subscriber.subscribe("#")
    publisher = world.client(world.routers["edge"].vpns["blue"], "p")
    for topic in ("secret/a", "open"):
        publisher.publish(topic)
    assert topics(subscriber) == ["open"]


def test_renamed_topics_are_denied_as_they_leave(world: Any) -> None:
    """Where topics are renamed, the ACL profile speaks of them as the peer sees them."""
    _, publisher, subscriber = bridged(world, ">", out=[add_prefix("out")])
    judged(world, denying("out/secret"))
    for topic in ("secret", "open"):
        publisher.publish(topic)
    assert topics(subscriber) == ["out/open"]


def test_who_may_open_no_bridges_any_more(world: Any) -> None:
    """A link that serves a bridge is closed when its client profile loses the permission."""
    link, publisher, subscriber = bridged(world, ">")
    judged(world, AclProfile("default"), allow_bridge_connections_enabled=False)
    assert not link.up
    publisher.publish("a")
    assert topics(subscriber) == []


@pytest.mark.parametrize("compress", [False, True], ids=["plain", "zstd"])
def test_many_filters_are_taken_in_turns(world: Any, compress: bool) -> None:
    """A SUBSCRIBE of 4,000 filters takes many turns; what stands behind it waits, also in the same COMPRESSED frame."""
    link, publisher, subscriber = bridged(world, "first", compress=compress)
    link.half.want([(0, f"t/{number}/>") for number in range(4_000)], {})
    link.dialed.say(encode.heartbeat(frames.Heartbeat(7, answer=False)))
    served = link.accepted
    jobs = served.context.jobs
    served.feed(link.dialed.outbox.take(1 << 24))
    turns = 0
    while len(jobs):
        assert served.outbox.size == 0
        jobs.step()
        turns += 1
    assert turns > 10
    world.settle()
    assert link.up
    assert served.control_rx_msgs >= 3
    publisher.publish("t/3999/x")
    publisher.publish("first")
    assert topics(subscriber) == ["t/3999/x"]


def test_long_selectors_are_read_in_turns(world: Any) -> None:
    """A hundred filters with a selector of 8 KB each: none of the turns reads more than a few."""
    link, _, _ = bridged(world, "first")
    selectors = {
        f"t/{number}": f"a = {number} OR " + "b = 1 OR " * 800 + "c = 2" for number in range(100)
    }
    link.half.want([(0, text) for text in selectors], selectors)
    link.accepted.feed(link.dialed.outbox.take(1 << 24))
    turns = 0
    while len(link.accepted.context.jobs):
        link.accepted.context.jobs.step()
        turns += 1
    assert turns > 50
    world.settle()
    assert link.up


@pytest.mark.parametrize("level", [4, 5])
@pytest.mark.parametrize("seed", range(5))
def test_frames_of_any_topics_and_sizes_cross_in_one_piece(
    world: Any, level: int, seed: int
) -> None:
    """Clients of both protocol levels get all of them beyond the link, as they were and in order."""
    print(f"seed {seed}")
    generator = random.Random(seed)
    link, _, subscriber = bridged(world, ">")
    older = world.client(world.routers["core"].vpns["yellow"], "s4", level=4)
    older.subscribe("#")
    publisher = world.client(world.routers["edge"].vpns["blue"], "p4", level=level)
    sizes = (0, 1, 7, 8, 110, 120, 127, 128, 505, 520, 16_370, 17_000)
    sent = [
        Publish(b"t/%d" % generator.choice((1, 22, 333_333)), bytes(generator.choice(sizes)))
        for _ in range(60)
    ]
    publisher.connection.feed(b"".join(mqtt_encode(packet, level) for packet in sent))
    assert len(link.accepted.outbox.chunks) == 1
    world.settle()
    wanted = [(packet.topic, packet.payload) for packet in sent]
    for client in (subscriber, older):
        assert [(packet.topic, packet.payload) for packet in client.take()] == wanted
    assert link.accepted.client.offered == len(sent)


# -- wanted ----------------------------------------------------------------------------------------


SPEC = importlib.util.spec_from_file_location("flow_links", Path(__file__).parent / "flow_links.py")
assert SPEC is not None
assert SPEC.loader is not None
kit: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(kit)


class Forged:
    """A bridge of yellow that asked for some topics, and a peer that sends what it likes."""

    def __init__(self, world: Any, filters: tuple[str, ...] = ("weather/>",), **terms: Any) -> None:
        self.world = world
        self.yellow = world.vpn("yellow", "core")
        world.vpn("blue", "edge")
        self.link = world.link(self.yellow, "edge", "blue", filters, terms=terms)
        self.client = world.client(self.yellow, "c")
        self.client.subscribe("#")

    def send(self, *topics: str, retain: bool = False) -> None:
        """One message for each topic, all in one piece."""
        extension = frames.Extension([], 1, retain=True) if retain else None
        for topic in topics:
            message = frames.Direct(topic.encode(), b"", topic.encode(), extension)
            self.link.accepted.outbox.control(encode.message(message))
        self.world.settle()

    def took(self) -> list[str]:
        """The topics that came in since the last look; the counters are in balance."""
        kit.balance(self.link)
        return [packet.topic.decode() for packet in self.client.take()]

    @property
    def refused(self) -> int:
        """Messages that nobody had asked for, as the bridge and its message VPN count them."""
        self.link.dialed.tally()
        count = self.link.half.record.counters.discarded_rx.counts.get("not-subscribed", 0)
        assert self.yellow.discards.counts.get("not-subscribed", 0) == count
        return int(count)


def test_what_nobody_asked_for(world: Any) -> None:
    """A topic outside of the bridge's subscriptions does not enter, however often it comes; the rest does."""
    it = Forged(world)
    it.send(
        "weather/a", "commands/shutdown", "weather/b", "commands/shutdown", "weather", "weather/a"
    )
    assert it.took() == ["weather/a", "weather/b", "weather/a"]
    assert it.refused == 3


def test_a_retained_message_that_nobody_asked_for(world: Any) -> None:
    """A retained message that the bridge did not ask for is not retained here."""
    it = Forged(world)
    it.send("forged/retained", "weather/now", retain=True)
    late = world.client(it.yellow, "late")
    late.subscribe("#")
    assert [packet.topic for packet in late.take()] == [b"weather/now"]
    assert it.refused == 1


def test_a_queue_is_no_topic_of_everybody(world: Any) -> None:
    """A bridge that asked for everything still gets no message that names a queue here."""
    sea = kit.Sea(world)
    it = Forged(world, (">",))
    queue = sea.queue(it.yellow, "q")
    it.send("$queue/q", "a")
    sea.settle()
    assert kit.contents(queue) == []
    assert it.refused == 1


def test_an_exception_is_not_asked_for(world: Any) -> None:
    """What the bridge excepted does not enter by the word of the peer."""
    it = Forged(world, ("!secret/>", ">"))
    it.send("secret/x", "open/x")
    assert it.took() == ["open/x"]
    assert it.refused == 1


def test_what_is_dropped_counts_until_the_peer_has_answered(world: Any) -> None:
    """What was on the way when a subscription went is taken; behind the answer it is not."""
    it = Forged(world, ("a", "b"))
    link = it.link
    world.links.clear()
    link.half.want([(0, "b")], {})
    for topic in ("a", "b"):
        link.accepted.outbox.control(encode.message(frames.Direct(topic.encode(), b"", b"")))
    link.wire.pump()
    assert it.took() == ["a", "b"]
    world.links.append(link)
    world.settle()
    it.send("a", "b", "a")
    assert it.took() == ["b"]
    assert it.refused == 2


def test_what_is_added_counts_at_once(world: Any) -> None:
    """A topic that was refused before is taken as soon as it is asked for."""
    it = Forged(world, ("a",))
    it.send("b")
    it.link.half.want([(0, "a"), (0, "b/>"), (0, "b")], {})
    world.settle()
    it.send("b", "b/c", "c")
    assert it.took() == ["b", "b/c"]
    assert it.refused == 2


def test_a_shared_subscription_is_asked_for(world: Any) -> None:
    """The share's name is no part of the topics that it attracts."""
    it = Forged(world, ("#share/g/a/>",))
    it.send("a/b", "b/a")
    assert it.took() == ["a/b"]


def test_names_before_the_mapping_count(world: Any) -> None:
    """What is renamed here was asked for by the name that it has on the link."""
    it = Forged(world, ("a/>",), mapping=TopicMapping([add_prefix("far/", 0)]))
    it.send("a/b", "far/a/b", "b")
    assert it.took() == ["far/a/b"]
    assert it.refused == 2


def test_long_topics_are_judged_and_not_remembered(world: Any) -> None:
    """Memory of answers is bounded in bytes: a peer cannot fill it with long topics."""
    it = Forged(world)
    long = "weather/" + "x" * limits.ROUTE_CACHE_TOPIC_BYTES
    it.send(long, "no" + long)
    assert it.took() == [long]
    assert it.refused == 1
    assert it.link.dialed.sink.permitted.answers == {}


@pytest.mark.parametrize(
    ("name", "permission", "enters"),
    [
        ("in", NO_ACCESS, False),
        ("in", CONSUME, True),
        ("out", NO_ACCESS, True),
        ("a+b", NO_ACCESS, False),
        ("a+b", CONSUME, True),
    ],
)
def test_a_guaranteed_message_for_a_queue(
    world: Any, name: str, permission: int, enters: bool
) -> None:
    """A message enters the queue that it names where that has the remote queue's name, or is open to all; else it is
    discarded, and gone from the remote queue.
    """
    two = kit.Two(world)
    queue = two.into if name == "in" else two.sea.queue(two.yellow, name)
    queue.settings.permission = permission
    forged = frames.Guaranteed(
        two.taker.flow_id, 10_000, 2, 4, frames.Direct(queue_topic(name).encode(), b"", b"1")
    )
    two.link.accepted.outbox.control(encode.guaranteed_message(forged))
    two.sea.settle()
    assert kit.contents(queue) == ([b"1"] if enters else [])
    counters = kit.balance(two.link)
    assert counters.discarded_rx.counts == ({} if enters else {"not-subscribed": 1})
    assert two.taker.taken == 1


def kept_subscriptions() -> list[PeerSubscriptions]:
    """Those that something holds, in this process."""
    return [one for one in gc.get_objects() if isinstance(one, PeerSubscriptions)]


@pytest.mark.parametrize("first", ["accepted", "dialed"])
def test_nothing_of_it_waits_for_the_garbage_collector(world: Any, first: str) -> None:
    """Filters may be long: what a peer has asked for goes with its link, whichever end goes first."""
    gc.collect()
    gc.disable()
    # Tests before this one may hold some.
    before = kept_subscriptions()
    try:
        link, _, _ = bridged(world, *[f"long/{number}" for number in range(20)])
        accepted, dialed = link.accepted, link.dialed
        del link
        assert len(accepted.peer_half.attracted.sources) == 20
        for end in (accepted, dialed) if first == "accepted" else (dialed, accepted):
            end.lost("gone")
        world.settle()
        assert not [one for one in kept_subscriptions() if not any(one is old for old in before)]
    finally:
        gc.enable()
