"""Every attribute of the configuration that this version serves arrives in the core."""

from typing import Any

import pytest

from vpnrouter.errors import Refused
from vpnrouter.server.apply.assemble import build_router
from vpnrouter.topics.grammar import MQTT, parse_filter

TEXT = """
trace: {directory: ./traces, sample: 0.25}
msg_vpns:
  blue:
    enabled: false
    max_connection_count: 11
    max_retained_msg_count: 16
    client_profiles:
      small:
        max_keepalive_timeout: 23
    acl_profiles:
      tight:
        client_connect: {default_action: disallow, exceptions: ["192.0.2.0/24", "2001:db8::/32"]}
        publish_topic: {default_action: disallow, exceptions: ["out/*/>"]}
        subscribe_topic: {default_action: allow, topic_syntax: mqtt, exceptions: ["secret/#"]}
        subscribe_share_name: {default_action: disallow, exceptions: ["team"]}
    client_usernames:
      app: {password: secret, client_profile: small, acl_profile: tight}
      gone: {password: secret, enabled: false}
  green:
    authentication: {basic: {enabled: false}}
"""


def test_everything_arrives(configured: Any) -> None:
    """Limits, profiles, ACLs, usernames and sampling are those that were written."""
    router = build_router(configured(TEXT, "edge"), seed=7, secret=b"s")
    assert router.name == "edge"
    assert list(router.vpns) == ["blue", "green"]
    assert router.context.tracing
    assert router.context.sampler.rate == 0.25
    blue, green = router.vpns["blue"], router.vpns["green"]
    assert (blue.enabled, green.enabled) == (False, True)
    assert blue.vpn_id == "edge/blue"
    assert blue.limits.max_connection_count == 11
    assert blue.retained.most == blue.limits.max_retained_msg_count == 16
    assert blue.profiles["small"].max_keepalive_timeout == 23
    assert blue.profiles["default"].max_keepalive_timeout == 0


def test_access_rules_arrive(configured: Any) -> None:
    """Connect, publish, subscribe and share rules decide as they were written."""
    acl = build_router(configured(TEXT), 7, b"s").vpns["blue"].acl_profiles["tight"]
    assert acl.allows_connect("192.0.2.9")
    assert acl.allows_connect("2001:db8::1")
    assert not acl.allows_connect("198.51.100.1")
    publish = acl.publish.bind("app", "c")
    assert publish.allows_topic("out/a/b")
    assert not publish.allows_topic("in/a/b")
    subscribe = acl.subscribe.bind("app", "c")
    assert subscribe.allows_filter(parse_filter("open/#", MQTT))
    assert not subscribe.allows_filter(parse_filter("secret/x", MQTT))
    assert not acl.share_name.default_allow
    assert acl.share_name.bind("app", "c").allows_topic("team")


def test_client_usernames_arrive(configured: Any) -> None:
    """Names, passwords, profiles, and who is shut down."""
    router = build_router(configured(TEXT), 7, b"s")
    credentials = router.vpns["blue"].credentials
    app = credentials.identify("app")
    assert (app.password, app.client_profile, app.acl_profile) == ("secret", "small", "tight")
    assert credentials.needs_password(app)
    assert not credentials.usernames["gone"].enabled
    with pytest.raises(Refused):
        credentials.identify("nobody")
    anonymous = router.vpns["green"].credentials
    assert not anonymous.needs_password(anonymous.identify(None))


def test_without_traces(configured: Any) -> None:
    """Without a trace block, or with one switched off, nothing is sampled."""
    vpns = "msg_vpns: {blue: {}}\n"
    for text in (vpns, "trace: {directory: ./t, sample: 1.0, enabled: false}\n" + vpns):
        router = build_router(configured(text), 7, b"s")
        assert not router.context.tracing
        assert router.context.sampler.rate == 0.0


def test_client_certificate_rules_arrive(configured: Any) -> None:
    """Where certificates log clients in, their rules are those that were written; else there are none."""
    text = """
msg_vpns:
  blue:
    authentication:
      client_cert:
        enabled: true
        username_source: subject-alternate-name
        max_chain_depth: 1
        validate_date_enabled: false
  green:
    authentication: {client_cert: {max_chain_depth: 1}}
"""
    vpns = build_router(configured(text), 7, b"s").vpns
    rules = vpns["blue"].credentials.client_cert
    assert rules is not None
    assert rules.username_source == "subject-alternate-name"
    assert (rules.max_chain_depth, rules.validate_date_enabled) == (1, False)
    assert vpns["green"].credentials.client_cert is None


def test_a_router_does_not_tell_where_its_ids_come_from(configured: Any) -> None:
    """Two routers that say the same of themselves, incarnation and all, give other ids."""
    config = configured("msg_vpns: {blue: {}}")
    one, same, other = (build_router(config, 7, secret) for secret in (b"a", b"a", b"b"))
    assert one.context.ids.high == other.context.ids.high
    numbers = [router.context.ids.new_message_id() for router in (one, same, other)]
    assert numbers[0] == numbers[1] != numbers[2]
