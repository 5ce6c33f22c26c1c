"""Loses Direct messages or not, on a machine that is busy with others: `python -m bench.crowded`.

Publishers send as fast as they are read, without a window, and receivers read as fast as they come to it, while two
other processes of the same priority want a core each. No message may be lost (promise DIRECT): exit code 1 where one
is. Nothing is bound to a core. `--router-command` runs another build.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import selectors
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event
from typing import Any, Final

from bench.amqp_client import Client
from bench.clients import connect
from bench.dialects import MQTT
from bench.machine import raise_descriptor_limit
from bench.ours import Vpnrouter, ready_addresses, ready_line
from bench.processes import running
from bench.products import Address, directory

CONFIG: Final = """\
router: {{name: bench, data_dir: {folder}/data}}
listeners:
  - {{protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}}
  - {{protocol: amqp, bind: "127.0.0.1:0", msg_vpn: blue}}
msg_vpns:
  blue: {{authentication: {{basic: {{enabled: false}}}}}}
"""

BURST_BYTES: Final = 1 << 18
QUIET_S: Final = 4.0
"""So long without any arrival means that what is missing is lost."""

CREDIT: Final = 1 << 30
SPAWN: Final = multiprocessing.get_context("spawn")


@dataclass(frozen=True)
class Case:
    """One row: publishers, receivers (of one topic each, or all of the same), bytes, and what is between."""

    name: str
    publishers: int
    receivers: int
    size: int
    way: str = "mqtt"

    @property
    def topics(self) -> int:
        """Topics, one for each publisher."""
        return self.publishers

    @property
    def copies(self) -> int:
        """Receivers of each message."""
        return self.receivers if self.publishers == 1 else 1


CASES: Final = (
    *(Case(f"1 to 1, {size} B", 1, 1, size) for size in (64, 1_024, 16_384)),
    *(Case(f"100 to 100, {size} B", 100, 100, size) for size in (64, 1_024, 16_384)),
    *(Case(f"1 to 50, {size} B", 1, 50, size) for size in (64, 1_024, 16_384)),
    Case("bridge, 1024 B", 1, 1, 1_024, "bridge"),
    Case("bridge, 16384 B", 1, 1, 16_384, "bridge"),
    Case("AMQP, 1024 B", 1, 1, 1_024, "amqp"),
    Case("AMQP, 16384 B", 1, 1, 16_384, "amqp"),
)


def frame_of(case: Case, topic: int) -> bytes:
    """What a publisher sends; MQTT receivers get the same bytes."""
    return MQTT.publish(MQTT.topic(topic), bytes(case.size))


# -- processes -----------------------------------------------------------------------------------------


def publish(case: Case, at: Address, seconds: float, sent: Synchronized[int], go: Event) -> None:
    """Send whole frames for some seconds; `sent` is how many."""
    raise_descriptor_limit(4_096)
    socks = [connect(MQTT, at, f"p{number}") for number in range(case.publishers)]
    frames = [frame_of(case, number) for number in range(case.topics)]
    bursts = [memoryview(frame * max(1, BURST_BYTES // len(frame))) for frame in frames]
    places = [0] * len(socks)
    done = [0] * len(socks)
    with selectors.DefaultSelector() as selector:
        for number, sock in enumerate(socks):
            sock.setblocking(False)
            selector.register(sock, selectors.EVENT_WRITE, number)
        go.wait()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for key, _ in selector.select(0.1):
                number = key.data
                with contextlib.suppress(BlockingIOError):
                    count = socks[number].send(bursts[number][places[number] :])
                    done[number] += count
                    places[number] = (places[number] + count) % len(bursts[number])
    for number, sock in enumerate(socks):
        # The frame that was cut is completed, so that each byte counts.
        size = len(frames[number])
        sock.setblocking(True)
        sock.settimeout(30)
        rest = -done[number] % size
        sock.sendall(frames[number][size - rest :] if rest else b"")
        done[number] += rest
        sent.value += done[number] // size
    # Killed in the end: a socket that is closed takes with it what the router has not read yet.
    time.sleep(3_600)


def receive_mqtt(case: Case, at: Address, got: Synchronized[int], ready: Event) -> None:
    """Read all that comes; `got` counts messages."""
    raise_descriptor_limit(4_096)
    socks: dict[int, socket.socket] = {}
    with selectors.DefaultSelector() as selector:
        for number in range(case.receivers):
            sock = connect(MQTT, at, f"r{number}")
            topic = 0 if case.publishers == 1 else number
            MQTT.subscribe(sock, [MQTT.topic(topic)])
            selector.register(sock, selectors.EVENT_READ, len(frame_of(case, topic)))
            socks[sock.fileno()] = sock
        left: dict[int, int] = {}
        ready.set()
        buffer = bytearray(BURST_BYTES)
        while True:
            for key, _ in selector.select():
                count = socks[key.fd].recv_into(buffer)
                whole, left[key.fd] = divmod(left.get(key.fd, 0) + count, key.data)
                got.value += whole
                if not count:
                    selector.unregister(key.fd)


def receive_amqp(_: Case, at: Address, got: Synchronized[int], ready: Event) -> None:
    """Read all that comes over one link with much credit."""
    client = Client(at[1], "r")
    client.receiver(MQTT.topic(0), "topic", settled=True, credit=CREDIT)
    ready.set()
    data = client.left
    while True:
        pos = 0
        while len(data) - pos >= 4 and len(data) - pos >= (
            size := int.from_bytes(data[pos : pos + 4], "big")
        ):
            # Transfers alone are longer than what else comes.
            got.value += size > 40
            pos += size
        data = data[pos:] + client.sock.recv(BURST_BYTES)


def spin() -> None:
    """A neighbour that wants a core."""
    while True:
        pass


@contextlib.contextmanager
def started(work: Callable[..., None], *arguments: Any) -> Iterator[None]:  # noqa: ANN401 - of any process
    """A process for a while."""
    process = SPAWN.Process(target=work, args=arguments, daemon=True)
    process.start()
    try:
        yield
    finally:
        process.kill()
        process.join()


@contextlib.contextmanager
def routers(case: Case, command: str) -> Iterator[tuple[Address, Address]]:
    """Where to publish, and where to subscribe."""
    product = Vpnrouter(command)
    if case.way == "bridge":
        with product.bridged(None) as site:
            time.sleep(2)
            yield site.publish_to, site.subscribe_at
        return
    with directory("crowded") as folder:
        path = folder / "router.yaml"
        path.write_text(CONFIG.format(folder=folder), encoding="utf-8")
        log = folder / "log"
        with running([*product.command, "run", str(path)], core=None, log=log) as process:
            ports = ready_addresses(ready_line(process, log))
            yield ports["mqtt"], ports[case.way]


def measure(case: Case, command: str, seconds: float, neighbours: int) -> tuple[int, int]:
    """Messages that should have arrived, and that did."""
    sent, got = SPAWN.Value("Q", 0), SPAWN.Value("Q", 0)
    ready, go = SPAWN.Event(), SPAWN.Event()
    with contextlib.ExitStack() as stack:
        publish_to, subscribe_at = stack.enter_context(routers(case, command))
        receive = receive_amqp if case.way == "amqp" else receive_mqtt
        stack.enter_context(started(receive, case, subscribe_at, got, ready))
        if not ready.wait(60):
            raise TimeoutError("the receivers are not ready")
        time.sleep(1)
        stack.enter_context(started(publish, case, publish_to, seconds, sent, go))
        for _ in range(neighbours):
            stack.enter_context(started(spin))
        time.sleep(1)
        go.set()
        before, quiet = 0, time.monotonic()
        while time.monotonic() < quiet + QUIET_S + seconds * (not before):
            time.sleep(0.1)
            if got.value != before:
                before, quiet = got.value, time.monotonic()
        return sent.value * case.copies, got.value


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases and print a row for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--router-command", default="", help="starts a router with `run CONFIG`")
    parser.add_argument("--only", default="", help="part of the names of cases")
    parser.add_argument("--seconds", type=float, default=4.0, help="of publishing")
    parser.add_argument("--neighbours", type=int, default=2, help="processes that want a core each")
    options = parser.parse_args(arguments)
    print(f"{'case':22} {'sent':>12} {'lost':>10} {'share':>8} {'MB/s':>8}")
    lost = 0
    for case in CASES:
        if options.only in case.name:
            sent, got = measure(case, options.router_command, options.seconds, options.neighbours)
            lost += sent - got
            share = (sent - got) / sent if sent else 1.0
            rate = got * case.size / options.seconds / 1e6
            print(
                f"{case.name:22} {sent:12,} {sent - got:10,} {share:8.2%} {rate:8.0f}", flush=True
            )
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
