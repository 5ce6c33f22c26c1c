"""A router that stands still, for the tests of whatever tells of one; conftest.py files load this by path."""

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import trio

from vpnrouter.bridges.bridge import Bridge, BridgeFacts, Input
from vpnrouter.bridges.link_registry import LinkRegistry
from vpnrouter.bridges.status import (
    BridgeStatus,
    LocalSubscriptionStatus,
    RemoteStatus,
    RemoteSubscriptionStatus,
    StatusContext,
    status_of,
)
from vpnrouter.config.router import Management
from vpnrouter.core.access import AclProfile
from vpnrouter.core.profile import ClientProfile
from vpnrouter.core.router import Router
from vpnrouter.management.access import Access
from vpnrouter.management.api_context import ApiContext
from vpnrouter.management.application import build_app
from vpnrouter.management.status.queues import ActionResult, FlowStatus, MsgStatus, QueueStatus
from vpnrouter.server.net.http import serve_http
from vpnrouter.testing.memory import Client, MemoryRouter
from vpnrouter.trace.recorder import Recorder
from vpnrouter.wire.mqtt.properties import Properties

SECOND = 1_000_000_000

WAY_UP = (
    Input.ENABLE,
    Input.DIAL,
    Input.RESOLVED,
    Input.CONNECTED,
    Input.WELCOMED,
    Input.SUBSCRIBED,
)


def bridge_status(msg_vpn: str, name: str, **changes: Any) -> BridgeStatus:
    """A bridge that is in sync for one minute, with one remote; keywords replace attributes."""
    record = Bridge(BridgeFacts("here", msg_vpn, name), 0)
    for given in WAY_UP:
        record.handle(given, SECOND)
    remote = RemoteStatus("far", "198.51.100.7:55555", 1, enabled=True, up=True)
    return replace(status_of(record, 61 * SECOND, StatusContext(remotes=(remote,))), **changes)


class StillQueues:
    """Queues that stand still, that were handed in: message id -> payload, by message VPN and name.

    `refusal` is why no queue takes more than `room` messages, `failure` what every change raises.
    """

    def __init__(self, queues: dict[tuple[str, str], dict[int, bytes]]) -> None:
        self.contents = queues
        self.changes: dict[tuple[str, str], dict[str, Any]] = {}
        self.replays: dict[tuple[str, str], tuple[str, int, int]] = {}
        self.refusal = ""
        self.room = 0
        self.failure: Exception | None = None
        self.cleared: list[tuple[str, str]] = []

    def queue_names(self, msg_vpn: str) -> list[str]:
        return [name for place, name in self.contents if place == msg_vpn]

    def queue(self, msg_vpn: str, queue: str) -> QueueStatus | None:
        held = self.contents.get((msg_vpn, queue))
        if held is None:
            return None
        usage = sum(map(len, held.values()))
        row = QueueStatus(
            msg_vpn_name=msg_vpn, queue_name=queue, msg_count=len(held), msg_spool_usage=usage
        )
        return replace(row, **self.changes.get((msg_vpn, queue), {}))

    def tx_flows(self, msg_vpn: str, queue: str) -> list[FlowStatus]:
        if (msg_vpn, queue) not in self.contents:
            return []
        return [FlowStatus(number, "c", "active-consumer", 10, 1, 1) for number in (2, 10)]

    def msgs(self, msg_vpn: str, queue: str, after: int, count: int) -> list[MsgStatus]:
        held = self.contents.get((msg_vpn, queue), {})
        ids = [number for number in sorted(held) if number > after]
        return [
            MsgStatus(number, f"t/{number}", 1_700_000_000, content_size=len(held[number]))
            for number in ids[:count]
        ]

    def payload(self, msg_vpn: str, queue: str, msg_id: int) -> bytes | None:
        return self.contents.get((msg_vpn, queue), {}).get(msg_id)

    async def delete_msgs(
        self, msg_vpn: str, queue: str, msg_ids: list[int] | None
    ) -> ActionResult:
        await self._wait()
        held = self.contents[msg_vpn, queue]
        ids = [number for number in (held if msg_ids is None else msg_ids) if number in held]
        for number in ids:
            del held[number]
        return ActionResult(len(ids))

    async def copy_msgs(
        self, msg_vpn: str, queue: str, to: str, msg_ids: list[int] | None, *, move: bool
    ) -> ActionResult:
        await self._wait()
        held = self.contents[msg_vpn, queue]
        ids = [number for number in (held if msg_ids is None else msg_ids) if number in held]
        if self.refusal:
            ids = ids[: self.room]
        for number in ids:
            other = self.contents[msg_vpn, to]
            other[1 + max(other, default=number)] = held[number]
            if move:
                del held[number]
        return ActionResult(len(ids), self.refusal)

    def clear_stats(self, msg_vpn: str, queue: str) -> bool:
        self.cleared.append((msg_vpn, queue))
        return (msg_vpn, queue) in self.contents

    async def start_replay(
        self, msg_vpn: str, queue: str, log: str, from_ns: int, after_id: int
    ) -> str:
        await self._wait()
        if not self.refusal:
            self.replays[msg_vpn, queue] = (log, from_ns, after_id)
        return self.refusal

    async def cancel_replay(self, msg_vpn: str, queue: str) -> bool:
        await self._wait()
        return self.replays.pop((msg_vpn, queue), None) is not None

    async def _wait(self) -> None:
        await trio.lowlevel.checkpoint()
        if self.failure is not None:
            raise self.failure


