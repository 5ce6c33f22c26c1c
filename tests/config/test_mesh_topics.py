"""Sets of topics, and what is attracted and never comes."""

import runpy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter.config.mesh.topics import (
    ALL_OF_IT,
    NOTHING,
    PART_OF_IT,
    Publishers,
    Topics,
    account_of,
    may_subscribe,
    meet,
)
from vpnrouter.config.msg_vpn import MsgVpn
from vpnrouter.topics.grammar import MQTT, SMF, Filter, parse_filter
from vpnrouter.topics.oracle import oracle_matches

LEVELS = ["a", "b", "ab", "$s", "#P2P"]
TOPICS = [
    "/".join(levels)
    for levels in (
        *((one,) for one in ("a", "b", "ab", "abc", "c", "$s", "$sx", "#P2P", "")),
        *((one, two) for one in ("a", "ab", "$s", "c", "") for two in ("a", "b", "abc", "")),
        *((one, two, "a") for one in ("a", "b", "$s", "") for two in ("a", "ab", "c", "")),
        ("a", "b", "a", "b"),
    )
    if "/".join(levels)
]


@st.composite
def filters(draw: st.DrawFn) -> Filter:
    """A filter of up to three levels in either dialect."""
    if draw(st.booleans()):
        levels = draw(st.lists(st.sampled_from([*LEVELS, "*", "a*"]), min_size=0, max_size=3))
        if not levels or draw(st.booleans()):
            levels.append(">")
        return parse_filter("/".join(levels), SMF)
    levels = draw(st.lists(st.sampled_from(["a", "b", "$s", "", "+"]), min_size=0, max_size=3))
    if not any(levels) or draw(st.booleans()):
        levels.append("#")
    return parse_filter("/".join(levels), MQTT)


def hit(filter_: Filter, topic: str) -> bool:
    """What the slow matcher says."""
    return oracle_matches(filter_.original, filter_.dialect, topic)


@given(filters(), filters())
def test_meet_matches_what_both_match(a: Filter, b: Filter) -> None:
    """What two filters have in common is one filter, or nothing."""
    from vpnrouter.topics.algebra import matches

    both = meet(a, b)
    for topic in TOPICS:
        assert (both is not None and matches(both, topic)) == (hit(a, topic) and hit(b, topic))


@given(filters(), st.lists(filters(), max_size=3), filters(), st.lists(filters(), max_size=2))
def test_common(a: Filter, less: list[Filter], b: Filter, more: list[Filter]) -> None:
    """What two sets have in common holds exactly the topics that both hold, exceptions included."""
    topics = Topics()
    one, other = topics.of(a, less), topics.of(b, more)
    common = topics.common(one, other) if one is not None and other is not None else None
    for topic in TOPICS:
        if "#" in topic:
            continue
        expected = (
            hit(a, topic) and hit(b, topic) and not any(hit(each, topic) for each in [*less, *more])
        )
        assert (common is not None and topics.holds(common, topic)) == expected


@given(filters(), st.lists(filters(), max_size=3))
def test_example(a: Filter, less: list[Filter]) -> None:
    """An example is one of the set that can be published; there is none only where none can be."""
    topics = Topics()
    found = topics.of(a, less)
    held = [
        topic
        for topic in TOPICS
        if "#" not in topic and hit(a, topic) and not any(hit(each, topic) for each in less)
    ]
    if found is None:
        assert held == []
        return
    example = topics.example(found)
    assert example is not None
    assert hit(a, example)
    assert not any(hit(each, example) for each in less)
    assert "+" not in example
    assert "#" not in example


@given(filters(), filters(), st.lists(filters(), max_size=2))
def test_holds_all_is_sound(a: Filter, b: Filter, less: list[Filter]) -> None:
    """A set that is said to hold another one holds all its topics."""
    topics = Topics()
    one, other = topics.of(a, less[:1]), topics.of(b, less)
    if one is not None and other is not None and topics.holds_all(one, other):
        for topic in TOPICS:
            assert topics.holds(one, topic) or not topics.holds(other, topic)


