"""Models: what they take, what they refuse, and what holds where nothing is written."""

import pickle
from typing import Annotated, Any, get_args

import pytest
from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from vpnrouter import limits
from vpnrouter.config.bridge import Bridge
from vpnrouter.config.model import Many, Model, Named, model_of
from vpnrouter.config.msg_vpn import MsgVpn
from vpnrouter.config.router import RouterConfig
from vpnrouter.config.secrets import REVEAL
from vpnrouter.config.settings_models import (
    AclProfile,
    Listener,
    ListenerTls,
    Management,
    Otlp,
    RemoteMsgVpn,
    Trace,
    TraceFilter,
)
from vpnrouter.events.table import AREAS, NAMES
from vpnrouter.settings import bridge, names, trace
from vpnrouter.settings.address import Address
from vpnrouter.settings.event import PercentThreshold, QueueEvent, RateThreshold, SpoolThreshold
from vpnrouter.settings.listener import parse_stand_by
from vpnrouter.settings.logging import AreaLevel, LevelName, Levels

UserName = Annotated[str, AfterValidator(names.USER.check)]
FilePath = Annotated[str, AfterValidator(names.PATH.check)]


class Inner(Model):
    """A model inside."""

    number: int = 3


class Outer(Model):
    """A model with one of each container."""

    items: Many[Inner] = ()
    by_name: Named[str, Inner] = Field(default_factory=dict)
    inner: Inner = Inner()


def test_models_do_not_change() -> None:
    """A loaded configuration cannot be changed by whoever holds it."""
    with pytest.raises(ValidationError, match="frozen"):
        Outer().inner = Inner(number=4)  # type: ignore[misc]


def test_nothing_is_coerced() -> None:
    """Text is not a number, however much it looks like one."""
    with pytest.raises(ValidationError, match="valid integer"):
        Inner.model_validate({"number": "4"})


@pytest.mark.parametrize("group", ["queues", "topic_endpoints"])
@pytest.mark.parametrize(
    ("defaults", "written", "expected"),
    [
        (None, {}, (False, False, False)),
        ({}, None, (False, False, False)),
        ({"respect_ttl_enabled": True}, None, (False, False, True)),
        ({"respect_ttl_enabled": True}, {"respect_ttl_enabled": False}, (False, False, False)),
        (
            {"respect_msg_priority_enabled": True, "respect_dmq_eligible_enabled": True},
            {"respect_ttl_enabled": True},
            (True, True, True),
        ),
    ],
)
def test_what_queues_respect_that_say_nothing_of_it(
    group: str, defaults: Any, written: Any, expected: tuple[bool, bool, bool]
) -> None:
    """The message VPN's `queue_defaults` hold for what a queue or topic endpoint does not say itself."""
    read = MsgVpn.model_validate({"queue_defaults": defaults, group: {"a": written}})
    found = getattr(read, group)["a"]
    assert (
        found.respect_dmq_eligible_enabled,
        found.respect_msg_priority_enabled,
        found.respect_ttl_enabled,
    ) == expected


@pytest.mark.parametrize(("queues", "wrong"), [({"a": {}}, 0), ({"a": 5}, 1), ([], 1), ("a", 1)])
@pytest.mark.parametrize(
    "defaults", [[], "on", {"respect_ttl_enabled": 1}, {"max_ttl": 5}, {"respect": True}]
)
def test_queue_defaults_that_are_none(queues: Any, wrong: int, defaults: Any) -> None:
    """They are refused, whatever the queues are, and told once."""
    with pytest.raises(ValidationError) as problem:
        MsgVpn.model_validate({"queue_defaults": defaults, "queues": queues})
    places = sorted(str(one["loc"][0]) for one in problem.value.errors())
    assert places == ["queue_defaults"] + ["queues"] * wrong


def test_models_go_to_other_processes() -> None:
    """What is made of a class of settings arrives there whole, with what it holds."""
    written = {"directory": "t", "otlp": {"headers": {"a": "b"}}, "filters": [FILTER]}
    trace = Trace.model_validate(written)
    arrived = pickle.loads(pickle.dumps(trace))  # noqa: S301 - made right here
    assert arrived == trace
    assert type(arrived) is Trace
    assert arrived.model_fields_set == set(written)
    assert arrived.otlp.headers["a"].reveal() == "b"


FILTER = {"trace_filter_name": "f", "subscriptions": ["a"], "sample": 0.5}


