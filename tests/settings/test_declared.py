"""Every declared attribute: what may be written, what a change does, and that it arrives wherever it is used."""

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, get_args

import pytest
from pydantic import ValidationError

from vpnrouter.bridges.bridge import BridgeFacts
from vpnrouter.bridges.machine import BridgeSettings
from vpnrouter.bridges.remote_order import Remote
from vpnrouter.bridges.remote_settings import FlowSettings, RemoteSettings
from vpnrouter.config.configured_bridge import ConfiguredBridge, flow_settings_of
from vpnrouter.config.configured_connector import attempts_of, links_of, provider_settings_of
from vpnrouter.config.effects import TABLE
from vpnrouter.config.model import Model, changed, model_of
from vpnrouter.config.model_schema import model_at
from vpnrouter.config.router import RouterConfig
from vpnrouter.config.secrets import Secret
from vpnrouter.config.settings_models import TlsServerCert
from vpnrouter.config.unsupported_keys import UNSUPPORTED as NOT_YET
from vpnrouter.connectors.links import LinkSettings
from vpnrouter.connectors.machine import Attempts
from vpnrouter.connectors.settings import ProviderSettings
from vpnrouter.core.credentials import ClientUsername as RunningUsername
from vpnrouter.core.guaranteed.endpoint_settings import (
    EndpointSettings,
    default_session_settings,
    endpoint_settings_of,
)
from vpnrouter.core.guaranteed.failure_policy import FailurePolicy
from vpnrouter.core.profile import ClientProfile as RunningProfile
from vpnrouter.core.vpn import VpnLimits
from vpnrouter.management.answers.rows import names_of
from vpnrouter.management.config.kinds import TYPES
from vpnrouter.management.config.object_type import ObjectType
from vpnrouter.management.status.profiles import ClientProfileStatus
from vpnrouter.management.status.queues import QueueStatus
from vpnrouter.management.topic_endpoints import TopicEndpointStatus
from vpnrouter.server.apply.assemble import bounds_of, profile_of, username_of
from vpnrouter.settings.bridge import CIPHER_SUITES, Bridge, RemoteMsgVpn
from vpnrouter.settings.client_profile import ClientProfile
from vpnrouter.settings.client_username import ClientUsername
from vpnrouter.settings.connector import Connector, ConnectorLink
from vpnrouter.settings.endpoint import (
    GuaranteedMsging,
    Queue,
    ReplayLog,
    SessionQueue,
    TopicEndpoint,
)
from vpnrouter.settings.failures import Failures
from vpnrouter.settings.kinds import KINDS
from vpnrouter.settings.logging import Logging
from vpnrouter.settings.management import Management
from vpnrouter.settings.message_vpn import MsgVpn
from vpnrouter.settings.router import Router, RouterBridging
from vpnrouter.settings.schema import (
    AttributePath,
    Effect,
    Password,
    Settings,
    Token,
    attribute,
    held_defaults,
    shown,
    types_of,
)
from vpnrouter.settings.schema import Secret as SecretType
from vpnrouter.settings.trace import Trace
from vpnrouter.text import camel
from vpnrouter.topics.grammar import MQTT, parse_filter

ROOT = Path(__file__).resolve().parent.parent.parent

VPN = ("msg_vpns", "*")


class Declared(NamedTuple):
    """A class of settings: where it stands in a configuration, its kind in the API, its status."""

    of: type[Settings]
    above: tuple[str, ...]
    kind: ObjectType | None = None
    status: Any = None


STATUS_OF = {
    Queue: QueueStatus,
    TopicEndpoint: TopicEndpointStatus,
    ClientProfile: ClientProfileStatus,
}

ALL = (
    *(
        Declared(kind.settings, kind.pattern, TYPES.get(kind), STATUS_OF.get(kind.settings))
        for kind in KINDS
        if kind.settings is not None
    ),
    Declared(SessionQueue, (*VPN, "mqtt", "session_queue")),
    Declared(GuaranteedMsging, ("guaranteed_msging",)),
    Declared(Router, ("router",)),
    Declared(RouterBridging, ("bridging",)),
    Declared(Trace, ("trace",)),
    Declared(Logging, ("logging",)),
    Declared(Management, ("management",)),
)


