"""Measures what subscriptions that come and go cost the messages: `python -m bench.churn`.

One router with 1,000,000 standing subscriptions, while one publisher and one subscriber run at full speed with 1,000
topics at random (`at-random` of `bench.direct`). Meanwhile another process subscribes and unsubscribes, 10,000 times a
second in all, each filter in a packet of its own; a third of the filters begin like the topics of the messages, and a
third hold wildcards. Intervals with and without take turns. Goals: at least 80 % of the throughput, and no turn of the
router's event loop over 5 ms; what the machine's other processes do is in the intervals without changes as well, so
there may be as many as in those. Exit code 1 when a goal is missed.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import select
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from bench import IS_COMPILED, throughput, varied
from bench.clients import connect
from bench.compile import compile_hot
from bench.dialects import MQTT
from bench.machine import Usage, cores, notes
from bench.ours import Vpnrouter
from bench.products import Address, Site, directory
from bench.rounds import order
from bench.scrape import router
from bench.turns import between, long_turns, turns_at
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.packets import Subscribe, SubscriptionRequest, Unsubscribe

STANDING: Final = 1_000_000
EACH: Final = 10_000
"""Standing subscriptions of one client."""

BATCH: Final = 500
"""Filters in one SUBSCRIBE of the standing ones."""

RATE: Final = 10_000.0
"""Changes a second."""

LIVING: Final = 100
"""Subscriptions of the changing client that stand at a time."""

STEP_S: Final = 0.001
"""Seconds between two writes of the changing client: the changes that are due by then."""

SHOWN: Final = ("without", "with")

GOAL_SHARE: Final = 0.8
GOAL_MS: Final = 5.0


def config(folder: Path) -> dict[str, Any]:
    """A router that allows all these subscriptions, and traces 1 % of its messages."""
    return {
        "router": {"name": "churn", "data_dir": str(folder / "data")},
        "listeners": [
            {"protocol": "mqtt", "bind": "127.0.0.1:0", "msg_vpn": "blue"},
            {"protocol": "http", "bind": "127.0.0.1:0"},
        ],
        "trace": {"directory": str(folder / "traces"), "sample": 0.01},
        "msg_vpns": {
            "blue": {
                "authentication": {"basic": {"enabled": False}},
                "max_subscription_count": 2 * STANDING,
                "client_profiles": {"default": {"max_subscription_count": STANDING}},
            }
        },
    }


def filter_of(number: int) -> str:
    """The filter of the n-th change: exact, with wildcards, or of the same first level as the messages."""
    kind = number % 3
    if kind == 0:
        return f"churn/{number}/exact"
    if kind == 1:
        return f"churn/{number % 1_000}/+/{number}/#"
    return f"bench/t{number % 1_000:04d}/{number}"


@contextlib.contextmanager
def standing(at: Address, count: int) -> Iterator[None]:
    """Clients that hold `count` subscriptions, every fourth with a wildcard."""
    with contextlib.ExitStack() as stack:
        for begin in range(0, count, EACH):
            sock = stack.enter_context(contextlib.closing(connect(MQTT, at, f"holds-{begin}")))
            for first in range(begin, min(count, begin + EACH), BATCH):
                wanted = [
                    SubscriptionRequest(
                        f"stands/{number // 1_000}/{'x' if number % 4 else '+'}/{number}"
                    )
                    for number in range(first, min(count, begin + EACH, first + BATCH))
                ]
                sock.sendall(encode(Subscribe(1, wanted), 4))
                left = 4 + len(wanted) + (len(wanted) + 2 > 127)
                while left > 0:
                    left -= len(sock.recv(left))
        yield


class Changes:
    """A process that subscribes and unsubscribes during one interval."""

    def __init__(self, at: Address, rate: float) -> None:
        host, port = at
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "bench.churn",
                "--change",
                f"{host}:{port}",
                "--rate",
                str(rate),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        if self._process.stdout is not None:
            self._process.stdout.readline()

    def end(self) -> dict[str, float]:
        """Change no more; how many changes a second there were, and how long the longest answer took."""
        out, _ = self._process.communicate("\n", timeout=60)
        found: dict[str, float] = json.loads(out)
        return found


def change(address: str, rate: float) -> None:
    """Subscribe and unsubscribe until a line comes in; tell what was done."""
    with contextlib.suppress(OSError):
        # It must not wait for the core of the load.
        os.nice(-10)
    host, _, port = address.rpartition(":")
    sock = connect(MQTT, (host, int(port)), "changes")
    sock.setblocking(False)
    print("ready", flush=True)
    began = time.monotonic()
    done = answered = 0
    late = 0.0
    waiting: list[tuple[int, float]] = []
    rest = b""
    while not select.select([sys.stdin], [], [], STEP_S)[0]:
        now = time.monotonic()
        due = int((now - began) * rate)
        frames = []
        while done < due:
            frames.append(_frame(done))
            done += 1
        if frames:
            waiting.append((done, now))
            sock.setblocking(True)
            sock.sendall(b"".join(frames))
            sock.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            rest += sock.recv(1 << 16)
        acknowledged, rest = _answers(rest)
        answered += acknowledged
        now = time.monotonic()
        while waiting and waiting[0][0] <= answered:
            late = max(late, now - waiting.pop(0)[1])
    took = time.monotonic() - began
    print(json.dumps({"changes": answered / took, "longest_ms": late * 1_000}))


def _frame(number: int) -> bytes:
    """The n-th change: a subscription, or the end of the one that has stood longest."""
    step, ends = divmod(number, 2)
    packet_id = 1 + number % 65_535
    if ends and step >= LIVING:
        return encode(Unsubscribe(packet_id, [filter_of(step - LIVING)]), 4)
    return encode(Subscribe(packet_id, [SubscriptionRequest(filter_of(step))]), 4)


def _answers(data: bytes) -> tuple[int, bytes]:
    """How many SUBACKs and UNSUBACKs there are, and what is left of the last one."""
    at = count = 0
    while at + 2 <= len(data) and at + 2 + data[at + 1] <= len(data):
        at += 2 + data[at + 1]
        count += 1
    return count, data[at:]


def measure(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Everything; see the head of this file."""
    pinned = cores() or (None, None)
    command = Vpnrouter(options.router_command).command
    rows: list[dict[str, Any]] = []
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(directory("churn"))
        pid, at = stack.enter_context(router(command, folder, config(folder), pinned[0]))
        stack.enter_context(standing(at["mqtt"], options.standing))
        site = Site(MQTT, at["mqtt"], at["mqtt"], [pid], pinned[0], management=at["http"])
        flood = stack.enter_context(varied.flooding(site, varied.AT_RANDOM))
        flood.run(throughput.WARM_UP_SECONDS)

        def interval(*, changing: bool) -> dict[str, Any]:
            changes = Changes(at["mqtt"], RATE) if changing else None
            before = turns_at(site)
            flood.run(0.3)
            usage = Usage([pid], pinned[0])
            delivered, nanoseconds = flood.run(options.seconds)
            row: dict[str, Any] = {"rate": delivered * 1e9 / nanoseconds, **usage.shares()}
            flood.run(0.1)
            if changes is not None:
                row |= changes.end()
            after = turns_at(site)
            row["notes"] = long_turns(before, after)
            row["over"] = {
                work: over
                for work, counts in between(before, after).items()
                if (over := sum(n for bound, n in counts.items() if bound > GOAL_MS / 1e3))
            }
            return row

        for number in range(options.rounds):
            pair = {
                changing: interval(changing=changing) for changing in order([False, True], number)
            }
            rows.append({"with": pair[True], "without": pair[False]})
        flood.drain(flood.published(), throughput.QUIET_SECONDS)
        lost = flood.published() - flood.delivered()
        rows[-1]["faults"] = varied.faults_of(flood, lost)
    return rows


