"""Runs Mochi MQTT, a broker in Go."""

from __future__ import annotations

import contextlib
import re
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import yaml
from typing_extensions import override

from bench.processes import accepts, free_port, running, wait_until
from bench.products import MQTT_BY, Access, Product, Site, directory, find

CAPABILITIES = {
    "maximum_clients": 1_000_000,
    # By default it drops what goes beyond 8,192 messages that wait for one client.
    "maximum_client_writes_pending": 4_194_304,
    "maximum_session_expiry_interval": 3_600,
    "receive_maximum": 1_024,
    "maximum_inflight": 8_192,
    "topic_alias_maximum": 65_535,
    "minimum_protocol_version": 3,
    "maximum_qos": 2,
    "retain_available": 1,
    "shared_sub_available": 1,
    "wildcard_sub_available": 1,
    "sub_id_available": 1,
}
"""All of them: what a configuration leaves out is 0."""


class Mochi(Product):
    """The program `cmd/docker` of Mochi MQTT, which reads a configuration. It has no bridges."""

    name = "mochi"
    accesses = frozenset({Access.PLAIN, Access.WEBSOCKET, Access.PROPERTIES})
    bridges = False

    @override
    def missing(self) -> str:
        if find("mochi"):
            return ""
        return (
            "mochi is not installed (go install github.com/mochi-mqtt/server/v2/cmd/docker@latest,"
            " under the name mochi first in PATH)"
        )

    @override
    def version(self) -> str:
        # It has no option that shows it: Go's own tool knows the module in the program.
        try:
            done = subprocess.run(
                ["go", "version", "-m", find("mochi") or "mochi"],
                capture_output=True,
                check=False,
                text=True,
            )
        except OSError:
            return "mochi of unknown version"
        found = re.search(r"^\s*mod\s+\S+\s+(\S+)", done.stdout, re.MULTILINE)
        return f"mochi {found[1]}" if found else "mochi of unknown version"

    @override
    @contextlib.contextmanager
    def single(self, core: int | None, access: Access = Access.PLAIN) -> Iterator[Site]:
        port = free_port()
        kind = "ws" if access is Access.WEBSOCKET else "tcp"
        config: dict[str, Any] = {
            "listeners": [{"type": kind, "id": "bench", "address": f"127.0.0.1:{port}"}],
            "hooks": {"auth": {"allow_all": True}},
            "options": {"capabilities": CAPABILITIES},
        }
        with directory(self.name) as folder:
            file = folder / "mochi.yaml"
            file.write_text(yaml.safe_dump(config), encoding="utf-8")
            log = folder / "log"
            command = [find("mochi") or "mochi", "-config", str(file)]
            begin = time.perf_counter()
            one_thread = {"GOMAXPROCS": "1"} if core is not None else {}
            with running(command, core=core, log=log, environment=one_thread) as process:
                wait_until(lambda: accepts(port), process, log)
                address = ("127.0.0.1", port)
                took = time.perf_counter() - begin
                yield Site(MQTT_BY[access], address, address, [process.pid], core, [took])

    @override
    def bridged(self, core: int | None) -> contextlib.AbstractContextManager[Site]:
        raise NotImplementedError(core)