class Running(NamedTuple):
    """A running object with its defaults: the classes of settings that it is filled from, one or several together, or
    one of `instead`, and what code calls such objects.
    """

    made: Any
    of: tuple[type[Settings], ...]
    called: tuple[str, ...]
    instead: tuple[type[Settings], ...] = ()

    @property
    def attributes(self) -> dict[str, str]:
        """The attributes in the body of the class, with their types: a class that is compiled has to name them."""
        of = type(self.made)
        text = (ROOT / f"{of.__module__.replace('.', '/')}.py").read_text(encoding="utf-8")
        (body,) = (
            each.body
            for each in ast.parse(text).body
            if isinstance(each, ast.ClassDef) and each.name == of.__name__
        )
        return {
            ast.unparse(each.target): ast.unparse(each.annotation)
            for each in body
            if isinstance(each, ast.AnnAssign)
        }


RUNNING = (
    Running(EndpointSettings(), (Queue,), ("settings",), (TopicEndpoint, SessionQueue, ReplayLog)),
    Running(RunningProfile("p"), (ClientProfile,), ("profile",)),
    Running(RunningUsername("u"), (ClientUsername,), ("username", "known")),
    Running(VpnLimits(), (MsgVpn,), ("limits", "bounds")),
    Running(BridgeFacts("r", "v", "b"), (Bridge,), ("facts",)),
    Running(BridgeSettings(), (Bridge,), ("settings", "_settings")),
    Running(FlowSettings(), (Bridge,), ("flow", "terms")),
    Running(FailurePolicy(), (Failures,), ("failures",)),
    Running(Remote(), (RemoteMsgVpn,), ("remote", "r", "now")),
    Running(RemoteSettings(), (Bridge, RemoteMsgVpn), ("terms",)),
    Running(Attempts(), (Connector,), ("attempts",)),
    Running(ProviderSettings(), (Connector,), ("settings", "_settings")),
    Running(
        LinkSettings("l", "a", parse_filter("a", MQTT), inbound=True),
        (Connector, ConnectorLink),
        ("terms", "each", "link"),
    ),
)
"""All classes of running objects that `apply_settings` fills."""


def filled_from(of: type[Settings]) -> list[Running]:
    """The running objects that attributes of a class of settings are held by."""
    return [
        each for each in RUNNING if any(known in of.__mro__ for known in (*each.of, *each.instead))
    ]


def is_value(place: AttributePath) -> bool:
    """Whether it has a value of its own: it is no key, no group, and no list of objects."""
    one = place.attribute
    return not one.key and one.group is None and one.items is None


EACH = [(each, place) for each in ALL for place in each.of.places if is_value(place)]
NAMED = [f"{each.of.__name__}-{place.name}" for each, place in EACH]
every_attribute = pytest.mark.parametrize(("declared", "place"), EACH, ids=NAMED)

HELD_EACH = [(each, place) for each, place in EACH if place.held is not None]
every_held = pytest.mark.parametrize(
    ("declared", "place"), HELD_EACH, ids=[f"{e.of.__name__}-{p.name}" for e, p in HELD_EACH]
)


def hint_of(of: type[Settings], place: AttributePath) -> Any:
    """The type of an attribute."""
    owner = of
    for key in place.path[:-1]:
        group = owner.declared[key].group
        assert group is not None
        owner = group
    return types_of(owner)[place.path[-1]]