def test_nothing_that_mqtt_cannot_publish() -> None:
    """A filter with a literal + or # matches no topic that a client can publish."""
    topics = Topics()
    assert topics.of(parse_filter("a/+/b", SMF)) is None
    assert topics.of(parse_filter("a/b", SMF)) is not None


def vpn(publish: dict[str, Any] | None = None, **account: Any) -> MsgVpn:
    """A message VPN with one client username, alice, and her ACL profile."""
    profile = {"publish_topic": publish} if publish is not None else {}
    return MsgVpn.model_validate(
        {
            "acl_profiles": {"hers": profile},
            "client_usernames": {"alice": {"password": "p", "acl_profile": "hers", **account}},
        }
    )


def part(msg_vpn: MsgVpn, text: str) -> str | None:
    """An example of what may be published of a filter."""
    topics = Topics()
    wanted = topics.of(parse_filter(text, SMF))
    assert wanted is not None
    found = Publishers(topics, msg_vpn).part_of(wanted)
    return topics.example(found) if found is not None else None


@pytest.mark.parametrize(
    ("rule", "wanted", "expected"),
    [
        ({"default_action": "allow"}, "$queue/q", "$queue/q"),
        ({"default_action": "allow", "exceptions": ["a/>"]}, "a/b", None),
        ({"default_action": "allow", "exceptions": ["a/>"]}, "*/b", "x/b"),
        ({"default_action": "allow", "exceptions": ["a/$client-username"]}, "a/alice", None),
        ({"default_action": "allow", "exceptions": ["a/$client-username"]}, "a/bob", "a/bob"),
        ({"default_action": "allow", "exceptions": ["a/$client-id"]}, "a/b", "a/b"),
        ({"exceptions": ["a/>"]}, "*/b", "a/b"),
        ({"exceptions": ["a/>"]}, "b/>", None),
        ({"exceptions": ["a/$client-username"]}, "a/*", "a/alice"),
        ({"exceptions": ["a/$client-username"]}, "a/bob", None),
        ({"exceptions": ["a/$client-id/x"]}, "a/b/*", "a/b/x"),
        ({"exceptions": ["a/+"], "topic_syntax": "mqtt"}, "a/>", "a/x"),
        ({}, ">", None),
    ],
)
def test_publishers(rule: dict[str, Any], wanted: str, expected: str | None) -> None:
    """The part of a filter that somebody may publish, with the names filled in."""
    assert part(vpn({"default_action": "disallow", **rule}), wanted) == expected


def test_who_cannot_log_in_publishes_nothing() -> None:
    """A client username that is disabled or has no password counts only where it may log in."""
    allow = {"default_action": "allow"}
    assert part(vpn(allow), "w") == "w"
    assert part(vpn(allow, enabled=False), "w") is None
    assert part(vpn(allow, password=None), "w") is None
    certificates = vpn(allow, password=None).model_copy(
        update={"authentication": MsgVpn.model_validate(
            {"authentication": {"client_cert": {"enabled": True}}}
        ).authentication}
    )  # fmt: skip
    assert part(certificates, "w") == "w"


def test_anybody_publishes_without_authentication() -> None:
    """Where nobody has to say who he is, the rules of `default` hold, which allow all."""
    data = MsgVpn.model_validate({"authentication": {"basic": {"enabled": False}}})
    assert part(data, "w") == "w"
    assert account_of(data, "anybody") is data.client_usernames["default"]
    assert account_of(MsgVpn(), "anybody") is None


@pytest.mark.parametrize(
    ("rule", "wanted", "expected"),
    [
        ({"default_action": "allow"}, "w/>", ALL_OF_IT),
        ({"default_action": "allow", "exceptions": ["w/secret"]}, "w/>", PART_OF_IT),
        ({"default_action": "allow", "exceptions": [">"]}, "w/>", NOTHING),
        ({"exceptions": ["w/>"]}, "w/a/*", ALL_OF_IT),
        ({"exceptions": ["w/a"]}, "w/*", PART_OF_IT),
        ({"exceptions": ["w/$client-username/>"]}, "w/alice/>", ALL_OF_IT),
        ({"exceptions": ["w/$client-id/>"]}, "w/alice/>", NOTHING),
        ({"exceptions": ["w/>"]}, "#share/g/w/a", ALL_OF_IT),
    ],
)
def test_may_subscribe(rule: dict[str, Any], wanted: str, expected: int) -> None:
    """The subscribe rules are those of the core, for the bridge's client name."""
    msg_vpn = MsgVpn.model_validate(
        {
            "acl_profiles": {"hers": {"subscribe_topic": {"default_action": "disallow", **rule}}},
            "client_usernames": {"alice": {"password": "p", "acl_profile": "hers"}},
        }
    )
    client = "#bridge/r/v/b"
    assert may_subscribe(msg_vpn, "alice", client, parse_filter(wanted, SMF)) == expected


