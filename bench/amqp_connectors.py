"""Compares a connector to Artemis with clients of it, in one run: `python -m bench.amqp_connectors`.

`in`: a queue of Artemis holds persistent messages of 256 bytes; a client of it takes all, and a connector of our
router takes all into a queue of its own, synced. `out`: a client sends as many, with 500 unsettled, and a connector
sends as many out of a queue. `batches`: a connector sends out of a queue in transactions of 100 messages, and one at a
time, each when the one before is answered (`batch: {max_size: 1}` without transactions), a tenth as many. Who comes
first changes from round to round. Artemis has one core, all else shares the other. Sizes vary with `--varied`.
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
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

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

OUT: Final = 'source: {queue: near}, target: {address: "queue://bench"}'
LINKS: Final = {
    "in": 'in: {source: {address: "queue://bench"}, target: {queue: near}}',
    "out": f"out: {{{OUT}}}",
    "batches": f"out: {{{OUT}, transacted: true, batch: {{max_size: 100}}}}",
    "single": f"out: {{{OUT}, batch: {{max_size: 1}}}}",
}
SHARE: Final = 10
"""What is sent one at a time is so many times less: the rates are compared, and a rate needs no more."""


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
        """Enable the connector until the queue holds so many; the seconds that it took."""
        begin_s = time.perf_counter()
        self._enable(enabled=True)
        while self.waiting() != wanted:
            time.sleep(0.02)
        took_s = time.perf_counter() - begin_s
        self._enable(enabled=False)
        return took_s

    def _enable(self, *, enabled: bool) -> None:
        self._api.patch_config("/msgVpns/bench/connectors/artemis", {"enabled": enabled})


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


class Row(NamedTuple):
    """What was measured: messages a second of the one that is compared with, of ours, and CPU seconds a message."""

    other: float
    ours: float
    cpu_s: float

    @property
    def ratio(self) -> float:
        """How much faster ours is."""
        return self.ours / self.other


def inward(site: Broker, router: Router, count: int, made: Sequence[bytes], *, last: bool) -> Row:
    """What a client takes of the queue, and what the connector does."""
    rates = [0.0, 0.0]
    cpu_s = 0.0
    for ours_now in (not last, last):
        fill(site.port, ADDRESS, count, made)
        if ours_now:
            before_s = router.broker.cpu_s()
            rates[1] = count / router.carry(count)
            cpu_s = router.broker.cpu_s() - before_s
        else:
            rates[0] = count / drain(site.port, ADDRESS, count)
    return Row(rates[0], rates[1], cpu_s / count)


def outward(site: Broker, router: Router, count: int, made: Sequence[bytes], *, last: bool) -> Row:
    """What Artemis takes of a client, and of the connector."""
    rates = [0.0, 0.0]
    cpu_s = 0.0
    for ours_now in (not last, last):
        if ours_now:
            rates[1], cpu_s = sent_out(site, router, count, made)
        else:
            rates[0] = count / fill(site.port, ADDRESS, count, made)
            drain(site.port, ADDRESS, count)
    return Row(rates[0], rates[1], cpu_s)


def sent_out(
    site: Broker, router: Router, count: int, made: Sequence[bytes]
) -> tuple[float, float]:
    """Messages a second that Artemis takes of the connector, and its CPU seconds a message."""
    fill(router.amqp, "queue://near", count, made)
    before_s = router.broker.cpu_s()
    took_s = router.carry(0)
    cpu_s = router.broker.cpu_s() - before_s
    drain(site.port, ADDRESS, count)
    return count / took_s, cpu_s / count


def batches(
    site: Broker,
    begin: Callable[[str], contextlib.AbstractContextManager[Router]],
    count: int,
    made: Sequence[bytes],
    *,
    last: bool,
) -> Row:
    """What Artemis takes of a connector one at a time, and in transactions of 100."""
    rates = [0.0, 0.0]
    cpu_s = 0.0
    for ours_now in (not last, last):
        with begin("batches" if ours_now else "single") as router:
            if ours_now:
                rates[1], cpu_s = sent_out(site, router, count, made)
            else:
                rates[0] = sent_out(site, router, count // SHARE, made)[0]
    return Row(rates[0], rates[1], cpu_s)


OTHERS: Final = {"in": "client", "out": "client", "batches": "one at a time"}
"""What is measured, and what the connector is compared with."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print each round and the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--varied", action="store_true")
    parser.add_argument("--only", default=",".join(OTHERS))
    parser.add_argument("--router-command", default=str(Path(sys.executable).parent / "vpnrouter"))
    parser.add_argument("--artemis", default=".peers/artemis")
    options = parser.parse_args(arguments)
    pinned = cores()
    if pinned is not None:
        os.sched_setaffinity(0, {pinned[1]})
    core, other = (None, None) if pinned is None else pinned[:2]
    made = bodies(options.varied)
    count = options.messages
    for way in options.only.split(","):
        rows: list[Row] = []
        for number in range(options.rounds):
            with artemis(options.artemis, core, persistent=True) as site:
                # Java compiles what runs often.
                for _ in range(3):
                    fill(site.port, ADDRESS, count // 4, made)
                    drain(site.port, ADDRESS, count // 4)

                def begin(
                    link: str, port: int = site.port
                ) -> contextlib.AbstractContextManager[Router]:
                    return ours(options.router_command, other, port, link)

                last = number % 2 == 0
                if way == "batches":
                    rows.append(batches(site, begin, count, made, last=last))
                else:
                    with begin(way) as router:
                        measure = inward if way == "in" else outward
                        rows.append(measure(site, router, count, made, last=last))
            row = rows[-1]
            print(
                f"{way}: {OTHERS[way]} {row.other:,.0f}/s, connector {row.ours:,.0f}/s,"
                f" {row.ratio:.2f} x, {row.cpu_s * 1e6:.1f} us of CPU a message",
                flush=True,
            )
        print(f"{way}: median {statistics.median(row.ratio for row in rows):.2f} x", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
