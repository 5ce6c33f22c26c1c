"""Reads the configured mesh from the routers' YAML files, and the bridges' subscriptions from the traces."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from vpnrouter.config.bridge import Bridge
from vpnrouter.config.checks.message_vpns import DIALECTS
from vpnrouter.config.load import load
from vpnrouter.config.mesh.remotes import ConfiguredRemote as Remote
from vpnrouter.config.mesh.remotes import Routers
from vpnrouter.config.msg_vpn import MsgVpn
from vpnrouter.config.router import Loaded
from vpnrouter.errors import ConfigError, TopicError
from vpnrouter.report.schema import BRIDGE_CLIENT, Rows
from vpnrouter.report.structure.graph import Place
from vpnrouter.topics.grammar import parse_filter, to_smf
from vpnrouter.units import MEGABYTE

_COLUMNS: Final = ("router", "vpn", "client", "filter")


def bridge_subscriptions(states: DataFrame) -> Rows:
    """Return, from STATES, every filter that a bridge ever subscribed to: `router`, `vpn`, `client`, `filter`."""
    subscribed = states.where(
        (F.col("event") == "subscribe") & F.col("client").startswith(BRIDGE_CLIENT)
    )
    rows: Rows = (
        subscribed.withColumnRenamed("topic", "filter")
        .select(*_COLUMNS)
        .distinct()
        .toArrow()
        .to_pylist()
    )
    return rows


_STAND_IN: Final = "-"


class ConfiguredVpn(NamedTuple):
    """A message VPN; `traced`: its router is to write traces. `where` is FILE:LINE:COLUMN."""

    enabled: bool
    traced: bool
    where: str


class ConfiguredBridge(NamedTuple):
    """A bridge into the message VPN `goal`.

    `sources` are the remote message VPNs of routers whose files are given, `elsewhere` says that it has others
    as well. `filters` are what it subscribes to there, as it writes them on its link; None where rules of a
    topic mapping make other filters of them. `enabled`: itself, its message VPN and at least one remote.
    """

    goal: Place
    name: str
    enabled: bool
    sources: tuple[Place, ...]
    elsewhere: bool
    filters: frozenset[str] | None
    where: str


class Configured(NamedTuple):
    """All given configurations together. `bridges` are by goal and name; `notes` say what is not judged; `quotas` are
    the bytes that may wait in each queue and topic endpoint, by router, message VPN and name.
    """

    routers: frozenset[str]
    vpns: dict[Place, ConfiguredVpn]
    bridges: dict[tuple[Place, str], ConfiguredBridge]
    notes: tuple[str, ...]
    quotas: Mapping[tuple[str, str, str], int] = MappingProxyType({})


class _Environment(Mapping[str, str]):
    """The process's environment, with a stand-in for variables that are not set: secrets are not needed here."""

    def __getitem__(self, name: str) -> str:
        return os.environ.get(name) or _STAND_IN

    def __iter__(self) -> Iterator[str]:
        return iter(os.environ)

    def __len__(self) -> int:
        return len(os.environ)


def load_configured(files: Sequence[Path]) -> Configured:
    """Read the routers' files. Variables that secrets name need not be set.

    Raises:
        ConfigError: a file is refused, or two describe one router; it lists every problem of all files, each
            with FILE:LINE:COLUMN.
    """
    mesh: list[Loaded] = []
    problems: list[str] = []
    names: dict[str, str] = {}
    for file in files:
        try:
            loaded = load(file, _Environment())
        except ConfigError as error:
            problems.extend(error.problems)
            continue
        mesh.append(loaded)
        at = str(loaded.positions.value_at(("router", "name")))
        name = loaded.config.router.name
        if name in names:
            problems.append(
                f"{at}: router.name: another router has the name {name} at {names[name]}"
            )
        names.setdefault(name, at)
    if problems:
        raise ConfigError(problems)
    return configured(mesh)


