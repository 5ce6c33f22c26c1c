"""A spool in memory: endpoints, flows that remember what they are sent, a store, restarts and the time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vpnrouter.core.context import RouterContext
from vpnrouter.core.credentials import Credentials
from vpnrouter.core.guaranteed.endpoint import Endpoint
from vpnrouter.core.guaranteed.endpoint_settings import CONSUME, QUEUE, EndpointSettings
from vpnrouter.core.guaranteed.flow import ACCEPTED, Flow
from vpnrouter.core.guaranteed.recover import recover, recover_retained
from vpnrouter.core.guaranteed.spool import Spool
from vpnrouter.core.guaranteed.unit_of_work import CompletionCallback
from vpnrouter.core.message import Message
from vpnrouter.core.outbox import Outbox
from vpnrouter.core.subscriber import FRAME_MQTT5, Subscriber, Subscription
from vpnrouter.core.vpn import MessageVpn, VpnLimits
from vpnrouter.selectors import parse_selector
from vpnrouter.spool.ledger import Ledger
from vpnrouter.spool.store import MemoryStore
from vpnrouter.topics.grammar import MQTT, parse_filter
from vpnrouter.trace.recorder import Recorder
from vpnrouter.units import SECOND_NS
from vpnrouter.wire.mqtt.properties import with_user_properties

if TYPE_CHECKING:
    from vpnrouter.core.tracing import TraceSettings
    from vpnrouter.spool.store import Batch


START_NS = 1_000 * SECOND_NS
WALL_NS = 1_700_000_000 * SECOND_NS


def guaranteed(topic: str, payload: bytes = b"x", qos: int = 1, **properties: str) -> Message:
    """A persistent message; underscores in property names stand for hyphens."""
    pairs = [(name.replace("_", "-"), text) for name, text in properties.items()]
    message = Message(topic.encode(), payload, with_user_properties(b"", pairs))
    message.persistent = True
    message.qos = qos
    return message


class Told(CompletionCallback):
    """A publisher that remembers what it was told: (token, outcome, reason)."""

    def __init__(self) -> None:
        self.heard: list[tuple[int, int, str]] = []

    def on_outcome(self, token: int, outcome: int, reason: str) -> None:
        self.heard.append((token, outcome, reason))

    def outcomes(self) -> list[int]:
        """The outcomes since the last call."""
        outcomes = [outcome for _, outcome, _ in self.heard]
        self.heard.clear()
        return outcomes

    def reasons(self) -> list[str]:
        """The reasons since the last call."""
        reasons = [reason for _, _, reason in self.heard]
        self.heard.clear()
        return reasons


class Sink(Flow):
    """A consumer; `sent` are (id, payload, count) since the last look, `known_as` the ids in the mesh."""

    def __init__(
        self, endpoint: Endpoint, name: str = "c", window: int = 1_000, selector: str = ""
    ) -> None:
        super().__init__(endpoint, name, window, parse_selector(selector) if selector else None)
        self.sent: list[tuple[int, bytes, int]] = []
        self.known_as: list[int] = []
        self.by_payload: dict[bytes, int] = {}
        self.ended: list[str] = []
        self.turns: list[bool] = []

    def room(self) -> int:
        return self.window - len(self.unacked)

    def send(self, message_id: int, message: Message, count: int) -> None:
        assert self.unacked[message_id] is message
        self.sent.append((message_id, message.payload, count))
        self.known_as.append(message.message_id)
        self.by_payload[message.payload] = message_id

    def activated(self, active: bool) -> None:
        self.turns.append(active)

    def unbound(self, reason: str) -> None:
        self.ended.append(reason)

    def payloads(self) -> list[bytes]:
        """What was sent since the last look."""
        payloads = [payload for _, payload, _ in self.sent]
        self.sent.clear()
        return payloads

    def counts(self) -> list[int]:
        """The delivery counts of what was sent since the last look."""
        counts = [count for _, _, count in self.sent]
        self.sent.clear()
        return counts

    def settle(self, payload: bytes, outcome: int = ACCEPTED) -> None:
        """Say something about one message that it holds."""
        assert self.endpoint.settle(self, self.by_payload[payload], outcome)

    def settle_all(self, outcome: int = ACCEPTED) -> None:
        """Say the same about all that it holds, oldest first."""
        for message_id in list(self.unacked):
            assert self.endpoint.settle(self, message_id, outcome)


class Listener(Subscriber):
    """A client with QoS 0 subscriptions; `got` are payloads."""

    def __init__(self, vpn: MessageVpn, name: str, room: int = 1 << 30) -> None:
        super().__init__(name, Outbox(vpn.context.ready, room), FRAME_MQTT5)
        self.vpn = vpn

    def subscribe(self, text: str) -> None:
        """Get what an MQTT filter matches, as Direct."""
        self.vpn.subscribe(Subscription(parse_filter(text, MQTT), self))

    @property
    def count(self) -> int:
        """Messages that it was offered and had room for."""
        return self.outbox.messages


class SpoolWorld:
    """One message VPN, blue, with a spool over a memory store."""

    def __init__(
        self, max_usage: int = 0, trace_terms: TraceSettings | None = None, **bounds: int
    ) -> None:
        self.trace_terms = trace_terms
        self.store = MemoryStore(b"0123456789abcdef")
        self.max_usage = max_usage
        self.bounds = bounds
        self.now_ns = START_NS
        self.told = Told()
        self.made: list[tuple[int, str, int, EndpointSettings, bool, tuple[str, ...]]] = []
        self.ended: list[Endpoint] = []
        self._start()

    def _start(self) -> None:
        self.context = RouterContext("here", 7, Recorder(), 0.0, self.trace_terms)
        self.context.now_ns = self.now_ns
        self.context.wall_ns = WALL_NS + self.now_ns - START_NS
        self.vpn = MessageVpn(
            "blue", self.context, Credentials(False, ()), {}, {}, VpnLimits(**self.bounds)
        )
        self.spool = Spool(self.context, Ledger(self.store), self.max_usage)
        self.context.spool = self.spool
        self.endpoints: list[Endpoint] = []
        self.token = 0

    # -- endpoints -------------------------------------------------------------------------------

    def endpoint(
        self, name: str, *filters: str, kind: int = QUEUE, durable: bool = True, **settings: Any
    ) -> Endpoint:
        """A queue, or another endpoint, with attributes."""
        given = EndpointSettings()
        for key, value in settings.items():
            assert hasattr(given, key), key
            setattr(given, key, value)
        number = len(self.made) + 1
        self.made.append((kind, name, number, given, durable, filters))
        return self._make(self.made[-1])

    def _make(self, row: tuple[int, str, int, EndpointSettings, bool, tuple[str, ...]]) -> Endpoint:
        kind, name, number, settings, durable, filters = row
        endpoint = Endpoint(self.spool, self.vpn, kind, name, number, settings, durable)
        self.vpn.endpoints[kind, name] = endpoint
        self.vpn.forget_all_routes()
        for text in filters:
            filter_ = parse_filter(text, MQTT, exceptions=True)
            self.vpn.subscribe(Subscription(filter_, endpoint))
        self.endpoints.append(endpoint)
        return endpoint

    def settings(self, endpoint: Endpoint, **changes: Any) -> None:
        """Reload some attributes."""
        settings = endpoint.settings.copy()
        for key, value in changes.items():
            assert hasattr(settings, key), key
            setattr(settings, key, value)
        endpoint.take_settings(settings)

    def bind(
        self, endpoint: Endpoint, name: str = "c", window: int = 1_000, selector: str = ""
    ) -> Sink:
        """A consumer."""
        flow = Sink(endpoint, name, window, selector)
        endpoint.bind(flow, CONSUME, CONSUME)
        return flow

    # -- messages --------------------------------------------------------------------------------

    def publish(self, topic: str, payload: bytes = b"x", **properties: str) -> int:
        """Publish a guaranteed message; the outcome that the publisher will be told."""
        return self.give(guaranteed(topic, payload, 1, **properties))

    def give(self, message: Message) -> int:
        """The same for a message that is made already."""
        self.token += 1
        return self.spool.publish(self.vpn, message, self.told, self.token)

    def direct(self, topic: str, payload: bytes = b"x", **properties: str) -> str:
        """Publish a Direct message."""
        message = guaranteed(topic, payload, qos=0, **properties)
        message.persistent = False
        return self.vpn.publish(message)

    # -- time and commits ------------------------------------------------------------------------

    def commit(self) -> None:
        """End rounds and commit until nothing is left to do."""
        for _ in range(10_000):
            batch = self.spool.end_round()
            if batch is not None:
                self.store.commit(batch)
                self.spool.committed()
            elif not self.spool.busy:
                return
        raise AssertionError("the spool is never done")

    def seal(self) -> Batch | None:
        """End one round; what is to be committed."""
        return self.spool.end_round()

    def advance(self, seconds: float) -> None:
        """Let time pass, and commit."""
        self.now_ns += int(seconds * SECOND_NS)
        self.context.now_ns = self.now_ns
        self.context.wall_ns = WALL_NS + self.now_ns - START_NS
        self.context.timers.run(self.now_ns)
        self.commit()
        # What a timer left for the next rounds.
        while 0 <= self.context.timers.next_ns() <= self.now_ns + 1:
            self.now_ns += 1
            self.context.now_ns += 1
            self.context.wall_ns += 1
            self.context.timers.run(self.now_ns)
            self.commit()

    def restart(self) -> list[Endpoint]:
        """Start again with what the store has; the endpoints, in the order in which they were made."""
        self.check()
        self._start()
        found = [self._make(row) for row in self.made if row[4]]
        recover(self.spool, self.store, {endpoint.number: endpoint for endpoint in found})
        recover_retained(self.store, {"blue": self.vpn})
        self.commit()
        return found

    # -- checks ----------------------------------------------------------------------------------

    def check(self) -> None:
        """Promise BALANCE, and that all places where messages wait add up."""
        used = 0
        for endpoint in self.endpoints:
            assert endpoint.counters.imbalance(endpoint.spooled_count) == 0, endpoint.name
            count = endpoint.pending + len(endpoint.schedule.delayed)
            count += sum(pool.count for pool in endpoint.pools())
            count += sum(len(flow.unacked) for flow in endpoint.holders())
            assert endpoint.spooled_count == count, endpoint.name
            assert (endpoint.spooled_bytes == 0) == (endpoint.spooled_count == 0), endpoint.name
            used += endpoint.spooled_bytes
        assert self.spool.usage == used
        assert self.vpn.spooled_bytes == used
