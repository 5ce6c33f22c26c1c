"""Measures memory of idle links of connectors, and how long they take to show: `python -m bench.many_connectors`.

Two routers. The first is the provider, with a listener of MQTT and one of AMQP. The second has `--connectors` (100)
connectors to it with `--links` (10) links each, half of them in and half of them out; it is started twice, first with
all connectors disabled. Reported are the seconds from its start until all links are up, the difference in resident
memory between both starts divided by the number of links, and the seconds of `vpnrouter show connectors`, with what the
command needs to begin (`vpnrouter --version`) beside it. `--protocols mqtt,amqp,http`; of HTTP, connections are made
when there is something to send. `--router-command "…"` is whatever starts a router when `run CONFIG` is appended.
`--json` prints the figures as JSON. Exit code 1 when a goal is missed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml
from rich.console import Console
from rich.table import Table

from bench.machine import notes, raise_descriptor_limit, resident_bytes
from bench.ours import Vpnrouter, ready_addresses, ready_line
from bench.processes import running
from bench.products import directory
from vpnrouter.management.client import ManagementClient

CONNECTORS: Final = 100
LINKS: Final = 10
PROTOCOLS: Final = ("mqtt", "amqp", "http")
GOAL_BYTES: Final = 65_536
GOAL_SECONDS: Final = 0.5
UP_SECONDS: Final = 120.0
"""Longest wait for all links."""

SETTLE_SECONDS: Final = 2.0
LOOK_SECONDS: Final = 0.1
LOOKS: Final = 5
SPARE_DESCRIPTORS: Final = 200

OPEN: Final = {"authentication": {"basic": {"enabled": False}}, "max_msg_spool_usage": 1_000}
Config = dict[str, Any]


def provider_config(folder: Path) -> Config:
    """The router that the connectors lead to."""
    return _router(folder, "there", {"mqtt": "127.0.0.1:0", "amqp": "127.0.0.1:0"}, {})


def _router(folder: Path, name: str, listeners: dict[str, str], connectors: Config) -> Config:
    return {
        "router": {"name": name, "data_dir": str(folder / "data")},
        "listeners": [
            {"protocol": protocol, "bind": bind, "msg_vpn": "blue"}
            for protocol, bind in listeners.items()
        ]
        + [{"protocol": "http", "bind": "127.0.0.1:0"}],
        "msg_vpns": {"blue": {**OPEN, "connectors": connectors}},
    }


def links(protocol: str, connector: int, count: int) -> Config:
    """Links in and out in turn; to an HTTP server they all go out."""
    found: Config = {}
    for number in range(count):
        topic = f"t/{connector}/{number}"
        if number % 2 or protocol == "http":
            target = {"address": f"topic://{topic}"} if protocol == "amqp" else {}
            found[f"l{number}"] = {"source": {"topic": topic}, "target": target}
        else:
            address = f"topic://{topic}" if protocol == "amqp" else topic
            target = {"topic": topic} if protocol == "amqp" else {}
            found[f"l{number}"] = {"source": {"address": address}, "target": target}
    return found


def config(
    folder: Path, protocol: str, address: str, connectors: int, count: int, *, enabled: bool
) -> Config:
    """The router that has the connectors."""
    found = {
        f"c{number}": {
            "enabled": enabled,
            "provider": {"url": f"{protocol}://{address}"},
            "links": links(protocol, number, count),
        }
        for number in range(connectors)
    }
    return _router(folder, "here", {"mqtt": "127.0.0.1:0"}, found)


@contextlib.contextmanager
def router(
    command: list[str], folder: Path, document: Config
) -> Iterator[tuple[subprocess.Popen[bytes], dict[str, str]]]:
    """A running router: its process, and its addresses by protocol."""
    path = folder / "router.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    log = folder / "log"
    with running([*command, "run", str(path)], core=None, log=log) as process:
        found = ready_addresses(ready_line(process, log))
        yield process, {name: f"{host}:{port}" for name, (host, port) in found.items()}


def wait_for_all(api: str, links_: int, protocol: str) -> None:
    """Return when all links are up. Raises RuntimeError when that takes too long."""
    end = time.monotonic() + UP_SECONDS
    client = ManagementClient(f"http://{api}")
    while True:
        states = [link["state"] for row in client.connectors() for link in row["links"]]
        # A connection to an HTTP server is made when there is something to send.
        if states.count("up") == links_ or (protocol == "http" and len(states) == links_):
            return
        if time.monotonic() > end:
            raise RuntimeError(f"{states.count('up')} of {links_} links are up")
        time.sleep(LOOK_SECONDS)


def seconds_of(command: list[str]) -> float:
    """The least time that a command takes."""
    found = []
    for _ in range(LOOKS):
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        found.append(time.perf_counter() - began)
    return min(found)


def measure(
    command: list[str], protocol: str, addresses: dict[str, str], connectors: int, count: int
) -> dict[str, Any]:
    """Seconds and bytes of one protocol."""
    address = addresses[protocol]
    total = connectors * count
    with contextlib.ExitStack() as stack:
        folders = [stack.enter_context(directory("many-connectors")) for _ in range(2)]
        document = config(folders[0], protocol, address, connectors, count, enabled=False)
        with router(command, folders[0], document) as (process, _):
            time.sleep(SETTLE_SECONDS)
            without = resident_bytes([process.pid])
        document = config(folders[1], protocol, address, connectors, count, enabled=True)
        began = time.perf_counter()
        with router(command, folders[1], document) as (process, here):
            wait_for_all(here["http"], total, protocol)
            up = time.perf_counter() - began
            time.sleep(SETTLE_SECONDS)
            having = resident_bytes([process.pid])
            shown = seconds_of([*command, "show", "connectors", "--url", f"http://{here['http']}"])
    return {
        "protocol": protocol,
        "connectors": connectors,
        "links": total,
        "seconds_until_up": up,
        "bytes_per_link": (having - without) / total,
        "resident_bytes": having,
        "seconds_to_show": shown,
        "seconds_to_begin": seconds_of([*command, "--version"]),
    }


def show(rows: list[dict[str, Any]], version: str) -> None:
    """One table."""
    title = f"{rows[0]['links']:,} links on {rows[0]['connectors']} connectors, {version}"
    grid = Table(title=title, title_justify="left")
    for heading in (
        "protocol",
        "all up",
        f"a link (goal {GOAL_BYTES // 1024} KiB)",
        f"show connectors (goal {GOAL_SECONDS} s)",
        "of which to begin",
    ):
        grid.add_column(heading, justify="left" if heading == "protocol" else "right")
    for row in rows:
        grid.add_row(
            row["protocol"],
            f"{row['seconds_until_up']:.2f} s",
            f"{row['bytes_per_link'] / 1024:,.1f} KiB",
            f"{row['seconds_to_show']:.2f} s",
            f"{row['seconds_to_begin']:.2f} s",
        )
    Console().print(grid)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--connectors", type=int, default=CONNECTORS)
    parser.add_argument("--links", type=int, default=LINKS, help="of each connector")
    parser.add_argument("--protocols", default=",".join(PROTOCOLS))
    parser.add_argument("--router-command", default="")
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    asked = parser.parse_args()
    product = Vpnrouter(asked.router_command)
    if reason := product.missing():
        print(reason, file=sys.stderr)
        return 2
    wanted = 2 * asked.connectors + SPARE_DESCRIPTORS
    if raise_descriptor_limit(wanted) < wanted:
        print(f"{wanted} open files are not allowed here", file=sys.stderr)
        return 2
    rows: list[dict[str, Any]] = []
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(directory("many-connectors"))
        _, addresses = stack.enter_context(router(product.command, folder, provider_config(folder)))
        rows += [
            measure(product.command, protocol, addresses, asked.connectors, asked.links)
            for protocol in asked.protocols.split(",")
        ]
    if asked.json:
        print(
            json.dumps({"machine": notes(), "version": product.version(), "rows": rows}, indent=2)
        )
    else:
        show(rows, product.version())
    return int(
        any(
            row["bytes_per_link"] > GOAL_BYTES or row["seconds_to_show"] > GOAL_SECONDS
            for row in rows
        )
    )


if __name__ == "__main__":
    raise SystemExit(main())
