from pathlib import Path
from typing import Any

import pytest

from vpnrouter.config.load import read
from vpnrouter.simulation.faults.kinds import DRIFT_KINDS
from vpnrouter.simulation.simulate import Options, simulate


@pytest.fixture(scope="module")
def drifted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A simulation with each kind of drift, and its truth."""
    folder = tmp_path_factory.mktemp("drifted")
    options = Options(vpns=60, rows=16_000, faults=tuple(DRIFT_KINDS))
    return folder, simulate(options, folder)


def test_configurations_differ_as_the_truth_says(
    drifted: tuple[Path, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is missing stands in the files and not in the mesh, what is unknown the other way round."""
    monkeypatch.setenv("BRIDGE_PASSWORD", "change-me")
    folder, truth = drifted
    fault = {one["kind"]: one for one in truth["faults"]}
    assert set(fault) == set(DRIFT_KINDS)
    readings = [read(path) for path in (folder / "mesh").glob("*.yaml")]
    assert not [one for each in readings for one in each.problems if one.severity == "error"]
    configs = [each.loaded.config for each in readings if each.loaded is not None]
    vpns = {(one.router.name, name): vpn for one in configs for name, vpn in one.msg_vpns.items()}

    def place(kind: str) -> tuple[str, str]:
        return fault[kind]["router"], fault[kind]["vpn"]

    def filters(kind: str) -> list[str]:
        bridge = vpns[place(kind)].bridges[fault[kind]["bridge"]]
        return [str(one.topic) for one in bridge.remote_subscriptions]

    edges = {(one["to_router"], one["to_vpn"], one["bridge"]): one for one in truth["edges"]}
    assert place("missing_vpn") in vpns
    assert len(vpns) == truth["counts"]["vpns"] + 1
    missing, unknown = fault["missing_bridge"], fault["unknown_bridge"]
    assert missing["bridge"] in vpns[place("missing_bridge")].bridges
    assert (*place("missing_bridge"), missing["bridge"]) not in edges
    assert unknown["bridge"] not in vpns[place("unknown_bridge")].bridges
    assert edges[*place("unknown_bridge"), unknown["bridge"]]["received"] > 0
    assert fault["missing_subscription"]["topic"] in filters("missing_subscription")
    assert fault["unknown_subscription"]["topic"] not in filters("unknown_subscription")


def test_the_traces_know_nothing_of_it(drifted: tuple[Path, dict[str, Any]]) -> None:
    """Every bridge of the truth carried messages, and no more than was sent."""
    _, truth = drifted
    assert all(edge["sent"] == edge["received"] > 0 for edge in truth["edges"])
    assert "discard" not in truth["counts"]["events"]
