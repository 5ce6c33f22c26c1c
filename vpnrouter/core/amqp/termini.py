"""Reads what clients ask for in the source or target of a link: which queue or topic, which filters, which lifetime.

Durable and shared subscriptions are as Qpid JMS forms them: the part of the link's name before `|` is the name of the
subscription, and the capabilities `shared` and `global` say who shares it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from vpnrouter import limits
from vpnrouter.core.conversion import QUEUE_SCHEME, TOPIC_SCHEME
from vpnrouter.errors import ProtocolError, SelectorError
from vpnrouter.selectors import parse_selector
from vpnrouter.topics.grammar import QUEUE_PREFIX
from vpnrouter.wire.amqp.conditions import INVALID_FIELD
from vpnrouter.wire.amqp.types import Described

if TYPE_CHECKING:
    from vpnrouter.selectors import Selector
    from vpnrouter.wire.amqp.performatives import Map, Source, Target

TOPIC: Final = 0
QUEUE: Final = 1
ANONYMOUS: Final = 2
"""Kinds of nodes; an anonymous one is the relay for messages that say themselves where they go."""

_QUEUES: Final = frozenset({"queue", "temporary-queue"})
_TOPICS: Final = frozenset({"topic", "temporary-topic"})

_SELECTORS: Final = frozenset({0x0000_468C_0000_0004, "apache.org:selector-filter:string"})
_NO_LOCALS: Final = frozenset({0x0000_468C_0000_0003, "apache.org:no-local-filter:list"})
"""Descriptors of the filters of the AMQP registry that are known here."""

COPY: Final = "copy"
_NEVER: Final = "never"


class Node(NamedTuple):
    """What an address names: a kind and a name, "" for the anonymous relay."""

    kind: int
    name: str


class Wish(NamedTuple):
    """What the source of a link asks for. `filters` are those that hold, as the client wrote them.

    `subscription` is the name of the durable or shared subscription, "" for one that is the link's alone. `everywhere`:
    it is shared by all containers. `browse`: messages are only looked at.
    """

    node: Node
    selector: Selector | None
    no_local: bool
    filters: Map | None
    browse: bool
    durable: bool
    shared: bool
    everywhere: bool
    subscription: str


def node_of(address: object, capabilities: list[object] | None) -> Node:
    """Return what an address names: its scheme says so, else a capability, and a plain one is a topic.

    Raises ProtocolError for an address that is no string.
    """
    if address is None:
        return Node(ANONYMOUS, "")
    if not isinstance(address, str):
        raise ProtocolError(INVALID_FIELD, "3.5: an address is a string")
    wanted = {str(one) for one in capabilities or ()}
    if address.startswith(TOPIC_SCHEME):
        return Node(TOPIC, address[len(TOPIC_SCHEME) :])
    if address.startswith(QUEUE_SCHEME):
        return Node(QUEUE, address[len(QUEUE_SCHEME) :])
    if address.startswith(QUEUE_PREFIX):
        return Node(QUEUE, address[len(QUEUE_PREFIX) :])
    if not address:
        return Node(ANONYMOUS, "")
    return Node(QUEUE if wanted & _QUEUES else TOPIC, address)


def says_kind(address: object, capabilities: list[object] | None) -> bool:
    """Return whether an address says by its scheme or a capability whether it is a topic or a queue."""
    if isinstance(address, str) and address.startswith((TOPIC_SCHEME, QUEUE_SCHEME, QUEUE_PREFIX)):
        return True
    wanted = {str(one) for one in capabilities or ()}
    return bool(wanted & (_TOPICS | _QUEUES))


def makes_topic(terminus: Source | Target) -> bool:
    """Return whether a dynamic node is to be a topic, and not a queue."""
    wanted = {str(one) for one in terminus.capabilities or ()}
    return bool(wanted & _TOPICS)


def work_of(source: Source) -> int:
    """Return what it costs to read the filters of a source, in parts of a turn: half a microsecond a character."""
    work = 0
    for value in (source.filter or {}).values():
        text = value.value if isinstance(value, Described) else value
        work += len(text) >> 1 if isinstance(text, str) else 1
    return work


def wish_of(source: Source, link_name: str) -> Wish:
    """Return what a source asks for.

    Raises ProtocolError for a selector that is none, and a durable or shared subscription without a name.
    """
    wanted = {str(one) for one in source.capabilities or ()}
    node = node_of(source.address, source.capabilities)
    text = ""
    no_local = False
    held: dict[object, object] = {}
    filters = source.filter or {}
    if len(filters) > limits.AMQP_FILTERS:
        raise ProtocolError(
            INVALID_FIELD, f"3.5.3: a source has at most {limits.AMQP_FILTERS} filters"
        )
    for name, value in filters.items():
        inner = value
        descriptor: object = name
        if isinstance(value, Described):
            inner = value.value
            descriptor = value.descriptor
        if descriptor in _SELECTORS or name == "jms-selector":
            if not isinstance(inner, str):
                raise ProtocolError(INVALID_FIELD, "a selector is a string")
            if text:
                raise ProtocolError(INVALID_FIELD, "3.5.3: a source has one selector")
            text = inner
        elif descriptor in _NO_LOCALS or name == "no-local":
            no_local = True
        else:
            # 3.5.3: what is not known here does not hold, and is not repeated in the answer.
            continue
        held[name] = value
    shared = "shared" in wanted
    durable = source.durable > 0 or source.expiry_policy == _NEVER
    subscription = ""
    if node.kind == TOPIC and (shared or durable):
        subscription = subscription_of(link_name)
        if not subscription:
            # Nobody could find it again.
            raise ProtocolError(INVALID_FIELD, "a durable or shared subscription has a name")
    return Wish(
        node,
        selector=_selector(text),
        no_local=no_local,
        filters=held or None,
        browse=node.kind == QUEUE and source.distribution_mode == COPY,
        durable=durable,
        shared=shared,
        everywhere="global" in wanted,
        subscription=subscription,
    )


def subscription_of(link_name: str) -> str:
    """Return the name of the subscription that a link's name stands for."""
    return link_name.partition("|")[0]


def _selector(text: str) -> Selector | None:
    if not text.strip():
        return None
    try:
        return parse_selector(text)
    except SelectorError as error:
        raise ProtocolError(INVALID_FIELD, f"406 Invalid Selector: {error}") from error


def shown(node: Node) -> str:
    """Return the address of a node."""
    if node.kind == QUEUE:
        return QUEUE_SCHEME + node.name
    return TOPIC_SCHEME + node.name if node.kind == TOPIC else ""
