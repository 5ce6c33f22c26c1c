"""Where the configured mesh and the observed one differ."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame

from vpnrouter.errors import ConfigError
from vpnrouter.report.change.configured import Configured, bridge_subscriptions, load_configured
from vpnrouter.report.change.drift import Drift, drift
from vpnrouter.report.schema import Rows

EDGE = """\
router: {name: edge, data_dir: ./data/edge}
listeners:
  - {protocol: link, bind: "127.0.0.1:55555"}
trace: {directory: ./traces}
msg_vpns:
  blue:
    client_profiles: {bridging: {allow_bridge_connections_enabled: true}}
    client_usernames: {core-bridge: {password: {env: NOT_SET}, client_profile: bridging}}
"""
CORE = """\
router: {name: core, data_dir: ./data/core}
listeners:
  - {protocol: link, bind: "127.0.0.1:55556"}
trace: {directory: ./traces}
msg_vpns:
  green: {enabled: false}
  yellow:
    bridges:
      fares:
        remote_authentication:
          basic: {client_username: core-bridge, password: {env: NOT_SET}}
        remote_msg_vpns:
          - {name: blue, location: "127.0.0.1:55555"}
        topic_syntax: mqtt
        remote_subscriptions: ["fares/#", "!fares/test", "seats/+"]
"""


@pytest.fixture
def config_files(tmp_path: Path) -> list[Path]:
    """The two files, which a test may change."""
    files = [tmp_path / "edge.yaml", tmp_path / "core.yaml"]
    for file, text in zip(files, (EDGE, CORE), strict=True):
        file.write_text(text, encoding="utf-8")
    return files


CLIENT = "#bridge/core/yellow/fares"
PLACE = {"router": "edge", "vpn": "blue"}


def test_what_bridges_asked_for(digest_of: Callable[..., DataFrame]) -> None:
    """Every filter that a bridge ever held, once; clients and what links did are no part of it."""
    held = {**PLACE, "client": CLIENT, "event": "subscribe"}
    states: list[dict[str, Any]] = [
        {**held, "ts_ns": 1, "topic": "fares/>"},
        {**held, "ts_ns": 2, "topic": "!fares/test", "topic_syntax": "smf"},
        {**held, "ts_ns": 3, "topic": "fares/>", "event": "unsubscribe"},
        {**held, "ts_ns": 4, "topic": "fares/>"},
        {**held, "ts_ns": 5, "topic": "seats/>", "event": "unsubscribe"},
        {**held, "ts_ns": 6, "topic": "fares/>", "vpn": "green"},
        {**held, "ts_ns": 7, "topic": "a/>", "client": "board"},
        {**held, "ts_ns": 8, "topic": "b/>", "client": "a#bridge/core/yellow/fares"},
        {**held, "ts_ns": 9, "topic": "c/>", "client": None},
        {**held, "ts_ns": 10, "event": "link_up", "bridge": "fares"},
    ]
    found = bridge_subscriptions(digest_of("states", states))
    assert sorted(found, key=lambda row: (row["vpn"], row["filter"])) == [
        {**PLACE, "client": CLIENT, "filter": "!fares/test"},
        {**PLACE, "client": CLIENT, "filter": "fares/>"},
        {**PLACE, "vpn": "green", "client": CLIENT, "filter": "fares/>"},
    ]
    assert bridge_subscriptions(digest_of("states", [])) == []


FARES = ("core", "yellow"), "fares"


def change(file: Path, old: str, new: str) -> None:
    """Replace a text that stands in a file."""
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


def test_two_routers(config_files: list[Path]) -> None:
    """The remote router is known by the address that it listens at; secrets need not be there."""
    mesh = load_configured(config_files)
    assert mesh.routers == {"edge", "core"}
    assert {place: vpn.enabled for place, vpn in mesh.vpns.items()} == {
        ("edge", "blue"): True,
        ("core", "green"): False,
        ("core", "yellow"): True,
    }
    bridge = mesh.bridges[FARES]
    assert (bridge.enabled, bridge.sources, bridge.elsewhere) == (True, (("edge", "blue"),), False)
    assert bridge.filters == {"fares", "fares/>", "seats/*", "!fares/test"}
    assert bridge.where.endswith("core.yaml:9:7")
    assert mesh.notes == ()


def test_quotas(config_files: list[Path]) -> None:
    """In bytes, no more than the message VPN's; a last value queue has none."""
    change(
        config_files[0],
        "    client_profiles",
        """\
    max_msg_spool_usage: 700
    queues: {small: {max_msg_spool_usage: 50}, usual: {}, last: {max_msg_spool_usage: 0}}
    topic_endpoints: {te: {max_spool_usage: 60}}
    client_profiles""",
    )
    quotas = load_configured(config_files).quotas
    assert dict(quotas) == {
        ("edge", "blue", "small"): 50_000_000,
        ("edge", "blue", "usual"): 700_000_000,
        ("edge", "blue", "te"): 60_000_000,
    }


def test_a_remote_that_no_file_describes(config_files: list[Path]) -> None:
    """It is noted where it stands, and left alone."""
    mesh = load_configured(config_files[1:])
    assert (mesh.bridges[FARES].sources, mesh.bridges[FARES].elsewhere) == ((), True)
    (note,) = mesh.notes
    assert "core.yaml:13:13: no given file describes a router with a link listener" in note


def test_disabled(config_files: list[Path]) -> None:
    """A bridge without a remote that is used is as good as disabled."""
    change(config_files[1], '"127.0.0.1:55555"}', '"127.0.0.1:55555", enabled: false}')
    assert load_configured(config_files).bridges[FARES].enabled is False


def test_filters_behind_a_mapping(config_files: list[Path]) -> None:
    """Where the remote end renames what leaves, what is subscribed to there is not what is written here."""
    change(
        config_files[0],
        "    client_profiles",
        """\
    bridges:
      back:
        remote_authentication: {basic: {client_username: edge, password: x}}
        remote_msg_vpns: [{name: yellow, router: core, location: "127.0.0.1:55556"}]
        remote_subscriptions: ["back/>"]
        topic_mapping: [{add_prefix: edge/, direction: out}]
    client_profiles""",
    )
    mesh = load_configured(config_files)
    assert mesh.bridges[FARES].filters is None
    assert mesh.bridges[("edge", "blue"), "back"].filters == {"back/>"}


def test_files_that_are_refused(config_files: list[Path]) -> None:
    """One error tells every problem of every file, and where."""
    change(config_files[0], "msg_vpns:", "msg_vpn:")
    change(config_files[1], "fares/#", "fares/#/x")
    with pytest.raises(ConfigError) as caught:
        load_configured([*config_files, config_files[0].with_name("none.yaml")])
    places = [str(problem).partition(": ")[0] for problem in caught.value.problems]
    assert [place.rpartition("/")[2] for place in places] == [
        "edge.yaml:5:1",
        "core.yaml:15:32",
        "none.yaml:1:1",
    ]


def test_one_router_twice(config_files: list[Path]) -> None:
    """Two files of one name cannot both be right."""
    change(config_files[1], "name: core", "name: edge")
    with pytest.raises(ConfigError, match=r"core.yaml:1:16: .* another router has the name edge"):
        load_configured(config_files)


Make = Callable[..., dict[str, Any]]
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
