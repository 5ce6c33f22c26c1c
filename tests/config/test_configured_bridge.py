"""From what is written of a bridge to what it asks of its remote message VPN."""

from typing import Any

import pytest

from vpnrouter.config.bridge import Bridge
from vpnrouter.config.configured_bridge import (
    client_cert_of,
    expected_router,
    mapping_of,
    remote_settings_of,
    scheme_of,
    selectors,
    subscriptions,
)
from vpnrouter.config.settings_models import TlsServerCert
from vpnrouter.units import SECOND_NS
from vpnrouter.wire.link.frames import BASIC, CLIENT_CERTIFICATE, SCRAM

REMOTE = {"name": "blue", "location": "h"}


def written(remote: dict[str, Any] | None = None, **fields: Any) -> Bridge:
    """A bridge with one remote, which has these fields besides."""
    return Bridge.model_validate({"remote_msg_vpns": [REMOTE | (remote or {})]} | fields)


def terms(bridge: Bridge) -> Any:
    """Its terms towards its remote."""
    return remote_settings_of("b", bridge, bridge.remote_msg_vpns[0], TlsServerCert())


def test_exceptions_are_asked_for_first() -> None:
    """Nothing that is excepted may slip through in between."""
    bridge = written(remote_subscriptions=["a/>", "!a/secret", "b"])
    assert [text for _, text in subscriptions(bridge)] == ["!a/secret", "a/>", "b"]


@pytest.mark.parametrize(
    ("syntax", "topic", "asked"),
    [
        ("mqtt", "!a/+", ["!a/*"]),
        ("mqtt", "!#", ["!>"]),
        ("mqtt", "!a/#", ["!a", "!a/>"]),
        ("mqtt", "$share/g/a/+", ["#share/g/a/*"]),
        ("smf", "!a/>", ["!a/>"]),
        ("smf", "#share/g/>", ["#share/g/>"]),
    ],
)
def test_marks_in_the_link_s_dialect(syntax: str, topic: str, asked: list[str]) -> None:
    """Exceptions and share groups keep their meaning in `*` `>` dialect."""
    bridge = written(topic_syntax=syntax, remote_subscriptions=[topic])
    assert sorted(text for _, text in subscriptions(bridge)) == asked


def test_selectors_go_with_each_filter() -> None:
    """A filter that is two on the link has its selector on both; one without has none."""
    bridge = written(
        topic_syntax="mqtt",
        remote_subscriptions=[{"topic": "a/#", "selector": "x > 3"}, "b"],
    )
    assert selectors(bridge) == {"a": "x > 3", "a/>": "x > 3"}
    assert terms(bridge).selectors == selectors(bridge)


def test_credentials() -> None:
    """The remote's own name and password come before the bridge's; never one of each."""
    basic = {"basic": {"client_username": "n", "password": "p"}}
    assert (terms(written()).client_username, terms(written()).password) == ("", "")
    asked = terms(written(remote_authentication=basic))
    assert (asked.client_username, asked.password, asked.scheme) == ("n", "p", SCRAM)
    asked = terms(written({"client_username": "m"}, remote_authentication=basic))
    assert (asked.client_username, asked.password, asked.scheme) == ("m", "", BASIC)
    shown = {"basic": {"client_username": "n", "password": "p", "mechanism": "plain"}}
    asked = terms(written(remote_authentication=shown))
    assert (asked.scheme, asked.verified) == (BASIC, False)
    own = {"client_username": "m", "password": "q"}
    asked = terms(written(own, remote_authentication=basic))
    assert (asked.client_username, asked.password) == ("m", "q")


