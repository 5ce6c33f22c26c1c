"""Differences of two configurations, what a change does, and what is shared."""

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from vpnrouter.config.diff import changes, reuse
from vpnrouter.config.effects import (
    IDENTITIES,
    TABLE,
    Change,
    Item,
    Pattern,
    describe,
    effect_of,
    show_change_path,
)
from vpnrouter.config.model import Model
from vpnrouter.config.model_schema import kind_of
from vpnrouter.config.router import RouterConfig
from vpnrouter.config.secrets import ENVIRONMENT, Secret
from vpnrouter.config.settings_models import RemoteMsgVpn
from vpnrouter.settings.kinds import ANY
from vpnrouter.settings.schema import Effect

CONFIGS = Path(__file__).resolve().parent.parent.parent / "configs"

WHOLE: dict[str, Any] = {
    "router": {"name": "here"},
    "listeners": [
        {"protocol": "mqtt", "bind": "127.0.0.1:0", "msg_vpn": "blue"},
        {"protocol": "mqtt", "bind": "127.0.0.1:0", "max_connection_count": 5},
        {"protocol": "links", "bind": "h:1", "tls": {"certificate": "c", "key": "k"}},
    ],
    "trace": {"directory": "t"},
    "management": {"users": {"ann": {"password": "pw", "msg_vpns": ["blue"]}}},
    "msg_vpns": {
        "blue": {
            "client_usernames": {"ann": {"password": "one"}, "bob": {}},
            "client_profiles": {"p": {"max_subscription_count": 5}},
            "acl_profiles": {"a": {"publish_topic": {"exceptions": ["a", "b"]}}},
            "queues": {"q": {"subscriptions": ["a"]}},
            "bridges": {
                "x": {
                    "remote_authentication": {"basic": {"client_username": "u", "password": "p"}},
                    "remote_msg_vpns": [
                        {"name": "red", "location": "h:1"},
                        {"name": "red", "location": "h:2", "client_cert": {"key": "k"}},
                        {"name": "red", "location": "v:core", "connect_order": 1},
                    ],
                    "remote_subscriptions": ["a", "b/>", "a", {"topic": "c", "selector": "x = 1"}],
                    "topic_mapping": [{"from": "a", "to": "b"}, {"add_prefix": "p/"}],
                }
            },
        },
        "green": {},
    },
}


def config(data: Any) -> RouterConfig:
    """The configuration of plain data."""
    return RouterConfig.model_validate(data, context={ENVIRONMENT: {"VARIABLE": "one"}})


BLUE = ("msg_vpns", "blue")
BRIDGE = (*BLUE, "bridges", "x")


def told(edit: Callable[[Any], object]) -> list[str]:
    """What `edit` of the plain data above changes, as people read it."""
    data = copy.deepcopy(WHOLE)
    edit(data)
    return [describe(change) for change in changes(config(WHOLE), config(data))]


def at(data: Any, *path: Any) -> Any:
    """What stands in plain data at `path`."""
    for step in path:
        data = data[step]
    return data