def configured(mesh: Sequence[Loaded]) -> Configured:
    """Return the loaded configurations together."""
    routers = Routers(mesh)
    notes: list[str] = []
    vpns: dict[Place, ConfiguredVpn] = {}
    bridges: dict[tuple[Place, str], ConfiguredBridge] = {}
    for loaded in mesh:
        config = loaded.config
        traced = config.trace is not None and config.trace.enabled
        for vpn_name, vpn in config.msg_vpns.items():
            goal = (config.router.name, vpn_name)
            where = str(loaded.positions.key_at(("msg_vpns", vpn_name)))
            vpns[goal] = ConfiguredVpn(vpn.enabled, traced, where)
            for name in vpn.bridges:
                bridges[goal, name] = _bridge(loaded, routers, goal, name, notes)
    quotas = {
        (loaded.config.router.name, vpn_name, name): megabytes * MEGABYTE
        for loaded in mesh
        for vpn_name, vpn in loaded.config.msg_vpns.items()
        for name, megabytes in _quotas(vpn)
        if megabytes
    }
    renamed = set(_renaming(mesh, bridges))
    for key, bridge in bridges.items():
        if any((source, bridge.goal) in renamed for source in bridge.sources):
            bridges[key] = bridge._replace(filters=None)
    return Configured(frozenset(routers.by_name), vpns, bridges, tuple(notes), quotas)


def _quotas(vpn: MsgVpn) -> Iterator[tuple[str, int]]:
    """Yield the megabytes of each queue and topic endpoint; no more fit into the message VPN."""
    for name, queue in vpn.queues.items():
        yield name, min(queue.max_msg_spool_usage, vpn.max_msg_spool_usage)
    for name, endpoint in vpn.topic_endpoints.items():
        yield name, min(endpoint.max_spool_usage, vpn.max_msg_spool_usage)


def _bridge(
    loaded: Loaded, routers: Routers, goal: Place, name: str, notes: list[str]
) -> ConfiguredBridge:
    vpn = loaded.config.msg_vpns[goal[1]]
    bridge = vpn.bridges[name]
    path = ("msg_vpns", goal[1], "bridges", name)
    sources: list[Place] = []
    elsewhere = False
    for index, remote in enumerate(bridge.remote_msg_vpns):
        if not remote.enabled:
            continue
        place = Remote(loaded, (*path, "remote_msg_vpns", index), bridge, remote)
        meant = routers.resolve(place)
        if meant.peer is None:
            elsewhere = True
            at = loaded.positions.value_at(place.path)
            notes.append(f"{at}: {meant.unknown}; this remote is not judged")
        else:
            sources.append((meant.peer.config.router.name, remote.name))
    return ConfiguredBridge(
        goal,
        name,
        vpn.enabled and bridge.enabled and bool(sources or elsewhere),
        tuple(sources),
        elsewhere,
        _filters(bridge),
        str(loaded.positions.key_at(path)),
    )


def _filters(bridge: Bridge) -> frozenset[str]:
    """Return the bridge's remote subscriptions in SMF syntax, as links carry them (docs/link-protocol.md)."""
    filters: set[str] = set()
    for subscription in bridge.remote_subscriptions:
        try:
            dialect = DIALECTS[bridge.topic_syntax]
            filters.update(to_smf(parse_filter(subscription.topic, dialect, exceptions=True)))
        except TopicError:
            continue  # the file would have been refused
    return frozenset(filters)


def _renaming(
    mesh: Sequence[Loaded], bridges: Mapping[tuple[Place, str], ConfiguredBridge]
) -> Iterator[tuple[Place, Place]]:
    """Yield (from, to) of the bridges' directions whose topics the sending end renames, so that its filters differ from
    those configured.
    """
    for loaded in mesh:
        for vpn_name, vpn in loaded.config.msg_vpns.items():
            for name, bridge in vpn.bridges.items():
                if any(rule.direction != "in" for rule in bridge.topic_mapping):
                    start = (loaded.config.router.name, vpn_name)
                    yield from ((start, other) for other in bridges[start, name].sources)
