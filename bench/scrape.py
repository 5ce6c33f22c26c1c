"""Measures what scraping metrics costs: `python -m bench.scrape`.

One router with 10,000 MQTT clients that are connected and subscribed, 1,000 queues with a message each, and 100
bridges to another router, while one publisher and one subscriber run at full speed (as in `bench.direct`).
Meanwhile another process asks: `/metrics` once a second, `/metrics` five times a second, or, twice a second, pages
of 100 as `vpnrouter show` does. Intervals with and without take turns. Goal: p99 of the answers ≤ 50 ms, throughput
down ≤ 2 %. Exit code 1 when a goal is missed.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import yaml
from rich.console import Console
from rich.table import Table

from bench import IS_COMPILED, throughput
from bench.clients import clients, connect, prove_path
from bench.compile import compile_hot
from bench.dialects import MQTT
from bench.idle import PER_SOURCE
from bench.machine import Usage, cores, notes, raise_descriptor_limit
from bench.ours import Vpnrouter, ready_addresses, ready_line
from bench.percentiles import percentile
from bench.processes import running
from bench.products import Address, directory
from bench.rounds import order
from vpnrouter.wire.mqtt import Publish
from vpnrouter.wire.mqtt.encode import encode

CLIENTS: Final = 10_000
QUEUES: Final = 1_000
BRIDGES: Final = 100
SPARE_DESCRIPTORS: Final = 400
GOAL_MS: Final = 50.0
GOAL_SHARE: Final = 0.98

LOOKS: Final[dict[str, tuple[float, tuple[str, ...]]]] = {
    "metrics 1 Hz": (1.0, ("/metrics",)),
    "metrics 5 Hz": (5.0, ("/metrics",)),
    "show 2 Hz": (
        2.0,
        tuple(f"/vpnrouter/v1/{kind}?count=100*" for kind in ("bridges", "queues", "clients")),
    ),
}
"""Requests a second, and the paths that take turns."""

Config = dict[str, Any]


def far_config(folder: Path, bridges: int) -> Config:
    """The router that the bridges go to."""
    vpn: Config = {
        "authentication": {"basic": {"enabled": False}},
        "client_profiles": {"bridging": {"allow_bridge_connections_enabled": True}},
        "client_usernames": {"core-bridge": {"password": "bench", "client_profile": "bridging"}},
    }
    return {
        "router": {"name": "far", "data_dir": str(folder / "data")},
        "listeners": [{"protocol": "link", "bind": "127.0.0.1:0"}],
        "msg_vpns": {f"source-{number}": vpn for number in range(bridges)},
    }


def near_config(folder: Path, link: str, queues: int, bridges: int) -> Config:
    """The router that is looked at."""
    login = {"scheme": "basic", "basic": {"client_username": "core-bridge", "password": "bench"}}
    return {
        "router": {"name": "near", "data_dir": str(folder / "data")},
        "listeners": [
            {"protocol": "mqtt", "bind": "127.0.0.1:0", "msg_vpn": "blue"},
            {"protocol": "http", "bind": "127.0.0.1:0"},
        ],
        "trace": {"directory": str(folder / "traces"), "sample": 0.01},
        "msg_vpns": {
            "blue": {
                "authentication": {"basic": {"enabled": False}},
                "queues": {
                    f"bench/queue-{number:04d}": {"subscriptions": [f"spool/{number:04d}/>"]}
                    for number in range(queues)
                },
                "bridges": {
                    f"from-source-{number:03d}": {
                        "remote_authentication": login,
                        "remote_msg_vpns": [{"name": f"source-{number}", "location": link}],
                        "remote_subscriptions": ["far/>"],
                    }
                    for number in range(bridges)
                },
            }
        },
    }


@contextlib.contextmanager
def router(
    command: list[str], folder: Path, config: Config, core: int | None
) -> Iterator[tuple[int, dict[str, Address]]]:
    """A running router: its process and its addresses."""
    path = folder / "router.yaml"
    path.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    log = folder / "log"
    with running([*command, "run", str(path)], core=core, log=log) as process:
        yield process.pid, ready_addresses(ready_line(process, log))


@contextlib.contextmanager
def crowd(at: Address, count: int) -> Iterator[None]:
    """Clients that are connected and subscribed."""
    with contextlib.ExitStack() as stack:
        for number in range(count):
            source = f"127.0.0.{2 + number // PER_SOURCE}"
            sock = connect(MQTT, at, f"idle-{number}", source)
            stack.enter_context(contextlib.closing(sock))
            MQTT.subscribe(sock, [f"idle/{number}"])
        yield


def fill(at: Address, queues: int) -> None:
    """One message for each queue."""
    with contextlib.closing(connect(MQTT, at, "filler")) as sock:
        for number in range(queues):
            topic = f"spool/{number:04d}/x".encode()
            sock.sendall(encode(Publish(topic, b"x" * 64, qos=1, packet_id=1 + number), 4))
        wanted = 4 * queues
        while wanted > 0:
            wanted -= len(sock.recv(min(wanted, 65_536)))


class Look:
    """Somebody who looks during one interval."""

    def __init__(self, at: Address, name: str) -> None:
        rate, paths = LOOKS[name]
        host, port = at
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.scrape_asker", f"{host}:{port}", str(rate), *paths],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._tell("")

    def begin(self) -> None:
        """Ask from now on."""
        if self._process.stdin is not None:
            self._process.stdin.write("\n")
            self._process.stdin.flush()

    def _tell(self, default: str) -> str:
        return default if self._process.stdout is None else self._process.stdout.readline()

    def end(self) -> dict[str, Any]:
        """Ask no more; what was found."""
        out, _ = self._process.communicate("\n", timeout=60)
        found: dict[str, Any] = json.loads(out)
        return found


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Everything; see the head of this file."""
    command = Vpnrouter(options.router_command).command
    pinned = cores() or (None, None)
    rows: list[dict[str, Any]] = []
    with contextlib.ExitStack() as stack:
        far_folder = stack.enter_context(directory("scrape"))
        near_folder = stack.enter_context(directory("scrape"))
        far = far_config(far_folder, options.bridges)
        _, far_at = stack.enter_context(router(command, far_folder, far, pinned[1]))
        host, port = far_at["link"]
        near = near_config(near_folder, f"{host}:{port}", options.queues, options.bridges)
        pid, at = stack.enter_context(router(command, near_folder, near, pinned[0]))
        fill(at["mqtt"], options.queues)
        stack.enter_context(crowd(at["mqtt"], options.clients))
        shape = throughput.ONE_TO_ONE
        senders = stack.enter_context(clients(MQTT, at["mqtt"], 1, "pub"))
        takers = stack.enter_context(clients(MQTT, at["mqtt"], 1, "sub"))
        topics = [[MQTT.topic(0)]]
        MQTT.subscribe(takers[0], topics[0])
        prove_path(MQTT, senders[0], takers, topics)
        flood = throughput.prepare(MQTT, shape, senders, takers)
        stack.callback(flood.close)
        flood.run(throughput.WARM_UP_SECONDS)

        def interval(name: str) -> dict[str, Any]:
            look = Look(at["http"], name) if name else None
            flood.run(0.3)
            if look is not None:
                look.begin()
            usage = Usage([pid], pinned[0])
            delivered, nanoseconds = flood.run(options.seconds)
            row: dict[str, Any] = {"name": name, "rate": delivered * 1e9 / nanoseconds}
            row |= usage.shares()
            # What is asked for last is answered while messages go on.
            flood.run(0.1)
            if look is not None:
                row |= look.end()
            return row

        for number in range(options.rounds):
            for name in order(list(LOOKS), number):
                pair = [interval(one) for one in (("", name) if number % 2 else (name, ""))]
                looked, alone = sorted(pair, key=lambda row: not row["name"])
                rows.append({**looked, "alone_rate": alone["rate"], "round": number})
        flood.drain(flood.published(), throughput.QUIET_SECONDS)
        faults = throughput.faults(flood, MQTT, shape)
    return {"rows": rows, "faults": faults}


