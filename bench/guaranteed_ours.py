"""Runs this project's router: a queue, or two routers and a bridge that binds to the first one's queue."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from typing_extensions import override

from bench import guaranteed_mqtt as mqtt
from bench.guaranteed_body import QUEUE
from bench.guaranteed_ends import Consumer, Producer
from bench.guaranteed_flow import AHEAD
from bench.guaranteed_products import UNKNOWN, WINDOW, Running, Store
from bench.ours import Vpnrouter
from bench.products import Address

_VPN = """\
router:
  name: {router}
  data_dir: {folder}/data
listeners:
  - {{protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: {vpn}}}
  - {{protocol: link, bind: "127.0.0.1:0"}}
trace:
  directory: {folder}/traces
  sample: {sample}
msg_vpns:
  {vpn}:
    authentication: {{basic: {{enabled: false}}}}
    max_msg_spool_usage: 10000
    queues:
      {queue}:
        access_type: {access}
        max_msg_spool_usage: 5000
        subscriptions: ["spool/>"]
"""
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
          basic: {{client_username: core-bridge, password: bench}}
        remote_msg_vpns:
          - {{name: blue, router: edge, location: "{location}", connect_order: 1,
             queue_binding: {queue}{more}}}
"""
# A bridge binds to an exclusive queue only; several consumers take turns at another kind.
_SHARED = "non-exclusive"
_ALONE = "exclusive"


class SpoolingRouter(Vpnrouter, Store):
    """This project's router and its message spool."""

    syncs = "every message: group commits (RocksDB, synced write-ahead log)"
    window = WINDOW
    ahead = AHEAD

    @override
    @contextlib.contextmanager
    def start(self, folder: Path, core: int | None) -> Iterator[Running]:
        config = self._spooling(folder, "edge", "blue", _BRIDGE_USER)
        with self._router(folder, config, core) as (ports, pid, took):
            yield Running(ports["mqtt"], ports["mqtt"], [pid], took)

    @override
    @contextlib.contextmanager
    def linked(
        self,
        near: Path,
        far: Path,
        core: int | None,
        reach: Callable[[int], int] = lambda port: port,
        window: int | None = 1000,
    ) -> Iterator[Running]:
        """`reach` returns the port by which the second router reaches the first one's; `window` None is the default."""
        edge = self._spooling(near, "edge", "blue", _BRIDGE_USER, _ALONE)
        with self._router(near, edge, core) as (first, first_pid, took):
            host, port = first["link"]
            more = "" if window is None else f", egress_flow_window_size: {window}"
            location = f"{host}:{reach(port)}"
            bridge = _BRIDGE.format(location=location, queue=QUEUE, more=more)
            config = self._spooling(far, "core", "yellow", bridge)
            with self._router(far, config, core) as (second, second_pid, _):
                yield Running(first["mqtt"], second["mqtt"], [first_pid, second_pid], took)

    @override
    def prepare(self, at: Address, consumers: int) -> None:
        """The queue stands in the configuration."""

    @override
    def producer(self, at: Address, number: int, window: int) -> Producer:
        return mqtt.producer(at, number, window)

    @override
    def consumer(self, at: Address, number: int, of: int) -> Consumer:
        return mqtt.consumer(at, f"bench-consumer-{number}", f"$queue/{QUEUE}")

    @override
    def waiting(self, at: Address) -> int:
        return UNKNOWN

    def _spooling(
        self, folder: Path, router: str, vpn: str, more: str, access: str = _SHARED
    ) -> Path:
        text = _VPN.format(
            router=router,
            folder=folder,
            vpn=vpn,
            sample=self.sample,
            queue=QUEUE,
            access=access,
        )
        path = folder / f"{router}.yaml"
        path.write_text(text + more, encoding="utf-8")
        return path
