"""The table of what differs between brokers of AMQP 1.0: how each names queues and topics, and what it offers.

AMQP says nothing of what an address means. A link of a connector names `queue://NAME` or `topic://NAME`, and the row of
the broker says what that is there. Anything else is the broker's own address, passed on as it is.
"""

from __future__ import annotations

from typing import Final, NamedTuple
from urllib.parse import quote

from vpnrouter.core.conversion import QUEUE_SCHEME, TOPIC_SCHEME

QUEUE: Final = "queue"
TOPIC: Final = "topic"
AS_IS: Final = ""
"""Kinds of addresses: the last one is the broker's own."""

DUPLICATE_ID: Final = "_AMQ_DUPL_ID"
"""Application property by which Artemis knows a message again that it has."""

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
    the connection for the question.
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
        transactions=False,
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


def broker_of(product: str, version: str) -> Broker:
    """Return the row of a broker by what it says of itself in `open`, that of `other` for one that nobody knows."""
    said = product.lower()
    for one in BROKERS:
        if said and said.startswith(one.products) and version.startswith(one.version):
            return one
    return _BY_NAME["other"]


def kind_and_name(address: str) -> tuple[str, str]:
    """Return what an address of a link says: QUEUE, TOPIC or AS_IS, and the name."""
    if address.startswith(QUEUE_SCHEME):
        return QUEUE, address[len(QUEUE_SCHEME) :]
    if address.startswith(TOPIC_SCHEME):
        return TOPIC, address[len(TOPIC_SCHEME) :]
    return AS_IS, address