def test_unknown_keys_are_refused() -> None:
    """A key that no model knows does not pass silently."""
    with pytest.raises(ValidationError, match="Extra inputs"):
        Inner.model_validate({"numbre": 4})


def test_a_key_without_a_value_is_empty() -> None:
    """`items:`, `by_name:` and `inner:` with nothing behind them are empty, not wrong."""
    nothing = {"items": None, "by_name": None, "inner": None}
    assert Outer.model_validate(nothing) == Outer()
    assert Outer.model_validate({"by_name": {"a": None}}).by_name == {"a": Inner()}


def test_lists_become_tuples_and_items_stay_strict() -> None:
    """A list of the document is a tuple in the model; its items are not coerced either."""
    assert Outer.model_validate({"items": [{"number": 5}]}).items == (Inner(number=5),)
    with pytest.raises(ValidationError, match="valid integer"):
        Outer.model_validate({"items": [{"number": 5.5}]})


def test_errors_do_not_show_input() -> None:
    """The text of a validation error never holds what was given: it may be a secret."""
    with pytest.raises(ValidationError) as error:
        Inner.model_validate({"number": "hunter2"})
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    ("kind", "longest"),
    [
        (names.ROUTER, 64),
        (names.MSG_VPN, 32),
        (names.BRIDGE, 150),
        (names.QUEUE, 200),
        (names.TOPIC_ENDPOINT, 200),
        (names.REPLAY_LOG, 185),
        (names.CLIENT_USERNAME, 189),
        (names.CLIENT_PROFILE, 32),
        (names.ACL_PROFILE, 32),
        (names.USER, 189),
        (names.PATH, 4096),
    ],
)
def test_lengths(kind: Any, longest: int) -> None:
    """Each name has 1 to as many characters as the field allows, and not one more."""
    adapter = TypeAdapter(Annotated[str, AfterValidator(kind.check)])
    assert adapter.validate_python("a" * longest) == "a" * longest
    with pytest.raises(ValidationError, match=f"at most {longest} are allowed"):
        adapter.validate_python("a" * (longest + 1))
    with pytest.raises(ValidationError, match="must not be empty"):
        adapter.validate_python("")


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (names.ROUTER, "edge-1.eu_west", "/ =é"),
        (names.MSG_VPN, "blue VPN/ü@x", "*?"),
        (names.BRIDGE, '#a-b:"~`!\\@$%|^()_+={},.;[]', "/*?<> é"),
        (names.CONNECTOR, "to-there.1_", "/ =é"),
        (names.CONNECTOR_LINK, "in..", "/ =é"),
        (names.QUEUE, "#P2P/QUE/orders ü", "*?'<>&;"),
        (names.CLIENT_USERNAME, "ann@example.com", "*?"),
        (names.CLIENT_PROFILE, "#client-profile", ". /@é"),
        (names.ACL_PROFILE, "any thing", ""),
        (names.USER, "ann@example.com", ":"),
    ],
)
def test_characters(kind: Any, good: str, bad: str) -> None:
    """Each name takes the field's characters and refuses each forbidden one."""
    adapter = TypeAdapter(Annotated[str, AfterValidator(kind.check)])
    assert adapter.validate_python(good) == good
    for character in bad + "\n\0\x85":
        with pytest.raises(ValidationError, match=r"must not contain|may only contain"):
            adapter.validate_python(f"a{character}b")


@pytest.mark.parametrize("kind", [names.CONNECTOR, names.CONNECTOR_LINK])
@pytest.mark.parametrize("name", [".", ".."])
def test_steps_of_a_path_are_no_names(kind: Any, name: str) -> None:
    """A client would take them out of the path of the API."""
    with pytest.raises(ValueError, match=r"not be \. or \.\."):
        kind.check(name)


def test_hash_leads_a_client_profile_name_only() -> None:
    """`#` may stand first in a client profile name and nowhere else."""
    with pytest.raises(ValueError, match="after an optional leading #"):
        names.CLIENT_PROFILE.check("a#b")


RemoteConnection = model_of(bridge.RemoteConnection)
RemoteSubscription = model_of(bridge.RemoteSubscription)


def test_remote_address() -> None:
    """The address of a location follows TLS; a location that names a router has none."""
    assert RemoteMsgVpn(name="b", location="h").address == Address("h", 55555)
    assert RemoteMsgVpn(name="b", location="h", tls_enabled=True).address == Address("h", 55443)
    assert RemoteMsgVpn(name="b", location="v:core").address is None


