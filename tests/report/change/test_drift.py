from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vpnrouter.report.change.configured import Configured, load_configured
from vpnrouter.report.change.drift import Drift, drift

Make = Callable[..., dict[str, Any]]
Rows = list[dict[str, Any]]
CLIENT = "#bridge/core/yellow/fares"
FILTERS = ("fares", "fares/>", "seats/*", "!fares/test")


def held(*filters: str) -> Rows:
    """What the bridge asked for."""
    place = {"router": "edge", "vpn": "blue", "client": CLIENT}
    return [{**place, "filter": one} for one in filters]


@pytest.fixture
def mesh(config_files: list[Path]) -> Configured:
    """The two routers."""
    return load_configured(config_files)


@pytest.fixture
def nodes(node: Make) -> Rows:
    """What is seen when all is well."""
    return [node("edge", "blue"), node("core", "yellow")]


def told(found: Drift) -> list[tuple[Any, ...]]:
    """The findings in a few fields."""
    return [(one.kind, one.router, one.vpn, one.bridge, one.topic) for one in found.findings]


def test_as_configured(mesh: Configured, nodes: Rows, edge: Make) -> None:
    """No finding, and the column of EDGES says so."""
    rows = [edge("edge/blue", "core/yellow")]
    found = drift(mesh, nodes, rows, held(*FILTERS))
    assert (found.findings, found.configured, found.notes) == ([], [True], ())
    assert found.merged(rows)[0]["configured"] is True


def test_nothing_seen(mesh: Configured) -> None:
    """Routers without any traces: their message VPNs are missing, of bridges nothing can be said."""
    found = drift(mesh, [], [], [])
    assert told(found) == [
        ("missing_vpn", "edge", "blue", None, None),
        ("missing_vpn", "core", "yellow", None, None),
    ]
    assert "has written no traces at all" in found.findings[0].detail


def test_routers_that_do_not_trace(config_files: list[Path]) -> None:
    """What writes no traces is not missing."""
    for file in config_files:
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace("trace: {", "trace: {enabled: false, "), encoding="utf-8")
    assert told(drift(load_configured(config_files), [], [], [])) == []


def test_a_bridge_that_is_not_there(mesh: Configured, nodes: Rows) -> None:
    """Neither link nor messages: missing. Subscriptions alone show that it is there."""
    found = drift(mesh, nodes, [], [])
    assert told(found) == [("missing_bridge", "core", "yellow", "fares", None)]
    (one,) = found.findings
    assert (one.severity, one.peer_router, one.peer_vpn) == ("error", "edge", "blue")
    assert "core.yaml:9:7" in one.detail
    assert told(drift(mesh, nodes, [], held(*FILTERS))) == []


def test_what_is_not_configured(mesh: Configured, nodes: Rows, edge: Make, node: Make) -> None:
    """Unknown and disabled message VPNs, unknown bridges, one from another remote; a router whose file
    is not given is left alone.
    """
    rows = [
        edge("edge/blue", "core/yellow"),
        edge("edge/blue", "core/yellow", bridge="extra"),
        edge("core/green", "core/yellow"),
        edge("core/yellow", "far/red"),
    ]
    nodes += [node("core", "green"), node("edge", "pink"), node("far", "red")]
    found = drift(mesh, nodes, rows, held(*FILTERS))
    assert told(found) == [
        ("unknown_vpn", "core", "green", None, None),
        ("unknown_vpn", "edge", "pink", None, None),
        ("unknown_bridge", "core", "yellow", "extra", None),
        ("unknown_bridge", "core", "yellow", "fares", None),
    ]
    assert "is disabled at" in found.findings[0].detail
    assert "is configured to take from edge/blue" in found.findings[3].detail
    assert found.configured == [True, False, False, None]
    assert found.notes == ("no given file describes router far",)


def test_a_disabled_bridge(config_files: list[Path], nodes: Rows, edge: Make) -> None:
    """Not seen: fine. Seen: told."""
    text = config_files[1].read_text(encoding="utf-8")
    config_files[1].write_text(
        text.replace("fares:\n", "fares:\n        enabled: false\n"), encoding="utf-8"
    )
    mesh = load_configured(config_files)
    assert told(drift(mesh, nodes, [], [])) == []
    found = drift(mesh, nodes, [edge("edge/blue", "core/yellow")], held("x"))
    assert told(found) == [("unknown_bridge", "core", "yellow", "fares", None)]
    assert "is disabled at" in found.findings[0].detail
    assert found.configured == [False]


def test_subscriptions(mesh: Configured, nodes: Rows, edge: Make) -> None:
    """What was never asked for and what was not to be."""
    found = drift(
        mesh, nodes, [edge("edge/blue", "core/yellow")], held("fares", "fares/>", "x/>", "seats/*")
    )
    assert told(found) == [
        ("missing_subscription", "core", "yellow", "fares", "!fares/test"),
        ("unknown_subscription", "core", "yellow", "fares", "x/>"),
    ]
    assert {one.client for one in found.findings} == {CLIENT}


@pytest.mark.parametrize(("ups", "missing"), [(0, 0), (1, 4)])
def test_subscriptions_of_a_link_that_was_up_before(
    mesh: Configured, nodes: Rows, edge: Make, ups: int, missing: int
) -> None:
    """Where neither the login nor any subscription was seen, nothing can be said."""
    found = drift(mesh, nodes, [edge("edge/blue", "core/yellow", link_ups=ups)], [])
    assert len(found.findings) == missing


def test_a_remote_elsewhere(config_files: list[Path], node: Make, edge: Make) -> None:
    """With one file only, bridges from routers that it does not describe are left alone."""
    mesh = load_configured(config_files[1:])
    found = drift(mesh, [node("core", "yellow")], [edge("edge/blue", "core/yellow")], held("x"))
    assert (found.findings, found.configured) == ([], [True])
    assert told(drift(mesh, [node("core", "yellow")], [], [])) == []
