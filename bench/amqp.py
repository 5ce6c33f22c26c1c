"""Compares our router with Artemis and RabbitMQ by AMQP 1.0, in one run: `python -m bench.amqp`.

Rows: `direct` (settled, 1 → 1, 64 bytes), `guaranteed` (8 → 8 over queues, 256 bytes, synced, 500 unsettled),
`transactions` (10 messages each, one client after the other answer) and `idle` (memory of a connection with one link).
The broker has one core, the generator the other. Artemis is started from a folder with its jars (`--artemis`), as
bench/README.md says, RabbitMQ with its plugin from where Debian installs it; it has no transactions.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import select
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from bench.amqp_client import CHUNK, Client, Template, message
from bench.guaranteed_rabbit import RabbitMq
from bench.machine import cores, raise_descriptor_limit, resident_bytes
from bench.processes import accepts, free_port, running, wait_until
from vpnrouter.wire.amqp.performatives import Accepted, Disposition, Flow
from vpnrouter.wire.amqp.transfers import PlainTransfer, frame_end

OURS: Final = """\
router: {name: bench, data_dir: %(folder)s/data}
listeners:
  - {protocol: amqp, bind: "127.0.0.1:%(port)d", msg_vpn: bench}
trace: {enabled: true, directory: %(folder)s/traces, sample: 0.01}
msg_vpns:
  bench:
    authentication: {basic: {enabled: false}}
    acl_profiles:
      default:
        client_connect: {exceptions: ["192.0.2.0/24"]}
        publish_topic: {exceptions: ["private/>"]}
        subscribe_topic: {exceptions: ["private/>"]}
    queues: {%(queues)s}