def summarized(rows: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """By kind of look: shares of the throughput, and percentiles of all its answers by path."""
    found: dict[str, dict[str, Any]] = {}
    for name in LOOKS:
        mine = [row for row in rows if row["name"] == name]
        shares = [row["rate"] / row["alone_rate"] for row in mine]
        answers = {}
        for path in LOOKS[name][1]:
            took = sorted(one / 1e6 for row in mine for one in row["took_ns"][path])
            if took:
                answers[path] = {
                    "count": len(took),
                    "p50_ms": percentile(took, 0.5),
                    "p99_ms": percentile(took, 0.99),
                    "max_ms": took[-1],
                    "bytes": max(row["sizes"][path] for row in mine),
                }
        found[name] = {
            "share": statistics.median(shares),
            "least_share": min(shares),
            "rate": statistics.median(row["rate"] for row in mine),
            "alone_rate": statistics.median(row["alone_rate"] for row in mine),
            "broker_busy": statistics.median(row["broker_busy"] for row in mine),
            "others_busy": statistics.median(row["others_busy"] for row in mine),
            "answers": answers,
            "faults": [fault for row in mine for fault in row["faults"]],
        }
    return found


def show(console: Console, figures: dict[str, dict[str, Any]], title: str) -> bool:
    """One table; False when a goal is missed."""
    grid = Table(title=title, title_justify="left")
    for heading in ("look", "answers", "KiB", "p50 ms", "p99 ms", "max ms", "share", "M msg/s"):
        grid.add_column(heading, justify="left" if heading == "look" else "right")
    met = True
    for name, figure in figures.items():
        met = met and figure["share"] >= GOAL_SHARE
        for path, one in figure["answers"].items():
            met = met and one["p99_ms"] <= GOAL_MS
            grid.add_row(
                f"{name} {path}",
                f"{one['count']}",
                f"{one['bytes'] / 1024:,.0f}",
                *(f"{one[key]:.1f}" for key in ("p50_ms", "p99_ms", "max_ms")),
                f"{figure['share']:.3f}",
                f"{figure['rate'] / 1e6:.3f}",
            )
        for fault in figure["faults"][:5]:
            console.print(f"  ! {name}: {fault}", markup=False)
    console.print(grid)
    console.print(
        f"  goals p99 ≤ {GOAL_MS:g} ms, share ≥ {GOAL_SHARE}: {'met' if met else 'MISSED'}"
    )
    return met


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser().parse_args(words)
    if not IS_COMPILED and not options.uncompiled and compile_hot():
        command = [sys.executable, "-m", "bench.scrape", "--uncompiled", *words]
        os.execv(sys.executable, command)  # noqa: S606 (no shell is meant)
    product = Vpnrouter(options.router_command)
    console = Console()
    if reason := product.missing():
        console.print(reason)
        return 2
    wanted = options.clients + SPARE_DESCRIPTORS
    if raise_descriptor_limit(wanted) < wanted:
        console.print(f"{wanted} open files are not allowed here")
        return 2
    if not product.is_compiled():
        console.print("! OUR ROUTER IS NOT THE COMPILED BUILD: its figures say little")
    pinned = cores()
    if pinned is not None:
        os.sched_setaffinity(0, {pinned[1]})
    gc.disable()
    found = measure(options)
    figures = summarized(found["rows"])
    if options.json:
        print(json.dumps({"machine": notes(), "figures": figures, **found}, indent=2))
    title = (
        f"{options.clients:,} clients, {options.queues:,} queues, {options.bridges:,} bridges,"
        f" {product.version()}"
    )
    met = show(console, figures, title)
    for text in found["faults"]:
        console.print(f"  ! {text}", markup=False)
    return int(not met)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.scrape",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rounds", type=int, default=5, help="alternating rounds (default: 5)")
    parser.add_argument("--seconds", type=float, default=10.0, help="timed interval (default: 10)")
    parser.add_argument("--clients", type=int, default=CLIENTS)
    parser.add_argument("--queues", type=int, default=QUEUES)
    parser.add_argument("--bridges", type=int, default=BRIDGES)
    parser.add_argument("--router-command", default="", help="our router, without `run CONFIG`")
    parser.add_argument("--uncompiled", action="store_true", help="do not compile the generator")
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    return parser


if __name__ == "__main__":
    sys.exit(main())
