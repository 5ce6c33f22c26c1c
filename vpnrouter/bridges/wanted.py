"""What a bridge has asked for. The receiving end of a link checks each topic against it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast, final

from vpnrouter import limits
from vpnrouter.core.access import BoundRule
from vpnrouter.core.guaranteed.terms import CONSUME
from vpnrouter.errors import TopicError
from vpnrouter.topics.grammar import SMF, Filter, parse_filter
from vpnrouter.topics.trie import SubscriptionTrie

if TYPE_CHECKING:
    from vpnrouter.core.publisher import Publisher
    from vpnrouter.core.vpn import MessageVpn

QUEUE: Final = b"$queue/"


@final
class WantedRule(BoundRule):
    """The filters that are asked for at one time. Routes and publishers remember answers by the rule object, so each
    change makes a new one.
    """

    def __init__(self, trie: SubscriptionTrie) -> None:
        super().__init__(False, [])
        self._trie = trie

    def allows_topic(self, topic: str) -> bool:
        """True when a filter attracts `topic` and no exception keeps it away."""
        found = False
        for entry in self._trie.match(topic):
            if cast("str", entry).startswith("!"):
                return False
            found = True
        return found


@final
class Wanted:
    """The filters under which messages may come now, in `*` `>` dialect.

    A filter counts from the moment it is asked for, and a dropped one until the peer has answered. An exception
    counts from the peer's answer on: messages that were on the way before it are no fault of the peer.
    """

    __slots__ = ("_filters", "_trie")

    def __init__(self) -> None:
        self._trie = SubscriptionTrie()
        self._filters: dict[str, Filter] = {}

    def change(self, after: set[str], unsure: set[str]) -> WantedRule:
        """Ask for `after` from now on. `unsure` are filters, old and new, that the peer has not answered yet."""
        due: set[str] = set()
        for text in after | unsure:
            if not text.startswith("!") or (text in after and text not in unsure):
                due.add(text)
        for text in [known for known in self._filters if known not in due]:
            self._trie.remove(self._filters.pop(text), text)
        for text in due:
            if text not in self._filters:
                try:
                    filter_ = parse_filter(text, SMF, exceptions=True)
                except TopicError:
                    # The peer cannot parse it either, and sends nothing for it.
                    continue
                self._filters[text] = filter_
                self._trie.insert(filter_, text)
        return WantedRule(self._trie)


def asked_for(sink: Publisher, topic: bytes) -> bool:
    """True when the bridge asked for `topic`, which is as it came over the link."""
    rule = sink.rule
    if rule is None:
        return True
    known = sink.permitted.get(topic)
    if known is None:
        known = rule.allows_topic(topic.decode())
        if len(topic) <= limits.ROUTE_CACHE_TOPIC_BYTES:
            if len(sink.permitted) >= limits.PERMITTED_TOPICS:
                sink.permitted.clear()
            sink.permitted[topic] = known
    return known


def may_queue(topic: bytes, vpn: MessageVpn, taken_from: str) -> bool:
    """True when a guaranteed message with this topic may enter.

    A topic may name a queue of this message VPN: then the message may enter if it was taken from a queue of that
    name, or if everybody may consume from the queue.
    """
    if not topic.startswith(QUEUE):
        return True
    name = topic[len(QUEUE) :].decode()
    queue = vpn.queue(name)
    return queue is None or name == taken_from or queue.terms.permission >= CONSUME