@pytest.mark.parametrize(
    ("edit", "lines"),
    [
        (lambda d: None, []),
        (
            lambda d: at(d, *BRIDGE).update(max_ttl=4),
            ["msg_vpns.blue.bridges.x.max_ttl: 8 -> 4 (at once)"],
        ),
        (
            lambda d: at(d, *BRIDGE, "remote_authentication", "basic").update(password="q"),
            [
                ("msg_vpns.blue.bridges.x.remote_authentication.basic.password: *** -> ***"
                " (for logins from now on)")
            ],
        ),
        (
            lambda d: at(d, *BLUE, "client_usernames", "ann").update(password={"env": "VARIABLE"}),
            [],
        ),
        (lambda d: d["msg_vpns"].update(red={}), ["msg_vpns.red: added"]),
        (lambda d: d["msg_vpns"].pop("green"), ["msg_vpns.green: removed"]),
        (
            lambda d: d["msg_vpns"]["green"].update(enabled=False),
            ["msg_vpns.green.enabled: true -> false (its clients are disconnected)"],
        ),
        (
            lambda d: d["listeners"].insert(0, {"protocol": "ws", "bind": "h:2"}),
            ["listeners[ws h:2]: added"],
        ),
        (lambda d: d["listeners"].pop(), ["listeners[links h:1]: removed"]),
        (lambda d: d["listeners"].insert(0, d["listeners"].pop()), []),
        (
            lambda d: d["listeners"][1].update(max_connection_count=6),
            ["listeners[mqtt 127.0.0.1:0 #2].max_connection_count: 5 -> 6 (at once)"],
        ),
        (
            lambda d: d["listeners"][2]["tls"].update(certificate="other"),
            ["listeners[links h:1].tls.certificate: c -> other (at once)"],
        ),
        (
            lambda d: d["listeners"][0].update(bind="127.0.0.1:9"),
            [
                "listeners[mqtt 127.0.0.1:0 #2]: removed",
                "listeners[mqtt 127.0.0.1:0].msg_vpn: blue -> none (for logins from now on)",
                "listeners[mqtt 127.0.0.1:0].max_connection_count: 200000 -> 5 (at once)",
                "listeners[mqtt 127.0.0.1:9]: added",
            ],
        ),
        (lambda d: d.pop("trace"), ["trace: {…} -> none (needs restart)"]),
        (
            lambda d: d["trace"].update(sample=0.5),
            ["trace.sample: 0.01 -> 0.5 (needs restart)"],
        ),
        (
            lambda d: d["management"]["users"].update(bob={"password": "pw"}),
            ["management.users.bob: added"],
        ),
        (
            lambda d: d["management"]["users"]["ann"].pop("msg_vpns"),
            ["management.users.ann.msg_vpns: [blue] -> none (at once)"],
        ),
        (
            lambda d: at(d, *BRIDGE, "remote_subscriptions").append("d"),
            ["msg_vpns.blue.bridges.x.remote_subscriptions[d]: added"],
        ),
        (lambda d: at(d, *BRIDGE, "remote_subscriptions").reverse(), []),
        (
            lambda d: at(d, *BRIDGE, "topic_mapping").reverse(),
            ["msg_vpns.blue.bridges.x.topic_mapping: 2 items -> 2 items (at once)"],
        ),
        (
            lambda d: at(d, *BRIDGE, "remote_msg_vpns").reverse(),
            [
                ("msg_vpns.blue.bridges.x.remote_msg_vpns: [[red h:1], [red h:2], [red v:core]] ->"
                " [[red v:core], [red h:2], [red h:1]] (at once)")
            ],
        ),
        (
            lambda d: at(d, *BRIDGE, "remote_msg_vpns", 1).update(client_cert=None),
            [
                ("msg_vpns.blue.bridges.x.remote_msg_vpns[red h:2].client_cert: {…} -> none"
                " (for logins from now on)")
            ],
        ),
        (
            lambda d: at(d, *BRIDGE, "remote_msg_vpns", 1).update(tls_enabled=True),
            [
                ("msg_vpns.blue.bridges.x.remote_msg_vpns[red h:2].tls_enabled: false -> true"
                " (reconnects after draining if it is in use)")
            ],
        ),
        (
            lambda d: at(d, *BLUE, "acl_profiles", "a", "publish_topic").update(exceptions=["b"]),
            [
                ("msg_vpns.blue.acl_profiles.a.publish_topic.exceptions: [a, b] -> [b]"
                " (at once)")
            ],
        ),
    ],
)  # fmt: skip
def test_one_edit(edit: Callable[[Any], object], lines: list[str]) -> None:
    """Each edit of a file is told as what it is, with what it takes."""
    assert told(edit) == lines


