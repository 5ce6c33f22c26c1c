"""Tests of how objects stand in what holds them, in models and in plain data."""

from typing import Any

import pytest

from vpnrouter.config.bridge import Bridge
from vpnrouter.config.msg_vpn import MsgVpn
from vpnrouter.config.settings_models import Queue
from vpnrouter.errors import RequestError
from vpnrouter.management.config.document_access import (
    AUTO,
    MappingAccess,
    RecordsAccess,
    TextsAccess,
    opened,
    reached,
)

REMOTES = RecordsAccess("remote_msg_vpns", fields=("name", "location"), rest=("",))
SUBSCRIPTIONS = RecordsAccess("remote_subscriptions", fields=("topic",))


def test_named_objects() -> None:
    """They are found by name, a key without a value included, and not on another virtual router."""
    store = MappingAccess("bridges", rest=(AUTO,))
    vpn = MsgVpn.model_validate({"bridges": {"b": {}}})
    assert list(store.keys(vpn)) == [("b", AUTO)]
    assert store.model(vpn, ("b", AUTO)) is vpn.bridges["b"]
    assert store.model(vpn, ("b", "primary")) is None
    plain: dict[str, Any] = {"bridges": {"b": None}}
    assert store.find(plain, ("b", "primary")) is None
    assert store.find(plain, ("b", AUTO)) == {}
    store.add(plain, ("c", AUTO), {"max_ttl": 1})
    store.drop(plain, ("b", AUTO))
    assert plain == {"bridges": {"c": {"max_ttl": 1}}}
    assert store.path(plain, ("c", AUTO)) == ("bridges", "c")


def test_what_is_built_in_is_found_unwritten() -> None:
    """Finding it is the beginning of changing it."""
    store = MappingAccess("acl_profiles", built_in="default")
    plain: dict[str, Any] = {}
    assert store.find(plain, ("other",)) is None
    store.find(plain, ("default",))["client_connect"] = {}
    assert plain == {"acl_profiles": {"default": {"client_connect": {}}}}


def test_records() -> None:
    """They are found by what identifies them, and stay in their places."""
    plain: dict[str, Any] = {
        "remote_msg_vpns": [{"name": "a", "location": "h"}, {"name": "b", "location": "h"}]
    }
    bridge = Bridge.model_validate(plain)
    assert list(REMOTES.keys(bridge)) == [("a", "h", ""), ("b", "h", "")]
    assert REMOTES.model(bridge, ("b", "h", "")) is bridge.remote_msg_vpns[1]
    assert REMOTES.model(bridge, ("b", "h", "eth0")) is None
    assert REMOTES.find(plain, ("b", "h", "eth0")) is None
    REMOTES.put(plain, ("a", "h", ""), {"enabled": False})
    REMOTES.add(plain, ("c", "i", ""), {"tls_enabled": True})
    assert REMOTES.path(plain, ("c", "i", "")) == ("remote_msg_vpns", 2)
    REMOTES.drop(plain, ("b", "h", ""))
    assert plain["remote_msg_vpns"] == [
        {"name": "a", "location": "h", "enabled": False},
        {"name": "c", "location": "i", "tls_enabled": True},
    ]


def test_a_record_written_short_is_written_out_where_it_changes() -> None:
    """`- FILTER` says the same as `- {topic: FILTER}`."""
    plain: dict[str, Any] = {"remote_subscriptions": ["a", {"topic": "b"}]}
    found = SUBSCRIPTIONS.find(plain, ("a",))
    found["selector"] = "x = 1"
    assert plain["remote_subscriptions"] == [{"topic": "a", "selector": "x = 1"}, {"topic": "b"}]


def test_texts() -> None:
    """A text is found by itself."""
    store = TextsAccess("subscriptions")
    queue = Queue.model_validate({"subscriptions": ["a", "b", "a"]})
    assert list(store.keys(queue)) == [("a",), ("b",)]
    assert store.model(queue, ("b",)) == ("b",)
    assert store.model(queue, ("c",)) is None
    plain: dict[str, Any] = {"subscriptions": ["a", "b", "a"]}
    assert store.find(plain, ("b",)) == {}
    store.drop(plain, ("a",))
    store.add(plain, ("c",), {})
    assert plain == {"subscriptions": ["b", "c"]}


def test_texts_of_one_syntax() -> None:
    """The first decides the syntax, and another one waits until none is left."""
    store = TextsAccess("publish_topic", "exceptions", syntax="topic_syntax")
    plain: dict[str, Any] = {}
    store.add(plain, ("mqtt", "a/#"), {})
    assert plain == {"publish_topic": {"exceptions": ["a/#"], "topic_syntax": "mqtt"}}
    assert store.find(plain, ("smf", "a/#")) is None
    with pytest.raises(RequestError, match="syntax mqtt"):
        store.add(plain, ("smf", "a/>"), {})
    store.drop(plain, ("mqtt", "a/#"))
    store.add(plain, ("smf", "a/>"), {})
    assert plain == {"publish_topic": {"exceptions": ["a/>"], "topic_syntax": "smf"}}


def test_what_is_on_the_way_is_made() -> None:
    """Mappings that are not there, or empty, are opened; models that are not there lead to nothing."""
    plain: dict[str, Any] = {"a": None}
    opened(plain, ("a", "b"))["c"] = 1
    assert plain == {"a": {"b": {"c": 1}}}
    bridge = Bridge.model_validate({"remote_msg_vpns": [{"name": "a", "location": "h"}]})
    assert reached(bridge.remote_msg_vpns[0], ("client_cert", "key")) is None
