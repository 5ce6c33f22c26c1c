"""RabbitMQ over AMQP 0-9-1 with publisher confirms; its shovel as the link. One scheduler where it
has one core.
"""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from typing_extensions import override

from bench import guaranteed_amqp as amqp
from bench.guaranteed_body import QUEUE
from bench.guaranteed_ends import Consumer, Producer
from bench.guaranteed_flow import AHEAD
from bench.guaranteed_products import WINDOW, Running, Store
from bench.processes import free_port, running, tail
from bench.products import Address, find

_PROGRAM = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
"""Debian's own command on the path would change to the account and the directories of the service.
"""
_START_SECONDS = 120.0
_SHOVEL = """\
[{{rabbitmq_shovel, [{{shovels, [{{bench, [
  {{source, [{{protocol, amqp091}}, {{uris, ["amqp://guest:guest@127.0.0.1:{near}"]}},
            {{queue, <<"{queue}">>}}, {{prefetch_count, 2000}}]}},
  {{destination, [{{protocol, amqp091}}, {{uris, ["amqp://guest:guest@127.0.0.1:{far}"]}},
                 {{publish_properties, [{{delivery_mode, 2}}]}},
                 {{publish_fields, [{{exchange, <<"">>}}, {{routing_key, <<"{queue}">>}}]}}]}},
  {{ack_mode, on_confirm}},
  {{reconnect_delay, 1}}]}}]}}]}}].
"""


class RabbitMq(Store):
    """RabbitMQ with a quorum queue (one member) or a classic durable one."""

    window = WINDOW
    ahead = AHEAD

    def __init__(self, kind: str = "quorum") -> None:
        self.name = "rabbitmq" if kind == "quorum" else f"rabbitmq-{kind}"
        self.syncs = (
            "every message: the write-ahead log is synced (fdatasync), in batches"
            if kind == "quorum"
            else "what waits in the queue (fsync, in batches); of what is consumed at once it is not known"
        )
        self._kind = kind

    @override
    def missing(self) -> str:
        if _PROGRAM.exists() and find("epmd"):
            return ""
        return "RabbitMQ is not installed (Debian package rabbitmq-server)"

    @override
    def version(self) -> str:
        found = sorted(Path("/usr/lib/rabbitmq/lib").glob("rabbitmq_server-*"))
        return found[-1].name if found else "unknown"

    @override
    @contextlib.contextmanager
    def start(self, folder: Path, core: int | None) -> Iterator[Running]:
        port = _port_of(folder)
        with self._broker(folder, port, core, "") as (pid, took):
            yield Running(("127.0.0.1", port), ("127.0.0.1", port), [pid], took)

    @contextlib.contextmanager
    def with_amqp_1_0(self, folder: Path, core: int | None) -> Iterator[tuple[int, int]]:
        """The broker with its plugin for AMQP 1.0: its port and its process."""
        port = _port_of(folder)
        with self._broker(folder, port, core, "", "rabbitmq_amqp1_0") as (pid, _):
            yield port, pid

    @contextlib.contextmanager
    def with_mqtt(self, folder: Path, mqtt_port: int, more: str = "") -> Iterator[int]:
        """The broker with its plugin for MQTT, which lets everybody in: its process. `more` is appended to its
        configuration.
        """
        listener = f"mqtt.listeners.tcp.1 = 127.0.0.1:{mqtt_port}\n{more}"
        with self._broker(folder, _port_of(folder), None, "", "rabbitmq_mqtt", listener) as (
            pid,
            _,
        ):
            yield pid

    @override
    @contextlib.contextmanager
    def linked(self, near: Path, far: Path, core: int | None) -> Iterator[Running]:
        """The shovel runs at the far broker."""
        first, second = _port_of(near), _port_of(far)
        shovel = _SHOVEL.format(near=first, far=second, queue=QUEUE)
        with self._broker(near, first, core, "") as (first_pid, took):
            self.prepare(("127.0.0.1", first), 1)
            with self._broker(far, second, core, shovel) as (second_pid, _):
                self.prepare(("127.0.0.1", second), 1)
                yield Running(
                    ("127.0.0.1", first), ("127.0.0.1", second), [first_pid, second_pid], took
                )

    @override
    def prepare(self, at: Address, consumers: int) -> None:
        with contextlib.closing(amqp.Line(at)) as line:
            line.declare({"x-queue-type": self._kind})

    @override
    def producer(self, at: Address, number: int, window: int) -> Producer:
        return amqp.producer(at, number, window)

    @override
    def consumer(self, at: Address, number: int, of: int) -> Consumer:
        return amqp.consumer(at)

    @override
    def waiting(self, at: Address) -> int:
        with contextlib.closing(amqp.Line(at)) as line:
            return line.declare({}, passive=True)

    @contextlib.contextmanager
    def _broker(
        self,
        folder: Path,
        port: int,
        core: int | None,
        advanced: str,
        plugin: str = "",
        more: str = "",
    ) -> Iterator[tuple[int, float]]:
        registry = free_port()
        files = {
            "env": "",
            "rabbit.conf": "log.console = false\nloopback_users = none\n" + more,
            "advanced.config": advanced or "[].\n",
            "plugins": f"[{'rabbitmq_shovel' if advanced else plugin}].\n",
        }
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
        (folder / "pid").unlink(missing_ok=True)
        environment = _environment(folder, port, registry)
        if core is not None:
            environment["RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS"] = "+S 1:1 +sbwt none"
        log = folder / "log"
        with contextlib.ExitStack() as stack:
            epmd = [find("epmd") or "epmd", "-address", "127.0.0.1"]
            stack.enter_context(
                running(epmd, core=core, log=folder / "epmd.log", environment=environment)
            )
            begin = time.perf_counter()
            process = stack.enter_context(
                running([str(_PROGRAM)], core=core, log=log, environment=environment)
            )
            _wait(process, port, folder)
            took = time.perf_counter() - begin
            yield int((folder / "pid").read_text(encoding="utf-8")), took


def _port_of(folder: Path) -> int:
    """The port of the broker whose data the folder holds: its name, and thus its data, hang on it."""
    file = folder / "port"
    if not file.exists():
        file.write_text(str(free_port()), encoding="utf-8")
    return int(file.read_text(encoding="utf-8"))


def _environment(folder: Path, port: int, registry: int) -> dict[str, str]:
    """Nothing of it is shared with the system's own broker: data, logs, name, cookie, epmd."""
    return {
        "HOME": str(folder),
        "ERL_EPMD_PORT": str(registry),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "RABBITMQ_CONF_ENV_FILE": str(folder / "env"),
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbit"),
        "RABBITMQ_ADVANCED_CONFIG_FILE": str(folder / "advanced.config"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
        "RABBITMQ_MNESIA_BASE": str(folder / "db"),
        "RABBITMQ_LOG_BASE": str(folder / "logs"),
        "RABBITMQ_LOGS": str(folder / "rabbit.log"),
        "RABBITMQ_PID_FILE": str(folder / "pid"),
        "RABBITMQ_NODENAME": f"bench{port}@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(free_port()),
        "RABBITMQ_ERLANG_COOKIE": "bench",
    }


def _wait(process: subprocess.Popen[bytes], port: int, folder: Path) -> None:
    """Until a client can log in."""
    end = time.monotonic() + _START_SECONDS
    while True:
        try:
            amqp.Line(("127.0.0.1", port)).close()
        except OSError:
            pass
        else:
            return
        if process.poll() is not None or time.monotonic() > end:
            words = tail(folder / "log") + tail(folder / "rabbit.log")
            raise RuntimeError(f"RabbitMQ does not come up: {words}")
        time.sleep(0.1)
