"""vpnrouter.bridges.snapshot: what was cleared at the remote while its bridge was down."""

from typing import Any

import pytest

from vpnrouter.core.access import AclProfile, TopicRule
from vpnrouter.topics.grammar import MQTT
from vpnrouter.topics.mapping import TopicMapping, parse_rule
from vpnrouter.wire.link import encode, frames
from vpnrouter.wire.mqtt.encode import encode as mqtt_encode
from vpnrouter.wire.mqtt.packets import Publish
from vpnrouter.wire.mqtt.properties import Properties

RENAMED = TopicMapping([parse_rule("a/>", "site/{1}")])
"""A receiving side that renames what comes in."""

MAPPINGS = {"as it is": (None, "a/"), "renamed": (RENAMED, "site/")}


def replayed(world: Any, filters: tuple[str, ...] = ("a/>",), mapping: Any = None) -> Any:
    """A bridge from blue on edge into yellow on core that asks for what is retained."""
    link = world.link(
        world.local, "edge", "blue", (), terms={"mapping": mapping} if mapping else None
    )
    link.half.want([(frames.SEND_RETAINED, text) for text in filters], {})
    world.settle()
    return link


def cut(world: Any, link: Any) -> None:
    """Lose a link; nobody says anything."""
    link.wire.cut = True
    link.dialed.lost("cut")
    link.accepted.lost("cut")
    world.links.remove(link)


def retained(world: Any, vpn: Any = None) -> dict[str, bytes]:
    """What a new subscriber gets in yellow."""
    world.count = getattr(world, "count", 0) + 1
    client = world.client(vpn or world.local, f"late-{world.count}")
    client.subscribe("#")
    return {one.topic.decode(): one.payload for one in client.take()}


@pytest.fixture
def both(world: Any) -> Any:
    """A world with yellow on core (`local`), blue on edge (`remote`) and a publisher in each."""
    world.local, world.remote = world.vpn("yellow", "core"), world.vpn("blue", "edge")
    world.there, world.here = world.client(world.remote, "p"), world.client(world.local, "q")
    return world


@pytest.mark.parametrize("mapping", MAPPINGS)
@pytest.mark.parametrize("count", [1, 300])
def test_what_was_cleared_goes(both: Any, mapping: str, count: int) -> None:
    """It goes as if the remote had cleared it now, for subscribers and bridges too; all the rest stays as it is."""
    rules, prefix = MAPPINGS[mapping]
    onward = both.vpn("red", "third")
    both.link(onward, "core", "yellow")
    for number in range(count):
        for name in ("goes", "stays", "changes"):
            both.there.publish(f"a/{name}/{number}", b"1", retain=True)
    both.there.publish("b", b"1", retain=True)
    link = replayed(both, mapping=rules)
    both.here.publish(f"{prefix}own", b"1", retain=True)
    before = retained(both)
    assert len(before) == 3 * count + 1
    watcher = both.client(both.local, "watcher")
    watcher.subscribe("#")
    watcher.take()
    cut(both, link)
    for number in range(count):
        both.there.publish(f"a/goes/{number}", b"", retain=True)
        both.there.publish(f"a/changes/{number}", b"2", retain=True)
    link = replayed(both, mapping=rules)
    after = {topic: payload for topic, payload in before.items() if "goes" not in topic}
    for topic in after:
        if "changes" in topic:
            after[topic] = b"2"
    assert retained(both) == after
    told = {one.topic.decode(): one.payload for one in watcher.take()}
    assert told == {
        **{f"{prefix}goes/{number}": b"" for number in range(count)},
        **{f"{prefix}changes/{number}": b"2" for number in range(count)},
    }
    assert {topic for topic in retained(both, onward) if "goes" in topic} == set()
    both.there.publish("a/goes/0", b"3", retain=True)
    assert retained(both)[f"{prefix}goes/0"] == b"3"


