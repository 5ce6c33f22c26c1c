from collections.abc import Iterator

import pytest

from vpnrouter.config.effects import ANY, IDENTITIES, TABLE, Pattern, effect_of
from vpnrouter.config.model import Model
from vpnrouter.config.model_schema import kind_of
from vpnrouter.config.router import RouterConfig
from vpnrouter.settings.schema import Effect


def walk(model: type[Model], above: Pattern = ()) -> Iterator[tuple[Pattern, bool]]:
    """The pattern of every key below a model, and whether it has a value that changes as one."""
    for name, field in model.model_fields.items():
        kind = kind_of(field.annotation)
        pattern = (*above, field.alias or name)
        if kind.form == "model" and kind.model is not None:
            if kind.optional:
                yield pattern, True
            yield from walk(kind.model, pattern)
        elif kind.form == "named" and kind.model is not None:
            yield from walk(kind.model, (*pattern, ANY))
        elif pattern in IDENTITIES and kind.model is not None:
            yield pattern, False
            for inner, whole in walk(kind.model, (*pattern, ANY)):
                yield (
                    inner,
                    whole
                    and inner[len(pattern) + 1 :] not in {(key,) for key in IDENTITIES[pattern]},
                )
        else:
            yield pattern, True


KEYS = dict(walk(RouterConfig))
NEEDED = [pattern for pattern, whole in KEYS.items() if whole]


@pytest.mark.parametrize("pattern", NEEDED, ids=".".join)
def test_every_key_has_a_row(pattern: Pattern) -> None:
    """No key of the models was added without somebody deciding what its change does."""
    assert pattern in TABLE


def test_walk_sees_the_models() -> None:
    """The walk above goes as deep as the models do."""
    assert len(NEEDED) > 150
    assert ("msg_vpns", ANY, "queues", ANY, "redelivery", "delay", "multiplier") in NEEDED
    assert ("listeners", ANY, "protocol") not in NEEDED


def test_no_row_is_stale() -> None:
    """Each row is about a key that there is, or about the objects of a mapping."""
    objects = {pattern[:-1] for pattern in KEYS if len(pattern) > 1}
    for pattern in TABLE:
        assert pattern in KEYS or (pattern[-1] == ANY and pattern in objects), pattern


def test_identities_are_keys() -> None:
    """What identifies an item is a required key of it."""
    for pattern, keys in IDENTITIES.items():
        for key in keys:
            assert (*pattern, ANY, key) in KEYS


BRIDGE = "msg_vpns.*.bridges.*."


@pytest.mark.parametrize(
    ("dotted", "after", "effect"),
    [
        ("router.name", "x", Effect.RESTART),
        ("guaranteed_msging.enabled", False, Effect.RESTART),
        ("guaranteed_msging.max_msg_spool_usage", 7, Effect.IN_PLACE),
        ("msg_vpns.*.queues.*.max_spooled_msg_count", 7, Effect.IN_PLACE),
        ("msg_vpns.*.mqtt.session_queue.max_msg_size", 7, Effect.NEXT_LOGIN),
        ("msg_vpns.*.replay_logs.*.ingress_enabled", False, Effect.IN_PLACE),
        ("msg_vpns.*.client_profiles.*.end_to_end_bridge", "b", Effect.NEXT_LOGIN),
        ("trace.directory", "x", Effect.RESTART),
        ("listeners.*.enabled", False, Effect.REBIND),
        ("listeners.*.tls.certificate", "x", Effect.IN_PLACE),
        ("listeners.*.msg_vpn", "x", Effect.NEXT_LOGIN),
        ("msg_vpns.*.enabled", False, Effect.DISCONNECT),
        ("msg_vpns.*.enabled", True, Effect.IN_PLACE),
        ("msg_vpns.*.client_usernames.*.enabled", False, Effect.DISCONNECT),
        ("msg_vpns.*.client_usernames.*.enabled", True, Effect.NEXT_LOGIN),
        (
            "msg_vpns.*.client_profiles.*.allow_bridge_connections_enabled",
            False,
            Effect.DISCONNECT,
        ),
        ("msg_vpns.*.acl_profiles.*.publish_topic.exceptions", (), Effect.IN_PLACE),
        ("msg_vpns.*.acl_profiles.*.client_connect.exceptions", (), Effect.DISCONNECT),
        ("msg_vpns.*.max_subscription_count", 7, Effect.IN_PLACE),
        ("msg_vpns.*.bridging.tls_server_cert.ca", "x", Effect.RECONNECT),
        (BRIDGE + "enabled", False, Effect.IN_PLACE),
        (BRIDGE + "max_ttl", 7, Effect.IN_PLACE),
        (BRIDGE + "on_reject", "park", Effect.IN_PLACE),
        (BRIDGE + "lane_by", "partition-key", Effect.IN_PLACE),
        (BRIDGE + "retained", "replay", Effect.IN_PLACE),
        (BRIDGE + "topic_mapping", (), Effect.IN_PLACE),
        (BRIDGE + "remote_connection.heartbeat_interval", 7, Effect.RECONNECT),
        (BRIDGE + "remote_authentication.basic.password", None, Effect.NEXT_LOGIN),
        (BRIDGE + "remote_msg_vpns.*.egress_flow_window_size", 7, Effect.IN_PLACE),
        (BRIDGE + "remote_msg_vpns.*.tls_enabled", True, Effect.RECONNECT_IF_USED),
        (BRIDGE + "remote_msg_vpns.*.enabled", False, Effect.RECONNECT_IF_USED),
        (BRIDGE + "remote_msg_vpns.*.enabled", True, Effect.IN_PLACE),
    ],
)
def test_effects(dotted: str, after: object, effect: Effect) -> None:
    """What the documentation promises of a reload stands in the table."""
    assert effect_of(tuple(dotted.split(".")), after) is effect


def test_nothing_else_has_an_effect() -> None:
    """A key without a row is a mistake and not a guess."""
    with pytest.raises(KeyError):
        effect_of(("router", "colour"), 1)