class StillStore:
    """A Store that notes where it is backed up to."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.failure: Exception | None = None

    def backup(self, directory: Path) -> None:
        if self.failure is not None:
            raise self.failure
        self.told.append(str(directory))


class StillBridge:
    """A bridge that stands still."""

    def __init__(self, router: "Still", key: tuple[str, str]) -> None:
        self._router = router
        self._key = key

    def status(self, now_ns: int, *, whole: bool = False) -> BridgeStatus:
        self._router.looked += 1
        return self._router.bridges[self._key]

    def remote_subscriptions(self) -> list[RemoteSubscriptionStatus]:
        return [
            RemoteSubscriptionStatus(*self._key, "auto", topic, False) for topic in ("a/>", "b/*")
        ]

    def local_subscriptions(self) -> list[LocalSubscriptionStatus]:
        return [LocalSubscriptionStatus(*self._key, "auto", "c/>", "p1")]

    def disconnect(self) -> bool:
        self._router.done.append(("disconnect", *self._key))
        return self._router.dialling or self._router.bridges[self._key].uptime > 0

    def clear_stats(self) -> None:
        self._router.done.append(("clear", *self._key))

    def clear_event(self, event: str) -> None:
        self._router.done.append((event, *self._key))


class StillBridges(Mapping[tuple[str, str], StillBridge]):
    """The bridges of a router that stands still."""

    def __init__(self, router: "Still") -> None:
        self._router = router

    def __getitem__(self, key: tuple[str, str]) -> StillBridge:
        if key not in self._router.bridges:
            raise KeyError(key)
        return StillBridge(self._router, key)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._router.bridges)

    def __len__(self) -> int:
        return len(self._router.bridges)


class Still:
    """A router with message VPNs of these names, and bridges as they are handed in.

    `world` is the router in memory, and `sources` what the API sees of it; `queues` are put into that when it is
    served. With `dialling`, bridges that are down have a connection on its way.
    """

    def __init__(
        self, msg_vpns: list[str], bridges: list[BridgeStatus], name: str = "here"
    ) -> None:
        self.world = MemoryRouter(*msg_vpns, name=name)
        self.router = self.world.router
        self.bridges = {(one.msg_vpn_name, one.bridge_name): one for one in bridges}
        self.looked = 0
        self.dialling = False
        self.queues = StillQueues(
            {
                ("blue", "orders"): {n: b"%d" % n for n in range(1, 26)},
                ("blue", "dead"): {},
                ("a/b", "x,y"): {7: b"seven"},
            }
        )
        self.store = StillStore()
        self.clients: dict[str, Client] = {}
        self.done: list[tuple[str, str, str]] = []
        self.context: Any = ApiContext(book=LinkRegistry(self.router))
        self.context.bridges = StillBridges(self)
        self.context.store = self.store

    def add(self, *msg_vpns: str) -> None:
        """Message VPNs that come while it runs."""
        for name in msg_vpns:
            self.world.add_vpn(name)

    def connect(self, msg_vpn: str, name: str, *subscriptions: str, user: str = "ann") -> None:
        """A client connects with a session that outlives the connection."""
        lasting = Properties(session_expiry_interval=9)
        client = self.world.connect(name, msg_vpn, properties=lasting, username=user)
        for text in subscriptions:
            client.subscribe(text)
        self.clients[name] = client

    def leave(self, name: str) -> None:
        """A client goes, and its session stays."""
        self.clients[name].lose()


def three_bridges() -> Still:
    """Two message VPNs with three bridges between them, one of them down, and a third VPN without."""
    still = Still(
        ["blue", "a/b", "empty"],
        [
            bridge_status("blue", "to-b"),
            bridge_status("blue", "to-a"),
            bridge_status(
                "a/b",
                "x,y [z]",
                health="down",
                inbound_state="not-ready-connecting",
                inbound_failure_reason="cannot connect to 198.51.100.7:55555: refused",
                uptime=0,
            ),
        ],
    )
    blue = still.router.vpns["blue"]
    for name in ("z", "a/b"):
        blue.profiles[name] = ClientProfile(name)
        blue.acl_profiles[name] = AclProfile(name)
    still.connect("blue", "c2", "b/#", "a")
    still.connect("blue", "c1", "a", "c/+/d", user="d/e")
    still.connect("blue", "c/3,x")
    still.connect("a/b", "other", "a")
    return still


def application(monitor: Any, users: dict[str, dict[str, Any]] | None = None) -> Any:
    """The application that tells of `monitor`."""
    access = Access.of(Management.model_validate({"users": users or {}}))
    monitor.context.queues = monitor.queues
    return build_app(monitor.context, access)


@contextmanager
def serving(
    monitor: Any, users: dict[str, dict[str, Any]] | None = None, tls: Any = None
) -> Iterator[str]:
    """Serves the application in a thread of its own; yields HOST:PORT."""
    began = threading.Event()
    stop: list[Any] = []
    sock = socket.create_server(("127.0.0.1", 0))
    sock.setblocking(False)
    host, port = sock.getsockname()

    async def run() -> None:
        with trio.CancelScope() as scope:
            token = trio.lowlevel.current_trio_token()
            stop.append(lambda: token.run_sync_soon(scope.cancel))
            began.set()
            barrier = Router("here", 1, Recorder()).context.barrier
            await serve_http(sock, tls, 100, application(monitor, users), barrier)

    thread = threading.Thread(target=trio.run, args=(run,))
    thread.start()
    assert began.wait(20)
    try:
        yield f"{host}:{port}"
    finally:
        stop[0]()
        thread.join(20)
        assert not thread.is_alive()
