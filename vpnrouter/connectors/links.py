"""The settings of a connector's links: where each takes messages from, and the topic that it gives them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.connectors.settings import RequestSettings
from vpnrouter.core.guaranteed.failure_policy import FailurePolicy
from vpnrouter.core.mqtt.session import CONNECTOR_PREFIX
from vpnrouter.topics.cache import RememberedTopics
from vpnrouter.topics.grammar import QUEUE_PREFIX, Filter, match_levels, queue_topic
from vpnrouter.transforms.transform import Transform

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vpnrouter.selectors import Selector
    from vpnrouter.topics.mapping import MappingRule


@final
@dataclass(slots=True, eq=False)
class LinkSettings:
    """What one link is to do.

    `source` is what it takes from, as written: a filter at the provider, a filter here, or a queue here.
    `filter` matches the topics of its messages. `rule` renames them, None where they keep their topics; `queue_target`
    is the one queue that they enter instead, "" for none. `transform` changes them after that, None where they stay as
    they are. One that is not `enabled` carries nothing, and what it would take out is kept; so it is with one that is
    `paused`, by itself or with its connector, and what it would bring in is kept too. `no_local`: what came from the
    provider does not go back. `failures` says what becomes of a message that the provider refuses, or that cannot
    enter. One that has visited more than `max_ttl` places does not come in.
    `request` is how it sends to an HTTP server, None for other providers. `dead_letters`: it takes out what another
    link has given up, whose name is before the first `/` of its own; what the provider refuses of that is sent again
    after `retry_ms`.

    Of AMQP: `target` is the address at the provider as written, `one_target`: all messages go there. A link inward has
    the `subscription` of this name, `shared` with others, and has the provider select by `selector_text`. One outward
    is `transacted`: it sends batches of `batch_size` messages (0: as many as usual), each in a transaction; one that is
    not full waits for `batch_wait_ns`, for ever below 0. Without transactions no more than so many are under way.
    """

    name: str
    source: str
    # Imported while the program runs: a compiled dataclass looks its class up.
    filter: Filter
    inbound: bool
    enabled: bool = True
    paused: bool = False
    from_queue: bool = False
    qos: int = 1
    rule: MappingRule | None = None
    transform: Transform | None = None
    queue_target: str = ""
    keeps_retained: bool = True
    selector: Selector | None = None
    no_local: bool = False
    failures: FailurePolicy = field(default_factory=FailurePolicy)
    dead_letters: bool = False
    retry_ms: int = 0
    max_ttl: int = limits.HOPS
    target: str = ""
    one_target: bool = False
    subscription: str = ""
    shared: bool = False
    selector_text: str = ""
    transacted: bool = False
    batch_size: int = 0
    batch_wait_ns: int = 0
    request: RequestSettings | None = None

    @property
    def direct(self) -> bool:
        """True where it takes messages from topics as they come, at most once."""
        return not (self.inbound or self.from_queue or self.qos)

    @property
    def seeks_queue(self) -> bool:
        """True where what it gives up goes to dead message queues of its own."""
        return self.dead_letters or bool(self.failures.dead_msg_queues)

    @property
    def plain(self) -> bool:
        """True where messages cross as they are."""
        return self.rule is None and not self.queue_target and self.keeps_retained

    def topic(self, topic: str, levels: list[str]) -> str | None:
        """Return the topic that a message on `topic` gets, None where the link does not take it. Raises TopicError."""
        if not match_levels(self.filter.levels, self.filter.kinds, levels):
            return None
        if self.queue_target:
            return queue_topic(self.queue_target)
        if self.rule is None:
            return topic
        return self.rule.apply(topic, levels)


def label(client_name: str, link: str) -> str:
    """Return the name of a link in traces, CONNECTOR/LINK; `client_name` is that of its connector."""
    return f"{client_name.removeprefix(CONNECTOR_PREFIX)}/{link}"


@final
class LinkTopics:
    """The topics that links in one direction give: of several that take a topic the first one counts.

    Recent answers are kept.
    """

    __slots__ = ("_known", "links")

    def __init__(self, links: Iterable[LinkSettings]) -> None:
        self.links = list(links)
        self._known: RememberedTopics[tuple[bytes, LinkSettings | None]] = RememberedTopics(
            limits.MAPPED_TOPIC_BYTES
        )

    def of(self, topic: bytes) -> tuple[bytes, LinkSettings | None]:
        """Return the new topic of a message, and the link that gives it; None where no link takes it.

        `topic` is a valid one, in UTF-8. Raises TopicError where it would become none.
        """
        found = self._known.answers.get(topic)
        if found is None:
            found = self._look_up(topic)
            self._known.keep(topic, found, len(found[0]))
        return found

    def taker(self, topic: bytes) -> LinkSettings | None:
        """Return the link that takes a message, also where its new topic would be none; None for none."""
        levels = topic.decode().split("/")
        for link in self.links:
            if match_levels(link.filter.levels, link.filter.kinds, levels):
                return link
        return None

    def _look_up(self, topic: bytes) -> tuple[bytes, LinkSettings | None]:
        text = topic.decode()
        levels = text.split("/")
        for link in self.links:
            image = link.topic(text, levels)
            if image is not None:
                return image.encode(), link
        return topic, None


def outward(topic: bytes) -> bytes:
    """Return the topic of a message for a provider: one that was sent to a queue is named after it."""
    return topic.removeprefix(_QUEUE)


_QUEUE: Final = QUEUE_PREFIX.encode()
