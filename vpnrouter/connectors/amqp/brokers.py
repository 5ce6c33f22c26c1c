"""The table of what differs between brokers of AMQP 1.0: how each names queues and topics, and what it offers.

AMQP says nothing of what an address means. A link of a connector names `queue://NAME` or `topic://NAME`, and the row of
the broker says what that is there. Anything else is the broker's own address, passed on as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote

from vpnrouter.core.conversion import QUEUE_SCHEME, TOPIC_SCHEME
from vpnrouter.wire.amqp.types import Symbol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vpnrouter.connectors.links import LinkSettings

QUEUE: Final = "queue"
TOPIC: Final = "topic"
AS_IS: Final = ""
"""Kinds of addresses: the last one is the broker's own."""

DUPLICATE_ID: Final = "_AMQ_DUPL_ID"
"""Application property by which Artemis knows a message again that it has."""

ONE_ADDRESS: Final = "takes no messages for an address of their own: name one address as the target"
KNOWS_NONE: Final = (
    "offers nothing by which it would know a message again, which once-and-only-once needs;"
    " duplicates-ok works"
)
"""What is said of a broker that cannot carry a link."""

GLOBAL: Final = "|global"
"""Ends the name of a link to a subscription that clients of all containers share, as Qpid JMS and Artemis name them."""


class Broker(NamedTuple):
    """One kind of broker. `{}` in an address is the name.

    `products`: what it calls itself in `open`, as far as that is the same for all versions, in small letters;
    `version` is what its version begins with, "" for any. `queue` and `topic` are addresses, "" where it has none of
    the kind; `source` is the address of a topic to receive from. `quoted`: names are percent-encoded. `capable`:
    termini say by a capability what they are. `relays`: it takes messages over a link without an address, each to its
    own. `subscription` is the address of a durable subscription of a topic, "" where it is the name of the link.
    `duplicate_id` is the application property by which it knows a message again, "" for none; `knows_deliveries`: it
    does by their tags, where it offers that. `transactions`: it is asked for them where a link wants some; others end
    the connection for the question. `selects`: it may know selectors; others repeat one as if they did.
    """

    name: str
    products: tuple[str, ...]
    version: str
    queue: str
    topic: str
    source: str
    quoted: bool = False
    capable: bool = False
    relays: bool = True
    subscription: str = ""
    duplicate_id: str = ""
    knows_deliveries: bool = False
    transactions: bool = True
    selects: bool = True

    def obstacle(self, terms: LinkSettings) -> tuple[tuple[str, ...], str]:
        """Return the attribute for which the broker cannot carry a link, and why, "" where it may.

        What the broker offers when it is asked is not known here.
        """
        if terms.inbound:
            kind, name = kind_and_name(terms.source)
            if not self.origin(kind, name, terms.subscription):
                return ("source", "address"), self.gives_none(kind)
            if terms.selector_text and not self.selects:
                return ("source", "selector"), f"{self.name} knows no selectors"
            return (), ""
        kind, name = kind_and_name(terms.target)
        if terms.one_target and not self.target(kind, name):
            return ("target", "address"), f"{self.name} has no {kind}s to send to"
        if not terms.one_target and not self.relays:
            return ("target", "address"), f"{self.name} {ONE_ADDRESS}"
        if terms.transacted and not self.transactions:
            return ("transacted",), f"{self.name} has no transactions"
        if terms.qos == 2 and not self.duplicate_id and not self.knows_deliveries:
            return ("quality_of_service",), f"{self.name} {KNOWS_NONE}"
        return (), ""

    def gives_none(self, kind: str) -> str:
        """Return what is said of a broker that has no address of this kind to receive from."""
        return f"{self.name} gives out no messages of a {kind}: name a queue of it"

    def target(self, kind: str, name: str) -> str:
        """Return the address to send to, "" where there is none of this kind."""
        return self._address({QUEUE: self.queue, TOPIC: self.topic}.get(kind, "{}"), name)

    def origin(self, kind: str, name: str, subscription: str) -> str:
        """Return the address to receive from, "" where there is none of this kind."""
        if kind == TOPIC and subscription and self.subscription:
            return self.subscription.format(name, subscription)
        return self._address({QUEUE: self.queue, TOPIC: self.source}.get(kind, "{}"), name)

    def _address(self, form: str, name: str) -> str:
        return form.replace("{}", quote(name, safe="") if self.quoted and form != "{}" else name)


BROKERS: Final = (
    Broker(
        "artemis",
        ("apache-activemq-artemis",),
        "",
        "{}",
        "{}",
        "{}",
        capable=True,
        duplicate_id=DUPLICATE_ID,
    ),
    Broker(
        "rabbitmq3",
        ("rabbitmq",),
        "3.",
        "/amq/queue/{}",
        "/topic/{}",
        "/topic/{}",
        relays=False,
        transactions=False,
        selects=False,
    ),
    Broker(
        "rabbitmq",
        ("rabbitmq",),
        "",
        "/queues/{}",
        "/exchanges/amq.topic/{}",
        "",
        quoted=True,
        transactions=False,
        selects=False,
    ),
    Broker("ibm-mq", ("ibm mq", "mq light"), "", "{}", "{}", "{}", capable=True, relays=False),
    Broker(
        "service-bus",
        ("microsoft",),
        "",
        "{}",
        "{}",
        "",
        relays=False,
        subscription="{}/Subscriptions/{}",
    ),
    Broker(
        "vpnrouter",
        ("vpnrouter",),
        "",
        "queue://{}",
        "topic://{}",
        "topic://{}",
        knows_deliveries=True,
    ),
    Broker("other", (), "", "{}", "{}", "{}", capable=True),
)
"""The rows, the first that fits counts. Versions before others of the same product stand first."""

_BY_NAME: Final = {one.name: one for one in BROKERS}


def broker_named(name: str) -> Broker:
    """Return the row of this name. Raises KeyError."""
    return _BY_NAME[name]


def broker_that_says(properties: Mapping[Any, object] | None) -> Broker:
    """Return the row of a broker by the properties of its `open` (2.7.1), `other` for one that nobody knows."""
    said = properties or {}
    product, version = (
        text if isinstance(text, str) else ""
        for text in (said.get(Symbol(key), said.get(key)) for key in ("product", "version"))
    )
    product = product.lower()
    for one in BROKERS:
        if product and product.startswith(one.products) and version.startswith(one.version):
            return one
    return _BY_NAME["other"]


def kind_and_name(address: str) -> tuple[str, str]:
    """Return what an address of a link says: QUEUE, TOPIC or AS_IS, and the name."""
    if address.startswith(QUEUE_SCHEME):
        return QUEUE, address[len(QUEUE_SCHEME) :]
    if address.startswith(TOPIC_SCHEME):
        return TOPIC, address[len(TOPIC_SCHEME) :]
    return AS_IS, address