def test_short_and_long_subscriptions() -> None:
    """A filter alone says the same as a mapping with only a topic."""
    bridge = Bridge.model_validate(
        {
            "remote_subscriptions": [
                "a",
                {"topic": "a"},
                {"topic": "b", "deliver_always_enabled": True},
            ]
        }
    )
    assert bridge.remote_subscriptions == (
        RemoteSubscription(topic="a"),
        RemoteSubscription(topic="a"),
        RemoteSubscription(topic="b", deliver_always_enabled=True),
    )


def test_too_short_heartbeat_intervals() -> None:
    """Below what routers agree to, only none at all is taken."""
    with pytest.raises(ValidationError, match="must be 0 or from 100"):
        RemoteConnection.model_validate({"heartbeat_interval": 99})


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("ECDHE-RSA-AES256-GCM-SHA384:NONSENSE", "'NONSENSE' is no cipher suite of TLS 1.2"),
        ("TLS_AES_256_GCM_SHA384", "is no cipher suite of TLS 1.2"),
        ("", "'' is no cipher suite"),
        (":".join(["ECDHE-RSA-AES256-GCM-SHA384"] * 100), "at most 2048 characters"),
    ],
)
def test_cipher_suites(written: str, said: str) -> None:
    """Each cipher suite has to be one that OpenSSL knows: it would silently ignore others."""
    assert Bridge(tls_cipher_suite_list="ECDHE-RSA-AES256-GCM-SHA384").tls_cipher_suite_list
    with pytest.raises(ValidationError, match=said):
        Bridge(tls_cipher_suite_list=written)


TopicMapping = model_of(bridge.TopicMapping)


@pytest.mark.parametrize(
    "written",
    [
        {},
        {"direction": "in"},
        {"from": "a"},
        {"to": "a"},
        {"from": "a", "to": "b", "add_prefix": "c"},
        {"from": "a", "add_prefix": "c"},
        {"add_prefix": "a", "strip_prefix": "a"},
    ],
)
def test_exactly_one_form(written: dict[str, Any]) -> None:
    """No form, half of one or two of them are refused with the forms that there are."""
    with pytest.raises(ValidationError, match="exactly one of from with to, add_prefix, strip"):
        TopicMapping.model_validate(written)


def test_one_mark_keeps_the_other() -> None:
    """What is not written stays at the default of that threshold."""
    queue: Any = model_of(QueueEvent)
    found = queue.model_validate({"msg_spool_usage_threshold": {"set_percent": 90}})
    assert found.msg_spool_usage_threshold.model_dump() == {"set_percent": 90, "clear_percent": 18}


@pytest.mark.parametrize(
    ("declared", "written"),
    [
        (PercentThreshold, {"set_percent": 50}),
        (SpoolThreshold, {"set_percent": 10}),
        (RateThreshold, {"set_value": 1}),
    ],
)
def test_marks_in_the_wrong_order(
    declared: type[PercentThreshold | RateThreshold], written: dict[str, int]
) -> None:
    """A value that clears above the one that sets would flap."""
    with pytest.raises(ValidationError, match="is above set_"):
        model_of(declared).model_validate(written)


@pytest.mark.parametrize(
    "written",
    [None, {}, {"client_profiles": None, "acl_profiles": None, "client_usernames": None}],
)
def test_built_in_objects(written: object) -> None:
    """Client profile, ACL profile and client username `default` exist without being written."""
    vpn = MsgVpn.model_validate(written)
    assert list(vpn.client_profiles) == ["default"]
    assert list(vpn.acl_profiles) == ["default"]
    assert list(vpn.client_usernames) == ["default"]
    assert vpn.acl_profiles["default"].publish_topic.default_action == "allow"
    assert not vpn.client_profiles["default"].allow_bridge_connections_enabled
    assert vpn.client_usernames["default"].password is None


def test_built_in_objects_beside_written_ones() -> None:
    """Writing another profile leaves the built-in one; writing `default` changes it."""
    vpn = MsgVpn.model_validate(
        {
            "acl_profiles": {"closed": {}},
            "client_profiles": {"default": {"max_outbox_bytes": 65_536}},
            "client_usernames": {"default": {"enabled": False}},
        }
    )
    assert vpn.acl_profiles["closed"].subscribe_topic.default_action == "disallow"
    assert vpn.acl_profiles["default"].subscribe_topic.default_action == "allow"
    assert vpn.client_profiles["default"].max_outbox_bytes == 65_536
    assert not vpn.client_usernames["default"].enabled