@pytest.mark.parametrize(
    ("filters", "after"),
    [
        (("a/>",), {"b/1", "c/1"}),
        (("a/>", "b/>"), {"c/1"}),
        (("a/1",), {"b/1", "c/1"}),
        (("a/>", "!a/1"), {"a/1", "b/1", "c/1"}),
        (("a/>", "!a/2"), {"b/1", "c/1"}),
        ((">", "!a/>"), {"a/1"}),
        (("c/>",), {"a/1", "b/1"}),
        ((), {"a/1", "b/1", "c/1"}),
    ],
)
def test_only_what_is_asked_for_is_compared(both: Any, filters: Any, after: Any) -> None:
    """What another bridge of the same remote brings, or a filter that is gone brought, stays."""
    for topic in ("a/1", "b/1", "c/1"):
        both.there.publish(topic, b"1", retain=True)
    cut(both, replayed(both, (">",)))
    for topic in ("a/1", "b/1", "c/1"):
        both.there.publish(topic, b"", retain=True)
    replayed(both, filters)
    assert set(retained(both)) == after


def test_what_another_remote_brought_stays(both: Any) -> None:
    """Two remotes may retain under the same filter; the snapshot of one says nothing of the other's."""
    other = both.vpn("green", "other")
    both.client(other, "p").publish("a/other", b"1", retain=True)
    both.there.publish("a/1", b"1", retain=True)
    third = both.link(both.local, "other", "green", (), bridge="second")
    third.half.want([(frames.SEND_RETAINED, ">")], {})
    both.settle()
    cut(both, replayed(both))
    both.there.publish("a/1", b"", retain=True)
    replayed(both)
    assert retained(both) == {"a/other": b"1"}


def test_a_filter_that_is_refused_clears_nothing(both: Any) -> None:
    """No snapshot was sent for it."""
    both.there.publish("a/1", b"1", retain=True)
    cut(both, replayed(both))
    both.there.publish("a/1", b"", retain=True)
    both.remote.acl_profiles["default"] = AclProfile(
        "default", subscribe=TopicRule(True, [("a/#", MQTT)])
    )
    link = replayed(both)
    assert link.half.refused
    assert retained(both) == {"a/1": b"1"}


def test_an_end_that_answers_an_older_request_ends_nothing(both: Any) -> None:
    """A filter that is added meanwhile is compared when its own snapshot has come."""
    both.there.publish("b/1", b"1", retain=True)
    cut(both, replayed(both, ("b/>",)))
    both.there.publish("a/1", b"1", retain=True)
    link = replayed(both, ("a/>",))
    link.half.want([(frames.SEND_RETAINED, "a/>"), (frames.SEND_RETAINED, "b/>")], {})
    # An answer to the first request overtakes nothing of the second one.
    link.dialed.feed(encode.snapshot_end(frames.SnapshotEnd(1)))
    both.local.context.jobs.finish()
    both.settle()
    assert retained(both) == {"a/1": b"1", "b/1": b"1"}


def test_a_peer_that_lies_clears_what_it_brought_alone(both: Any) -> None:
    """An end without a snapshot, or a second one, changes nothing."""
    both.here.publish("a/own", b"1", retain=True)
    both.there.publish("a/1", b"1", retain=True)
    link = replayed(both)
    for number in (0, 1, 2, 0xFFFF_FFFF):
        link.dialed.feed(encode.snapshot_end(frames.SnapshotEnd(number)))
        both.settle()
    assert link.up
    assert retained(both) == {"a/own": b"1", "a/1": b"1"}


def test_a_snapshot_of_more_than_fits_clears_nothing(both: Any) -> None:
    """What is remembered of it is bounded by what may be retained here."""
    for number in range(20):
        both.there.publish(f"a/{number}", b"1", retain=True)
    cut(both, replayed(both))
    both.there.publish("a/0", b"", retain=True)
    both.local.retained.most = 10
    replayed(both)
    assert "a/0" in retained(both)


def test_a_lost_link_clears_nothing(both: Any) -> None:
    """What has not come when the link is lost may still be there."""
    for number in range(50):
        both.there.publish(f"a/{number}", b"1" * 1_000, retain=True)
    cut(both, replayed(both))
    link = both.link(both.local, "edge", "blue", (), settle=False)
    both.settle()
    link.half.want([(frames.SEND_RETAINED, "a/>")], {})
    link.wire.pump()
    cut(both, link)
    both.settle()
    assert len(retained(both)) == 50