KIT = runpy.run_path(str(Path(__file__).with_name("mesh_kit.py")))
bridge = KIT["bridge"]
kit_vpn = KIT["vpn"]
mesh = KIT["mesh"]
told = KIT["told"]


def found(*filters: Any, queue: str | None = None, **there: Any) -> list[str]:
    """What is found of a bridge with these filters to a message VPN with these keys."""
    way = bridge("a/v", filters=filters, queue=queue)
    here = kit_vpn({"in": way}, queues={"all": {"subscriptions": [">"]}})
    lines: list[str] = told(mesh({"a/v": kit_vpn(**there), "b/v": here}))
    return lines


@pytest.mark.parametrize("filter_", ["$s*/>", "#P2P*", "a/+/b", "a/#"])
def test_filter_that_no_topic_matches(filter_: str) -> None:
    """Guarded first levels and wildcards of the other dialect match nothing that can be published."""
    (only,) = found(filter_, "w")
    assert ": warning: msg_vpns.v.bridges.in.remote_subscriptions[0]: no topic" in only
    assert filter_ in only


@pytest.mark.parametrize("filter_", ["$SYS/x", "a*/>", {"topic": "a/*"}])
def test_filter_that_some_topic_matches(filter_: Any) -> None:
    """Nothing is said of the others."""
    assert found(filter_) == []


def test_exceptions_that_leave_nothing_together() -> None:
    """Exceptions that together leave nothing of a filter are told; single ones are told elsewhere."""
    (only,) = found({"topic": "a/#"}, "w/>", "!w/*", "!w/*/>")[1:]
    assert "remote_subscriptions[1]: attracts nothing: the exceptions of the bridge" in only
    assert found("w/>", "!w/*", "!w/a/>") == []
    assert found("w/*", "v", "!w/>") == []


def test_filter_beyond_the_bounds_there() -> None:
    """The remote message VPN refuses filters beyond its bounds."""
    (only,) = found("a/b/c", "a/b", max_topic_levels=2)
    assert "refuses it: a/b/c has 3 levels, max_topic_levels is 2 (a.yaml:" in only
    (only,) = found("abcdef", "abc", max_topic_bytes=5)
    assert "refuses it: it has 6 bytes, max_topic_bytes is 5 (a.yaml:" in only


def test_filter_that_the_acl_forbids() -> None:
    """The remote message VPN refuses what the bridge's ACL profile there does not allow."""
    rule = {"subscribe_topic": {"default_action": "disallow", "exceptions": ["w/>"]}}
    (only,) = found("w/x", "v", acl_profiles={"default": rule})
    assert "remote_subscriptions[1]" in only
    assert (
        "ACL profile default of client username bridge forbids to subscribe to v (a.yaml:" in only
    )


def test_queue_without_subscriptions() -> None:
    """A bound queue that no topic leads into is told."""
    (only,) = found(queue="q", queues={"q": {}})
    assert ": warning: msg_vpns.v.bridges.in.remote_msg_vpns[0].queue_binding: queue q" in only
    assert "attracts nothing: it has no subscriptions (a.yaml:" in only
    (only,) = found(queue="q", queues={"q": {"subscriptions": ["w", "!w"]}})
    assert "all its subscriptions are empty" in only
    assert found(queue="q", queues={"q": {"subscriptions": ["w", "!v"]}}) == []


kit_vpn = KIT["vpn"]

DISALLOW = {"default_action": "disallow", "exceptions": ["open/>"]}


def closed(**more: Any) -> dict[str, Any]:
    """A message VPN in which clients may publish below open/ alone."""
    data = kit_vpn(acl_profiles={"default": {"publish_topic": DISALLOW}}, **more)
    assert isinstance(data, dict)
    return data