def actions(profile: AclProfile) -> list[str]:
    """The default action of each group."""
    return [getattr(profile, group).default_action for group in AclProfile.declared]


def test_a_written_profile_starts_at_disallow() -> None:
    """As in the field; share names start at allow, as there."""
    assert actions(AclProfile()) == ["disallow", "disallow", "disallow", "allow"]


@pytest.mark.parametrize("written", [None, {}, {"publish_topic": None}, {"publish_topic": {}}])
def test_the_profile_default_starts_at_allow(written: object) -> None:
    """What is not written for the built-in profile allows."""
    assert (
        actions(AclProfile.model_validate(AclProfile.complete_built_in(written))) == ["allow"] * 4
    )


def test_the_profile_default_can_be_closed() -> None:
    """What is written for the built-in profile holds."""
    written = {"publish_topic": {"default_action": "disallow", "exceptions": ["a"]}}
    profile = AclProfile.model_validate(AclProfile.complete_built_in(written))
    assert actions(profile) == ["allow", "disallow", "allow", "allow"]
    assert profile.publish_topic.exceptions == ("a",)


@pytest.mark.parametrize("written", ["x", 3, {"publish_topic": 3}])
def test_wrong_types_are_left_for_validation(written: object) -> None:
    """What is no mapping comes through as it is, so that its error is told at its place."""
    opened = AclProfile.complete_built_in(written)
    assert opened == written if not isinstance(written, dict) else opened["publish_topic"] == 3  # type: ignore[index]


def test_version_is_text() -> None:
    """An unquoted 1.3 is a number in YAML, and nothing older than 1.2 can be asked for."""
    for version in (1.3, "1.1", "1.0"):
        with pytest.raises(ValidationError):
            ListenerTls.model_validate({"certificate": "a", "key": "b", "min_version": version})


@pytest.mark.parametrize(
    ("bind", "address"), [("[::1]:0", Address("::1", 0)), ("h:9", Address("h", 9))]
)
def test_address(bind: str, address: Address) -> None:
    """A listener knows its address taken apart, and is on unless switched off."""
    listener = Listener(protocol="mqtt", bind=bind)
    assert listener.address == address
    assert listener.enabled
    assert listener.msg_vpn is None


def test_areas_and_levels_are_those_of_the_events() -> None:
    """Each area of the event log has a key, and each level a name."""
    assert tuple(Levels.declared) == AREAS
    assert get_args(LevelName) == NAMES
    assert get_args(AreaLevel) == ("default", *NAMES)


def test_user() -> None:
    """A user may look at everything unless more or less is written."""
    users = Management.model_validate(
        {"users": {"ann": {"password": "pw"}, "bob": {"password": "pw", "msg_vpns": ["blue"]}}}
    ).users
    assert users["ann"].role == "read-only"
    assert users["ann"].msg_vpns is None
    assert users["bob"].msg_vpns == ("blue",)
    assert users["ann"].password.verify(b"pw")


def test_empty_list_is_not_everything() -> None:
    """A user of no message VPN is not a user of all of them."""
    users = Management.model_validate({"users": {"a": {"password": "p", "msg_vpns": []}}}).users
    assert users["a"].msg_vpns == ()


def test_message_vpns_are_bounded() -> None:
    """More of them than any router has are refused before the first is looked at."""
    named = {f"v{number}": {"none": 1} for number in range(limits.MSG_VPNS + 1)}
    with pytest.raises(ValidationError) as refused:
        RouterConfig.model_validate({"router": {"name": "r"}, "msg_vpns": named})
    assert [each["loc"] for each in refused.value.errors()] == [("msg_vpns",)]


