"""Compares a connector to Artemis with clients of it, in one run: `python -m bench.amqp_connectors`.

Inward: a queue of Artemis holds persistent messages of 256 bytes; a client of it takes all, and a connector of our
router takes all into a queue of its own, synced. Outward: a client sends as many, with 500 unsettled, and a connector
sends as many out of a queue. Artemis has one core, all else shares the other. Sizes vary with `--varied`.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from bench.amqp import PLAIN, UNSETTLED, Broker, artemis, count_of
from bench.amqp_client import CHUNK, Client, message
from bench.machine import cores
from bench.processes import accepts, free_port, running, wait_until
from vpnrouter.management.client import ManagementClient
from vpnrouter.wire.amqp import transfers
from vpnrouter.wire.amqp.performatives import Accepted, Disposition, Flow

OURS: Final = """\
router: {name: bench, data_dir: %(folder)s/data}
listeners:
  - {protocol: http, bind: "127.0.0.1:%(http)d"}
  - {protocol: amqp, bind: "127.0.0.1:%(amqp)d", msg_vpn: bench}
msg_vpns:
  bench:
    authentication: {basic: {enabled: false}}
    queues: {near: {max_msg_spool_usage: 2000}}
    connectors:
      artemis:
        enabled: false
        provider: {url: "amqp://127.0.0.1:%(provider)d", window: 2000}
        links: {%(link)s}
