"""Runs nats-server on one core: GOMAXPROCS=1."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

from typing_extensions import override

from bench.dialects import NATS
from bench.processes import accepts, free_port, running, wait_until
from bench.products import (
    CERTIFICATE,
    KEY,
    Access,
    Product,
    Site,
    certify,
    directory,
    find,
    first_line,
)


class NatsServer(Product):
    """nats-server and its leaf nodes."""

    name = "nats"
    accesses = frozenset({Access.PLAIN, Access.TLS})

    @override
    def missing(self) -> str:
        return (
            ""
            if find("nats-server")
            else "nats-server is not installed (Debian package nats-server)"
        )

    @override
    def version(self) -> str:
        return first_line([find("nats-server") or "nats-server", "--version"])

    @override
    @contextlib.contextmanager
    def single(self, core: int | None, access: Access = Access.PLAIN) -> Iterator[Site]:
        with directory(self.name) as folder:
            tls, more = None, ""
            if access is Access.TLS:
                tls = certify(folder)
                files = f'cert_file: "{folder / CERTIFICATE}", key_file: "{folder / KEY}"'
                more = f"tls {{ {files} }}\n"
            with self._broker(folder, core, more) as (port, pid, took):
                address = ("127.0.0.1", port)
                yield Site(NATS, address, address, [pid], core, [took], tls)

    @override
    @contextlib.contextmanager
    def bridged(self, core: int | None) -> Iterator[Site]:
        with contextlib.ExitStack() as stack:
            near, far = (
                stack.enter_context(directory(self.name)),
                stack.enter_context(directory(self.name)),
            )
            leaf = free_port()
            hub = f'leafnodes {{ host: "127.0.0.1", port: {leaf} }}\n'
            first, first_pid, first_took = stack.enter_context(self._broker(near, core, hub))
            url = f"nats-leaf://127.0.0.1:{leaf}"
            remote = f'leafnodes {{ remotes: [ {{ url: "{url}" }} ], reconnect: 1 }}\n'
            second, second_pid, second_took = stack.enter_context(self._broker(far, core, remote))
            yield Site(
                NATS,
                ("127.0.0.1", first),
                ("127.0.0.1", second),
                [first_pid, second_pid],
                core,
                [first_took, second_took],
            )

    @contextlib.contextmanager
    def _broker(
        self, folder: Path, core: int | None, more: str
    ) -> Iterator[tuple[int, int, float]]:
        port = free_port()
        lines = [
            'host: "127.0.0.1"',
            f"port: {port}",
            "max_pending: 512MB",
            'write_deadline: "60s"',
            'ping_interval: "1h"',
            f'server_name: "bench-{port}"',
        ]
        (folder / "nats.conf").write_text("\n".join(lines) + "\n" + more, encoding="utf-8")
        log = folder / "log"
        command = [
            find("nats-server") or "nats-server",
            "-c",
            str(folder / "nats.conf"),
            "-l",
            str(folder / "nats.log"),
        ]
        begin = time.perf_counter()
        with running(command, core=core, log=log, environment={"GOMAXPROCS": "1"}) as process:
            wait_until(lambda: accepts(port), process, log)
            yield port, process.pid, time.perf_counter() - begin
