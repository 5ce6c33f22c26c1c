"""Lists the brokers under comparison by name."""

from __future__ import annotations

from bench.guaranteed_mosquitto import StoringMosquitto
from bench.guaranteed_nats import JetStreamServer
from bench.guaranteed_ours import SpoolingRouter
from bench.guaranteed_products import Store
from bench.guaranteed_rabbit import RabbitMq

NAMES = ("ours", "mosquitto", "mosquitto-qos2", "nats", "rabbitmq", "rabbitmq-classic")
SYNCED = "rabbitmq"
"""The one peer that acknowledges nothing it has not synced."""


def by_name(name: str, router_command: str = "") -> Store:
    """The broker of that name. Raises KeyError."""
    stores: dict[str, Store] = {
        "ours": SpoolingRouter(router_command),
        "mosquitto": StoringMosquitto(),
        "mosquitto-qos2": StoringMosquitto(2),
        "nats": JetStreamServer(),
        "rabbitmq": RabbitMq(),
        "rabbitmq-classic": RabbitMq("classic"),
    }
    return stores[name]