"""

LINKS: Final = {
    "in": 'in: {source: {address: "queue://bench"}, target: {queue: near}}',
    "out": 'out: {source: {queue: near}, target: {address: "queue://bench"}}',
}


ACCEPTED: Final = Accepted()
ADDRESS: Final = "bench"


def bodies(varied: bool) -> list[bytes]:
    """The messages of one chunk: all of 256 bytes, or of 16 to 4,096."""
    draws = random.Random(7)
    sizes = [
        draws.choice((16, 64, 256, 256, 1_024, 4_096)) if varied else 256 for _ in range(CHUNK)
    ]
    return [message(size, durable=True) for size in sizes]


def fill(port: int, address: str, count: int, made: Sequence[bytes]) -> float:
    """Send messages, UNSETTLED of them at most without an answer; the seconds that it took."""
    client = Client(port, "filler")
    client.sender(address, "queue", settled=False)
    sent = answered = 0
    begin_s = time.perf_counter()
    while answered < count:
        some = min(UNSETTLED - (sent - answered), client.credit, count - sent, CHUNK)
        if some > 0:
            cut = transfers.cut_transfer
            data = [
                cut(
                    0, b"\x43", sent + at, False, b"", made[(sent + at) % len(made)], 1 << 20
                ).next()
                for at in range(some)
            ]
            client.sock.sendall(b"".join(data))
            sent += some
            client.sent_count += some
            client.credit -= some
            if sent < count and sent - answered < UNSETTLED and client.credit > 0:
                continue
        for frame in client.read():
            found = frame.performative
            if isinstance(found, Disposition):
                answered += (found.first if found.last is None else found.last) - found.first + 1
            elif isinstance(found, Flow) and found.handle is not None:
                client.credit_of(found)
    took_s = time.perf_counter() - begin_s
    client.sock.close()
    return took_s


def drain(port: int, address: str, count: int) -> float:
    """Take messages and settle them; the seconds that it took."""
    client = Client(port, "drainer")
    begin_s = time.perf_counter()
    client.receiver(address, "queue", settled=False, credit=2_000)
    got = granted = 0
    while got < count:
        data = client.left + client.sock.recv(1 << 18)
        some, end = count_of(PLAIN, data)
        client.left = data[end:]
        if some:
            client.say(Disposition(True, got, got + some - 1, True, ACCEPTED))
            got += some
            if got - granted > 1_000:
                granted = got
                client.grant(got, 2_000)
    took_s = time.perf_counter() - begin_s
    # Artemis has to be told before the connection ends.
    time.sleep(0.5)
    client.sock.close()
    return took_s


class Router:
    """Our router with a connector, which carries nothing yet."""

    def __init__(self, http: int, amqp: int, pid: int) -> None:
        self.amqp = amqp
        self.broker = Broker(http, pid)
        self._api = ManagementClient(f"http://127.0.0.1:{http}")

    def waiting(self) -> int:
        """Messages in its queue."""
        return int(self._api.queue("bench", "near")["msgCount"])

    def carry(self, wanted: int) -> float:
        """Enable the connector, and wait until the queue holds so many; the seconds that it took."""
        begin_s = time.perf_counter()
        self._api.patch_config("/msgVpns/bench/connectors/artemis", {"enabled": True})
        while self.waiting() != wanted:
            time.sleep(0.02)
        return time.perf_counter() - begin_s


@contextlib.contextmanager
def ours(command: str, core: int | None, provider: int, way: str) -> Iterator[Router]:
    """Our router with its connector."""
    with tempfile.TemporaryDirectory(prefix="bench-amqp-") as folder:
        http, amqp = free_port(), free_port()
        file = Path(folder) / "router.yaml"
        values = {"folder": folder, "http": http, "amqp": amqp, "provider": provider}
        file.write_text(OURS % {**values, "link": LINKS[way]})
        log = Path(folder) / "log"
        with running([*command.split(), "run", str(file)], core=core, log=log) as process:
            wait_until(lambda: accepts(amqp), process, log)
            yield Router(http, amqp, process.pid)


def inward(
    site: Broker, router: Router, count: int, made: Sequence[bytes]
) -> tuple[float, float, float]:
    """Seconds that a client takes for all messages of the queue, that the connector does, and its CPU seconds."""
    fill(site.port, ADDRESS, count, made)
    plain_s = drain(site.port, ADDRESS, count)
    fill(site.port, ADDRESS, count, made)
    before_s = router.broker.cpu_s()
    took_s = router.carry(count)
    return plain_s, took_s, router.broker.cpu_s() - before_s


def outward(
    site: Broker, router: Router, count: int, made: Sequence[bytes]
) -> tuple[float, float, float]:
    """Seconds in which Artemis takes all messages from a client, and from the connector, and its CPU seconds."""
    plain_s = fill(site.port, ADDRESS, count, made)
    drain(site.port, ADDRESS, count)
    fill(router.amqp, "queue://near", count, made)
    before_s = router.broker.cpu_s()
    took_s = router.carry(0)
    return plain_s, took_s, router.broker.cpu_s() - before_s


WAYS: Final = {"in": inward, "out": outward}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print each round and the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--varied", action="store_true")
    parser.add_argument("--router-command", default=str(Path(sys.executable).parent / "vpnrouter"))
    parser.add_argument("--artemis", default=".peers/artemis")
    options = parser.parse_args(arguments)
    pinned = cores()
    if pinned is not None:
        os.sched_setaffinity(0, {pinned[1]})
    core, other = (None, None) if pinned is None else pinned[:2]
    made = bodies(options.varied)
    count = options.messages
    for way, measure in WAYS.items():
        rows: list[tuple[float, float, float]] = []
        for _ in range(options.rounds):
            with (
                artemis(options.artemis, core, persistent=True) as site,
                ours(options.router_command, other, site.port, way) as router,
            ):
                # Java compiles what runs often.
                fill(site.port, ADDRESS, count // 4, made)
                drain(site.port, ADDRESS, count // 4)
                rows.append(measure(site, router, count, made))
            plain_s, took_s, cpu_s = rows[-1]
            print(
                f"{way}: client {count / plain_s:,.0f}/s, connector {count / took_s:,.0f}/s,"
                f" {plain_s / took_s:.2f} x, {cpu_s / count * 1e6:.1f} us of CPU a message",
                flush=True,
            )
        ratio = statistics.median(plain_s / took_s for plain_s, took_s, _ in rows)
        print(f"{way}: median {ratio:.2f} x", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
