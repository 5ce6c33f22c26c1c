"""Clears what is retained here of a remote and is retained there no more: a replay is a snapshot (LINK-54).

A remote that asked for nothing to be sent twice cannot tell what was cleared while its bridge was down. So what came
over the bridge, is retained here under a filter that is replayed, and does not come again, goes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter.core.message import Message
from vpnrouter.core.timers import Job
from vpnrouter.errors import TopicError
from vpnrouter.topics.algebra import intersects
from vpnrouter.topics.grammar import MQTT, SMF, parse_filter
from vpnrouter.wire.link import frames

if TYPE_CHECKING:
    from vpnrouter.bridges.own_half import OwnHalf
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.vpn import MessageVpn
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

    __slots__ = ("_filters", "_half", "_mapping", "_snapshot", "_walk", "_wanted")

    def __init__(self, half: OwnHalf, snapshot: Snapshot) -> None:
        super().__init__()
        self._half = half
        self._snapshot = snapshot
        self._mapping = half.terms.mapping
        self._walk: IndexWalk | None = None
        self._wanted: list[Filter] = []
        for text in snapshot.filters:
            filter_ = _granted(half, text)
            if filter_ is not None:
                self._wanted.append(filter_)
        # Topics have other names here where they are mapped: then all are looked at.
        self._filters = list(self._wanted)
        if self._mapping is not None and self._wanted:
            self._filters = [parse_filter(">", SMF)]

    def owning_connection(self) -> Connection | None:
        """The link of the bridge."""
        return self._half.link

    def step(self) -> bool:
        """Look at topics until this turn has done enough."""
        half = self._half
        vpn = half.link.vpn
        if vpn is None or half.over:
            return True
        context = vpn.context
        while not context.turn_spent:
            walk = self._walk
            if walk is None or walk.done:
                if not self._filters:
                    return True
                self._walk = vpn.retained.walk(self._filters.pop())
                continue
            steps = walk.steps
            for topic in walk.go_on(STEPS):
                context.work += TOPIC_WORK
                self._look(vpn, topic)
            context.work += (walk.steps - steps) >> 2
        return False

    def _look(self, vpn: MessageVpn, topic: bytes) -> None:
        half = self._half
        client = half.link.client
        sink = half.link.sink
        context = vpn.context
        kept = vpn.retained.message(topic, vpn.retained.last, context.now_ns)
        if kept is None or client is None or sink is None or self._snapshot.has(topic):
            return
        if not kept.path or kept.path[-1] != client.vpn_id or not self._attracts(topic):
            return
        context.work += CLEAR_WORK
        message = Message(topic, b"", b"", True, client)
        message.path = [client.vpn_id]
        message.hops = 1
        message.ingress_ns = context.steady_ns
        sink.messages += 1
        half.take_in(sink, message)

    def _attracts(self, topic: bytes) -> bool:
        """Return whether a topic of the remote that becomes this one here may be in the snapshot."""
        mapping = self._mapping
        if mapping is None:
            return True
        self._half.link.context.work += MAPPED_WORK
        for text in mapping.sources(parse_filter(topic.decode(), MQTT)):
            source = parse_filter(text, SMF)
            for wanted in self._wanted:
                if intersects(source, wanted):
                    return True
        return False


def _granted(half: OwnHalf, text: str) -> Filter | None:
    """Return a filter whose retained messages the remote has sent, None where it did not grant it, or sends none."""
    if text in half.refused or text not in half.wanted:
        return None
    try:
        filter_ = parse_filter(text, SMF, exceptions=True)
    except TopicError:
        return None
    return None if filter_.exception or filter_.share else filter_
