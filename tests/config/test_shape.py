import pytest

from vpnrouter.config.bridge import Bridge
from vpnrouter.config.listeners import Listener
from vpnrouter.config.model_schema import Kind, bounds_of, field_at, grouped_key, kind_of, model_at
from vpnrouter.config.msg_vpn import MsgVpn
from vpnrouter.config.router import RouterConfig
from vpnrouter.config.settings_models import ClientUsername, Queue, RemoteMsgVpn


@pytest.mark.parametrize(
    ("model", "name", "kind"),
    [
        (RouterConfig, "msg_vpns", Kind("named", MsgVpn)),
        (RouterConfig, "listeners", Kind("list", Listener)),
        (Queue, "subscriptions", Kind("list")),
        (Queue, "topic_syntax", Kind("choice", choices=("smf", "mqtt"))),
        (Queue, "max_ttl", Kind("integer")),
        (Queue, "egress_enabled", Kind("switch")),
        (Queue, "owner", Kind("text", optional=True)),
        (ClientUsername, "password", Kind("secret", optional=True)),
    ],
)
def test_kinds(model: type[RouterConfig], name: str, kind: Kind) -> None:
    """The kind of a key is read from its annotation."""
    assert kind_of(model.model_fields[name].annotation) == kind


def test_unknown_annotation() -> None:
    """An annotation that no document can hold is a mistake in a model."""
    with pytest.raises(KeyError):
        kind_of(bytes)
    with pytest.raises(TypeError):
        kind_of(set[int])


def test_bounds() -> None:
    """Bounds are those of the field; text has none."""
    assert bounds_of(Bridge.model_fields["max_ttl"]) == (1, 255)
    assert bounds_of(Bridge.model_fields["enabled"]) is None


def test_model_at() -> None:
    """A path through names and indexes leads to the model of the mapping there."""
    path = ("msg_vpns", "blue", "bridges", "b", "remote_msg_vpns", 0)
    assert model_at(RouterConfig, ()) is RouterConfig
    assert model_at(RouterConfig, path) is RemoteMsgVpn
    assert model_at(RouterConfig, path[:-1]) is None
    assert model_at(RouterConfig, (*path, "name", "x")) is None
    assert model_at(RouterConfig, ("zzz", "x", "y")) is None


def test_field_at() -> None:
    """A path to a known key leads to its field; a name or an index is none."""
    assert field_at(RouterConfig, ("router", "name")) is not None
    assert field_at(RouterConfig, ("msg_vpns", "blue")) is None
    assert field_at(RouterConfig, ("listeners", 0)) is None
    assert field_at(RouterConfig, ()) is None


@pytest.mark.parametrize(
    ("model", "flat", "grouped"),
    [
        (MsgVpn, "authentication_basic_enabled", "authentication: {basic: {enabled: …}}"),
        (MsgVpn, "bridging_tls_server_cert_ca", "bridging: {tls_server_cert: {ca: …}}"),
        (Bridge, "remote_authentication_scheme", "remote_authentication: {scheme: …}"),
        (Bridge, "remote_connection_retry_count", "remote_connection: {retry_count: …}"),
        (Queue, "partition_count", "partition: {count: …}"),
        (Queue, "reject_low_priority_msg_enabled", "reject_low_priority_msg: {enabled: …}"),
        (Queue, "redelivery_nothing", None),
        (Queue, "zzz", None),
    ],
)  # fmt: skip
def test_flat_names(model: type[RouterConfig], flat: str, grouped: str | None) -> None:
    """A SEMP name in snake case is told as the groups that it is written in."""
    assert grouped_key(model, flat) == grouped
