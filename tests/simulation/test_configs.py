from typing import Any

import pytest

from vpnrouter.config.load import read
from vpnrouter.config.mesh.check import check_mesh


def test_configurations_are_those_of_the_mesh(
    calm: Any, faulty: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`vpnrouter check` accepts each file and all together; message VPNs and bridges are those of the truth."""
    monkeypatch.setenv("BRIDGE_PASSWORD", "change-me")
    for made in (calm, faulty):
        readings = [read(path) for path in sorted((made.folder / "mesh").glob("*.yaml"))]
        problems = [one for reading in readings for one in reading.problems]
        assert [one.message for one in problems if one.severity == "error"] == []
        assert made is faulty or problems == []
        loaded = [reading.loaded for reading in readings if reading.loaded is not None]
        assert len(loaded) == made.truth["counts"]["routers"]
        findings = check_mesh(loaded)
        assert [one.message for one in findings if one.severity == "error"] == []
        vpns = {
            (one.config.router.name, name): vpn
            for one in loaded
            for name, vpn in one.config.msg_vpns.items()
        }
        assert len(vpns) == made.truth["counts"]["vpns"]
        bridges = {
            (remote.router, remote.name, router, vpn, name)
            for (router, vpn), config in vpns.items()
            for name, bridge in config.bridges.items()
            for remote in bridge.remote_msg_vpns
        }
        names = ("from_router", "from_vpn", "to_router", "to_vpn", "bridge")
        assert bridges == {tuple(edge[name] for name in names) for edge in made.truth["edges"]}


def test_check_sees_the_loops_and_none_in_a_calm_mesh(
    calm: Any, faulty: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted loop and the second ways can be seen in the configurations; a calm mesh has none."""
    monkeypatch.setenv("BRIDGE_PASSWORD", "change-me")

    def said(made: Any) -> str:
        readings = [read(path) for path in sorted((made.folder / "mesh").glob("*.yaml"))]
        found = check_mesh([one.loaded for one in readings if one.loaded is not None])
        return "\n".join(one.message for one in found)

    assert "loop: topic" in said(faulty)
    assert "double delivery" in said(faulty)
    for words in ("loop", "double delivery", "redundant", "black hole"):
        assert words not in said(calm)
