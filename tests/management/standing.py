"""A router that stands still, for the tests of whatever tells of one; conftest.py files load this by path."""

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import trio

from vpnrouter.bridges.book import LinkBook
from vpnrouter.bridges.bridge import Bridge, BridgeFacts, Input
from vpnrouter.bridges.status import (
    BridgeStatus,
    LocalSubscriptionStatus,
    RemoteStatus,
    RemoteSubscriptionStatus,
    Surroundings,
    status_of,
)
from vpnrouter.config.router import Management
from vpnrouter.core.credentials import Credentials
from vpnrouter.core.router import Router
from vpnrouter.core.vpn import MessageVpn, VpnLimits
from vpnrouter.errors import TopicError
from vpnrouter.management.access import Access
from vpnrouter.management.application import build_app
from vpnrouter.management.sources import Sources
from vpnrouter.management.status.clients import ClientStatus, MqttSessionStatus, SubscriptionStatus
from vpnrouter.management.status.profiles import (
    AclProfileStatus,
    ClientProfileStatus,
    ClientUsernameStatus,
)
from vpnrouter.management.status.queues import Done, FlowStatus, MsgStatus, QueueStatus
from vpnrouter.server.net.http import serve_http
from vpnrouter.trace.recorder import Recorder

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
    return replace(status_of(record, 61 * SECOND, Surroundings(remotes=(remote,))), **changes)


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

    async def delete_msgs(self, msg_vpn: str, queue: str, msg_ids: list[int] | None) -> Done:
        await self._wait()
        held = self.contents[msg_vpn, queue]
        ids = [number for number in (held if msg_ids is None else msg_ids) if number in held]
        for number in ids:
            del held[number]
        return Done(len(ids))

    async def copy_msgs(
        self, msg_vpn: str, queue: str, to: str, msg_ids: list[int] | None, *, move: bool
    ) -> Done:
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
        return Done(len(ids), self.refusal)

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


class StillClients:
    """Clients that stand still, and profiles: subscriptions by message VPN and client; `away` are sessions whose
    clients are away, `done` what was asked to be done. Topic `t/1` matches all subscriptions.
    """

    def __init__(self, clients: dict[tuple[str, str], list[str]]) -> None:
        self.contents = clients
        self.away: set[str] = set()
        self.done: list[tuple[str, str, str]] = []
        self.gone: set[str] = set()
        self.failure: Exception | None = None

    def client_names(self, msg_vpn: str) -> list[str]:
        return sorted(name for place, name in self.contents if place == msg_vpn)

    def client(self, msg_vpn: str, client: str) -> ClientStatus | None:
        held = self.contents.get((msg_vpn, client))
        if held is None or client in self.gone:
            return None
        return ClientStatus(
            msg_vpn,
            client,
            client_id=client,
            connected=client not in self.away,
            subscription_count=len(held),
            discarded={"loop-detected": 3},
        )

    def subscriptions(self, msg_vpn: str, client: str) -> list[SubscriptionStatus]:
        return self.held(msg_vpn, "client", client)

    def disconnect(self, msg_vpn: str, client: str) -> bool:
        self.done.append(("disconnect", msg_vpn, client))
        return client not in self.away

    def clear_stats(self, msg_vpn: str, client: str) -> bool:
        self.done.append(("clear", msg_vpn, client))
        return (msg_vpn, client) in self.contents

    def subscription_count(self, msg_vpn: str) -> int:
        return sum(len(held) for (place, _), held in self.contents.items() if place == msg_vpn)

    def holders(self, msg_vpn: str) -> list[tuple[str, str]]:
        return [("client", name) for name in self.client_names(msg_vpn)]

    def held(self, msg_vpn: str, holder: str, name: str) -> list[SubscriptionStatus]:
        found = sorted(self.contents.get((msg_vpn, name), []))
        if holder == "topic-endpoint":
            found = [f"attracted/{name}"]
        return [SubscriptionStatus(msg_vpn, text, "mqtt", holder, name) for text in found]

    async def matches(self, msg_vpn: str, topic: str, most: int) -> list[SubscriptionStatus]:
        await trio.lowlevel.checkpoint()
        if "#" in topic:
            raise TopicError("a wildcard")
        if topic != "t/1":
            return []
        names = self.client_names(msg_vpn)
        return [each for name in names for each in self.held(msg_vpn, "client", name)][:most]

    def session_names(self, msg_vpn: str) -> list[str]:
        return self.client_names(msg_vpn)

    def session(self, msg_vpn: str, client_id: str) -> MqttSessionStatus | None:
        if (msg_vpn, client_id) not in self.contents:
            return None
        return MqttSessionStatus(msg_vpn, client_id, connected=client_id not in self.away)

    def clear_session_stats(self, msg_vpn: str, client_id: str) -> bool:
        return self.clear_stats(msg_vpn, client_id)

    async def end_session(self, msg_vpn: str, client_id: str) -> bool:
        await trio.lowlevel.checkpoint()
        if self.failure is not None:
            raise self.failure
        if client_id not in self.away:
            return False
        del self.contents[msg_vpn, client_id]
        return True

    def username_names(self, msg_vpn: str) -> list[str]:
        return ["ann", "d/e"] if msg_vpn == "blue" else []

    def username(self, msg_vpn: str, username: str) -> ClientUsernameStatus | None:
        if username not in self.username_names(msg_vpn):
            return None
        return ClientUsernameStatus(msg_vpn, username, connection_count=len(username))

    def client_profiles(self, msg_vpn: str) -> list[ClientProfileStatus]:
        return [ClientProfileStatus(msg_vpn, name, connection_count=2) for name in ("z", "a/b")]

    def acl_profiles(self, msg_vpn: str) -> list[AclProfileStatus]:
        return [AclProfileStatus(msg_vpn, name, connection_count=3) for name in ("z", "a/b")]


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

    `sources` is what the API sees of it; `queues` and `clients` are put into that when it is served. With
    `dialling`, bridges that are down have a connection on its way.
    """

    def __init__(
        self, msg_vpns: list[str], bridges: list[BridgeStatus], name: str = "here"
    ) -> None:
        self.router = Router(name, 1, Recorder())
        self.add(*msg_vpns)
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
        self.clients = StillClients(
            {
                ("blue", "c2"): ["b/#", "a"],
                ("blue", "c1"): ["a", "c/+/d"],
                ("blue", "c/3,x"): [],
                ("a/b", "other"): ["a"],
            }
        )
        self.done: list[tuple[str, str, str]] = []
        self.sources: Any = Sources(book=LinkBook(self.router))
        self.sources.bridges = StillBridges(self)
        self.sources.store = self.store

    def add(self, *msg_vpns: str) -> None:
        """Message VPNs that come while it runs."""
        for name in msg_vpns:
            vpn = MessageVpn(name, self.router.plane, Credentials(False), {}, {}, VpnLimits())
            self.router.add(vpn)


def three_bridges() -> Still:
    """Two message VPNs with three bridges between them, one of them down, and a third VPN without."""
    return Still(
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


def application(monitor: Any, users: dict[str, dict[str, Any]] | None = None) -> Any:
    """The application that tells of `monitor`."""
    access = Access.of(Management.model_validate({"users": users or {}}))
    monitor.sources.queues = monitor.queues
    monitor.sources.clients = monitor.sources.profiles = monitor.clients
    return build_app(monitor.sources, access)


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
            barrier = Router("here", 1, Recorder()).plane.barrier
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