def other(of: type[Settings], place: AttributePath) -> Any:
    """A value that may be written and is not the default."""
    one = place.attribute
    if one.text is CIPHER_SUITES:
        return "AES128-SHA"
    hint = hint_of(of, place)
    choices = [each for part in (hint, *get_args(hint)) for each in get_args(part)]
    text = FORMS.get(place.path, "a")
    if "..." in str(hint):
        return (text,)
    if place.path in FORMS:
        return text
    if isinstance(one.default, dict):
        return {"a": "b"}
    if isinstance(one.default, float):
        return 0.5
    if isinstance(one.default, bool):
        return not one.default
    words = [each for each in choices if isinstance(each, str) and each != one.default]
    if words:
        return words[0]
    if one.least is not None and one.most is not None:
        return one.default - 1 if one.default == one.most else one.default + 1
    return "another"


FORMS = {
    ("provider", "url"): "mqtt://b",
    ("provider", "failover_urls"): "mqtt://b",
    ("provider", "proxy", "url"): "http://b:1",
    ("allowed_origins",): "http://a",
    ("failover_servers",): "amqp://a",
    ("always",): "discard",
    ("otlp", "endpoint"): "http://a",
    ("upload", "url"): "s3://a",
    ("upload", "endpoint"): "http://a",
    ("umask",): "027",
}
"""Attributes that are texts of a form, and one of these."""

ENDS = {("provider", "proxy", "url"): ":1"}
"""What those end with that need more than their beginning."""

NEEDED = {"protocol": "mqtt", "bind": "a:1"}
"""Keys that are texts of a form, and one of these."""

SOURCES = tuple(("source", kind) for kind in ("address", "queue", "topic"))
"""Of these a link has one."""

TAKES_OUT = (("source", "address"), ("source", "selector"), ("target", "address"))
"""What a link may have, or leave out, with a source of this message VPN only."""


def needed(of: type[Settings], *path: str) -> dict[str, Any]:
    """What a document with this attribute has to have as well: its keys, and of a link one source."""
    required = (name for name, one in of.declared.items() if one.key or one.required)
    document: dict[str, Any] = {name: NEEDED.get(name, "a") for name in required}
    if len(path) > 1 and of.declared[path[0]].optional:
        inner = of.declared[path[0]].group
        assert inner is not None
        required = (name for name, one in inner.declared.items() if one.required)
        forms = {name: FORMS[path[0], name] for name in required if (path[0], name) in FORMS}
        document[path[0]] = needed(inner) | forms
    if of is ConnectorLink:
        document["source"] = {"queue" if path in TAKES_OUT else "address": "a"}
    return document


def unset(of: type[Settings], place: AttributePath | None = None) -> Any:
    """The model, loaded from a document that has what it needs for this attribute and nothing else."""
    return model_of(of).model_validate(needed(of, *(place.path if place else ())))


def written(of: type[Settings], place: AttributePath, value: Any) -> Any:
    """The model, loaded from a document that has what it needs, this attribute and nothing else."""
    document = needed(of, *place.path)
    *above, last = place.path
    if place.path in SOURCES:
        document["source"] = {}
    group = document
    for key in above:
        group = group.setdefault(key, {})
    group[last] = value
    return model_of(of).model_validate(document)


def is_secret(of: type[Settings], place: AttributePath) -> bool:
    """Whether an attribute is a secret, which is never shown."""
    hint = hint_of(of, place)
    return bool({SecretType, Token, Password} & {hint, *get_args(hint)})


def value_at(model: Any, place: AttributePath) -> Any:
    """What a model has there."""
    for key in place.path:
        model = None if model is None else getattr(model, key)
    if isinstance(model, dict):
        return {
            name: each.reveal() if isinstance(each, Secret) else each
            for name, each in model.items()
        }
    return model.reveal() if isinstance(model, Secret) else model


def is_threshold(place: AttributePath) -> bool:
    """Whether it is one of two marks, which are one attribute in the API and must be in order."""
    return len(place.path) > 1 and place.path[-2].endswith("_threshold")


@every_attribute
def test_default(declared: Declared, place: AttributePath) -> None:
    """A document that says nothing has the declared default, or is refused."""
    if place.attribute.required:
        document = written(declared.of, place, other(declared.of, place)).model_dump()
        owner = document
        for key in place.path[:-1]:
            owner = owner[key]
        del owner[place.path[-1]]
        with pytest.raises(ValidationError, match="Field required"):
            model_of(declared.of).model_validate(document)
        return
    assert value_at(unset(declared.of, place), place) == place.attribute.default


