"""The mesh in memory: bridges up, sessions, time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from vpnrouter.errors import OperationError
from vpnrouter.explain.mesh import MemoryMesh
from vpnrouter.explain.probe import Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from vpnrouter.config.router import Loaded

WALL_NS = 1_700_000_000_000_000_000


def test_a_bridge_comes_up_and_is_held_down(pair: Callable[..., list[Loaded]]) -> None:
    """Up by itself; down where it is said to be."""
    mesh = pair()
    (bridge,) = MemoryMesh(mesh, WALL_NS).bridges
    assert (bridge.up, bridge.why) == (True, "")
    (bridge,) = MemoryMesh(mesh, WALL_NS, {("core", "yellow", "in"): "gone"}).bridges
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
