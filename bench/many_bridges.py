"""Measures how long a thousand bridges take to come up, and the memory of each: `python -m bench.many_bridges`.

Two routers. The first has some message VPNs (`--remotes`, 10) and a link listener. The second has `--count`
(1,000) message VPNs with one bridge each to one of them; it is started twice, first with all bridges disabled.
Reported are the seconds from its start until the last bridge is up, and the difference in resident memory
between both starts, divided by the count; for the first router, what it grew by. Everything is on one machine,
each router on a core of its own where there are two. `--router-command "…"` is whatever starts a router when
`run CONFIG` is appended. `--json` prints the figures as JSON. Exit code 1 when a goal is missed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml
from rich.console import Console
from rich.table import Table

from bench.machine import cores, notes, raise_descriptor_limit, resident_bytes
from bench.ours import Vpnrouter, ready_addresses, ready_line
from bench.processes import running, tail
from bench.products import directory

COUNT: Final = 1_000
REMOTES: Final = 10
GOAL_SECONDS: Final = 10.0
GOAL_BYTES: Final = 102_400
UP_SECONDS: Final = 120.0
"""Longest wait for all bridges."""
SETTLE_SECONDS: Final = 2.0
LOOK_SECONDS: Final = 0.02
SPARE_DESCRIPTORS: Final = 200

UP: Final = re.compile(rb"^(?=.*(?:\bVPN_BRIDGING_LINK_UP\b|: up$)).*?\b(fan-\d+)\b", re.MULTILINE)
"""A line that says of a bridge that it is up, and the message VPN that has the bridge."""

Config = dict[str, Any]


def first_config(folder: Path, remotes: int, count: int) -> Config:
    """The router that is dialled."""
    vpn: Config = {
        "authentication": {"basic": {"enabled": False}},
        "client_profiles": {
            "bridging": {
                "allow_bridge_connections_enabled": True,
                "max_connection_count_per_client_username": count,
            }
        },
        "client_usernames": {"core-bridge": {"password": "bench", "client_profile": "bridging"}},
    }
    return _router(folder, "edge", {f"source-{number}": vpn for number in range(remotes)})


def second_config(folder: Path, link: str, remotes: int, count: int, *, enabled: bool) -> Config:
    """The router that has the bridges."""
    vpns: Config = {}
    for number in range(count):
        vpns[f"fan-{number}"] = {
            "authentication": {"basic": {"enabled": False}},
            "bridges": {
                "from-source": {
                    "enabled": enabled,
                    "remote_authentication": {
                        "scheme": "basic",
                        "basic": {"client_username": "core-bridge", "password": "bench"},
                    },
                    "remote_msg_vpns": [{"name": f"source-{number % remotes}", "location": link}],
                    "remote_subscriptions": ["bench/>"],
                }
            },
        }
    return _router(folder, "core", vpns)


def _router(folder: Path, name: str, vpns: Config) -> Config:
    return {
        "router": {"name": name, "data_dir": str(folder / "data")},
        "listeners": [
            {"protocol": "mqtt", "bind": "127.0.0.1:0", "msg_vpn": next(iter(vpns))},
            {"protocol": "link", "bind": "127.0.0.1:0"},
        ],
        "trace": {"directory": str(folder / "traces"), "sample": 0.0},
        "msg_vpns": vpns,
    }


@contextlib.contextmanager
def router(
    command: list[str], folder: Path, config: Config, core: int | None
) -> Iterator[tuple[subprocess.Popen[bytes], str, Path]]:
    """A running router: its process, where it takes links, and its log."""
    path = folder / "router.yaml"
    path.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    log = folder / "log"
    with running([*command, "run", str(path)], core=core, log=log) as process:
        host, port = ready_addresses(ready_line(process, log))["link"]
        yield process, f"{host}:{port}", log


def wait_for_all(process: subprocess.Popen[bytes], log: Path, count: int) -> None:
    """Returns when the log says of every bridge that it is up.

    Raises RuntimeError when the router ends or takes too long.
    """
    end = time.monotonic() + UP_SECONDS
    up: set[bytes] = set()
    rest = b""
    with log.open("rb") as said:
        while True:
            lines, newline, rest = (rest + said.read()).rpartition(b"\n")
            up.update(match[1] for match in UP.finditer(lines + newline))
            if len(up) == count:
                return
            if process.poll() is not None:
                raise RuntimeError(f"the router ended with {process.returncode}: {tail(log)}")
            if time.monotonic() > end:
                raise RuntimeError(f"{len(up)} of {count} bridges are up: {tail(log)}")
            time.sleep(LOOK_SECONDS)


def measure(command: list[str], count: int, remotes: int) -> dict[str, float]:
    """Seconds and bytes; see the head of this file."""
    near, far = cores() or (None, None)
    with contextlib.ExitStack() as stack:
        folders = [stack.enter_context(directory("many-bridges")) for _ in range(3)]
        first = stack.enter_context(
            router(command, folders[0], first_config(folders[0], remotes, count), near)
        )
        link = first[1]
        config = second_config(folders[1], link, remotes, count, enabled=False)
        began = time.perf_counter()
        with router(command, folders[1], config, far) as (process, _, _log):
            ready = time.perf_counter() - began
            time.sleep(SETTLE_SECONDS)
            without = resident_bytes([process.pid])
        first_without = resident_bytes([first[0].pid])
        config = second_config(folders[2], link, remotes, count, enabled=True)
        began = time.perf_counter()
        with router(command, folders[2], config, far) as (process, _, log):
            wait_for_all(process, log, count)
            up = time.perf_counter() - began
            time.sleep(SETTLE_SECONDS)
            having = resident_bytes([process.pid])
            first_having = resident_bytes([first[0].pid])
    return {
        "count": count,
        "remotes": remotes,
        "seconds_until_ready_disabled": ready,
        "seconds_until_up": up,
        "bytes_per_bridge": (having - without) / count,
        "bytes_per_link_at_the_first": (first_having - first_without) / count,
        "resident_bytes_disabled": without,
        "resident_bytes": having,
    }


def show(figures: dict[str, float], version: str) -> None:
    """One table."""
    grid = Table(title=f"{figures['count']:,} bridges, {version}", title_justify="left")
    for heading in ("figure", "measured", "goal"):
        grid.add_column(heading, justify="left" if heading == "figure" else "right")
    for name, value, goal in (
        ("second router ready, bridges disabled", "seconds_until_ready_disabled", ""),
        ("start until the last bridge is up", "seconds_until_up", f"{GOAL_SECONDS:.0f} s"),
    ):
        grid.add_row(name, f"{figures[value]:.2f} s", goal)
    for name, value, goal in (
        ("memory of a bridge", "bytes_per_bridge", f"{GOAL_BYTES / 1024:.0f} KiB"),
        ("memory of its link at the first router", "bytes_per_link_at_the_first", ""),
        ("second router in all, bridges disabled", "resident_bytes_disabled", ""),
        ("second router in all", "resident_bytes", ""),
    ):
        grid.add_row(name, f"{figures[value] / 1024:,.1f} KiB", goal)
    Console().print(grid)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--remotes", type=int, default=REMOTES)
    parser.add_argument("--router-command", default="")
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    asked = parser.parse_args()
    product = Vpnrouter(asked.router_command)
    if reason := product.missing():
        print(reason, file=sys.stderr)
        return 2
    wanted = asked.count + SPARE_DESCRIPTORS
    if raise_descriptor_limit(wanted) < wanted:
        print(f"{wanted} open files are not allowed here", file=sys.stderr)
        return 2
    figures = measure(product.command, asked.count, asked.remotes)
    version = product.version()
    if asked.json:
        print(json.dumps({"machine": notes(), "version": version, **figures}, indent=2))
    else:
        show(figures, version)
    return int(
        figures["seconds_until_up"] > GOAL_SECONDS or figures["bytes_per_bridge"] > GOAL_BYTES
    )


if __name__ == "__main__":
    raise SystemExit(main())
