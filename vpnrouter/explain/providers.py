"""The providers of the mesh in memory: what connectors give them, and to which other connectors that comes."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, final

from typing_extensions import override

from vpnrouter.connectors.provider import Receipts
from vpnrouter.connectors.visited import entry_of, visited
from vpnrouter.core.discard_reasons import PAUSED, TOPIC_PARSE_ERROR
from vpnrouter.core.message import Message
from vpnrouter.explain.request import DIRECT, PERSISTENT, Event
from vpnrouter.explain.told_transform import ToldTransform

if TYPE_CHECKING:
    from vpnrouter.connectors.inward import InwardLink
    from vpnrouter.connectors.links import LinkSettings
    from vpnrouter.connectors.outward import OutwardLink
    from vpnrouter.explain.connector import MemoryConnector

SENT: Final = "connector_send"
"""The event of a message that leaves by a connector. No trace has it: it is made here."""

WITHOUT_PATH: Final = 64
"""Messages that go from one connector to another one without saying where they have been, over MQTT 3.1.1. Beyond:
they are taken to go round."""


SHARED: Final = "$share/"
"""What the source of a link begins with that shares a subscription."""


@final
@dataclass(slots=True)
class Entry:
    """A message that a link brings in from a provider, at `path`. `reason` says why it does not enter, `waits` why
    it is set aside; both "" for one that enters. `changes` say what the steps of the link do to it.
    """

    connector: MemoryConnector
    link: InwardLink
    topic: str
    mode: str
    path: tuple[str, ...]
    reason: str = ""
    waits: str = ""
    changes: list[str] = field(default_factory=list)


@final
@dataclass(slots=True)
class Passage:
    """A message that a link takes out; `event` tells from where and as what. `event.reason` says why it does not leave.

    `entries` are what becomes of it behind the provider, `changes` what the steps of the link do to it.
    """

    connector: MemoryConnector
    link: OutwardLink
    event: Event
    entries: list[Entry] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)


@final
class Providers:
    """All providers of the mesh, by their names in paths. `passages` are what left for them, in order.

    `cut`: messages would have gone round, and do not.
    """

    def __init__(self) -> None:
        self.passages: list[Passage] = []
        self.cut = False
        self._connectors: dict[str, list[MemoryConnector]] = {}
        self._waiting: deque[tuple[Passage, Message]] = deque()
        self._without_path = 0
        self._receipts = _Unanswered()

    def add(self, connector: MemoryConnector) -> None:
        """Let a connector have what the others give to its provider."""
        self._connectors.setdefault(connector.place, []).append(connector)

    def take(
        self,
        connector: MemoryConnector,
        link: OutwardLink,
        message: Message,
        topic: bytes,
        endpoint: str = "",
    ) -> None:
        """Take what a link sends under `topic`, from the endpoint of this name if any; it goes on in the next round."""
        passage = self._passage(connector, link, message, topic, endpoint, "")
        self._waiting.append((passage, message.copy()))

    def leave_out(
        self,
        connector: MemoryConnector,
        link: OutwardLink,
        message: Message,
        reason: str,
        endpoint: str,
    ) -> None:
        """Note that a link does not send what it has taken out."""
        self._passage(connector, link, message, message.topic, endpoint, reason)

    def _passage(
        self,
        connector: MemoryConnector,
        link: OutwardLink,
        message: Message,
        topic: bytes,
        endpoint: str,
        reason: str,
    ) -> Passage:
        event = Event(
            connector.node.name,
            SENT,
            connector.vpn_name,
            topic.decode(errors="replace"),
            PERSISTENT if link.terms.qos else DIRECT,
            endpoint=endpoint,
            path=tuple(message.path),
            reason=reason,
        )
        passage = Passage(connector, link, event, changes=changes_of(link.terms))
        self.passages.append(passage)
        return passage

    def pump(self) -> bool:
        """Give what was taken to those that are subscribed; False where there was nothing."""
        moved = bool(self._waiting)
        while self._waiting:
            passage, message = self._waiting.popleft()
            shared: set[str] = set()
            for connector in self._connectors[passage.connector.place]:
                self._give(passage, message, connector, shared)
        return moved

    def _give(
        self, passage: Passage, message: Message, connector: MemoryConnector, shared: set[str]
    ) -> None:
        topic = passage.event.topic.encode()
        found = connector.link_for(topic, own=connector is passage.connector)
        if found is None:
            return
        link, image = found
        source = link.terms.source
        if source.startswith(SHARED):
            # One of the group has it; here the first one.
            if source in shared:
                return
            shared.add(source)
        entered = entry_of(connector.place, carries_path=connector.carries_path)
        path = [entered]
        if passage.connector.carries_path and connector.carries_path:
            path = [*message.path, passage.connector.vpn.vpn_id, entered]
        elif self._without_path == WITHOUT_PATH:
            self.cut = True
            return
        else:
            self._without_path += 1
        qos = min(passage.link.terms.qos, link.terms.qos)
        arrived = _arrived(message, link, image or topic, qos, path)
        entry = Entry(
            connector,
            link,
            (image or topic).decode(errors="replace"),
            PERSISTENT if qos else DIRECT,
            tuple(path),
        )
        passage.entries.append(entry)
        entry.reason = link.takes(arrived, arrived.size) if image else TOPIC_PARSE_ERROR
        self._enter(entry, arrived, qos)

    def _enter(self, entry: Entry, message: Message, qos: int) -> None:
        link = entry.link
        provider = link.provider
        paused = link.status.paused
        if paused and not qos and not entry.reason:
            entry.reason = PAUSED
        if entry.reason:
            link.discards(message, entry.reason)
        elif paused:
            entry.waits = "the link is paused"
        elif qos and link.terms.name in entry.connector.held:
            entry.waits = f"the link is held now: {entry.connector.held[link.terms.name]}"
        elif qos:
            link.enter(message, self._receipts, 0)
        elif provider is not None:
            link.enter_direct(message, provider.connection)
        if not (entry.reason or entry.waits):
            entry.changes = changes_of(link.terms)


def changes_of(terms: LinkSettings) -> list[str]:
    """Return what the steps of a link did to the message that they changed last."""
    transform = terms.transform
    return list(transform.lines) if isinstance(transform, ToldTransform) else []


def _arrived(
    message: Message, link: InwardLink, image: bytes, qos: int, path: list[str]
) -> Message:
    """Return a message as it comes from its provider."""
    said = message.mqtt()
    arrived = Message(image, said.payload, visited(said.block)[0], False, link.source)
    arrived.qos = qos
    arrived.persistent = qos > 0
    arrived.path = path
    arrived.hops = len(path)
    arrived.expires_ns = message.expires_ns
    return arrived


@final
class _Unanswered(Receipts):
    """The provider here needs no acknowledgement."""

    @override
    def on_outcome(self, token: int, outcome: int, reason: str) -> None:
        return