@pytest.mark.parametrize("sample", [-0.01, 1.01, True, float("inf"), float("nan"), "1"])
def test_no_share(sample: object) -> None:
    """Everything else is refused."""
    with pytest.raises(ValidationError):
        Trace.model_validate({"directory": "t", "sample": sample})


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"trace_filter_name": ""},
        {"trace_filter_name": "x" * (limits.TRACE_FILTER_NAME_LENGTH + 1)},
        {"trace_filter_name": "f", "sample": 1.5},
        {"trace_filter_name": "f", "sample": float("nan")},
        {"trace_filter_name": "f", "topic_syntax": "regex"},
        {"trace_filter_name": "f", "client_names": [""]},
        {"trace_filter_name": "f", "msg_vpns": ["*"]},
        {"trace_filter_name": "f", "client_usernames": "ann"},
        {"trace_filter_name": "f", "rate": 1},
    ],
)
def test_refused_trace_filters(given: dict[str, Any]) -> None:
    """Everything else is refused."""
    with pytest.raises(ValidationError):
        TraceFilter.model_validate(given)


def test_as_many_as_the_bound() -> None:
    """The list is bounded."""
    filters = [{"trace_filter_name": f"f{number}"} for number in range(limits.TRACE_FILTERS + 1)]
    assert len(Trace.model_validate({"directory": "t", "filters": filters[:-1]}).filters) == 64
    with pytest.raises(ValidationError):
        Trace.model_validate({"directory": "t", "filters": filters})


@pytest.mark.parametrize(
    "endpoint",
    ["http://c/v1/traces", "https://c.example:443/x?tenant=1", "http://[::1]:4318/v1/traces"],
)
def test_addresses(endpoint: str) -> None:
    """A URL with host and, if wanted, port, path and query."""
    assert Otlp(endpoint=endpoint).endpoint == endpoint


@pytest.mark.parametrize(
    ("endpoint", "says"),
    [
        ("127.0.0.1:4318", "http://HOST:PORT/PATH"),
        ("grpc://c:4317", "http://HOST:PORT/PATH"),
        ("http://:4318/", "http://HOST:PORT/PATH"),
        ("http://c:0/", "http://HOST:PORT/PATH"),
        ("http://c:70000/", "http://HOST:PORT/PATH"),
        ("http://c:x/", "http://HOST:PORT/PATH"),
        ("http://[::1/", "http://HOST:PORT/PATH"),
        ("http://user:pw@c/", "give a header"),
        ("http://c/v1 traces", "no blanks"),
        ("http://c/v1\r\nx: y", "no blanks"),
        ("http://ü/", "ASCII"),
        ("http://c/#x", "after #"),
        ("http://c/" + "x" * limits.LOCATION_LENGTH, "at most"),
        ("", "http://HOST:PORT/PATH"),
    ],
)
def test_no_addresses(endpoint: str, says: str) -> None:
    """Everything else is refused, and the message says what is wanted."""
    with pytest.raises(ValidationError, match=says):
        Otlp(endpoint=endpoint)


def test_header_values_are_secrets() -> None:
    """They are shown nowhere, may come from the environment, and are written back only on demand."""
    otlp = Otlp.model_validate(
        {"headers": {"authorization": "Bearer abc", "X-Key": {"env": "KEY"}}},
        context={"environment": {"KEY": "from-there"}},
    )
    assert otlp.headers["authorization"].reveal() == "Bearer abc"
    assert otlp.headers["X-Key"].reveal() == "from-there"
    assert "abc" not in repr(otlp)
    assert "from-there" not in repr(otlp)
    assert otlp.model_dump()["headers"] == {"authorization": "********", "X-Key": {"env": "KEY"}}
    assert otlp.model_dump(context={REVEAL: True})["headers"]["authorization"] == "Bearer abc"


@pytest.mark.parametrize("name", ["", "a b", "a:b", "ä", "a\n", "x" * 129])
def test_no_header_names(name: str) -> None:
    """A header's name is a token of HTTP."""
    with pytest.raises(ValidationError, match="header's name"):
        Otlp.model_validate({"headers": {name: "x"}})


@pytest.mark.parametrize("value", ["bad\nb: c", "bad\r", "bad\x00", " bad", "bad☃"])
def test_no_header_values(value: str) -> None:
    """What would begin another header is refused, and not shown."""
    with pytest.raises(ValidationError, match="header authorization") as caught:
        Otlp.model_validate({"headers": {"authorization": value}})
    assert "bad" not in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value"),
    [("timeout_s", 0), ("timeout_s", 301), ("max_queue", 999), ("max_queue", 10_000_001)],
)
def test_bounds(field: str, value: int) -> None:
    """Times and sizes have both a least and a most."""
    with pytest.raises(ValidationError):
        Otlp.model_validate({field: value})


