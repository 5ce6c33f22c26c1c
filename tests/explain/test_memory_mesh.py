"""The mesh in memory: routers, bridges, connections, clients and recorded events."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from vpnrouter.core.connection import Connection
from vpnrouter.core.context import RouterContext
from vpnrouter.errors import OperationError
from vpnrouter.explain.explain import explain
from vpnrouter.explain.mesh import MemoryMesh, take_events
from vpnrouter.explain.network import ConnectionPair, take_all
from vpnrouter.explain.observed import Observed
from vpnrouter.explain.probe import Session
from vpnrouter.explain.request import Event, ExplainRequest, UsageError
from vpnrouter.explain.router import MemoryRouter
from vpnrouter.trace.events import DISCARD, INGRESS, LINK_UP
from vpnrouter.trace.recorder import Context, Recorder

if TYPE_CHECKING:
    from collections.abc import Callable

    from vpnrouter.config.router import Loaded

WALL_NS = 1_700_000_000_000_000_000


def test_a_bridge_comes_up_and_is_held_down(pair: Callable[..., list[Loaded]]) -> None:
    """Up by itself; down where it is said to be."""
    mesh = pair()
    (bridge,) = MemoryMesh(mesh, WALL_NS).bridges
    assert (bridge.up, bridge.why) == (True, "")
    (bridge,) = MemoryMesh(mesh, WALL_NS, Observed(down={("core", "yellow", "in"): "gone"})).bridges
    assert (bridge.up, bridge.why) == (False, "gone")


@pytest.mark.parametrize(("password", "up"), [("wrong", False), ("right", True), ("'***'", True)])
def test_the_password_of_a_bridge(
    configured: Callable[..., Loaded], password: str, up: bool
) -> None:
    """It is verified as the remote would, and a masked one is taken to be right."""
    edge = configured(
        "listeners: [{protocol: link, bind: '127.0.0.1:55555'}]\n"
        "msg_vpns:\n  blue:\n"
        "    client_profiles: {default: {allow_bridge_connections_enabled: true}}\n"
        "    client_usernames: {any: {password: right}}\n",
        "edge",
    )
    core = configured(
        "msg_vpns:\n  yellow:\n    bridges:\n      in:\n"
        "        remote_authentication:\n"
        f"          basic: {{client_username: any, password: {password}}}\n"
        "        remote_msg_vpns: [{name: blue, location: '127.0.0.1:55555'}]\n",
        "core",
    )
    (bridge,) = MemoryMesh([edge, core], WALL_NS).bridges
    assert bridge.up is up
    assert bridge.why == ("" if up else "403 Forbidden")


def test_a_session_subscribes(pair: Callable[..., list[Loaded]]) -> None:
    """What is not granted is told."""
    mesh = pair()
    memory_mesh = MemoryMesh(mesh, WALL_NS)
    session = Session(memory_mesh.nodes["edge"], "blue", "c", "")
    memory_mesh.sessions.append(session)
    memory_mesh.settle()
    assert session.connected
    session.subscribe([("a/#", 1), ("$share//x", 0)])
    memory_mesh.settle()
    assert list(session.denied) == ["$share//x"]


def test_two_of_one_name(pair: Callable[..., list[Loaded]]) -> None:
    """Refused, both files named."""
    mesh = pair()
    with pytest.raises(OperationError, match="both describe router core"):
        MemoryMesh([mesh[1], mesh[1]], WALL_NS)


if TYPE_CHECKING:
    from collections.abc import Callable

    from vpnrouter.config.router import Loaded

REMOTE = "remote_msg_vpns: [{name: blue, router: edge, location: '127.0.0.1:55555'}]"
BRIDGE = (
    "msg_vpns: {v: {bridges: {b: {remote_authentication: {basic: {client_username: u}}, %s}}}}\n"
)


@pytest.mark.parametrize(
    ("written", "why"),
    [
        (f"enabled: false, {REMOTE}", "the bridge is disabled"),
        (REMOTE.replace("}]", ", enabled: false}]"), "all its remote message VPNs are disabled"),
        (REMOTE.replace("name: blue", "name: red"), "403 Message VPN Not Allowed"),
        (REMOTE.replace("edge", "far"), "no given file describes router far"),
        (
            REMOTE.replace("}]", ", tls_enabled: true}]"),
            "the listener 127.0.0.1:55555 of router edge does not speak TLS",
        ),
    ],
)
def test_why_it_is_down(
    pair: Callable[..., list[Loaded]], configured: Callable[..., Loaded], written: str, why: str
) -> None:
    """In the words of the configuration or of the remote."""
    mesh = [pair()[0], configured(BRIDGE % written, "third")]
    (bridge,) = MemoryMesh(mesh, 1_700_000_000_000_000_000).bridges
    assert not bridge.up
    assert bridge.why == why


if TYPE_CHECKING:
    from collections.abc import Callable

    from vpnrouter.config.router import Loaded

SECOND_NS = 1_000_000_000


def test_tracing_is_as_asked_for_and_not_as_configured(configured: Callable[..., Loaded]) -> None:
    """And the spool is there unless it is switched off."""
    loaded = configured("trace: {directory: ./t, sample: 0.0}\nmsg_vpns: {v: {queues: {q: {}}}}\n")
    for traced in (True, False):
        node = MemoryRouter(loaded, 0, SECOND_NS, SECOND_NS, traced=traced)
        assert node.router.context.tracing is traced
        assert [name for _, name in node.router.vpns["v"].endpoints] == ["q"]
        assert not node.finish_round()
    without = configured("guaranteed_msging: {enabled: false}\nmsg_vpns: {v: {}}\n")
    assert MemoryRouter(without, 0, SECOND_NS, SECOND_NS, traced=True).spool is None


if TYPE_CHECKING:
    from collections.abc import Callable

    from vpnrouter.config.router import Loaded
OPEN = (
    "{authentication: {basic: {enabled: false}},"
    " client_profiles: {default: {allow_bridge_connections_enabled: true}}}"
)
NETWORK_BRIDGE = (
    "msg_vpns: {v: {bridges: {b: {remote_authentication: {basic: {client_username: u}},"
    " remote_msg_vpns: [{name: v, router: far, location: '192.0.2.1:7'}]}}}}\n"
)


def test_an_address_that_is_translated_on_its_way(configured: Callable[..., Loaded]) -> None:
    """A remote that names its router means it, wherever it listens; one without a listener is not reached."""
    near = configured(NETWORK_BRIDGE, "near")
    for listeners, why in (
        ("listeners: [{protocol: link, bind: '10.0.0.1:55555'}]\n", ""),
        ("", "router far has no link listener"),
    ):
        far = configured(f"{listeners}msg_vpns: {{v: {OPEN}}}\n", "far")
        (bridge,) = MemoryMesh([near, far], WALL_NS).bridges
        assert bridge.why == why
        assert bridge.up is not bool(why)


class End(Connection):
    """Keeps what it hears."""

    def __init__(self) -> None:
        super().__init__(RouterContext("r", 1, Recorder(), 0.0), "", 1 << 20)
        self.heard = b""
        self.gone: list[str] = []

    def consume(self, data: bytes, pos: int) -> int:
        """Keep the bytes."""
        self.heard += data
        return len(data)

    def lost(self, reason: str) -> None:
        """Keep the reason."""
        self.gone.append(reason)


def test_both_ways_and_the_end() -> None:
    """What is said arrives, and an end is told once on both sides."""
    one, two = End(), End()
    wire = ConnectionPair(one, two)
    assert not wire.pump()
    one.outbox.control(b"hello")
    two.outbox.control(b"you")
    assert wire.pump()
    assert (one.heard, two.heard) == (b"you", b"hello")
    one.outbox.control(b"bye")
    one.closing = True
    assert wire.pump()
    assert (two.heard, one.gone, two.gone) == (b"hellobye", ["closed"], ["closed by peer"])
    assert wire.over
    assert not wire.pump()
    assert take_all(one) == b""


if TYPE_CHECKING:
    from collections.abc import Callable

    from vpnrouter.config.router import Loaded


def test_only_names_that_are_there_are_let_in(configured: Callable[..., Loaded]) -> None:
    """The password is taken to be right, but not that of a stand-in; a certificate names its user."""
    text = "msg_vpns: {v: {client_usernames: {u: {password: x}}}}\n"
    certificates = "authentication: {basic: {enabled: false}, client_cert: {enabled: true}}"
    for written, name, let_in in (
        (text, "u", True),
        (text, "stranger", False),
        (text.replace("v: {", f"v: {{{certificates}, "), "u", True),
    ):
        memory_mesh = MemoryMesh([configured(written)], WALL_NS)
        session = Session(memory_mesh.nodes["here"], "v", "c", name)
        memory_mesh.sessions.append(session)
        memory_mesh.settle()
        assert session.connected is let_in
        assert bool(session.refused) is not let_in


def test_a_message_comes_back_to_who_subscribes(configured: Callable[..., Loaded]) -> None:
    """Published, received, acknowledged."""
    memory_mesh = MemoryMesh(
        [configured("msg_vpns: {v: {authentication: {basic: {enabled: false}}}}\n")], WALL_NS
    )
    session = Session(memory_mesh.nodes["here"], "v", "c", "")
    memory_mesh.sessions.append(session)
    session.subscribe([("t", 1)])
    memory_mesh.settle()
    session.publish(b"t", b"xyz", 1, [("a", "b")])
    memory_mesh.settle()
    assert [(one.payload, one.properties.user_properties) for one in session.messages] == [
        (b"xyz", [("a", "b")])
    ]
    assert session.answer == "0x00 Success"
    events = [one.event for one in memory_mesh.take_events()]
    assert events == ["ingress", "enqueue", "deliver"]


if TYPE_CHECKING:
    from collections.abc import Callable

    from vpnrouter.config.router import Loaded

CLOSED = """\
msg_vpns:
  v:
    client_profiles: {bridging: {allow_bridge_connections_enabled: true}}
    acl_profiles: {never: {client_connect: {default_action: allow}}}
    client_usernames:
      bridge: {password: x, client_profile: bridging}
      mute: {password: x, acl_profile: never}
      able: {password: x}