@every_attribute
def test_what_may_be_written(declared: Declared, place: AttributePath) -> None:
    """Another value of its kind is taken; one of another kind is refused, at its place."""
    value = other(declared.of, place)
    if is_threshold(place):
        value = place.attribute.default
    assert value_at(written(declared.of, place, value), place) == value
    with pytest.raises(ValidationError) as raised:
        written(declared.of, place, {"a": 1})
    assert raised.value.errors()[0]["loc"][: len(place.path)] == place.path


RANGED = [(each, place) for each, place in EACH if place.attribute.least is not None]


@pytest.mark.parametrize(
    ("declared", "place"), RANGED, ids=[f"{e.of.__name__}-{p.name}" for e, p in RANGED]
)
def test_range(declared: Declared, place: AttributePath) -> None:
    """Its ends are taken and what is one beyond is refused. Of two marks one end is out of order."""
    one = place.attribute
    assert one.least is not None
    assert one.most is not None
    ends = {one.least, one.most}
    if is_threshold(place):
        ends.remove(one.least if place.path[-1].startswith("set") else one.most)
    for end in ends:
        assert value_at(written(declared.of, place, end), place) == end
    for beyond in (one.least - 1, one.most + 1):
        with pytest.raises(ValidationError, match=r"(greater|less) than or equal"):
            written(declared.of, place, beyond)


TEXTS = [(each, place) for each, place in EACH if place.attribute.text is not None]


@pytest.mark.parametrize(
    ("declared", "place"), TEXTS, ids=[f"{e.of.__name__}-{p.name}" for e, p in TEXTS]
)
def test_length(declared: Declared, place: AttributePath) -> None:
    """A text, or each of a list, is as long as it may be at most, and not one character longer or shorter."""
    text = place.attribute.text
    assert text is not None
    begin = "".join(FORMS.get(place.path, "").partition("://")[:2])
    end = ENDS.get(place.path, "")
    form = len(begin) + len(end)
    least = max(text.least, int(is_secret(declared.of, place)), form + bool(begin))

    def long(length: int) -> Any:
        value = begin + "a" * (length - form) + end
        if isinstance(place.attribute.default, dict):
            return {"a": value}
        return (value,) if "..." in str(hint_of(declared.of, place)) else value

    # Names of cipher suites are not of any length.
    for length in () if text is CIPHER_SUITES else (least, text.most):
        assert value_at(written(declared.of, place, long(length)), place) == long(length)
    for length in {least - 1, text.most + 1} - {-1}:
        with pytest.raises(ValidationError):
            written(declared.of, place, long(length))


@every_attribute
def test_effect(declared: Declared, place: AttributePath) -> None:
    """What a change does is decided for each, and stands in the table that a reload follows."""
    row = TABLE[*declared.above, *place.path]
    assert isinstance(row.effect, Effect)
    assert (row.effect, row.off) == (place.effect, place.attribute.off)


SEMP = [
    (each, place)
    for each, place in EACH
    if each.kind is not None and not place.attribute.child and not is_threshold(place)
]


@pytest.mark.parametrize(
    ("declared", "place"), SEMP, ids=[f"{e.of.__name__}-{p.name}" for e, p in SEMP]
)
def test_semp(declared: Declared, place: AttributePath) -> None:
    """The API has it under its name, with its range, its own default, and both ways."""
    one = place.attribute
    assert declared.kind is not None
    found = declared.kind.attributes[one.semp_name or camel(place.name)]
    assert found.keys == place.path
    assert found.bounds == (None if one.least is None else (one.least, one.most))
    default = {None: "", (): []}.get(one.default, one.default)
    assert found.written_default == default
    assert found.default == (default if one.semp_default is None else one.semp_default)
    assert found.ours == (place.ours or declared.of in {Connector, ConnectorLink})
    value = other(declared.of, place)
    back = found.taken(found.shown(value_at(written(declared.of, place, value), place)))
    assert (tuple(back) if isinstance(value, tuple) else back) == value
    assert found.write_only == is_secret(declared.of, place)
    assert (found.hashed, found.required) == (one.hashed, one.semp_required)