def test_values_by_name_are_one_value() -> None:
    """Headers of the span exporter are no objects of their own, and none of them is shown."""
    written = copy.deepcopy(WHOLE)
    written["trace"]["otlp"] = {"headers": {"authorization": "planted-1"}}
    other = copy.deepcopy(written)
    other["trace"]["otlp"]["headers"]["authorization"] = "planted-2"
    (change,) = changes(config(written), config(other))
    assert describe(change) == "trace.otlp.headers: {…} -> {…} (needs restart)"


def test_no_secret_is_shown() -> None:
    """Neither the line nor the repr of any change shows a password."""
    data = copy.deepcopy(WHOLE)
    text = yaml.safe_dump(data).replace("pw", "hunter2").replace("one", "hunter2")
    found = changes(config(WHOLE), config(yaml.safe_load(text)))
    assert len(found) == 2
    for change in found:
        for shown in (describe(change), repr(change)):
            assert "hunter2" not in shown
            assert "one" not in shown.split(":", 1)[1]


# -- any two configurations ------------------------------------------------------------------------

BASES = [
    WHOLE,
    *(
        yaml.safe_load((CONFIGS / f"{name}.yaml").read_text(encoding="utf-8"))
        for name in ("core", "edge", "reference")
    ),
]
LISTS = {"listeners": ("protocol", "bind"), "remote_msg_vpns": ("name", "location"),
         "remote_subscriptions": ("topic",)}  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value in plain data, its top left out."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for step, inner in pairs:
        yield (*path, step)
        if isinstance(inner, (dict, list)):
            yield from places(inner, (*path, step))


PLACES = [list(places(whole)) for whole in BASES]
ITEMS = [[path for path in paths if isinstance(path[-1], int)] for paths in PLACES]
VALUES: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, False, 1, 2, 255, 1000, 0.5, "a", "b", "127.0.0.1:1", "h", "mqtt", "da", "smf",
     ["a"], ["b", "a"], [], {}, {"a": {}}, {"b": {}}, {"env": "VARIABLE"},
     [{"topic": "b"}, {"topic": "a", "deliver_always_enabled": True}, "a", "b"],
     [{"name": "a", "location": "h"}, {"name": "b", "location": "h"}],
     [{"name": "b", "location": "h"}, {"name": "c", "location": "h"},
      {"name": "a", "location": "h", "connect_order": 2}],
     [{"protocol": "ws", "bind": "h:1"}, {"protocol": "mqtt", "bind": "h:0"}],
     [{"add_prefix": "a/"}, {"from": "a", "to": "b", "direction": "both"}]]
)  # fmt: skip


@st.composite
def configurations(draw: Any, number: int) -> RouterConfig:
    """One of the bases after random edits; an edit that would be refused is left out."""
    data = copy.deepcopy(BASES[number])
    paths = st.sampled_from(PLACES[number]) | st.sampled_from(ITEMS[number])
    for path in draw(st.lists(paths, max_size=6)):
        value, how = draw(VALUES), draw(st.integers(0, 3))
        tried = copy.deepcopy(data)
        try:
            owner = at(tried, *path[:-1])
            if how == 0:
                del owner[path[-1]]
            elif how == 1 and isinstance(owner, list):
                owner.insert(0, owner.pop())
            else:
                owner[path[-1]] = value
            config(tried)
        except (KeyError, IndexError, TypeError, ValidationError):
            continue
        data = tried
    return config(data)


PAIRS = st.integers(0, len(BASES) - 1).flatmap(
    lambda number: st.tuples(configurations(number), configurations(number))
)


def plain(value: Any, key: str = "") -> Any:
    """A configuration as plain data; lists of objects by what identifies these, secrets as they
    are.
    """
    if isinstance(value, Model):
        fields = type(value).model_fields
        return {name: plain(getattr(value, name), name) for name in fields}
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if key not in LISTS:
        return value
    found: dict[Any, Any] = {}
    for item in value:
        identity = tuple(getattr(item, each) for each in LISTS[key])
        nth = sum(1 for other in found if other[0] == identity)
        found[identity, nth] = plain(item)
    return found


