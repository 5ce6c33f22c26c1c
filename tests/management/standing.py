"""A router that stands still, for the tests of whatever tells of one; conftest.py files load this by path."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import trio

from vpnrouter.bridges.bridge import Bridge, BridgeFacts
from vpnrouter.bridges.states import Input
from vpnrouter.bridges.status import BridgeStatus, RemoteStatus, Surroundings, status_of
from vpnrouter.config.management import Management
from vpnrouter.management.access import Access
from vpnrouter.management.application import build_app
from vpnrouter.management.monitor import MsgVpnStatus
from vpnrouter.management.queue_source import Done, FlowStatus, MsgStatus, QueueStatus
from vpnrouter.management.sources import Sources
from vpnrouter.server.management import serve_management

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
    """A QueueSource over queues that were handed in: message id -> payload, by message VPN and name.

    `refusal` is why no queue takes anything, `failure` what every change raises.
    """

    def __init__(self, queues: dict[tuple[str, str], dict[int, bytes]]) -> None:
        self.contents = queues
        self.changes: dict[tuple[str, str], dict[str, Any]] = {}
        self.replays: dict[tuple[str, str], tuple[str, int, int]] = {}
        self.refusal = ""
        self.failure: Exception | None = None

    def queue_names(self, msg_vpn: str) -> list[str]:
        """See QueueSource."""
        return [name for place, name in self.contents if place == msg_vpn]

    def queue(self, msg_vpn: str, queue: str) -> QueueStatus | None:
        """See QueueSource."""
        held = self.contents.get((msg_vpn, queue))
        if held is None:
            return None
        usage = sum(map(len, held.values()))
        row = QueueStatus(msg_vpn, queue, msg_count=len(held), msg_spool_usage=usage)
        return replace(row, **self.changes.get((msg_vpn, queue), {}))

    def tx_flows(self, msg_vpn: str, queue: str) -> list[FlowStatus]:
        """See QueueSource."""
        if (msg_vpn, queue) not in self.contents:
            return []
        return [FlowStatus(number, "c", "active-consumer", 10, 1, 1) for number in (2, 10)]

    def msgs(self, msg_vpn: str, queue: str, after: int, count: int) -> list[MsgStatus]:
        """See QueueSource."""
        held = self.contents.get((msg_vpn, queue), {})
        ids = [number for number in sorted(held) if number > after]
        return [
            MsgStatus(number, f"t/{number}", 1_700_000_000, content_size=len(held[number]))
            for number in ids[:count]
        ]

    def payload(self, msg_vpn: str, queue: str, msg_id: int) -> bytes | None:
        """See QueueSource."""
        return self.contents.get((msg_vpn, queue), {}).get(msg_id)

    async def delete_msgs(self, msg_vpn: str, queue: str, msg_ids: list[int] | None) -> Done:
        """See QueueSource."""
        await self._wait()
        held = self.contents[msg_vpn, queue]
        ids = [number for number in (held if msg_ids is None else msg_ids) if number in held]
        for number in ids:
            del held[number]
        return Done(len(ids))

    async def copy_msgs(
        self, msg_vpn: str, queue: str, to: str, msg_ids: list[int] | None, *, move: bool
    ) -> Done:
        """See QueueSource."""
        await self._wait()
        if self.refusal:
            return Done(0, self.refusal)
        held = self.contents[msg_vpn, queue]
        ids = [number for number in (held if msg_ids is None else msg_ids) if number in held]
        for number in ids:
            other = self.contents[msg_vpn, to]
            other[1 + max(other, default=number)] = held[number]
            if move:
                del held[number]
        return Done(len(ids))

    async def start_replay(
        self, msg_vpn: str, queue: str, log: str, from_ns: int, after_id: int
    ) -> str:
        """See QueueSource."""
        await self._wait()
        if not self.refusal:
            self.replays[msg_vpn, queue] = (log, from_ns, after_id)
        return self.refusal

    async def cancel_replay(self, msg_vpn: str, queue: str) -> bool:
        """See QueueSource."""
        await self._wait()
        return self.replays.pop((msg_vpn, queue), None) is not None

    async def _wait(self) -> None:
        await trio.lowlevel.checkpoint()
        if self.failure is not None:
            raise self.failure


class StillKeeper:
    """A SpoolKeeper that notes what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.failure: Exception | None = None

    async def backup(self, directory: str) -> None:
        """See SpoolKeeper."""
        await trio.lowlevel.checkpoint()
        if self.failure is not None:
            raise self.failure
        self.told.append(directory)


class Still:
    """A Monitor over bridges that were handed in; `queues` and `keeper` are what its spool would have."""

    def __init__(self, msg_vpns: list[str], bridges: list[BridgeStatus]) -> None:
        self.names = msg_vpns
        self.bridges = {(one.msg_vpn_name, one.bridge_name): one for one in bridges}
        self.ready = True
        self.looked = 0
        self.queues = StillQueues(
            {
                ("blue", "orders"): {n: b"%d" % n for n in range(1, 26)},
                ("blue", "dead"): {},
                ("a/b", "x,y"): {7: b"seven"},
            }
        )
        self.keeper: StillKeeper | None = StillKeeper()

    def router_name(self) -> str:
        """See Monitor."""
        return "here"

    def is_ready(self) -> bool:
        """See Monitor."""
        return self.ready

    def msg_vpn_names(self) -> list[str]:
        """See Monitor."""
        return self.names

    def msg_vpn(self, msg_vpn: str) -> MsgVpnStatus | None:
        """See Monitor."""
        if msg_vpn not in self.names:
            return None
        count = len(self.bridge_names(msg_vpn))
        return MsgVpnStatus(msg_vpn, True, "up", 1, 2, 3, 4, count, 5, 6, 7, 8, 9, {"loop": 9})

    def bridge_names(self, msg_vpn: str) -> list[str]:
        """See Monitor."""
        return [name for place, name in self.bridges if place == msg_vpn]

    def bridge(self, msg_vpn: str, bridge: str) -> BridgeStatus | None:
        """See Monitor."""
        self.looked += 1
        return self.bridges.get((msg_vpn, bridge))


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
    sources = Sources(monitor=monitor, queues=monitor.queues, spool=monitor.keeper)
    return build_app(sources, access)


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
            await serve_management(sock, tls, 100, application(monitor, users))

    thread = threading.Thread(target=trio.run, args=(run,))
    thread.start()
    assert began.wait(20)
    try:
        yield f"{host}:{port}"
    finally:
        stop[0]()
        thread.join(20)
        assert not thread.is_alive()