def of_bridge(bridge: Any, remote: Any) -> list[Any]:
    """The running objects of a bridge with this remote."""
    bridge = changed(bridge, remote_msg_vpns=(remote,))
    configured = ConfiguredBridge("b", bridge, TlsServerCert())
    return [
        configured.facts("r", "v"),
        configured.settings(vpn_enabled=True),
        configured.terms(configured.remotes[0]),
        flow_settings_of(bridge),
        flow_settings_of(bridge).failures,
        configured.remotes[0],
    ]


def of_connector(connector: Any, link: Any) -> list[Any]:
    """The running objects of a connector with this link."""
    configured: Any = connector.model_copy(update={"links": {"l": link}})
    return [
        attempts_of(configured, vpn_enabled=True),
        provider_settings_of("r", "v", "c", configured),
        *links_of(configured),
        *(each.failures for each in links_of(configured)),
    ]


def running_of(written: Any) -> list[Any]:
    """The running objects of what is written."""
    match written:
        case MsgVpn():
            return [bounds_of(written)]
        case ClientProfile():
            return [profile_of("p", written)]
        case ClientUsername():
            return [username_of("u", written)]
        case Bridge():
            return of_bridge(written, unset(RemoteMsgVpn))
        case RemoteMsgVpn():
            return of_bridge(unset(Bridge), written)
        case Connector():
            return of_connector(written, unset(ConnectorLink))
        case ConnectorLink():
            return of_connector(unset(Connector), written)
        case _:
            return [endpoint_settings_of(written)]


def values_of(of: type[Settings], running: list[Any]) -> dict[str, Any]:
    """What running objects hold of a class of settings: the same in all that hold an attribute."""
    filled = {type(each.made) for each in filled_from(of)}
    found: dict[str, Any] = {}
    for each in running:
        for name in held_defaults(of):
            if type(each) in filled and hasattr(each, name):
                assert found.setdefault(name, getattr(each, name)) == getattr(each, name)
    return found


@every_held
def test_running_object(declared: Declared, place: AttributePath) -> None:
    """What is written changes this attribute of the running object alone, and can be read back from it."""
    of, value = declared.of, other(declared.of, place)
    before = values_of(of, running_of(unset(of)))
    after = values_of(of, running_of(written(of, place, value)))
    assert [name for name in before if before[name] != after[name]] == [place.held]
    assert place.attribute.to_written(after[str(place.held)]) == value
    assert place.attribute.to_held(value) == after[str(place.held)]


STATUS = [(e, p) for e, p in HELD_EACH if e.status is not None and p.attribute.monitored]


@pytest.mark.parametrize(
    ("declared", "place"), STATUS, ids=[f"{e.of.__name__}-{p.name}" for e, p in STATUS]
)
def test_monitoring(declared: Declared, place: AttributePath) -> None:
    """Monitoring shows it as it is written; the quota of both kinds of endpoints has one name there."""
    value = other(declared.of, place)
    (running,) = running_of(written(declared.of, place, value))
    assert shown(declared.of, running)[place.name] == value
    of = Queue if issubclass(declared.of, TopicEndpoint) else declared.of
    (name,) = (each.name for each in of.places if each.held == place.held)
    assert camel(name) in names_of(declared.status)


def test_quotas_in_the_units_of_the_core() -> None:
    """Megabytes become bytes; no quota makes a last value queue, and a topic endpoint that keeps nothing."""
    queue = endpoint_settings_of(model_of(Queue).model_validate({"max_msg_spool_usage": 21}))
    assert queue.max_msg_spool_usage == 21_000_000
    queue = endpoint_settings_of(model_of(Queue).model_validate({"max_msg_spool_usage": 0}))
    assert queue.last_value
    endpoint = endpoint_settings_of(model_of(TopicEndpoint).model_validate({"max_spool_usage": 0}))
    assert (endpoint.max_msg_spool_usage, endpoint.last_value) == (1, False)