def applied(data: Any, change: Change) -> None:
    """Make one change in what `plain` returned."""
    owner = data
    for step in change.path[:-1]:
        owner = owner[tuple(step) if isinstance(step, Item) else step]
    last = change.path[-1]
    key = tuple(last) if isinstance(last, Item) else last
    before, after = change.before, change.after
    if key in LISTS:
        assert isinstance(after, tuple)
        owner[key] = {tuple(item): owner[key][tuple(item)] for item in after}
    elif isinstance(owner.get(key), dict) and after is None and change.kind is Effect.REMOVED:
        assert owner.pop(key) == plain(before)
    elif change.kind is Effect.ADDED:
        assert key not in owner
        owner[key] = plain(after)
    elif key not in owner:
        assert before is None
        owner[key] = plain(after)
    else:
        assert owner[key] == plain(before)
        owner[key] = plain(after)


def comparable(data: Any, key: str = "") -> Any:
    """Plain data where only the order that counts is left."""
    if not isinstance(data, dict):
        return data
    inner = {name: comparable(value, str(name)) for name, value in data.items()}
    return (inner, list(inner)) if key == "remote_msg_vpns" else inner


@given(PAIRS)
def test_changes_lead_from_one_to_the_other(pair: tuple[RouterConfig, RouterConfig]) -> None:
    """Nothing differs from itself, and the changes made to one configuration give the other."""
    before, after = pair
    assert changes(before, before) == changes(after, after) == []
    found = changes(before, after)
    data = plain(before)
    for change in found:
        assert "\n" not in describe(change)
        applied(data, change)
    assert comparable(data) == comparable(plain(after))
    # No change is needless: there is one for each path, and it changes something.
    assert len({change.path for change in found}) == len(found)
    assert all(change.before != change.after for change in found)


CHANGED_BRIDGE = ("msg_vpns", "blue", "bridges", "from-x")


def test_objects() -> None:
    """An object that came or went is told without what is in it."""
    remote = RemoteMsgVpn(name="b", location="h", password=Secret("pw"))
    path = (*CHANGED_BRIDGE, "remote_msg_vpns", Item(("b", "h")))
    assert describe(Change(path, None, remote, Effect.ADDED)) == (
        "msg_vpns.blue.bridges.from-x.remote_msg_vpns[b h]: added"
    )
    assert describe(Change(path, remote, None, Effect.REMOVED)).endswith("[b h]: removed")


def test_paths() -> None:
    """A path names items by what identifies them, and breaks no line."""
    item = Item(("mqtt", "127.0.0.1:0"), 1)
    assert show_change_path(("listeners", item, "enabled")) == (
        "listeners[mqtt 127.0.0.1:0 #2].enabled"
    )
    path = (*CHANGED_BRIDGE, "remote_subscriptions", Item(("a\nb",)))
    assert show_change_path(path).endswith("remote_subscriptions[a\\nb]")
    assert show_change_path(("[x]",)) == "[x]"


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