"""


def test_one_who_may_publish_is_chosen(configured: Callable[..., Loaded]) -> None:
    """No account of bridges, and none that may not."""
    loaded = configured(CLOSED)
    told = explain([loaded], ExplainRequest("here", "v", "t"))
    assert told.client_username == "able"
    told = explain([loaded], ExplainRequest("here", "v", "t", client_username="mute"))
    assert [one.reason for one in told.losses] == ["publish-topic-acl"]


def test_nobody_may_log_in(configured: Callable[..., Loaded]) -> None:
    """Said in one line; and so is a name that is not there."""
    with pytest.raises(UsageError, match="nobody can log in to message VPN here/v"):
        explain([configured("msg_vpns: {v: {}}\n")], ExplainRequest("here", "v", "t"))
    with pytest.raises(UsageError, match="has no client username who"):
        explain([configured(CLOSED)], ExplainRequest("here", "v", "t", client_username="who"))


def test_messages_and_no_links() -> None:
    """What is about a message, traced or not; the times of a clock turned by hand are left out."""
    recorder = Recorder()
    recorder.record(
        Context(INGRESS, "v", 2, client="c"),
        5,
        b"t",
        trace_high=1,
        trace_low=2,
        message_id=3,
        size=4,
        since_ingress_ns=5,
        origin_ts_ns=6,
    )
    recorder.record(
        Context(LINK_UP, "v"),
        5,
        b"",
        trace_high=0,
        trace_low=0,
        message_id=0,
        size=-1,
        since_ingress_ns=-1,
        origin_ts_ns=0,
    )
    recorder.record(
        Context(DISCARD, "v", reason="r", path="a/v"),
        5,
        b"t",
        trace_high=0,
        trace_low=0,
        message_id=1,
        size=-1,
        since_ingress_ns=-1,
        origin_ts_ns=0,
    )
    assert take_events("a", recorder) == [
        Event("a", "ingress", "v", "t", "persistent", "c", size=4, message_id=3),
        Event("a", "discard", "v", "t", "direct", reason="r", path=("a/v",)),
    ]
    assert take_events("a", recorder) == []
