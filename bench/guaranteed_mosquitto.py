"""Runs Eclipse mosquitto with persistent sessions and its own bridge."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from typing_extensions import override

from bench import guaranteed_mqtt as mqtt
from bench.guaranteed_body import TOPIC
from bench.guaranteed_ends import Consumer, Producer
from bench.guaranteed_flow import AHEAD
from bench.guaranteed_products import UNKNOWN, WINDOW, Running, Store
from bench.mosquitto import Mosquitto
from bench.processes import accepts, free_port, running, wait_until
from bench.products import Address, find

_LINK = """\
connection edge
address 127.0.0.1:{port}
topic spool/# in {qos}
cleansession false
try_private true
bridge_protocol_version mqttv311
"""


class StoringMosquitto(Mosquitto, Store):
    """mosquitto with `persistence true`. `qos` is what publishers and the bridge use."""

    syncs = "nothing: sessions are in memory, one file is written on exit and every 30 minutes"

    def __init__(self, qos: int = 1) -> None:
        self.name = "mosquitto" if qos == 1 else "mosquitto-qos2"
        self._qos = qos
        # At QoS 2 a bridge of 2.0.11 stops for ever once a limit of messages in flight is reached,
        # and without a limit it searches them all for each one: the fewer, the faster.
        self.window = WINDOW if qos == 1 else 50
        self.ahead = AHEAD if qos == 1 else 400
        self._inflight = 2000 if qos == 1 else 0

    @override
    @contextlib.contextmanager
    def start(self, folder: Path, core: int | None) -> Iterator[Running]:
        with self._storing(folder, core, "") as (address, pid, took):
            yield Running(address, address, [pid], took)

    @override
    @contextlib.contextmanager
    def linked(self, near: Path, far: Path, core: int | None) -> Iterator[Running]:
        with self._storing(near, core, "") as (first, first_pid, took):
            link = _LINK.format(port=first[1], qos=self._qos)
            with self._storing(far, core, link) as (second, second_pid, _):
                self.prepare(second, 1)
                time.sleep(2)  # the bridge comes up; nothing tells when
                yield Running(first, second, [first_pid, second_pid], took)

    @override
    def prepare(self, at: Address, consumers: int) -> None:
        """A session for each consumer; several share the subscription."""
        topic = TOPIC if consumers == 1 else f"$share/bench/{TOPIC}"
        for number in range(consumers):
            with mqtt.login(at, self._session(number), clean=False) as sock:
                mqtt.subscribe(sock, topic)

    @override
    def producer(self, at: Address, number: int, window: int) -> Producer:
        return mqtt.producer(at, number, window, self._qos)

    @override
    def consumer(self, at: Address, number: int, of: int) -> Consumer:
        """The session goes on, and with it the subscription."""
        return mqtt.consumer(at, self._session(number))

    @override
    def waiting(self, at: Address) -> int:
        return UNKNOWN

    def _session(self, number: int) -> str:
        return f"bench-consumer-{number}"

    @contextlib.contextmanager
    def _storing(
        self, folder: Path, core: int | None, link: str
    ) -> Iterator[tuple[Address, int, float]]:
        port = free_port()
        lines = [
            f"listener {port} 127.0.0.1",
            "allow_anonymous true",
            "persistence true",
            f"persistence_location {folder}/",
            "set_tcp_nodelay true",
            "max_queued_messages 0",
            "max_queued_bytes 0",
            f"max_inflight_messages {self._inflight}",
            "log_type error",
            "connection_messages false",
        ]
        if os.geteuid() == 0:
            lines.append("user root")  # any other could not use the folder
        config = folder / "mosquitto.conf"
        config.write_text("\n".join(lines) + "\n" + link, encoding="utf-8")
        log = folder / "log"
        command = [find("mosquitto") or "mosquitto", "-c", str(config)]
        begin = time.perf_counter()
        with running(command, core=core, log=log) as process:
            wait_until(lambda: accepts(port), process, log)
            yield ("127.0.0.1", port), process.pid, time.perf_counter() - begin
