"""Compares what mosquitto takes from a connector with what it takes from a client: `python -m bench.connectors`.

A generator publishes at QoS 0 or 1 to mosquitto, and to our router, whose connector takes the messages out to
mosquitto. In both cases a subscriber at mosquitto counts, and the generator is never further ahead of it than a
window. mosquitto has one core; generator, subscriber and router share the other.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import select
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from bench.machine import cores
from bench.processes import accepts, free_port, running, wait_until
from bench.products import find
from vpnrouter.wire.mqtt.encode import encode, encode_publish
from vpnrouter.wire.mqtt.packets import Connect, Publish, Subscribe, SubscriptionRequest

TOPIC: Final = b"bench/a"
PAYLOAD: Final = b"x" * 64
AHEAD: Final = 5_000
"""Messages between generator and subscriber at most, and packet identifiers in use."""
BATCH: Final = 250
WARM_S: Final = 1.0

OURS: Final = """\
router: {name: bench, data_dir: %(folder)s/data}
listeners:
  - {protocol: mqtt, bind: "127.0.0.1:%(port)d", msg_vpn: bench}
msg_vpns:
  bench:
    authentication: {basic: {enabled: false}}
    max_msg_spool_usage: 2000
    connectors:
      mosquitto:
        provider: {url: "mqtt://127.0.0.1:%(provider)d", mqtt_version: "5", connect: {retry_delay: 0}}
        links: {out: {source: {topic: ">"}, quality_of_service: %(quality)s}}
"""


def connected(port: int, name: str, subscribed: int | None = None) -> socket.socket:
    """A client of MQTT 3.1.1, logged in and, with a QoS, subscribed."""
    sock = socket.create_connection(("127.0.0.1", port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.sendall(encode(Connect(name, protocol_level=4), 4))
    sock.recv(4, socket.MSG_WAITALL)
    if subscribed is not None:
        request = SubscriptionRequest(TOPIC.decode(), subscribed)
        sock.sendall(encode(Subscribe(1, [request]), 4))
        sock.recv(5, socket.MSG_WAITALL)
    return sock


def batches(qos: int) -> list[bytes]:
    """PUBLISH frames, BATCH in each, over all packet identifiers."""
    frames = [
        encode(Publish(TOPIC, PAYLOAD, qos, packet_id=number if qos else 0), 4)
        for number in range(1, AHEAD * 2 + 1)
    ]
    return [b"".join(frames[at : at + BATCH]) for at in range(0, len(frames), BATCH)]


def rate(at: int, provider: int, qos: int, seconds: float) -> float:
    """Messages a second that arrive at mosquitto on port `provider`, published at port `at`."""
    receiver = connected(provider, "receiver", 0)
    sender = connected(at, "sender")
    size = len(encode_publish(TOPIC, PAYLOAD, 4))
    made = batches(qos)
    sent = received = got = 0
    rest = b""
    begin_s = time.perf_counter()
    from_s, from_count = 0.0, 0
    for sock in (receiver, sender):
        sock.setblocking(False)
    while True:
        now_s = time.perf_counter()
        if not from_s and now_s - begin_s > WARM_S:
            from_s, from_count = now_s, received
        if from_s and now_s - from_s > seconds:
            break
        if not rest and sent - received <= AHEAD - BATCH:
            rest = made[sent // BATCH % len(made)]
            sent += BATCH
        wants = [sender] if rest else []
        readable, writable, _ = select.select([receiver, sender], wants, [], 0.05)
        if receiver in readable:
            got += len(receiver.recv(1 << 20))
            received = got // size
        if sender in readable:
            sender.recv(1 << 20)
        if writable:
            rest = rest[sender.send(rest) :]
    found = (received - from_count) / (now_s - from_s)
    receiver.close()
    sender.close()
    return found


@contextlib.contextmanager
def mosquitto(core: int | None) -> Iterator[int]:
    """The broker; its port."""
    with tempfile.TemporaryDirectory(prefix="bench-connectors-") as folder:
        port = free_port()
        file = Path(folder) / "mosquitto.conf"
        bounds = "max_inflight_messages 0\nmax_queued_messages 0\nset_tcp_nodelay true\n"
        file.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\n{bounds}")
        log = Path(folder) / "log"
        program = find("mosquitto") or "mosquitto"
        with running([program, "-c", str(file)], core=core, log=log) as process:
            wait_until(lambda: accepts(port), process, log)
            yield port


@contextlib.contextmanager
def ours(command: str, core: int | None, provider: int, qos: int) -> Iterator[int]:
    """Our router with its connector; its port."""
    with tempfile.TemporaryDirectory(prefix="bench-connectors-") as folder:
        port = free_port()
        quality = ("at-most-once", "duplicates-ok")[qos]
        file = Path(folder) / "router.yaml"
        values = {"folder": folder, "port": port, "provider": provider, "quality": quality}
        file.write_text(OURS % values)
        log = Path(folder) / "log"
        with running([*command.split(), "run", str(file)], core=core, log=log) as process:
            wait_until(lambda: " up: mqtt://" in log.read_text(), process, log)
            yield port


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure in turn, and print each rate and the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--router-command", default=str(Path(sys.executable).parent / "vpnrouter"))
    options = parser.parse_args(arguments)
    pinned = cores()
    own, theirs = (None, None) if pinned is None else pinned
    if own is not None:
        os.sched_setaffinity(0, {own})
    for qos in (0, 1):
        found: dict[str, list[float]] = {"client": [], "connector": []}
        for _ in range(options.rounds):
            for way, rates in found.items():
                with contextlib.ExitStack() as stack:
                    provider = stack.enter_context(mosquitto(theirs))
                    at = provider
                    if way == "connector":
                        at = stack.enter_context(ours(options.router_command, own, provider, qos))
                    rates.append(rate(at, provider, qos, options.seconds))
        for way, rates in found.items():
            shown = " ".join(f"{each:,.0f}" for each in rates)
            print(f"QoS {qos} by a {way}: {statistics.median(rates):,.0f}/s ({shown})", flush=True)
        ratio = statistics.median(found["connector"]) / statistics.median(found["client"])
        print(f"QoS {qos}: {ratio:.2f} of what mosquitto takes from a client", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
