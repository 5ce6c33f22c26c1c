"""Runs Eclipse mosquitto."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from typing_extensions import override

from bench.dialects import MQTT
from bench.processes import accepts, free_port, running, wait_until
from bench.products import (
    CERTIFICATE,
    KEY,
    MQTT_BY,
    Access,
    Product,
    Site,
    certify,
    directory,
    find,
    first_line,
)


class Mosquitto(Product):
    """Eclipse mosquitto and its own bridge."""

    name = "mosquitto"
    accesses = frozenset(Access)

    @override
    def missing(self) -> str:
        return "" if find("mosquitto") else "mosquitto is not installed (Debian package mosquitto)"

    @override
    def version(self) -> str:
        return first_line([find("mosquitto") or "mosquitto", "-h"])

    @override
    @contextlib.contextmanager
    def single(self, core: int | None, access: Access = Access.PLAIN) -> Iterator[Site]:
        with directory(self.name) as folder:
            tls = certify(folder) if access is Access.TLS else None
            more = {
                Access.TLS: f"certfile {folder / CERTIFICATE}\nkeyfile {folder / KEY}\n",
                # 2.0.11 does not start with WebSocket listeners alone.
                Access.WEBSOCKET: f"protocol websockets\nlistener {free_port()} 127.0.0.1\n",
            }.get(access, "")
            with self._broker(folder, core, more) as (port, pid, took):
                address = ("127.0.0.1", port)
                yield Site(MQTT_BY[access], address, address, [pid], core, [took], tls)

    @override
    @contextlib.contextmanager
    def bridged(self, core: int | None) -> Iterator[Site]:
        with contextlib.ExitStack() as stack:
            near, far = (
                stack.enter_context(directory(self.name)),
                stack.enter_context(directory(self.name)),
            )
            first, first_pid, first_took = stack.enter_context(self._broker(near, core, ""))
            link = (
                f"connection edge\naddress 127.0.0.1:{first}\ntopic # in 0\n"
                "bridge_protocol_version mqttv311\n"
            )
            second, second_pid, second_took = stack.enter_context(self._broker(far, core, link))
            yield Site(
                MQTT,
                ("127.0.0.1", first),
                ("127.0.0.1", second),
                [first_pid, second_pid],
                core,
                [first_took, second_took],
            )

    @contextlib.contextmanager
    def _broker(
        self, folder: Path, core: int | None, link: str
    ) -> Iterator[tuple[int, int, float]]:
        port = free_port()
        lines = [
            f"listener {port} 127.0.0.1",
            "allow_anonymous true",
            "persistence false",
            "set_tcp_nodelay true",
            "max_queued_messages 0",
            "max_queued_bytes 0",
            "log_type error",
            "connection_messages false",
        ]
        if os.geteuid() == 0:
            lines.append(
                "user root"
            )  # it would drop to an account that cannot read a temporary directory
        (folder / "mosquitto.conf").write_text("\n".join(lines) + "\n" + link, encoding="utf-8")
        log = folder / "log"
        command = [find("mosquitto") or "mosquitto", "-c", str(folder / "mosquitto.conf")]
        begin = time.perf_counter()
        with running(command, core=core, log=log) as process:
            wait_until(lambda: accepts(port), process, log)
            yield port, process.pid, time.perf_counter() - begin