def show(console: Console, rows: Sequence[dict[str, Any]], title: str) -> bool:
    """One table; False when a goal is missed."""
    grid = Table(title=title, title_justify="left")
    for heading in (
        "",
        "M msg/s",
        "broker busy",
        "changes/s",
        "longest answer ms",
        "turns over 5 ms",
    ):
        grid.add_column(heading, justify="right")
    for name in SHOWN:
        taken = [row[name] for row in rows]
        over = [f"{work}: {count}" for row in taken for work, count in row["over"].items()]
        grid.add_row(
            name,
            *(
                f"{statistics.median(row.get(field, 0.0) for row in taken) / divisor:,.3f}"
                for field, divisor in (
                    ("rate", 1e6),
                    ("broker_busy", 1),
                    ("changes", 1),
                    ("longest_ms", 1),
                )
            ),
            ", ".join(over) or "none",
        )
    share = statistics.median(row["with"]["rate"] / row["without"]["rate"] for row in rows)
    console.print(grid)
    for number, row in enumerate(rows, 1):
        for text in row["with"]["notes"]:
            console.print(f"  with, round {number}: {text}", markup=False)
        for text in row.get("faults", ()):
            console.print(f"  ! {text}", markup=False)
    total = {name: sum(sum(row[name]["over"].values()) for row in rows) for name in SHOWN}
    stalled = total["with"] > total["without"]
    met = share >= GOAL_SHARE and not stalled and not any(row.get("faults") for row in rows)
    console.print(
        f"  {share:.3f} of the throughput; goals share ≥ {GOAL_SHARE}, no turn over"
        f" {GOAL_MS:g} ms beyond those without changes: {'met' if met else 'MISSED'}"
    )
    return met


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser().parse_args(words)
    if options.change:
        change(options.change, options.rate)
        return 0
    if not IS_COMPILED and not options.uncompiled and compile_hot():
        command = [sys.executable, "-m", "bench.churn", "--uncompiled", *words]
        os.execv(sys.executable, command)  # noqa: S606 (no shell is meant)
    product = Vpnrouter(options.router_command)
    console = Console()
    if reason := product.missing():
        console.print(reason)
        return 2
    if not product.is_compiled():
        console.print("! OUR ROUTER IS NOT THE COMPILED BUILD: its figures say little")
    pinned = cores()
    if pinned is not None:
        os.sched_setaffinity(0, {pinned[1]})
    gc.disable()
    rows = measure(options)
    if options.json:
        print(json.dumps({"machine": notes(), "rows": rows}, indent=2))
    title = (
        f"{options.standing:,} standing subscriptions, {RATE:,.0f} changes/s, {product.version()}"
    )
    return int(not show(console, rows, title))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.churn",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rounds", type=int, default=5, help="alternating rounds (default: 5)")
    parser.add_argument("--seconds", type=float, default=5.0, help="timed interval (default: 5)")
    parser.add_argument("--standing", type=int, default=STANDING)
    parser.add_argument("--router-command", default="", help="our router, without `run CONFIG`")
    parser.add_argument("--uncompiled", action="store_true", help="do not compile the generator")
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    parser.add_argument("--change", default="", help=argparse.SUPPRESS)
    parser.add_argument("--rate", type=float, default=RATE, help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
