"""The two routers: their configurations, their processes, and the bridge between them coming up."""

import contextlib
import re
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from vpnrouter.demo import scene
from vpnrouter.demo.children import Child, child
from vpnrouter.demo.folder import ROUTERS, TRACES

START_S: Final = 30.0
"""Seconds that a router has until it is ready, and the bridge until it is up."""

_RUN: Final = "vpnrouter.cli.app:main"
_LOOK_S: Final = 0.02
_BRIDGE_UP: Final = re.compile(rf"^vpnrouter: .*\bbridge {scene.BRIDGE}\b.*: up$", re.MULTILINE)
_BRIDGE_DOWN: Final = re.compile(rf"^vpnrouter: .*\bbridge {scene.BRIDGE}\b.*", re.MULTILINE)

Config = dict[str, Any]


@dataclass(frozen=True)
class Routers:
    """Both routers, running: where clients of each message VPN (router/vpn) connect."""

    edge: Child
    core: Child
    addresses: Mapping[str, tuple[str, int]]


def edge_config(folder: Path, password: str) -> Config:
    """Router edge: VPN blue, which the bridge may log in to, and VPN green."""
    blue = _open_vpn() | {
        "client_profiles": {"bridging": {"allow_bridge_connections_enabled": True}},
        "client_usernames": {
            scene.BRIDGE_USERNAME: {"password": password, "client_profile": "bridging"}
        },
    }
    vpns = {scene.vpn_of(scene.BLUE): blue, scene.vpn_of(scene.EDGE_GREEN): _open_vpn()}
    config = _router(folder, scene.router_of(scene.BLUE), vpns)
    config["listeners"].append({"protocol": "link", "bind": "127.0.0.1:0"})
    return config


def core_config(
    folder: Path, password: str, edge_link: str, remote_subscriptions: Sequence[str]
) -> Config:
    """Router core: VPN yellow with the bridge that attracts flights from blue, and VPN green."""
    bridge = {
        "remote_authentication": {
            "scheme": "basic",
            "basic": {"client_username": scene.BRIDGE_USERNAME, "password": password},
        },
        "remote_msg_vpns": [
            {
                "name": scene.vpn_of(scene.BLUE),
                "router": scene.router_of(scene.BLUE),
                "location": edge_link,
            }
        ],
        "remote_subscriptions": list(remote_subscriptions),
    }
    yellow = _open_vpn() | {"bridges": {scene.BRIDGE: bridge}}
    vpns = {scene.vpn_of(scene.YELLOW): yellow, scene.vpn_of(scene.CORE_GREEN): _open_vpn()}
    return _router(folder, scene.router_of(scene.YELLOW), vpns)


@contextlib.contextmanager
def running_routers(
    folder: Path, remote_subscriptions: Sequence[str] = scene.REMOTE_SUBSCRIPTIONS
) -> Iterator[Routers]:
    """Both routers and the bridge up; on leaving, however, both are ended.

    Raises:
        OperationError: one of them does not start, or the bridge does not come up.
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
        _wait_for_bridge(core, _log(folder, scene.router_of(scene.YELLOW)))
        yield Routers(edge, core, dict(zip(scene.PLACES, map(_split, bound), strict=True)))


def parse_ready(line: str) -> dict[str, list[str]]:
    """The values of a ready line by key: `ready router=NAME mqtt=HOST:PORT link=HOST:PORT`."""
    values: dict[str, list[str]] = {}
    for word in line.split()[1:]:
        key, _, value = word.partition("=")
        values.setdefault(key, []).append(value)
    return values


def _open_vpn() -> Config:
    return {"authentication": {"basic": {"enabled": False}}}


def _router(folder: Path, name: str, vpns: Mapping[str, Config]) -> Config:
    return {
        "router": {"name": name, "data_dir": str(folder / ROUTERS / name)},
        "listeners": [{"protocol": "mqtt", "bind": "127.0.0.1:0", "msg_vpn": vpn} for vpn in vpns],
        # Every message, so that the report can be compared with the data to the last flight.
        "trace": {"directory": str(folder / TRACES), "sample": 1.0},
        "msg_vpns": dict(vpns),
    }


def _start(
    stack: contextlib.ExitStack, folder: Path, config: Config
) -> tuple[Child, dict[str, list[str]]]:
    name = config["router"]["name"]
    path = folder / ROUTERS / f"{name}.yaml"
    path.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    router = stack.enter_context(
        child(f"router {name}", _RUN, ["run", str(path)], _log(folder, name))
    )
    return router, parse_ready(router.first_line(START_S))


def _log(folder: Path, router: str) -> Path:
    return folder / ROUTERS / f"{router}.log"


def _wait_for_bridge(core: Child, log: Path) -> None:
    end = time.monotonic() + START_S
    while True:
        said = log.read_text("utf-8", "replace")
        if _BRIDGE_UP.search(said):
            return
        if core.process.poll() is not None:
            core.fail("ended early")
        if time.monotonic() > end:
            told = _BRIDGE_DOWN.findall(said)
            core.fail(f"has no bridge after {START_S:.0f} s ({told[-1] if told else 'silent'})")
        time.sleep(_LOOK_S)


def _split(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)