@pytest.mark.parametrize("mapping", MAPPINGS)
def test_what_a_selector_leaves_out_stays(both: Any, mapping: str) -> None:
    """The remote may retain it still; what the selector would let through was cleared."""
    rules, prefix = MAPPINGS[mapping]
    for number, level in enumerate(("low", "high", "high")):
        properties = Properties(user_properties=[("level", level)])
        both.there.publish(f"a/{number}", b"1", retain=True, properties=properties)
    cut(both, replayed(both, mapping=rules))
    both.there.publish("a/1", b"", retain=True)
    link = both.link(both.local, "edge", "blue", (), terms={"mapping": rules} if rules else None)
    link.half.want([(frames.SEND_RETAINED, "a/>")], {"a/>": "level = 'high'"})
    both.settle()
    assert set(retained(both)) == {f"{prefix}0", f"{prefix}2"}


@pytest.mark.parametrize("mapping", MAPPINGS)
def test_what_an_exception_leaves_out_stays(both: Any, mapping: str) -> None:
    """An exception is like a filter that is gone: it clears nothing."""
    rules, prefix = MAPPINGS[mapping]
    for number in range(3):
        both.there.publish(f"a/{number}", b"1", retain=True)
    cut(both, replayed(both, mapping=rules))
    both.there.publish("a/1", b"", retain=True)
    replayed(both, ("a/>", "!a/2"), mapping=rules)
    assert set(retained(both)) == {f"{prefix}0", f"{prefix}2"}


@pytest.mark.parametrize("mapping", MAPPINGS)
def test_what_comes_while_the_rest_is_cleared_stays(both: Any, mapping: str) -> None:
    """The snapshot ended before it: what is set or set anew behind its end is not of it."""
    rules, prefix = MAPPINGS[mapping]
    for topic in ("a/old", "a/again"):
        both.there.publish(topic, b"1", retain=True)
    cut(both, replayed(both, mapping=rules))
    for topic in ("a/old", "a/again"):
        both.there.publish(topic, b"", retain=True)
    link = both.link(both.local, "edge", "blue", (), terms={"mapping": rules} if rules else None)
    link.half.want([(frames.SEND_RETAINED, "a/>")], {})
    link.wire.pump()
    both.remote.context.jobs.finish()
    link.wire.pump()
    assert len(both.local.context.jobs) == 1
    for topic in (b"a/new", b"a/again"):
        both.there.connection.feed(mqtt_encode(Publish(topic, b"2", retain=True), 5))
    link.wire.pump()
    assert len(both.local.context.jobs) == 1
    both.settle()
    assert retained(both) == {f"{prefix}new": b"2", f"{prefix}again": b"2"}


def test_an_end_of_what_was_never_asked_for_clears_nothing(both: Any) -> None:
    """A peer that lies about the request that it answers."""
    both.there.publish("a/1", b"1", retain=True)
    cut(both, replayed(both))
    link = both.link(both.local, "edge", "blue", ())
    link.half.want([(frames.SEND_RETAINED, "a/>")], {})
    link.dialed.feed(encode.snapshot_end(frames.SnapshotEnd(1_000)))
    both.local.context.jobs.finish()
    assert retained(both) == {"a/1": b"1"}


def test_a_topic_that_is_not_allowed_any_more_ends_no_link(both: Any) -> None:
    """A limit may be lowered after a message was retained: the others are cleared, and the link stays."""
    for topic in ("a/1", "a/b/c/d"):
        both.there.publish(topic, b"1", retain=True)
    cut(both, replayed(both))
    for topic in ("a/1", "a/b/c/d"):
        both.there.publish(topic, b"", retain=True)
    both.local.limits.max_topic_levels = 2
    both.local.forget_all_routes()
    link = replayed(both)
    assert not link.dialed.ended
    assert not both.local.retained.has(b"a/1")
    assert both.local.retained._watchers == 0
