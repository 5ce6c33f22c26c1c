"""vpnrouter.core.access: ACL profiles: an exception inverts the default action."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter.core.access import AclProfile, TopicRule
from vpnrouter.topics.grammar import MQTT, SMF, parse_filter
from vpnrouter.topics.oracle import oracle_matches

BLOCKS = ["10.0.0.0/8", "192.0.2.7/32", "2001:db8::/32", "fe80::/10"]


@pytest.mark.parametrize("default", [True, False])
@pytest.mark.parametrize(
    ("address", "inside"),
    [
        ("10.1.2.3", True),
        ("11.1.2.3", False),
        ("192.0.2.7", True),
        ("192.0.2.8", False),
        ("2001:db8::1", True),
        ("2001:db9::1", False),
        ("::ffff:10.1.2.3", True),
        ("::ffff:11.1.2.3", False),
        ("fe80::1%eth0", True),
        ("::1", False),
        ("", False),
        ("/run/socket", False),
    ],
)
def test_connect_exceptions(default: bool, address: str, inside: bool) -> None:
    """A block of either family inverts the default action; what is no address has the default."""
    acl = AclProfile("a", connect_default_allow=default, connect_exceptions=BLOCKS)
    assert acl.allows_connect(address) == (default != inside)


@pytest.mark.parametrize("default", [True, False])
def test_publish_exceptions_in_both_dialects(default: bool) -> None:
    """Each exception is read in its own dialect."""
    rule = TopicRule(default, [("a/pre*/>", SMF), ("b/+", MQTT)]).bind("u", "c")
    for topic in ("a/prefix/x", "b/x"):
        assert rule.allows_topic(topic) != default
    for topic in ("a/prefix", "a/x/y", "b", "b/x/y", "c"):
        assert rule.allows_topic(topic) == default


def test_variables_stand_for_the_clients_own_names() -> None:
    """Several variables, within a level too."""
    rule = TopicRule(False, [("u/$client-username/d-$client-id/#", MQTT)])
    bound = rule.bind("me", "phone")
    assert bound.allows_topic("u/me/d-phone/x")
    assert not bound.allows_topic("u/me/d-tablet/x")
    assert not bound.allows_topic("u/you/d-phone/x")


def test_what_names_nobody_holds_for_clients_without_a_name() -> None:
    """Exceptions without variables hold beside others that cannot be filled in."""
    bound = TopicRule(True, [("secret/#", MQTT), ("u/$client-id/#", MQTT)]).bind("", "")
    assert not bound.allows_topic("secret/x")
    assert bound.allows_topic("u/x/y")


def test_clients_without_variables_share_one_rule() -> None:
    """A rule without variables is the same object for all, so that a route can remember it."""
    rule = TopicRule(False, [("a", MQTT)])
    assert rule.bind("a", "b") is rule.bind("c", "d")


@pytest.mark.parametrize(
    "name",
    [
        "",
        "+",
        "#",
        "*",
        ">",
        "a/b",
        "a#",
        "a*",
        "\0",
        "$share",
        "$client-id",
        "x$client-id",
        "$SYS",
    ],
)
@pytest.mark.parametrize("dialect", [MQTT, SMF])
@pytest.mark.parametrize("template", ["$client-username/data/", "u/$client-username/"])
def test_a_name_cannot_widen_a_filter(name: str, dialect: int, template: str) -> None:
    """A client that calls itself a wildcard, a prefix or the other variable gets no exception at all."""
    template += "#" if dialect == MQTT else ">"
    bound = TopicRule(False, [(template, dialect)]).bind(name, "id")
    assert bound.filters == []
    assert not bound.allows_topic("secret/data/x")
    assert not bound.allows_filter(parse_filter("#", MQTT))


def test_a_name_that_makes_a_filter_too_long() -> None:
    """Such a client gets no exception, and no error either."""
    bound = TopicRule(False, [("u/$client-id/#", MQTT)]).bind("u", "c" * 65_535)
    assert bound.filters == []


@given(
    st.text(st.sampled_from("ab/+#$*>s"), max_size=8),
    st.text(st.sampled_from("ab/+#$*>s"), max_size=8),
    st.sampled_from(
        ["x/$client-id/y", "$client-id/+", "x/p$client-id/#", "$client-id/$client-username"]
    ),
)
def test_no_name_reaches_beyond_its_level(username: str, client_id: str, template: str) -> None:
    """Whatever the names, what is allowed matches the template with each variable a single `+`."""
    bound = TopicRule(False, [(template, MQTT)]).bind(username, client_id)
    loose = "/".join("+" if "$client" in level else level for level in template.split("/"))
    for topic in ("x/a/y", "x/y", "a/b", "b/a", "x/pa/a/b", "a/b/s", "s", "$s/a", "a/a/b/b"):
        if bound.allows_topic(topic):
            assert oracle_matches(loose, MQTT, topic)
            assert client_id in topic


@pytest.mark.parametrize(
    ("wanted", "when_allowed", "when_denied"),
    [
        ("a/b", False, True),
        ("a/+", False, True),
        ("a/#", False, True),
        ("+/b", True, True),
        ("#", True, True),
        ("b", True, False),
        ("b/#", True, False),
        ("$x/#", True, False),
    ],
)
def test_covers_and_intersects(wanted: str, when_allowed: bool, when_denied: bool) -> None:
    """Allowed by default: unless an exception covers all; denied by default: when one shares a topic."""
    filter_ = parse_filter(wanted, MQTT)
    exceptions = [("a/#", MQTT)]
    assert TopicRule(True, exceptions).bind("", "").allows_filter(filter_) == when_allowed
    assert TopicRule(False, exceptions).bind("", "").allows_filter(filter_) == when_denied


@pytest.mark.parametrize("dialect", [MQTT, SMF])
def test_who_denies_everything_denies_hidden_topics(dialect: int) -> None:
    """A wildcard in the first level of a denial takes in `$` topics; one of an allowance has to name them."""
    everything = "#" if dialect == MQTT else ">"
    denies = TopicRule(True, [(everything, dialect)]).bind("u", "c")
    allows = TopicRule(False, [(everything, dialect)]).bind("u", "c")
    for topic in ("$queue/q", "$SYS/LOG/x", "#P2P/x"):
        assert not denies.allows_topic(topic)
        assert not allows.allows_topic(topic)
    for text in ("$SYS/LOG/#", "$SYS/#", "$queue/q", "#", "+/x"):
        assert not denies.allows_filter(parse_filter(text, MQTT))
    assert not allows.allows_filter(parse_filter("$SYS/#", MQTT))
    assert allows.allows_filter(parse_filter("+/x", MQTT))
    one_level = TopicRule(True, [("+/q" if dialect == MQTT else "*/q", dialect)]).bind("u", "c")
    assert not one_level.allows_topic("$queue/q")
    assert one_level.allows_topic("$queue/r")
    assert not one_level.allows_filter(parse_filter("$queue/q", MQTT))
    assert one_level.allows_filter(parse_filter("$queue/#", MQTT))
