"""Runs nats-server with JetStream; GOMAXPROCS=1 if it has one core."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

from typing_extensions import override

from bench import guaranteed_jetstream as jetstream
from bench.guaranteed_ends import Consumer, Producer
from bench.guaranteed_flow import AHEAD
from bench.guaranteed_products import WINDOW, Running, Store
from bench.nats import NatsServer
from bench.processes import accepts, free_port, running, wait_until
from bench.products import Address, find


class JetStreamServer(NatsServer, Store):
    """A stream in files. Version 2.9 has no setting for when files are synced."""

    syncs = "nothing: files are written, and no sync call comes before an acknowledgement"
    window = WINDOW
    ahead = AHEAD

    @override
    @contextlib.contextmanager
    def start(self, folder: Path, core: int | None) -> Iterator[Running]:
        port = free_port()
        lines = [
            'host: "127.0.0.1"',
            f"port: {port}",
            "max_pending: 512MB",
            'write_deadline: "60s"',
            'ping_interval: "1h"',
            f'server_name: "bench-{port}"',
            f'jetstream {{ store_dir: "{folder}/js", max_file_store: 64GB }}',
        ]
        config = folder / "nats.conf"
        config.write_text("\n".join(lines) + "\n", encoding="utf-8")
        log = folder / "log"
        program = find("nats-server") or "nats-server"
        command = [program, "-c", str(config), "-l", str(folder / "nats.log")]
        begin = time.perf_counter()
        limit = {} if core is None else {"GOMAXPROCS": "1"}
        with running(command, core=core, log=log, environment=limit) as process:
            wait_until(lambda: accepts(port), process, folder / "nats.log")
            took = time.perf_counter() - begin
            yield Running(("127.0.0.1", port), ("127.0.0.1", port), [process.pid], took)

    @override
    def linked(
        self, near: Path, far: Path, core: int | None
    ) -> contextlib.AbstractContextManager[Running]:
        raise RuntimeError("JetStream's sources are not measured")

    @override
    def prepare(self, at: Address, consumers: int) -> None:
        jetstream.prepare(at, consumers)

    @override
    def producer(self, at: Address, number: int, window: int) -> Producer:
        return jetstream.producer(at, number, window)

    @override
    def consumer(self, at: Address, number: int, of: int) -> Consumer:
        return jetstream.consumer(at, number, of)

    @override
    def waiting(self, at: Address) -> int:
        return jetstream.waiting(at)
