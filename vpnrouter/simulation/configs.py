"""Writes the configurations of the simulated routers, one file each, which `vpnrouter check` accepts."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import yaml

from vpnrouter.simulation.mesh import Bridge, Mesh
from vpnrouter.simulation.plan import Plan
from vpnrouter.simulation.traffic import Receiver

FOLDER: Final = "mesh"
"""Directory of the files, under the output directory."""

_LINK_PORT: Final = 55_555
_MQTT_PORT: Final = 1_883
_USERNAME: Final = "bridging"
_SECRET: Final = {"env": "BRIDGE_PASSWORD"}


def write(plan: Plan, output: Path, sample: float) -> int:
    """Write one file for each router that has a message VPN; returns how many.

    Raises:
        OSError: a file cannot be written.
    """
    mesh = plan.mesh
    documents: dict[int, dict[str, Any]] = {}
    for site in mesh.sites:
        document = documents.setdefault(site.router, _router(site.router, site.router_name, sample))
        document["msg_vpns"][site.vpn] = _vpn()
    for number, vpn in plan.drift.vpns:
        documents[mesh.sites[number].router]["msg_vpns"][vpn] = _vpn()
    for bridge in _bridges(plan):
        local, remote = mesh.sites[bridge.target], mesh.sites[bridge.source]
        documents[local.router]["msg_vpns"][local.vpn]["bridges"][bridge.name] = _bridge(
            mesh, bridge
        )
        if bridge.queue:
            queues = documents[remote.router]["msg_vpns"][remote.vpn]["queues"]
            queues[bridge.queue] = _queue(list(bridge.queue_filters), 0)
    for feed in (*plan.feeds, *plan.scripted):
        for number, receivers in feed.receivers.items():
            site = mesh.sites[number]
            queues = documents[site.router]["msg_vpns"][site.vpn]["queues"]
            for receiver in receivers:
                if receiver.endpoint:
                    queues[receiver.endpoint] = _queue(
                        [_wanted(feed.filter, receiver)], receiver.partitions
                    )
    folder = output / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    for document in documents.values():
        for vpn in document["msg_vpns"].values():
            for part in ("bridges", "queues"):
                if not vpn[part]:
                    del vpn[part]
        name = document["router"]["name"]
        text = yaml.dump(document, Dumper=dumper, sort_keys=False)
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    return len(documents)


def _bridges(plan: Plan) -> list[Bridge]:
    """Return the bridges as they are to be configured."""
    drift = plan.drift
    bridges = []
    for number, bridge in enumerate(plan.mesh.bridges):
        filters = dict(bridge.filters)
        filters.update({topic: None for which, topic in drift.more if which == number})
        for which, topic in drift.less:
            if which == number:
                del filters[topic]
        if number not in drift.without:
            bridges.append(replace(bridge, filters=filters))
    return [*bridges, *drift.bridges]


def _wanted(everything: str, receiver: Receiver) -> str:
    return everything if receiver.item is None else f"{everything[:-1]}i{receiver.item:02d}"


def _router(number: int, name: str, sample: float) -> dict[str, Any]:
    host = _host(number)
    return {
        "router": {"name": name, "data_dir": f"./data/{name}"},
        "listeners": [
            {"protocol": "mqtt", "bind": f"{host}:{_MQTT_PORT}"},
            {"protocol": "link", "bind": f"{host}:{_LINK_PORT}"},
        ],
        "trace": {"directory": "./traces", "sample": sample},
        "msg_vpns": {},
    }


def _vpn() -> dict[str, Any]:
    return {
        "authentication": {"basic": {"enabled": False}},
        "max_msg_spool_usage": 1_000,
        "client_profiles": {"bridging": {"allow_bridge_connections_enabled": True}},
        "client_usernames": {_USERNAME: {"password": dict(_SECRET), "client_profile": "bridging"}},
        "queues": {},
        "bridges": {},
    }


def _bridge(mesh: Mesh, bridge: Bridge) -> dict[str, Any]:
    remote = mesh.sites[bridge.source]
    here = remote.router == mesh.sites[bridge.target].router
    place = f"v:{remote.router_name}" if here else f"{_host(remote.router)}:{_LINK_PORT}"
    leads: dict[str, Any] = {"name": remote.vpn, "router": remote.router_name, "location": place}
    if bridge.queue:
        leads["queue_binding"] = bridge.queue
    return {
        "remote_authentication": {
            "scheme": "basic",
            "basic": {"client_username": _USERNAME, "password": dict(_SECRET)},
        },
        "remote_msg_vpns": [leads],
        "remote_subscriptions": list(bridge.filters),
    }


def _queue(filters: list[str], partitions: int) -> dict[str, Any]:
    if not partitions:
        return {"access_type": "exclusive", "subscriptions": filters}
    return {
        "access_type": "non-exclusive",
        "partition": {"count": partitions},
        "subscriptions": filters,
    }


def _host(router: int) -> str:
    """Return a unique address for each router, in 10/8."""
    number = router + 1
    return f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