def test_client_certificates() -> None:
    """With a certificate no name and no password leave; a remote may have a scheme of its own."""
    cert = {"certificate": "c.pem", "key": "k.pem"}
    tls = {"tls_enabled": True}
    bridge = written(
        tls,
        remote_authentication={
            "scheme": "client-certificate",
            "client_cert": cert,
            "basic": {"client_username": "n", "password": "p"},
        },
    )
    remote = bridge.remote_msg_vpns[0]
    asked = terms(bridge)
    assert (asked.scheme, asked.client_username, asked.password) == (CLIENT_CERTIFICATE, "", "")
    assert client_cert_of(bridge, remote) is bridge.remote_authentication.client_cert
    plain = written(
        tls | {"authentication_scheme": "basic"},
        remote_authentication={"scheme": "client-certificate", "client_cert": cert},
    )
    assert scheme_of(plain, plain.remote_msg_vpns[0]) == "basic"
    assert client_cert_of(plain, plain.remote_msg_vpns[0]) is None


@pytest.mark.parametrize(
    ("remote", "name"),
    [
        ({}, ""),
        ({"router": "edge"}, "edge"),
        ({"location": "v:edge"}, "edge"),
        ({"location": "v:edge", "router": "edge"}, "edge"),
    ],
)
def test_the_expected_router(remote: dict[str, str], name: str) -> None:
    """The remote must give the name that is written, or that its location is."""
    bridge = written(remote)
    assert expected_router(bridge.remote_msg_vpns[0]) == name
    assert terms(bridge).remote_router == name


@pytest.mark.parametrize(
    ("tls", "rules", "verified"),
    [
        (False, {}, False),
        (True, {}, True),
        (True, {"validate_name_enabled": False}, False),
        (True, {"validate_name_enabled": False, "trusted_common_names": ["edge"]}, True),
    ],
)
def test_whether_tls_makes_sure_of_the_name(tls: bool, rules: Any, verified: bool) -> None:
    """TLS verifies the name where the host's name is checked, or where trusted common names are configured."""
    bridge = written({"tls_enabled": tls})
    asked = remote_settings_of("b", bridge, bridge.remote_msg_vpns[0], TlsServerCert(**rules))
    assert asked.verified == verified


def test_the_rest() -> None:
    """Hop limit, heartbeat and compression are taken as written."""
    bridge = written(
        {"compressed_data_enabled": True},
        max_ttl=3,
        remote_connection={"heartbeat_interval": 700},
    )
    asked = terms(bridge)
    assert (asked.bridge, asked.remote_vpn) == ("b", "blue")
    assert (asked.max_ttl, asked.heartbeat_ms, asked.compress) == (3, 700, True)


def test_mappings() -> None:
    """Rules hold in their direction, those for both the other way round where messages leave."""
    assert mapping_of(written(), "in") is None
    assert terms(written()).mapping is None
    bridge = written(topic_mapping=[{"add_prefix": "x", "direction": "both"}])
    inward, outward = mapping_of(bridge, "in"), mapping_of(bridge, "out")
    assert inward is not None
    assert outward is not None
    assert (inward.apply("a/b"), outward.apply("x/a/b")) == ("x/a/b", "a/b")
    only_in = written(topic_mapping=[{"from": "a/*", "to": "b/{1}"}])
    assert mapping_of(only_in, "out") is None
    assert terms(only_in).mapping.apply("a/1") == "b/1"


def test_guaranteed_messages() -> None:
    """Queue and window are the remote's, the rest is the bridge's."""
    plain = terms(written())
    assert (plain.queue, plain.window, plain.retry_delay_ns) == ("", 65_535, 3 * SECOND_NS)
    assert (plain.flow.on_reject, plain.flow.lanes, plain.flow.retry_ms) == (0, 1, 1000)
    found = terms(
        written(
            {"queue_binding": "q", "egress_flow_window_size": 7},
            on_reject="park",
            lane_by="partition-key",
            guaranteed_retry_interval=20,
            max_ttl=3,
            remote_connection={"retry_delay": 1},
            topic_mapping=[{"add_prefix": "p"}],
        )
    )
    assert (found.queue, found.window, found.retry_delay_ns) == ("q", 7, SECOND_NS)
    flow = found.flow
    assert (flow.on_reject, flow.lanes, flow.retry_ms, flow.max_ttl) == (1, 2, 20, 3)
    assert flow.mapping is not None
