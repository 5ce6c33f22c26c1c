"""Runs this project's router, with access rules and 1 % tracing by default."""

from __future__ import annotations

import contextlib
import os
import re
import select
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from typing_extensions import override

from bench.dialects import MQTT
from bench.processes import START_SECONDS, running, tail
from bench.products import (
    CERTIFICATE,
    KEY,
    MQTT_BY,
    Access,
    Address,
    Product,
    Site,
    certify,
    directory,
    first_line,
)

_RULES = """\
        client_connect: {exceptions: ["192.0.2.0/24"]}
        publish_topic: {exceptions: ["private/>"]}
        subscribe_topic: {exceptions: ["private/>"]}
"""
"""Rules that refuse nothing here but have to be asked."""

_BRIDGE_USER = """\
    client_profiles:
      bridging: {allow_bridge_connections_enabled: true}
    client_usernames:
      core-bridge: {password: bench, client_profile: bridging}
"""
_BRIDGE = """\
    bridges:
      from-blue:
        remote_authentication:
          scheme: basic
          basic: {client_username: core-bridge, password: bench}
        remote_msg_vpns:
          - {name: blue, router: edge, location: "LOCATION", connect_order: 1}
        remote_subscriptions: ["bench/>"]
"""


_PROTOCOLS = {Access.TLS: "mqtts", Access.WEBSOCKET: "ws"}
"""Of its listener; `mqtt` where nothing is said."""


class Vpnrouter(Product):
    """This project's router. `sample` is the share of messages that are traced."""

    accesses = frozenset(Access)

    def __init__(self, command: str = "", sample: float = 0.01, name: str = "ours") -> None:
        """`command` begins a router when `run CONFIG` is appended; the default is this
        environment's own.
        """
        self.name = name
        self.sample = sample
        self.command = shlex.split(command) or [str(Path(sys.executable).parent / "vpnrouter")]

    @override
    def missing(self) -> str:
        return "" if shutil.which(self.command[0]) else f"{self.command[0]} is not there"

    @override
    def version(self) -> str:
        return first_line([*self.command, "--version"])

    def is_compiled(self) -> bool:
        """Whether the build under test says that it is the compiled one."""
        return "compiled" in re.sub(r"not compiled|uncompiled", "", self.version())

    @override
    @contextlib.contextmanager
    def single(self, core: int | None, access: Access = Access.PLAIN) -> Iterator[Site]:
        with directory("vpnrouter") as folder:
            tls = certify(folder) if access is Access.TLS else None
            config = self._config(folder, "edge", "blue", "", access)
            dialect = MQTT_BY[access]
            with self._router(folder, config, core) as (ports, pid, took):
                address = ports[_PROTOCOLS.get(access, "mqtt")]
                yield Site(dialect, address, address, [pid], core, [took], tls, ports["http"])

    @override
    @contextlib.contextmanager
    def bridged(self, core: int | None) -> Iterator[Site]:
        with contextlib.ExitStack() as stack:
            near = stack.enter_context(directory("vpnrouter"))
            far = stack.enter_context(directory("vpnrouter"))
            edge = self._config(near, "edge", "blue", _BRIDGE_USER)
            first, first_pid, first_took = stack.enter_context(self._router(near, edge, core))
            host, port = first["link"]
            bridge = _BRIDGE.replace("LOCATION", f"{host}:{port}")
            core_config = self._config(far, "core", "yellow", bridge)
            second, second_pid, second_took = stack.enter_context(
                self._router(far, core_config, core)
            )
            yield Site(
                MQTT,
                first["mqtt"],
                second["mqtt"],
                [first_pid, second_pid],
                core,
                [first_took, second_took],
                management=first["http"],
            )

    def _config(
        self, folder: Path, router: str, vpn: str, more: str, access: Access = Access.PLAIN
    ) -> Path:
        tls = ""
        if access is Access.TLS:
            tls = f", tls: {{certificate: {folder / CERTIFICATE}, key: {folder / KEY}}}"
        text = (
            f"router:\n  name: {router}\n  data_dir: {folder}/data\nlisteners:\n"
            f"  - {{protocol: {_PROTOCOLS.get(access, 'mqtt')}, msg_vpn: {vpn},"
            f' bind: "127.0.0.1:0"{tls}}}\n'
            '  - {protocol: link, bind: "127.0.0.1:0"}\n'
            '  - {protocol: http, bind: "127.0.0.1:0"}\n'
            f"trace:\n  directory: {folder}/traces\n  sample: {self.sample}\n"
            f"msg_vpns:\n  {vpn}:\n    authentication: {{basic: {{enabled: false}}}}\n"
            f"    acl_profiles:\n      default:\n{_RULES}"
        )
        path = folder / f"{router}.yaml"
        path.write_text(text + more, encoding="utf-8")
        return path

    @contextlib.contextmanager
    def _router(
        self, folder: Path, config: Path, core: int | None
    ) -> Iterator[tuple[dict[str, Address], int, float]]:
        log = folder / "log"
        begin = time.perf_counter()
        with running([*self.command, "run", str(config)], core=core, log=log) as process:
            ports = ready_addresses(ready_line(process, log))
            yield ports, process.pid, time.perf_counter() - begin


def ready_line(process: subprocess.Popen[bytes], log: Path) -> str:
    """The first line of the process's stdout."""
    if process.stdout is None:
        raise RuntimeError("the process has no pipe for its ready line")
    descriptor = process.stdout.fileno()
    end = time.monotonic() + START_SECONDS
    line = b""
    while not line.endswith(b"\n"):
        readable, _, _ = select.select([descriptor], [], [], max(0.0, end - time.monotonic()))
        chunk = os.read(descriptor, 1) if readable else b""
        if not chunk:
            raise RuntimeError(f"no ready line: {line!r} {tail(log)}")
        line += chunk
    return line.decode()


def ready_addresses(line: str) -> dict[str, Address]:
    """`ready router=NAME mqtt=HOST:PORT link=HOST:PORT …` → the first address of each key."""
    words = line.split()
    if not words or words[0] != "ready":
        raise RuntimeError(f"not a ready line: {line!r}")
    addresses: dict[str, Address] = {}
    for word in words[1:]:
        key, _, value = word.partition("=")
        host, colon, port = value.rpartition(":")
        if colon and port.isdigit():
            addresses.setdefault(key, (host.strip("[]"), int(port)))
    return addresses