"""

PAIRS: Final = 8
UNSETTLED: Final = 500
WARM_S: Final = 4.0
CONNECTIONS: Final = 2_000
AHEAD: Final = 20_000
"""Settled messages on their way: a broker that takes more than it gives is not flooded."""

Row = dict[str, float]


class Broker:
    """A running broker: its port, and the processes that count. `address` has the place of a kind and a name."""

    def __init__(self, port: int, pid: int, address: str = "{name}") -> None:
        self.port = port
        self.pid = pid
        self._address = address

    def address(self, kind: str, name: str) -> str:
        """The address of a `queue` or `topic`."""
        return self._address.format(kind=kind, name=name)

    def cpu_s(self) -> float:
        """CPU seconds that it has used."""
        ticks = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(ticks[11]) + int(ticks[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def ours(command: str, core: int | None) -> Iterator[Broker]:
    """Our router."""
    with tempfile.TemporaryDirectory(prefix="bench-amqp-") as folder:
        port = free_port()
        queues = ", ".join(f"q{number}: {{max_msg_spool_usage: 2000}}" for number in range(PAIRS))
        file = Path(folder) / "router.yaml"
        file.write_text(OURS % {"folder": folder, "port": port, "queues": queues})
        log = Path(folder) / "log"
        with running([*command.split(), "run", str(file)], core=core, log=log) as process:
            wait_until(lambda: accepts(port), process, log)
            yield Broker(port, process.pid)


@contextlib.contextmanager
def artemis(jars: str, core: int | None, *, persistent: bool) -> Iterator[Broker]:
    """Artemis, from a folder with Broker.class and the folder lib."""
    with tempfile.TemporaryDirectory(prefix="bench-amqp-") as folder:
        port = free_port()
        log = Path(folder) / "log"
        command = ["java", "-Xmx1g", "-cp", f"{jars}:{jars}/lib/*", "Broker", str(port), folder]
        if persistent:
            command.append("persistent")
        with running(command, core=core, log=log) as process:
            wait_until(lambda: accepts(port), process, log)
            yield Broker(port, process.pid)


@contextlib.contextmanager
def rabbitmq(core: int | None) -> Iterator[Broker]:
    """RabbitMQ with its plugin."""
    with tempfile.TemporaryDirectory(prefix="bench-amqp-") as folder:
        store = RabbitMq("classic")
        if store.missing():
            raise SystemExit(store.missing())
        with store.with_amqp_1_0(Path(folder), core) as (port, pid):
            yield Broker(port, pid, "/{kind}/{name}")


def direct(broker: Broker, seconds: float) -> Row:
    """Settled messages of 64 bytes over a topic."""
    receiver = Client(broker.port, "receiver")
    receiver.receiver(broker.address("topic", "bench"), "topic", settled=True, credit=20_000)
    sender = Client(broker.port, "sender")
    sender.sender(broker.address("topic", "bench"), "topic", settled=True)
    template = Template(message(64, durable=False), settled=True)
    for client in (sender, receiver):
        client.sock.setblocking(False)
    got = granted = 0
    out = b""
    left = b""
    begin_s = mark_s = 0.0
    mark = sent = 0
    start_s = time.perf_counter()
    plain = PlainTransfer()
    while True:
        now_s = time.perf_counter()
        if not mark_s and now_s - start_s > WARM_S:
            mark_s, mark, begin_s = now_s, got, broker.cpu_s()
        if mark_s and now_s - mark_s > seconds:
            break
        room = min(sender.credit, AHEAD - (sent - got))
        if not out and room > 0:
            count = min(room, CHUNK)
            out = template.frames(sender.next_id, count)
            sender.next_id += count
            sender.sent_count += count
            sender.credit -= count
            sent += count
        with contextlib.suppress(BlockingIOError):
            if out:
                out = out[sender.sock.send(out) :]
        with contextlib.suppress(BlockingIOError):
            sender.read_credit()
        with contextlib.suppress(BlockingIOError):
            data = left + receiver.sock.recv(1 << 18)
            count, end = count_of(plain, data)
            left = data[end:]
            got += count
            if got - granted > 5_000:
                granted = got
                receiver.sock.setblocking(True)
                receiver.grant(got, 20_000)
                receiver.sock.setblocking(False)
        if not out and room <= 0:
            select.select([sender.sock, receiver.sock], [], [], 0.01)
    rate = (got - mark) / (time.perf_counter() - mark_s)
    spent_s = broker.cpu_s() - begin_s
    for client in (sender, receiver):
        client.sock.close()
    return {
        "messages_per_s": rate,
        "messages_per_cpu_s": (got - mark) / max(spent_s, 0.01),
    }


def count_of(plain: PlainTransfer, data: bytes) -> tuple[int, int]:
    """How many transfers are whole in `data`, and where they end."""
    count = pos = 0
    size = len(data)
    while size - pos >= 8:
        if plain.read(data, pos, size, 1 << 20):
            count += 1
            pos = plain.end
            continue
        length = int.from_bytes(data[pos : pos + 4], "big")
        if pos + length > size:
            break
        pos = frame_end(data, pos)
    return count, pos


class Pair:
    """One publisher and one consumer of a queue."""

    def __init__(self, broker: Broker, number: int, template: Template) -> None:
        self.template = template
        port = broker.port
        address = broker.address("queue", f"q{number}")
        self.consumer = Client(port, f"consumer{number}")
        self.consumer.receiver(address, "queue", settled=False, credit=2_000)
        self.publisher = Client(port, f"publisher{number}")
        self.publisher.sender(address, "queue", settled=False)
        self.unsettled = 0
        self.acknowledged = 0
        self.got = 0
        self.granted = 0

    def publish(self) -> None:
        """Send as many as window and credit allow."""
        publisher = self.publisher
        count = min(UNSETTLED - self.unsettled, publisher.credit, CHUNK)
        if count > 0:
            publisher.sock.sendall(self.template.frames(publisher.next_id, count))
            publisher.next_id += count
            publisher.sent_count += count
            publisher.credit -= count
            self.unsettled += count

    def on_publisher(self) -> None:
        """Take dispositions and credit."""
        for frame in self.publisher.read():
            found = frame.performative
            if isinstance(found, Disposition):
                last = found.first if found.last is None else found.last
                count = last - found.first + 1
                if found.state != Accepted():
                    raise RuntimeError(f"a message was refused: {found}")
                self.unsettled -= count
                self.acknowledged += count
            elif isinstance(found, Flow) and found.handle is not None:
                self.publisher.credit_of(found)

    def on_consumer(self) -> None:
        """Take messages, and settle them together."""
        consumer = self.consumer
        data = consumer.left + consumer.sock.recv(1 << 18)
        count, end = count_of(PLAIN, data)
        consumer.left = data[end:]
        if count:
            first = self.got
            self.got += count
            consumer.say(Disposition(True, first, self.got - 1, True, Accepted()))
            if self.got - self.granted > 1_000:
                self.granted = self.got
                consumer.grant(self.got, 2_000)


PLAIN: Final = PlainTransfer()


def guaranteed(broker: Broker, seconds: float) -> Row:
    """Durable messages of 256 bytes, 8 publishers and 8 consumers of a queue each."""
    template = Template(message(256, durable=True), settled=False)
    pairs = [Pair(broker, number, template) for number in range(PAIRS)]
    by_fd: dict[int, Callable[[], None]] = {}
    poll = select.poll()
    for pair in pairs:
        by_fd[pair.publisher.sock.fileno()] = pair.on_publisher
        by_fd[pair.consumer.sock.fileno()] = pair.on_consumer
    for fd in by_fd:
        poll.register(fd, select.POLLIN)
    mark_s = begin_s = 0.0
    mark = 0
    start_s = time.perf_counter()
    while True:
        now_s = time.perf_counter()
        done = sum(pair.got for pair in pairs)
        if not mark_s and now_s - start_s > WARM_S:
            mark_s, mark, begin_s = now_s, done, broker.cpu_s()
        if mark_s and now_s - mark_s > seconds:
            break
        for pair in pairs:
            pair.publish()
        for fd, _ in poll.poll(100):
            by_fd[fd]()
    rate = (done - mark) / (now_s - mark_s)
    spent_s = broker.cpu_s() - begin_s
    for pair in pairs:
        pair.publisher.sock.close()
        pair.consumer.sock.close()
    return {"messages_per_s": rate, "messages_per_cpu_s": (done - mark) / max(spent_s, 0.01)}


def transactions(broker: Broker, seconds: float) -> Row:
    """Transactions of ten durable messages, one after the other."""
    client = Client(broker.port, "client")
    client.sender("q0", "queue", settled=False)
    client.coordinator()
    body = message(256, durable=True)
    for _ in range(20):
        client.transaction(body, 10)
    begin_s = time.perf_counter()
    times: list[float] = []
    while time.perf_counter() - begin_s < seconds:
        once_s = time.perf_counter()
        client.transaction(body, 10)
        times.append(time.perf_counter() - once_s)
    spent_s = time.perf_counter() - begin_s
    client.sock.close()
    return {"transactions_per_s": len(times) / spent_s, "p50_us": statistics.median(times) * 1e6}


def idle(broker: Broker, seconds: float) -> Row:
    """Memory of a connection with one link to a topic."""
    raise_descriptor_limit(CONNECTIONS + 200)
    first = Client(broker.port, "first")
    first.receiver(broker.address("topic", "idle"), "topic", settled=True, credit=10)
    time.sleep(0.5)
    before = resident_bytes([broker.pid])
    clients = []
    for number in range(CONNECTIONS):
        client = Client(broker.port, f"c{number}")
        client.receiver(broker.address("topic", f"idle/{number}"), "topic", settled=True, credit=10)
        clients.append(client)
    time.sleep(0.5)
    after = resident_bytes([broker.pid])
    for client in clients:
        client.sock.close()
    _ = seconds
    return {"bytes_per_connection": (after - before) / CONNECTIONS}


ROWS: Final = {
    "direct": direct,
    "guaranteed": guaranteed,
    "transactions": transactions,
    "idle": idle,
}


def started(
    broker: str, options: argparse.Namespace, core: int | None, *, persistent: bool
) -> contextlib.AbstractContextManager[Broker]:
    """A broker by its name."""
    if broker == "ours":
        return ours(options.router_command, core)
    if broker == "rabbitmq":
        return rabbitmq(core)
    return artemis(options.artemis, core, persistent=persistent)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print each figure of each round and the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(ROWS))
    parser.add_argument("--brokers", default="ours,artemis")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--router-command", default=str(Path(sys.executable).parent / "vpnrouter"))
    parser.add_argument("--artemis", default=".peers/artemis")
    options = parser.parse_args(arguments)
    pinned = cores()
    if pinned is not None:
        os.sched_setaffinity(0, {pinned[1]})
    core = None if pinned is None else pinned[0]
    for name in options.only.split(","):
        found: dict[tuple[str, str], list[float]] = {}
        for _ in range(options.rounds):
            for broker in options.brokers.split(","):
                persistent = name in ("guaranteed", "transactions")
                if broker == "rabbitmq" and name == "transactions":
                    continue
                with started(broker, options, core, persistent=persistent) as site:
                    row = ROWS[name](site, options.seconds)
                for metric, value in row.items():
                    found.setdefault((broker, metric), []).append(value)
        for (broker, metric), values in found.items():
            rounds = " ".join(f"{value:,.0f}" for value in values)
            print(
                f"{name} {broker} {metric}: {statistics.median(values):,.0f} ({rounds})", flush=True
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
