"""An MQTT client in memory: refused, granted, disconnected."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vpnrouter.explain.mesh import MemoryMesh
from vpnrouter.explain.probe import Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from vpnrouter.config.router import Loaded

WALL_NS = 1_700_000_000_000_000_000


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
