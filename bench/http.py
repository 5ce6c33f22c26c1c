"""Measures how fast a connector empties a queue into an HTTP server: `python -m bench.http`.

The server is a program in C that answers each request with 204 (http_sink.c), on a core of its own. The router has the
other core. Its queue is filled first, while the server is not there. Beside it stands what wrk, a client in C, sends to
the same server over as many connections.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from bench.connectors import connected
from bench.machine import cores, processor_seconds
from bench.processes import accepts, family, free_port, running, tail, wait_until
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.packets import Publish

SOURCE: Final = Path(__file__).parent / "http_sink.c"
TOPIC: Final = b"bench/a"
BATCH: Final = 500
CONNECTIONS: Final = 16

OURS: Final = """\
router: {name: bench, data_dir: %(folder)s/data}
listeners:
  - {protocol: mqtt, bind: "127.0.0.1:%(port)d", msg_vpn: bench}
msg_vpns:
  bench:
    authentication: {basic: {enabled: false}}
    max_msg_spool_usage: 4000
    queues: {work: {subscriptions: [">"], max_msg_spool_usage: 2000}}
    connectors:
      hook:
        provider: {url: "http://127.0.0.1:%(sink)d", max_connections: %(connections)d, connect: {retry_delay: 0}}
        links: {out: {source: {queue: work}, target: {address: /hook}}}
"""

SCRIPT: Final = """\
wrk.method = "POST"
wrk.body = string.rep("x", %(size)d)
wrk.headers["Content-Type"] = "application/octet-stream"
"""


class Drained(NamedTuple):
    """How a queue was emptied: messages a second, and processor seconds of the router for a million."""

    rate: float
    seconds: float


@contextlib.contextmanager
def sink(folder: Path, port: int, core: int | None) -> Iterator[Path]:
    """The server; the file of its counts."""
    program = folder / "sink"
    if not program.exists():
        subprocess.run(["cc", "-O2", "-o", str(program), str(SOURCE)], check=True)
    log = folder / f"sink-{time.monotonic_ns()}"
    with running([str(program), str(port)], core=core, log=log) as process:
        wait_until(lambda: accepts(port), process, log)
        yield log


def counts(log: Path) -> list[tuple[int, int]]:
    """Times and counts of the server."""
    rows = [line.split() for line in log.read_text().splitlines()]
    return [(int(row[0]), int(row[1])) for row in rows if len(row) == 2]


def fill(port: int, count: int, size: int) -> None:
    """Publish messages at QoS 1, and wait for each batch."""
    sock = connected(port, "filler")
    frames = [encode(Publish(TOPIC, b"x" * size, 1, packet_id=1 + at), 4) for at in range(BATCH)]
    data = b"".join(frames)
    for _ in range(count // BATCH):
        sock.sendall(data)
        got = 0
        while got < 4 * BATCH:
            got += len(sock.recv(1 << 16))
    sock.close()


def drain(
    command: str, folder: Path, pinned: tuple[int, int] | None, count: int, size: int, width: int
) -> Drained:
    """Have a full queue emptied by our router."""
    own, theirs = (None, None) if pinned is None else pinned
    port, target = free_port(), free_port()
    data = folder / f"data-{time.monotonic_ns()}"
    data.mkdir()
    file = data / "router.yaml"
    file.write_text(OURS % {"folder": data, "port": port, "sink": target, "connections": width})
    log = data / "log"
    with running([*command.split(), "run", str(file)], core=own, log=log) as process:
        wait_until(lambda: accepts(port), process, log)
        fill(port, count, size)
        with sink(folder, target, theirs) as counted:
            pids = family(process.pid)
            before_s = processor_seconds(pids)
            while not (rows := counts(counted)) or rows[-1][1] < count:
                if process.poll() is not None:
                    raise RuntimeError(f"the router ended: {tail(log)}")
                time.sleep(0.1)
            used_s = processor_seconds(pids) - before_s
            rows = [row for row in rows if 0 < row[1] < count]
    (from_ns, first), (to_ns, last) = rows[0], rows[-1]
    return Drained((last - first) / (to_ns - from_ns) * 1e9, used_s / count * 1e6)


def by_wrk(
    folder: Path, pinned: tuple[int, int] | None, seconds: float, size: int, width: int
) -> float:
    """Requests a second that the server takes from wrk; 0 where that is not installed."""
    program = shutil.which("wrk")
    if program is None:
        return 0.0
    own, theirs = (None, None) if pinned is None else pinned
    script = folder / "post.lua"
    script.write_text(SCRIPT % {"size": size})
    port = free_port()
    with sink(folder, port, theirs):
        done = subprocess.run(
            [
                *(["taskset", "-c", str(own)] if own is not None else []),
                *(program, "-t1", f"-c{width}", f"-d{max(1, round(seconds))}s"),
                *("-s", str(script), f"http://127.0.0.1:{port}/hook"),
            ],
            check=True,
            capture_output=True,
            text=True,
        )
    found = re.search(r"Requests/sec:\s+([0-9.]+)", done.stdout)
    return 0.0 if found is None else float(found.group(1))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure in turn, and print each rate and the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--connections", type=int, default=CONNECTIONS)
    parser.add_argument("--router-command", default=str(Path(sys.executable).parent / "vpnrouter"))
    options = parser.parse_args(arguments)
    pinned = cores()
    if pinned is not None:
        os.sched_setaffinity(0, {pinned[1]})
    size, width = options.size, options.connections
    drained: list[Drained] = []
    sent: list[float] = []
    with tempfile.TemporaryDirectory(prefix="bench-http-") as name:
        folder = Path(name)
        for _ in range(options.rounds):
            drained.append(
                drain(options.router_command, folder, pinned, options.messages, size, width)
            )
            sent.append(by_wrk(folder, pinned, options.seconds, size, width))
    rate = statistics.median([each.rate for each in drained])
    cost = statistics.median([each.seconds for each in drained])
    shown = " ".join(f"{each.rate:,.0f}" for each in drained)
    print(f"connector: {rate:,.0f}/s ({shown}); {cost:.0f} processor seconds for a million")
    if not any(sent):
        print("wrk is not installed: apt-get install wrk")
        return 0
    client = statistics.median(sent)
    print(f"wrk: {client:,.0f}/s ({' '.join(f'{each:,.0f}' for each in sent)})")
    print(f"{rate / client:.2f} of what the server takes from a client in C")
    return 0


if __name__ == "__main__":
    sys.exit(main())
