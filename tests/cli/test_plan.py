"""`vpnrouter plan`: the differences, and what they cost."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from vpnrouter.cli import _mesh
from vpnrouter.cli._mesh import print_plans
from vpnrouter.cli.app import run
from vpnrouter.errors import OperationError
from vpnrouter.plan.compare import RouterPlan


def test_what_would_change(mesh: Any, capfd: pytest.CaptureFixture[str]) -> None:
    """A line a change with its mark, the risk behind it; nothing changes."""
    assert run(["plan", mesh.path, "--prune"]) == 0
    out = capfd.readouterr().out.splitlines()
    assert out == [
        "edge: 2 changes",
        "  - msg_vpns.old: removed",
        "  + msg_vpns.new: added",
        "  ! disconnects: 2 clients of message VPN old",
        "core: as the file says",
    ]
    assert list(mesh.edge.document["msg_vpns"]) == ["blue", "old"]


def test_message_vpns_that_stay_are_named(mesh: Any, capfd: pytest.CaptureFixture[str]) -> None:
    """Without --prune."""
    assert run(["plan", mesh.path]) == 0
    assert "  message VPNs that stay as they are: old" in capfd.readouterr().out.splitlines()


def test_as_json(mesh: Any, capfd: pytest.CaptureFixture[str]) -> None:
    """Everything, for programs."""
    assert run(["plan", mesh.path, "--json"]) == 0
    edge, core = json.loads(capfd.readouterr().out)
    assert edge["router"] == "edge"
    assert [row["text"] for row in edge["changes"]] == ["msg_vpns.new: added"]
    assert edge["unnamedMsgVpns"] == ["old"]
    assert core["changes"] == []


def test_what_a_router_would_refuse(mesh: Any, capfd: pytest.CaptureFixture[str]) -> None:
    """Exit code 1, with the router's words."""
    mesh.write(new="refused")
    assert run(["plan", mesh.path]) == 1
    assert "  x f:1:1: no" in capfd.readouterr().out.splitlines()


def test_a_router_that_is_away(mesh: Any, capfd: pytest.CaptureFixture[str]) -> None:
    """One line."""
    mesh.core.away = True
    assert run(["plan", mesh.path]) == 1
    assert capfd.readouterr().err == "vpnrouter: cannot connect to core\n"


def test_a_file_that_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Exit code 2 and a line a problem."""
    (tmp_path / "m.yaml").write_text("routers: {edge: {config: {}}}\n")
    assert run(["plan", str(tmp_path / "m.yaml")]) == 2
    assert capfd.readouterr().err.startswith(f"{tmp_path}/m.yaml:1:")


def test_what_holds_only_from_the_next_start() -> None:
    """It is told, and that it is not applied."""
    plan = RouterPlan(
        name="edge",
        digest="d",
        changes=({"path": ["a"], "text": "a: 1 -> 2 (at once)", "effect": "in-place"},),
        restart=("router.data_dir: a -> b (needs restart)",),
        risks=(),
        problems=(),
        unnamed=(),
        steps=(),
        bridges=(),
    )
    out = io.StringIO()
    print_plans([plan], out, as_json=False)
    assert out.getvalue().splitlines() == [
        "edge: 1 change",
        "  ~ a: 1 -> 2 (at once)",
        "  * router.data_dir: a -> b (needs restart): not applied",
    ]


def test_a_client_for_each_router(tmp_path: Path) -> None:
    """By name, at the address that the file says."""
    path = tmp_path / "mesh.yaml"
    path.write_text(
        "routers:\n"
        "  edge: {url: 'http://127.0.0.1:1', user: ann, password: pw, config: {msg_vpns: {a: {}}}}\n"
        "  core: {url: 'http://127.0.0.1:2/', config: {msg_vpns: {b: {}}}}\n"
    )
    with _mesh.reached(_mesh.read(path)) as clients:
        assert {name: client.url for name, client in clients.items()} == {
            "edge": "http://127.0.0.1:1",
            "core": "http://127.0.0.1:2",
        }
        with pytest.raises(OperationError, match="cannot connect"):
            clients["edge"].config()