def test_nobody_publishes() -> None:
    """A filter whose topics nobody may publish there is a black hole, told with an example."""
    data = {"a/v": closed(), "b/v": kit_vpn({"from-a": bridge("a/v", filters=["w/>", "*/x"])})}
    (only,) = told(mesh(data))
    assert ": warning: msg_vpns.v.bridges.from-a.remote_subscriptions: black hole:" in only
    assert "nobody may publish topics such as w/x in a/v (a.yaml:" in only


def test_somebody_publishes() -> None:
    """One client username that may log in and publish is enough."""
    data = {"a/v": closed(), "b/v": kit_vpn({"from-a": bridge("a/v", filters=["w/>"])})}
    data["a/v"]["acl_profiles"]["free"] = {"publish_topic": {"default_action": "allow"}}
    account: dict[str, Any] = {"acl_profile": "free", "password": "p"}
    data["a/v"]["client_usernames"]["alice"] = account
    assert told(mesh(data)) == []
    account["enabled"] = False
    assert len(told(mesh(data))) == 1


def test_a_bridge_brings_it() -> None:
    """What a bridge brings need not be published there, wherever the bridge leads."""
    data = {"a/v": closed(bridges={}), "b/v": kit_vpn({"from-a": bridge("a/v", filters=["w/>"])})}
    data["a/v"]["bridges"]["from-far"] = bridge("far/v", filters=["w/y"])
    assert told(mesh(data), about="black hole") == []
    data["a/v"]["bridges"]["from-far"] = bridge("far/v", filters=["v"])
    assert len(told(mesh(data), about="black hole")) == 1
    data["a/v"]["bridges"]["from-far"] = bridge("far/v", queue="unknown")
    assert told(mesh(data), about="black hole") == []


def test_the_router_itself_publishes() -> None:
    """Nothing is said of topics that the router may publish itself."""
    data = {"a/v": closed(), "b/v": kit_vpn({"from-a": bridge("a/v", filters=["$SYS/>"])})}
    assert told(mesh(data)) == []


def hub(inward: str, onward: str) -> dict[str, Any]:
    """B brings from A, C takes from B."""
    return {
        "a/v": kit_vpn(),
        "b/v": kit_vpn({"from-a": bridge("a/v", filters=[inward])}),
        "c/v": kit_vpn({"from-b": bridge("b/v", filters=[onward])}),
    }


def test_chain_that_ends() -> None:
    """A chain whose second bridge takes nothing on of what the first one brings is noted."""
    (only,) = told(mesh(hub("w/>", "v/>")))
    assert only.startswith("c.yaml:")
    assert "nothing that bridges bring from a/v into b/v goes on to c/v" in only
    assert "topic w/x goes a/v -> b/v and no further" in only
    assert ": note: " in only


def test_chain_that_goes_on() -> None:
    """One topic that goes on is enough, and so is a bridge that leads past the hub."""
    assert told(mesh(hub("w/>", "*/x"))) == []
    data = hub("w/>", "v/>")
    data["c/v"]["bridges"]["from-a"] = bridge("a/v", filters=["z"])
    assert told(mesh(data)) == []


def test_unknown_router_behind_the_hub() -> None:
    """What a router brings that no file describes may go on."""
    data = hub("w/>", "v/>")
    data["b/v"]["bridges"]["from-far"] = bridge("far/v", filters=["v/>"])
    assert told(mesh(data), about="chain ends") == []


def test_hub_is_told_once() -> None:
    """All bridges that lead out of one message VPN share one note."""
    data = hub("w/>", "v/>")
    data["d/v"] = kit_vpn({"from-b": bridge("b/v", filters=["u"])})
    (only,) = told(mesh(data))
    assert "goes on to c/v, d/v" in only


def test_pair_with_other_topics_each_way() -> None:
    """A bi-directional bridge with other topics each way is no chain that ends."""
    data = {
        "a/v": kit_vpn({"from-b": bridge("b/v", filters=["w/>"])}),
        "b/v": kit_vpn({"from-a": bridge("a/v", filters=["v/>"])}),
    }
    assert told(mesh(data)) == []