def test_queue_of_a_session() -> None:
    """It has one consumer, and what has expired is not sent (MQTT-3.3.2-5); else it is a queue as any other."""
    terms = values_of(Queue, [endpoint_settings_of(model_of(SessionQueue)())])
    assert terms == values_of(Queue, [default_session_settings()])
    assert terms == values_of(Queue, [EndpointSettings()]) | {
        "max_bind_count": 1,
        "respect_ttl_enabled": True,
    }


NOT_CONFIGURED = {("FlowSettings", "selector")}
"""Attributes of running objects that no configuration has: LINK-40 knows more."""


def set_by_name(running: Running) -> set[str]:
    """The attributes that are computed, and given where the running object is made."""
    of = type(running.made)
    given: set[str] = set()
    for path in (*READERS, ROOT / "vpnrouter/server/apply/assemble.py"):
        for each in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(each, ast.Call) and ast.unparse(each.func) == of.__name__:
                given |= set(list(running.attributes)[: len(each.args)])
                given |= {str(keyword.arg) for keyword in each.keywords}
    return given


@pytest.mark.parametrize("running", RUNNING, ids=lambda each: type(each.made).__name__)
def test_classes_of_running_objects(running: Running) -> None:
    """A class has what is declared, each with its type and its default, what is computed, and nothing else."""
    named = running.attributes
    held: dict[str, Any] = {}
    for of in running.of:
        own = {name: value for name, value in held_defaults(of).items() if name in named}
        assert held.keys() & own.keys() == set()
        held |= own
    assert {name: named[name] for name in held} == {
        name: type(value).__name__ for name, value in held.items()
    }
    assert {name: getattr(running.made, name) for name in held} == held
    known = {name for of, name in NOT_CONFIGURED if of == type(running.made).__name__}
    assert set(named) - set(held) == set_by_name(running) - set(held) | known


@pytest.mark.parametrize("declared", ALL, ids=lambda each: each.of.__name__)
def test_what_is_held_has_a_holder(declared: Declared) -> None:
    """What a class of settings says that the running object holds is an attribute of one that it fills."""
    known = {name for each in filled_from(declared.of) for name in each.attributes}
    assert set(held_defaults(declared.of)) - known == set()


def test_an_attribute_without_a_holder_is_found() -> None:
    """One that is declared and has no line in a running class is told of."""

    class Planted(RemoteMsgVpn):
        max_ghost_count: int = attribute(0, effect=Effect.IN_PLACE)

    with pytest.raises(AssertionError, match="max_ghost_count"):
        test_what_is_held_has_a_holder(Declared(Planted, ()))


# -- what nobody reads -------------------------------------------------------------------------------


class Reads(NamedTuple):
    """The attributes that code reads: by name, and by what they are read from, with a dot between."""

    names: set[str]
    qualified: set[str]


READERS = tuple(
    ROOT / "vpnrouter" / name
    for name in (
        "config/configured_bridge.py",
        "config/configured_connector.py",
        "config/configured_failures.py",
        "config/configured_transform.py",
        "config/locations.py",
        "settings/router.py",
    )
)
"""The files of `config` and `settings` that act on what is configured, or say it to a running object."""


def read_outside(*folders: str) -> Reads:
    """What the package reads outside of these folders, and in `READERS`."""
    found = Reads(set(), set())
    without = tuple(ROOT / "vpnrouter" / folder for folder in folders)
    for path in (ROOT / "vpnrouter").rglob("*.py"):
        if path in READERS or not any(path.is_relative_to(folder) for folder in without):
            collect(ast.parse(path.read_text(encoding="utf-8")), "", found)
    return found


@pytest.fixture(scope="module")
def reads() -> Reads:
    """What the package reads outside `settings` and `config`."""
    return read_outside("settings", "config")