BRIDGE_PATTERN = "msg_vpns.*.bridges.*."


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
        (BRIDGE_PATTERN + "enabled", False, Effect.IN_PLACE),
        (BRIDGE_PATTERN + "max_ttl", 7, Effect.IN_PLACE),
        (BRIDGE_PATTERN + "on_reject", "park", Effect.IN_PLACE),
        (BRIDGE_PATTERN + "lane_by", "partition-key", Effect.IN_PLACE),
        (BRIDGE_PATTERN + "retained", "replay", Effect.IN_PLACE),
        (BRIDGE_PATTERN + "topic_mapping", (), Effect.IN_PLACE),
        (BRIDGE_PATTERN + "remote_connection.heartbeat_interval", 7, Effect.RECONNECT),
        (BRIDGE_PATTERN + "remote_authentication.basic.password", None, Effect.NEXT_LOGIN),
        (BRIDGE_PATTERN + "remote_msg_vpns.*.egress_flow_window_size", 7, Effect.IN_PLACE),
        (BRIDGE_PATTERN + "remote_msg_vpns.*.tls_enabled", True, Effect.RECONNECT_IF_USED),
        (BRIDGE_PATTERN + "remote_msg_vpns.*.enabled", False, Effect.RECONNECT_IF_USED),
        (BRIDGE_PATTERN + "remote_msg_vpns.*.enabled", True, Effect.IN_PLACE),
    ],
)
def test_effects(dotted: str, after: object, effect: Effect) -> None:
    """What the documentation promises of a reload stands in the table."""
    assert effect_of(tuple(dotted.split(".")), after) is effect


def test_nothing_else_has_an_effect() -> None:
    """A key without a row is a mistake and not a guess."""
    with pytest.raises(KeyError):
        effect_of(("router", "colour"), 1)


def config_from(data: Any) -> RouterConfig:
    """The configuration of plain data."""
    return RouterConfig.model_validate(data, context={ENVIRONMENT: {"NAME": "value", "X": "value"}})


def whole() -> Any:
    """Plain data with every key."""
    return yaml.safe_load((CONFIGS / "reference.yaml").read_text(encoding="utf-8"))


def test_what_changed_is_new_and_the_rest_is_not() -> None:
    """The result equals what was wanted, shares what it can, and neither is changed."""
    before = config_from(whole())
    data = whole()
    data["msg_vpns"]["blue"]["queues"]["more"] = {}
    (name, *_) = data["msg_vpns"]["blue"]["queues"]
    data["msg_vpns"]["blue"]["max_subscription_count"] = 17
    wanted = config_from(copy.deepcopy(data))
    made = reuse(before, wanted)
    assert made == wanted == config_from(data)
    assert before == config_from(whole())
    old, new = before.msg_vpns["blue"], made.msg_vpns["blue"]
    assert new is not old
    assert new.queues[name] is old.queues[name]
    assert new.client_usernames is old.client_usernames
    assert made.listeners is before.listeners
    assert [change.path for change in changes(before, made)] == [
        change.path for change in changes(before, wanted)
    ]


def test_order_and_origin_are_no_equality() -> None:
    """Names in another order, and a secret that comes from elsewhere, are the new ones."""
    one = {"router": {"name": "r"}, "msg_vpns": {"a": {}, "b": {}}}
    two = {"router": {"name": "r"}, "msg_vpns": {"b": {}, "a": {}}}
    before = config_from(one)
    made = reuse(before, config_from(two))
    assert list(made.msg_vpns) == ["b", "a"]
    assert made.msg_vpns["a"] is before.msg_vpns["a"]

    def user(password: Any) -> Any:
        return {"router": {"name": "r"}, "management": {"users": {"ann": {"password": password}}}}

    made = reuse(config_from(user("value")), config_from(user({"env": "NAME"})))
    assert made.management.users["ann"].password.origin.kind == "env"
    made = reuse(config_from(user({"env": "X"})), config_from(user({"env": "NAME"})))
    assert made.management.users["ann"].password.origin.name == "NAME"


def test_lists_that_grow_and_shrink() -> None:
    """A list of another length is the new one; of the same length its equal items are shared."""

    def listeners(*ports: int) -> Any:
        items = [{"protocol": "mqtt", "bind": f"127.0.0.1:{port}"} for port in ports]
        return {"router": {"name": "r"}, "listeners": items}

    before = config_from(listeners(1, 2))
    assert reuse(before, config_from(listeners(1))) == config_from(listeners(1))
    made = reuse(before, config_from(listeners(1, 3)))
    assert made.listeners[0] is before.listeners[0]
    assert made == config_from(listeners(1, 3))
