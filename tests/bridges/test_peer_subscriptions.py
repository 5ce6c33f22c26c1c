"""What a peer's bridge asks for: exceptions, selectors, share groups, deliver-always, renamed topics."""

from typing import Any

import pytest

from vpnrouter import limits
from vpnrouter.core.access import AclProfile, TopicRule
from vpnrouter.core.profile import ClientProfile
from vpnrouter.server.apply.changes import judge_all
from vpnrouter.topics.grammar import SMF
from vpnrouter.topics.mapping import TopicMapping, add_prefix, parse_rule, strip_prefix
from vpnrouter.wire.link import encode, frames
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


def test_exceptions(world: Any) -> None:
    """`!f` takes topics away from what the other filters attract, until it is dropped."""
    link, publisher, subscriber = bridged(world, "a/>", "!a/secret/>")
    for topic in ("a/1", "a/secret/1", "b/1"):
        publisher.publish(topic)
    assert topics(subscriber) == ["a/1"]
    link.half.want([(0, "a/>")], {})
    world.settle()
    publisher.publish("a/secret/1")
    assert topics(subscriber) == ["a/secret/1"]


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


def test_a_shared_subscription_of_two_bridges(world: Any) -> None:
    """Each message of a share group goes to one of the bridges in it, in turn."""
    remote = world.vpn("blue", "edge")
    subscribers = []
    for name in ("yellow", "green"):
        local = world.vpn(name, f"r-{name}")
        world.link(local, "edge", "blue", ["#share/g/a/>"])
        subscriber = world.client(local, "s")
        subscriber.subscribe("#")
        subscribers.append(subscriber)
    publisher = world.client(remote, "p")
    for number in range(20):
        publisher.publish(f"a/{number}", b"%d" % number)
    got = [subscriber.payloads() for subscriber in subscribers]
    assert sorted(int(payload) for part in got for payload in part) == list(range(20))
    assert [len(part) for part in got] == [10, 10]


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
    client._renamed = {b"%d" % n: b"" for n in range(limits.LINK_RENAMED_TOPICS)}
    publisher.publish("new")
    assert topics(subscriber) == ["p/new"]
    assert client._renamed == {b"new": b"p/new"}


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
