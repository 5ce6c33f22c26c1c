"""Clears what is retained here of a remote and is retained there no more: a replay is a snapshot (LINK-54).

A remote that asked for nothing to be sent twice cannot tell what was cleared while its bridge was down. So what came
over the bridge, is retained here under a filter that is replayed, and does not come again, goes. What the remote would
not send, for an exception or a selector, stays: it may be retained there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter.core.discard_reasons import TOPIC_PARSE_ERROR
from vpnrouter.core.message import Message
from vpnrouter.core.selection import counted_match
from vpnrouter.core.timers import Job
from vpnrouter.errors import SelectorError, TopicError
from vpnrouter.selectors import parse_selector
from vpnrouter.topics.algebra import intersects, matches
from vpnrouter.topics.grammar import MQTT, SMF, parse_filter
from vpnrouter.wire.link import frames

if TYPE_CHECKING:
    from vpnrouter.bridges.own_half import OwnHalf
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.retained import Retained
    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.selectors import Selector
    from vpnrouter.topics.grammar import Filter
    from vpnrouter.topics.index import IndexWalk
    from vpnrouter.topics.mapping import TopicMapping

STEPS: Final = 64
"""Children of the index of retained messages that are looked at in one go."""

TOPIC_WORK: Final = 1
MAPPED_WORK: Final = 20
CLEAR_WORK: Final = 20
"""What a topic costs that is looked at, one that is mapped, and one that is cleared (TurnContext.work)."""


def wants_retained(frame: frames.Subscribe) -> bool:
    """Return whether a SUBSCRIBE asks for what is retained under one of its filters."""
    asking = [flags for flags, _ in frame.filters if flags & frames.SEND_RETAINED]
    return bool(asking)


@final
class Snapshot:
    """What is on its way of a remote's retained messages: those under `filters`.

    Complete with the SNAPSHOT_END of `request_id`, unless it `overflowed`. Topics that came are kept as hashes: two
    with the same one are as good as never, and would leave one of them retained.
    """

    __slots__ = ("_seen", "filters", "overflowed", "request_id")

    def __init__(self) -> None:
        self._seen: set[int] = set()
        self.overflowed = False
        self.filters: list[str] = []
        self.request_id = 0

    def ask(self, frame: frames.Subscribe) -> None:
        """Note a SUBSCRIBE that is sent."""
        self.request_id = frame.request_id
        self.filters += [text for flags, text in frame.filters if flags & frames.SEND_RETAINED]

    def saw(self, vpn: MessageVpn, topic: bytes, mapping: TopicMapping | None) -> None:
        """Note the topic of a retained message as it came, at most as many as may be retained here."""
        try:
            here = topic if mapping is None else mapping.apply_bytes(topic)
        except TopicError:
            return
        if len(self._seen) < vpn.retained.most:
            self._seen.add(hash(here))
        else:
            self.overflowed = True

    def has(self, topic: bytes) -> bool:
        """Return whether something came under a topic, as it is here."""
        return hash(topic) in self._seen


@final
class SnapshotSweep(Job):
    """Clears what a complete snapshot does not have, in slices, as if the remote had cleared it now."""

    __slots__ = (
        "_due",
        "_exceptions",
        "_half",
        "_mapping",
        "_retained",
        "_since",
        "_snapshot",
        "_walk",
        "_wanted",
    )

    def __init__(self, half: OwnHalf, snapshot: Snapshot, retained: Retained) -> None:
        super().__init__()
        self._half = half
        self._snapshot = snapshot
        self._mapping = half.terms.mapping
        self._walk: IndexWalk | None = None
        self._wanted: list[tuple[Filter, Selector | None]] = []
        for text in snapshot.filters:
            granted = _granted(half, text)
            if granted is not None:
                self._wanted.append(granted)
        self._exceptions: list[Filter] = []
        for text in half.wanted:
            exception = _parsed(text)
            if exception is not None and exception.exception:
                self._exceptions.append(exception)
        self._due = list(self._wanted)
        if self._mapping is not None and self._wanted:
            # Topics have other names here where they are mapped: then all are looked at.
            self._due = [(parse_filter(">", SMF), None)]
        # What comes from now on is not of the snapshot.
        self._retained = retained
        self._since = retained.last
        retained.watch()

    def owning_connection(self) -> Connection | None:
        """The link of the bridge."""
        return self._half.link

    def step(self) -> bool:
        """Look at topics until this turn has done enough."""
        half = self._half
        vpn = half.link.vpn
        if vpn is None or half.over:
            self._retained.unwatch()
            return True
        context = vpn.context
        while not context.turn_spent:
            walk = self._walk
            if walk is None:
                if not self._due:
                    self._retained.unwatch()
                    return True
                walk = self._walk = self._retained.walk(self._due[-1][0])
            steps = walk.steps
            for topic in walk.go_on(STEPS):
                context.work += TOPIC_WORK
                self._look(vpn, topic, self._due[-1][1])
            context.work += (walk.steps - steps) >> 2
            if walk.done:
                self._walk = None
                self._due.pop()
        return False

    def _look(self, vpn: MessageVpn, topic: bytes, selector: Selector | None) -> None:
        half = self._half
        client = half.link.client
        sink = half.link.sink
        context = vpn.context
        kept = self._retained.message(topic, self._since, context.now_ns)
        if kept is None or client is None or sink is None or self._snapshot.has(topic):
            return
        if not kept.path or kept.path[-1] != client.vpn_id:
            return
        if not (self._is_sent(kept, selector) if self._mapping is None else self._attracts(kept)):
            return
        context.work += CLEAR_WORK
        message = Message(topic, b"", b"", True, client)
        message.path = [client.vpn_id]
        message.hops = 1
        message.ingress_ns = context.steady_ns
        sink.messages += 1
        try:
            half.take_in(sink, message)
        except TopicError:
            # A limit of the message VPN was lowered since: nothing enters under this topic, not even its end.
            half.passes_over(sink, message, TOPIC_PARSE_ERROR)

    def _is_sent(self, kept: Message, selector: Selector | None) -> bool:
        """Return whether the remote sends what it retains on a topic that a filter attracts."""
        topic = kept.topic.decode()
        for exception in self._exceptions:
            if matches(exception, topic):
                return False
        return counted_match(selector, kept, self._half.link.context)

    def _attracts(self, kept: Message) -> bool:
        """Return whether a topic of the remote that becomes this one here is sent where the remote retains it."""
        mapping = self._mapping
        context = self._half.link.context
        if mapping is None:
            return False
        context.work += MAPPED_WORK
        sources = [
            parse_filter(text, SMF)
            for text in mapping.sources(parse_filter(kept.topic.decode(), MQTT))
        ]
        for source in sources:
            for exception in self._exceptions:
                if intersects(source, exception):
                    return False
        for source in sources:
            for wanted, selector in self._wanted:
                if intersects(source, wanted) and counted_match(selector, kept, context):
                    return True
        return False


def _granted(half: OwnHalf, text: str) -> tuple[Filter, Selector | None] | None:
    """Return a filter whose retained messages the remote has sent, with its selector; None where it did not grant it,
    or sends none.
    """
    if text in half.refused or text not in half.wanted:
        return None
    filter_ = _parsed(text)
    if filter_ is None or filter_.exception or filter_.share:
        return None
    selector = half.selectors.get(text, "")
    try:
        return filter_, parse_selector(selector) if selector else None
    except SelectorError:
        # A remote of a later version may know more.
        return None


def _parsed(text: str) -> Filter | None:
    try:
        return parse_filter(text, SMF, exceptions=True)
    except TopicError:
        return None