def collect(node: ast.AST, own: str, found: Reads) -> None:
    """Note what a tree reads; `own` is the class that it stands in."""
    for each in ast.iter_child_nodes(node):
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Load):
            match each.value:
                case ast.Name(id="self"):
                    receiver = own
                case ast.Name(id=name) | ast.Attribute(attr=name):
                    receiver = name
                case _:
                    receiver = ""
            found.names.add(each.attr)
            found.qualified.add(f"{receiver}.{each.attr}")
        collect(each, each.name if isinstance(each, ast.ClassDef) else own, found)


def unread(of: type[Settings], reads: Reads) -> Iterator[str]:
    """The attributes of a class that no code acts on. Those of a running object are read from one.

    The queue of sessions is a class of its own, beside the group that it stands in.
    """
    running = filled_from(of)
    for place in of.places:
        if running and place.held is not None:
            known = any(
                f"{called}.{place.held}" in reads.qualified
                for each in running
                if place.held in each.attributes
                for called in (*each.called, type(each.made).__name__)
            )
        else:
            known = set(place.path) <= reads.names or "session_queue" in place.path
        if not known:
            yield ".".join(place.path)


def not_done(above: tuple[str, ...]) -> set[str]:
    """What is accepted and not done, and warned of, below a place."""
    return {".".join(row.path[len(above) :]) for row in NOT_YET if row.path[: len(above)] == above}


@pytest.mark.parametrize("declared", ALL, ids=lambda each: each.of.__name__)
def test_every_attribute_is_read(declared: Declared, reads: Reads) -> None:
    """What can be written is acted on, or is told of as not done."""
    known = not_done(declared.above)
    found = [
        each
        for each in unread(declared.of, reads)
        if each not in known and each.split(".")[0] not in known
    ]
    assert found == []


def test_every_effect_is_declared() -> None:
    """The table has nothing that no class of settings declares, but for a block that comes and goes as a whole."""
    declared = {(*each.above, *place.path) for each in ALL for place in each.of.places}
    assert [pattern for pattern in TABLE if pattern not in declared] == [("trace",)]


def test_what_nobody_reads_is_found(reads: Reads) -> None:
    """An attribute that no code reads is found, also one that has the name of another object's attribute."""

    class Planted(ClientProfile):
        max_ghost_count: int = attribute(0, effect=Effect.IN_PLACE)

    assert "max_ghost_count" in set(unread(Planted, reads))
    without = Reads(reads.names, reads.qualified - {"profile.max_ingress_flow_count"})
    assert "max_ingress_flow_count" in reads.names
    assert "max_ingress_flow_count" in set(unread(ClientProfile, without))


def classes(of: type[Settings]) -> Iterator[type[Settings]]:
    """A class and those of its groups and lists."""
    yield of
    for each in of.declared.values():
        for inner in (each.group, each.items):
            if inner is not None:
                yield from classes(inner)


def test_every_class_is_tested_here() -> None:
    """No class of settings is left out; those that others derive from are tested as these."""
    for path in (ROOT / "vpnrouter/settings").glob("*.py"):
        import_module(f"vpnrouter.settings.{path.stem}")
    known = list(below(Settings))
    ends = [each for each in known if not any(each in other.__mro__[1:] for other in known)]
    tested = {found.__qualname__ for each in ALL for found in classes(each.of)}
    assert {each.__qualname__ for each in ends} - tested == set()


def below(of: type[Settings]) -> Iterator[type[Settings]]:
    """The classes of the package `settings` that derive from a class."""
    for each in of.__subclasses__():
        if each.__module__.startswith("vpnrouter.settings."):
            yield each
        yield from below(each)


def test_places_of_the_classes() -> None:
    """Each class is what the configuration has at the place named above."""
    for each in ALL:
        path = tuple("x" if step == "*" else step for step in each.above)
        found = model_at(RouterConfig, path)
        assert found is not None
        assert issubclass(found, Model)
        assert issubclass(found, each.of)
