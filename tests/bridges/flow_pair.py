"""Two routers with a guaranteed flow between them, frame by frame, sync by sync; they can be killed.

`edge/blue` has the queue, `core/red` the bridge. Loaded by path: tests are no package.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from vpnrouter.bridges.dead_letters import DeadLetters
from vpnrouter.bridges.flow_receiver import FlowReceiver
from vpnrouter.bridges.flow_sender import FlowCallbacks, FlowSender
from vpnrouter.bridges.link_client import LinkClient
from vpnrouter.bridges.parking_lot import ParkingLot
from vpnrouter.bridges.received_positions import decode_positions
from vpnrouter.bridges.remote_settings import FlowSettings
from vpnrouter.core.access import AclProfile
from vpnrouter.core.credentials import Credentials
from vpnrouter.core.discard_reasons import RETURNED
from vpnrouter.core.guaranteed.endpoint import Endpoint
from vpnrouter.core.guaranteed.endpoint_settings import (
    ALWAYS,
    CONSUME,
    PARKING,
    QUEUE,
    EndpointSettings,
)
from vpnrouter.core.guaranteed.failure_policy import FailurePolicy
from vpnrouter.core.guaranteed.recover import recover
from vpnrouter.core.guaranteed.spool import Spool
from vpnrouter.core.guaranteed.unit_of_work import CompletionCallback
from vpnrouter.core.message import Message
from vpnrouter.core.outbox import Outbox
from vpnrouter.core.profile import ClientProfile
from vpnrouter.core.router import Router
from vpnrouter.core.subscriber import Subscription
from vpnrouter.core.vpn import MessageVpn
from vpnrouter.errors import Refused
from vpnrouter.spool import keys
from vpnrouter.spool.ledger import Ledger
from vpnrouter.spool.store import Batch, MemoryStore
from vpnrouter.topics.grammar import SMF, parse_filter
from vpnrouter.trace.recorder import Recorder
from vpnrouter.wire.link import encode, frames
from vpnrouter.wire.link.decode import decode

SECOND_NS = 1_000_000_000
LOT_MOST = 1000


class Publisher(CompletionCallback):
    """Remembers which messages were acknowledged to their publisher."""

    def __init__(self) -> None:
        self.safe: list[int] = []

    def on_outcome(self, token: int, outcome: int, reason: str) -> None:
        assert outcome == 0, reason
        self.safe.append(token)


class Wire(FlowCallbacks):
    """One direction of the link, and what its side was told."""

    def __init__(self) -> None:
        self.frames: deque[bytes] = deque()
        self.said: list[Any] = []
        self.told: list[tuple[str, Any]] = []
        self.packed = False

    def say(self, data: bytes) -> None:
        self.frames.append(data)
        self.said.append(decode(data, 0, len(data)))

    def full(self) -> bool:
        return self.packed

    def stalled(self, reason: str) -> None:
        self.told.append(("stalled", reason))

    def released(self) -> None:
        self.told.append(("released", ""))

    def bound(self) -> None:
        self.told.append(("bound", ""))

    def unbound(self, code: int, reason: str) -> None:
        self.told.append(("unbound", (code, reason)))

    def stopped(self, reason: str) -> None:
        self.told.append(("stopped", reason))

    def discarded(self, message: Message, reason: str) -> None:
        self.told.append(("discarded", reason))

    def returned(self, count: int, reason: str) -> None:
        # What was held when the link was lost comes again.
        if reason != RETURNED:
            self.told.append(("returned", reason))

    def kinds(self) -> list[str]:
        """Names of the frames that were said, runs of one kind once."""
        names = [type(frame).__name__ for frame in self.said]
        return [name for name, before in zip(names, ["", *names], strict=False) if name != before]


class Node:
    """One router with one message VPN; its store outlives it."""

    def __init__(self, name: str, vpn: str, store_id: bytes) -> None:
        self.name = name
        self.vpn_name = vpn
        self.store = MemoryStore(store_id)
        self.now_ns = 1000 * SECOND_NS
        self.shut: set[str] = set()
        self.queues: dict[str, str] = {}
        self.sealed: Batch | None = None
        self.live()

    def live(self) -> None:
        """Start, with what the store has."""
        router = Router(self.name, 7, Recorder())
        router.tick(self.now_ns, self.now_ns)
        self.context = router.context
        self.vpn = MessageVpn(
            self.vpn_name,
            self.context,
            Credentials(False, (), b"s"),
            {"default": ClientProfile("default")},
            {"default": AclProfile("default")},
        )
        router.add(self.vpn)
        self.router = router
        self.ledger = Ledger(self.store)
        self.spool = Spool(self.context, self.ledger)
        self.context.spool = self.spool
        self.sealed = None
        self.ends: dict[str, Endpoint] = {}
        own = {"lot": "", "dead": ""}
        for number, (queue, topics) in enumerate([*self.queues.items(), *own.items()], 1):
            terms = EndpointSettings()
            terms.reject_behavior = ALWAYS
            terms.max_spooled_msg_count = LOT_MOST if queue == "lot" else 0
            terms.ingress_enabled = queue not in self.shut
            kind = PARKING if queue in own else QUEUE
            end = Endpoint(self.spool, self.vpn, kind, queue, number, terms)
            self.ends[queue] = end
            self.vpn.endpoints[(kind, queue)] = end
            if topics:
                self.vpn.subscribe(Subscription(parse_filter(topics, SMF), end))
        recover(self.spool, self.store, {end.number: end for end in self.ends.values()})

    def open(self, queue: str, is_open: bool) -> None:
        """Let a queue take messages, or not."""
        if is_open:
            self.shut.discard(queue)
        else:
            self.shut.add(queue)
        self.ends[queue].settings.ingress_enabled = is_open

    def seal(self) -> None:
        """End a round: deliver, and hand the unit to the commit thread."""
        if self.sealed is None:
            self.sealed = self.spool.end_round()

    def sync(self) -> None:
        """The commit thread is done."""
        self.seal()
        if self.sealed is not None:
            self.store.commit(self.sealed)
            self.sealed = None
            self.spool.committed()

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.now_ns += int(seconds * SECOND_NS)
        self.router.tick(self.now_ns, self.now_ns)

    def contents(self, queue: str) -> list[bytes]:
        """Payloads of what waits in a queue, in order."""
        end = self.ends[queue]
        ids = [n for waiting in end.waiting for n in waiting.after(0, 1 << 20)]
        held = [n for flow in end.flows for n in flow.unacked]
        return [self.spool.message(n).payload for n in sorted(ids + held)]


class FlowPair:
    """The sender's node, the receiver's, and the link, when there is one."""

    def __init__(
        self,
        on_reject: int = 0,
        queues: dict[str, str] | None = None,
        window: int = 4,
        failures: FailurePolicy | None = None,
    ) -> None:
        self.window = window
        self.failures = failures or FailurePolicy(reject_attempts=0)
        self.on_reject = on_reject
        self.edge = Node("edge", "blue", b"e" * 16)
        self.edge.queues = {"out": "t/>"}
        self.edge.live()
        self.core = Node("core", "red", b"c" * 16)
        self.core.queues = queues or {"in": "t/>"}
        self.publisher = Publisher()
        self.count = 0
        self.flow: FlowSender | None = None
        self.there = Wire()
        self.here = Wire()
        self.linked = False
        self.flows = 0
        self.core.live()
        self.bridge()

    def bridge(self) -> None:
        """The bridge begins, with what the store has."""
        core = self.core
        self.key = keys.bridge("red", "b")
        accepted = decode_positions(core.store.get(self.key) or b"")
        terms = FlowSettings(on_reject=self.on_reject, failures=self.failures)
        self.taker = FlowReceiver(core.vpn, core.spool, self.key, accepted, terms, "b")
        lot = ParkingLot(core.ends["lot"], "b", LOT_MOST, self.taker.lanes, terms.lanes)
        self.taker.lot = lot
        places = self.failures.dead_msg_queues
        if places:
            self.taker.dead_letters = DeadLetters(core.ends["dead"], "b", places)
        self.taker.flush()

    def publish(self, topic: str = "t/a", **more: Any) -> None:
        """One persistent message at the sender's; its payload is its number."""
        self.count += 1
        message = Message(topic.encode(), b"%d" % self.count)
        message.persistent = True
        for name, value in more.items():
            setattr(message, name, value)
        self.edge.spool.publish(self.edge.vpn, message, self.publisher, self.count)

    def connect(self) -> None:
        """A link comes up, and the bridge binds."""
        assert not self.linked
        self.linked = True
        self.there = Wire()
        self.here = Wire()
        core, edge = self.core, self.edge
        client = LinkClient(core.vpn, "#bridge/b", Outbox(core.context.ready, 1), "edge", "blue")
        self.peer = LinkClient(edge.vpn, "core/red/b", Outbox(edge.context.ready, 1), "core", "red")
        self.taker.start(self.here, client, "out", self.window)

    def cut(self) -> None:
        """The link is lost, and everything on it."""
        if self.linked:
            self.linked = False
            self.taker.detach()
            if self.flow is not None:
                self.flow.end()
            self.flow = None

    def kill(self, node: Node, synced: bool) -> None:
        """A router dies; its last commit has reached the store or not."""
        if self.linked:
            self.linked = False
            if node is self.core:
                if self.flow is not None:
                    self.flow.end()
            else:
                self.taker.detach()
            self.flow = None
        if synced and node.sealed is not None:
            node.store.commit(node.sealed)
        node.live()
        if node is self.core:
            self.bridge()

    def to_core(self, most: int = 1 << 30) -> int:
        """Frames of the sender arrive."""
        count = 0
        while self.linked and self.there.frames and count < most:
            count += 1
            data = self.there.frames.popleft()
            frame = decode(data, 0, len(data))
            if isinstance(frame, frames.Guaranteed):
                self.taker.on_message(frame)
            elif isinstance(frame, frames.Bound):
                self.taker.on_bound(frame)
            elif isinstance(frame, frames.Forget):
                self.taker.on_forget(frame)
            elif isinstance(frame, frames.Unbind):
                self.taker.on_unbind(frame)
            else:
                assert isinstance(frame, frames.Unbound), frame
                self.taker.on_unbound(frame)
        self.taker.flush()
        return count

    def to_edge(self, most: int = 1 << 30) -> int:
        """Frames of the receiver arrive."""
        count = 0
        while self.linked and self.here.frames and count < most:
            count += 1
            data = self.here.frames.popleft()
            frame = decode(data, 0, len(data))
            if isinstance(frame, frames.Bind):
                self._bind(frame)
                continue
            flow = self.flow
            assert flow is not None
            if isinstance(frame, frames.Ack):
                flow.on_ack(frame)
            elif isinstance(frame, frames.Reject):
                flow.on_reject(frame)
            elif isinstance(frame, frames.Settled):
                flow.on_settled(frame)
            elif isinstance(frame, frames.Unbind):
                flow.on_unbind()
            else:
                assert isinstance(frame, frames.Unbound), frame
        return count

    def _bind(self, frame: frames.Bind) -> None:
        end = self.edge.vpn.endpoints.get((QUEUE, frame.queue))
        if end is None:
            refusal = frames.Bound(frame.request_id, 0xC8, 0, 0, bytes(16), "503 Unknown Queue")
            self.there.say(encode.bound(refusal))
            return
        self.flows += 1
        flow = FlowSender(end, self.there, self.peer, self.flows, frame)
        try:
            flow.begin(frame, self.edge.store.store_id, CONSUME, CONSUME)
        except Refused as refused:
            refusal = frames.Bound(frame.request_id, 0x97, 0, 0, bytes(16), refused.reason)
            self.there.say(encode.bound(refusal))
        else:
            self.flow = flow

    def settle(self) -> None:
        """Everything moves until nothing does."""
        for _ in range(1000):
            self.edge.sync()
            self.core.sync()
            moved = self.to_core() + self.to_edge()
            if not moved and not self.edge.spool.busy and not self.core.spool.busy:
                return
        raise AssertionError("frames without end")

    def received(self, queue: str = "in") -> list[int]:
        """The numbers of the messages in a queue of the receiver's."""
        return [int(payload) for payload in self.core.contents(queue)]
