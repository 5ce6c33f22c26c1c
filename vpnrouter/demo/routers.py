"""Configures and starts the two routers, and waits until the bridges between them are up."""

import contextlib
import re
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from vpnrouter.demo import scenario
from vpnrouter.demo.processes import ChildProcess, child_process
from vpnrouter.demo.progress import ROUTERS, TRACES

START_S: Final = 30.0
"""Seconds that a router has until it is ready, and a bridge until it is up."""

_RUN: Final = "vpnrouter.cli.app:main"
_POLL_S: Final = 0.02

Config = dict[str, Any]


@dataclass(frozen=True)
class Routers:
    """Both routers, running: where clients of each message VPN (router/vpn) connect, and the ports where
    the routers answer links.
    """

    edge: ChildProcess
    core: ChildProcess
    addresses: Mapping[str, tuple[str, int]]
    link_ports: frozenset[int]


def edge_config(folder: Path, password: str) -> Config:
    """Return the configuration of router edge: VPN blue, which the bridge of yellow may log in to and which has a
    bridge of its own, and VPN green.
    """
    back = _bridge(scenario.BRIDGE_BACK_USERNAME, password, scenario.YELLOW, [scenario.ALERTS])
    # No address: router core is found by its name, through the connection that it opens.
    back["remote_msg_vpns"][0]["location"] = f"v:{scenario.router_of(scenario.YELLOW)}"
    blue = _open_vpn() | _admitting(scenario.BRIDGE_USERNAME, password)
    blue["bridges"] = {scenario.BRIDGE_BACK: back}
    vpns = {scenario.vpn_of(scenario.BLUE): blue, scenario.vpn_of(scenario.EDGE_GREEN): _open_vpn()}
    return _router(folder, scenario.router_of(scenario.BLUE), vpns)


def core_config(
    folder: Path, password: str, edge_link: str, remote_subscriptions: Sequence[str]
) -> Config:
    """Return the configuration of router core: VPN yellow with the bridge that attracts flights from blue, and VPN
    green.
    """
    attracts = [*remote_subscriptions, scenario.ALERTS]
    bridge = _bridge(scenario.BRIDGE_USERNAME, password, scenario.BLUE, attracts)
    bridge["remote_msg_vpns"][0]["location"] = edge_link
    yellow = _open_vpn() | _admitting(scenario.BRIDGE_BACK_USERNAME, password)
    yellow["bridges"] = {scenario.BRIDGE: bridge}
    vpns = {
        scenario.vpn_of(scenario.YELLOW): yellow,
        scenario.vpn_of(scenario.CORE_GREEN): _open_vpn(),
    }
    return _router(folder, scenario.router_of(scenario.YELLOW), vpns)


@contextlib.contextmanager
def running_routers(
    folder: Path, remote_subscriptions: Sequence[str] = scenario.REMOTE_SUBSCRIPTIONS
) -> Iterator[Routers]:
    """Start both routers and wait for both bridges; the routers end with the block.

    Raises:
        OperationError: one of them does not start, or a bridge does not come up.
    """
    password = secrets.token_urlsafe()
    with contextlib.ExitStack() as stack:
        edge, edge_ready = _start(stack, folder, edge_config(folder, password))
        edge_link = edge_ready["link"][0]
        core, core_ready = _start(
            stack, folder, core_config(folder, password, edge_link, remote_subscriptions)
        )
        # The ready line names the addresses in the order of the configuration, as PLACES does.
        bound = [*edge_ready["mqtt"], *core_ready["mqtt"]]
        _wait_for_bridge(core, scenario.BRIDGE, _log(folder, scenario.router_of(scenario.YELLOW)))
        _wait_for_bridge(
            edge, scenario.BRIDGE_BACK, _log(folder, scenario.router_of(scenario.BLUE))
        )
        yield Routers(
            edge,
            core,
            dict(zip(scenario.PLACES, map(_split, bound), strict=True)),
            frozenset(_split(each)[1] for each in (*edge_ready["link"], *core_ready["link"])),
        )


def parse_ready(line: str) -> dict[str, list[str]]:
    """Return the values of a ready line by key: `ready router=NAME mqtt=HOST:PORT link=HOST:PORT`."""
    values: dict[str, list[str]] = {}
    for word in line.split()[1:]:
        key, _, value = word.partition("=")
        values.setdefault(key, []).append(value)
    return values


def _open_vpn() -> Config:
    return {"authentication": {"basic": {"enabled": False}}}


def _admitting(username: str, password: str) -> Config:
    return {
        "client_profiles": {"bridging": {"allow_bridge_connections_enabled": True}},
        "client_usernames": {username: {"password": password, "client_profile": "bridging"}},
    }


def _bridge(username: str, password: str, remote: str, attracts: Sequence[str]) -> Config:
    """Return a bridge from the place `remote`, of which only the location is missing."""
    return {
        "remote_authentication": {
            "scheme": "basic",
            "basic": {"client_username": username, "password": password},
        },
        "remote_msg_vpns": [
            {"name": scenario.vpn_of(remote), "router": scenario.router_of(remote)}
        ],
        "remote_subscriptions": list(attracts),
    }


def _router(folder: Path, name: str, vpns: Mapping[str, Config]) -> Config:
    mqtt = [{"protocol": "mqtt", "bind": "127.0.0.1:0", "msg_vpn": vpn} for vpn in vpns]
    return {
        "router": {"name": name, "data_dir": str(folder / ROUTERS / name)},
        "listeners": [*mqtt, {"protocol": "link", "bind": "127.0.0.1:0"}],
        # Every message, so that the report can be compared with the data to the last flight.
        "trace": {"directory": str(folder / TRACES), "sample": 1.0},
        "msg_vpns": dict(vpns),
    }


def _start(
    stack: contextlib.ExitStack, folder: Path, config: Config
) -> tuple[ChildProcess, dict[str, list[str]]]:
    name = config["router"]["name"]
    path = folder / ROUTERS / f"{name}.yaml"
    path.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    router = stack.enter_context(
        child_process(f"router {name}", _RUN, ["run", str(path)], _log(folder, name))
    )
    return router, parse_ready(router.first_line(START_S))


def _log(folder: Path, router: str) -> Path:
    return folder / ROUTERS / f"{router}.log"


def _wait_for_bridge(router: ChildProcess, bridge: str, log: Path) -> None:
    pattern = re.compile(rf"^vpnrouter: .* VPN \w+ bridge {bridge}\b.*", re.MULTILINE)
    end = time.monotonic() + START_S
    while True:
        states = pattern.findall(log.read_text("utf-8", "replace"))
        if states and states[-1].endswith(": up"):
            return
        if router.process.poll() is not None:
            router.fail("ended early")
        if time.monotonic() > end:
            last = states[-1] if states else "silent"
            router.fail(f"has no bridge {bridge} after {START_S:.0f} s ({last})")
        time.sleep(_POLL_S)


def _split(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)