@pytest.mark.parametrize(
    "origin", ["https://shop.example.org", "http://localhost:8080", "null", "*", "same-host"]
)
def test_origin_that_is_taken(origin: str) -> None:
    """Any host name, with letters of all kinds."""
    assert Listener(protocol="ws", bind="h:1", allowed_origins=[origin]).allowed_origins == (
        origin,
    )


@pytest.mark.parametrize("origin", ["https://a b", "https://a/path", "shop.example.org", ""])
def test_origin_that_is_none(origin: str) -> None:
    """An origin has a scheme, no path and no blank."""
    with pytest.raises(ValidationError):
        Listener(protocol="ws", bind="h:1", allowed_origins=[origin])


@pytest.mark.parametrize(
    ("text", "server"),
    [
        ("amqps://standby.example.org", ("amqps", "standby.example.org", 5671)),
        ("amqp://10.0.0.1:22", ("amqp", "10.0.0.1", 22)),
        ("amqpwss://[2001:db8::1]:443", ("amqpwss", "2001:db8::1", 443)),
    ],
)
def test_stand_by(text: str, server: tuple[str, str, int]) -> None:
    """The server that AMQP clients are told to turn to."""
    assert parse_stand_by(text) == server


@pytest.mark.parametrize(
    "text", ["mqtt://a", "amqp://", "amqp://a:0", "amqp://a:70000", "amqp://a/b"]
)
def test_stand_by_that_is_none(text: str) -> None:
    """A scheme of AMQP, a host and a port."""
    with pytest.raises(ValidationError):
        Listener(protocol="amqp", bind="h:1", failover_servers=[text])


Upload = model_of(trace.Upload)


@pytest.mark.parametrize(
    "given",
    [
        {"url": "s3://bucket"},
        {"url": "s3://bucket/a/b", "access_key": "a", "secret_key": "b", "region": "r"},
        {"url": "gs://bucket/a", "endpoint": "https://gs.example.org"},
        {"url": "abfss://container@account.dfs.core.windows.net/a", "secret_key": "b"},
        {"url": "abfs://container@account"},
        {"url": "file:///mnt/traces"},
        {"url": "s3://b", "endpoint": "http://[::1]:9000/"},
    ],
)
def test_where_traces_are_uploaded(given: dict[str, str]) -> None:
    """Each kind of store, with what it may have."""
    assert Upload.model_validate(given).url == given["url"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "required"),
        ({"url": "ftp://a/b"}, "begins with s3://"),
        ({"url": "/mnt/traces"}, "begins with s3://"),
        ({"url": "s3://"}, "names no bucket"),
        ({"url": "s3:///path"}, "names no bucket"),
        ({"url": "s3://hidden:hidden@bucket/a"}, "credentials"),
        ({"url": "s3://hidden@bucket/a"}, "credentials"),
        ({"url": "abfs://container:hidden@account/a"}, "credentials"),
        ({"url": "abfs://container/a"}, "names no account"),
        ({"url": "s3://bucket/a?secret_key=hidden"}, "after [?]"),
        ({"url": "s3://bucket/a b"}, "no blanks"),
        ({"url": "s3://bucket/../a"}, "no [.][.]"),
        ({"url": "s3://" + "a" * limits.LOCATION_LENGTH}, "at most"),
        ({"url": "file://host/a"}, "file:///PATH"),
        ({"url": "file:///"}, "file:///PATH"),
        ({"url": "gs://b", "secret_key": "hidden"}, "no secret_key"),
        ({"url": "gs://b", "region": "r"}, "s3:// alone"),
        ({"url": "file:///a", "endpoint": "http://a"}, "no endpoint"),
        ({"url": "s3://b", "endpoint": "a:9000"}, "http://HOST:PORT"),
        ({"url": "s3://b", "endpoint": "http://a/path"}, "http://HOST:PORT"),
        ({"url": "s3://b", "endpoint": "http://u:hidden@a"}, "without credentials"),
        ({"url": "s3://b", "region": "r" * (limits.TRACE_UPLOAD_REGION_LENGTH + 1)}, "64"),
        ({"url": "s3://b", "timeout_s": 0}, "greater than"),
    ],
)
def test_where_traces_are_not_uploaded(given: dict[str, object], said: str) -> None:
    """One error says what is wrong, and repeats no credentials."""
    with pytest.raises(ValidationError, match=said) as caught:
        Upload.model_validate(given)
    assert caught.value.error_count() == 1
    assert "hidden" not in str(caught.value)
