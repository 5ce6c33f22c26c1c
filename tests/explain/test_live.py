"""What running routers tell beside their files: the document in force, clients, queues, bridges that are down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vpnrouter.config.load import load
from vpnrouter.errors import OperationError
from vpnrouter.explain.explain import explain
from vpnrouter.explain.live import document_of, live_mesh, loaded_of
from vpnrouter.explain.request import ExplainRequest

CONFIGS = Path(__file__).parents[2] / "configs"


class Client:
    """Answers of one router's management API, as ManagementClient gives them."""

    def __init__(self, file: str, **rows: list[dict[str, Any]]) -> None:
        loaded = load(CONFIGS / file)
        self._rows = rows
        self._config = {
            "document": masked(loaded.positions.data),
            "routerName": loaded.config.router.name,
            "file": f"/etc/{file}",
            "positions": [
                {"path": ["msg_vpns"], "file": f"/etc/{file}", "line": 14, "column": 1},
                {
                    "path": ["msg_vpns", "blue", "queues", "to-core", "subscriptions", 0],
                    "file": "/var/overlay.yaml",
                    "line": 3,
                    "column": 9,
                },
            ],
        }

    def config(self) -> dict[str, Any]:
        return self._config

    def queues(self) -> list[dict[str, Any]]:
        return self._rows.get("queues", [])

    def bridges(self) -> list[dict[str, Any]]:
        return self._rows.get("bridges", [])

    def connectors(self) -> list[dict[str, Any]]:
        return self._rows.get("connectors", [])

    def clients(self) -> list[dict[str, Any]]:
        return self._rows.get("clients", [])

    def subscriptions(self, *, limit: int) -> list[dict[str, Any]]:
        return self._rows.get("subscriptions", [])[:limit]


def masked(data: Any) -> Any:
    """With passwords as the API shows them."""
    if isinstance(data, dict):
        return {key: "***" if key == "password" else masked(one) for key, one in data.items()}
    return [masked(one) for one in data] if isinstance(data, list) else data


def ask(*clients: Client, topic: str = "orders/1") -> Any:
    """What becomes of a guaranteed message published into blue."""
    live = live_mesh(clients)  # type: ignore[arg-type]
    return explain(live.mesh, ExplainRequest("edge", "blue", topic, "persistent"), live)


def test_masked_passwords_are_taken_to_be_right() -> None:
    """The bridge logs in, and rules stand where the API says."""
    told = ask(Client("core.yaml"), Client("edge.yaml"))
    assert [one.name for one in told.arrivals] == ["orders", "to-core"]
    kept = told.steps[0].steps[0]
    assert kept.rules[0].place == "/var/overlay.yaml:3"
    assert told.notes == []


def test_clients_that_subscribe_now() -> None:
    """A connected client gets it; one that is away only what its session keeps."""
    place = {"msgVpnName": "blue", "holder": "client", "syntax": "mqtt"}
    edge = Client(
        "edge.yaml",
        subscriptions=[
            {**place, "name": "here", "subscriptionTopic": "t/#", "qos": 0},
            {**place, "name": "away", "subscriptionTopic": "t/#", "qos": 1},
            {**place, "name": "gone", "subscriptionTopic": "t/#", "qos": 0},
            {**place, "holder": "queue", "name": "to-core", "subscriptionTopic": "orders/>"},
        ],
        clients=[
            {"msgVpnName": "blue", "clientName": "away", "connected": False},
            {"msgVpnName": "blue", "clientName": "gone", "connected": False},
        ],
    )
    told = ask(Client("core.yaml"), edge, topic="t/1")
    assert [(one.kind, one.name) for one in told.arrivals] == [
        ("client", "here"),
        ("endpoint", "#mqtt/away"),
    ]


def test_amqp_subscriptions() -> None:
    """What an AMQP client subscribed to has an endpoint of its own, and its selector decides."""
    place = {"msgVpnName": "blue", "holder": "subscription", "syntax": "smf"}
    edge = Client(
        "edge.yaml",
        subscriptions=[
            {**place, "name": "#amqp-durable/ann/c/all", "subscriptionTopic": "t/>"},
            {
                **place,
                "name": "#amqp-durable/ann/c/some",
                "subscriptionTopic": "t/>",
                "selector": "a = 'b'",
            },
            {**place, "name": "#amqp-durable/ann/c/other", "subscriptionTopic": "u/>"},
        ],
    )
    told = ask(Client("core.yaml"), edge, topic="t/1")
    assert [(one.kind, one.name) for one in told.arrivals] == [
        ("endpoint", "#amqp-durable/ann/c/all")
    ]
    texts = [step.text for step in told.steps[0].steps]
    assert (
        "the AMQP subscription #amqp-durable/ann/c/some does not get it: its selector does not match: a = 'b'"
        in texts
    )
    assert (
        "the AMQP subscription #amqp-durable/ann/c/other does not get it: no subscription of it matches"
        in texts
    )


def test_a_full_queue() -> None:
    """How much waits now decides."""
    edge = Client(
        "edge.yaml",
        queues=[
            {
                "msgVpnName": "blue",
                "queueName": "to-core",
                "msgSpoolUsage": 100_000_000,
                "msgCount": 5,
            }
        ],
    )
    told = ask(Client("core.yaml"), edge)
    assert told.arrivals == []
    assert [(one.event, one.reason) for one in told.losses] == [("reject", "503 Spool Over Quota")]


def test_a_bridge_that_is_down_now() -> None:
    """It is not crossed, whatever its configuration would allow."""
    core = Client(
        "core.yaml",
        bridges=[
            {
                "msgVpnName": "yellow",
                "bridgeName": "from-blue",
                "inboundState": "not-ready-wait-next",
                "inboundFailureReason": "cannot connect",
            }
        ],
    )
    told = ask(core, Client("edge.yaml"))
    assert [one.name for one in told.arrivals] == ["to-core"]
    assert [(one.up, one.why) for one in told.bridges] == [(False, "cannot connect")]


def test_a_document_of_another_version() -> None:
    """One line that says where."""
    with pytest.raises(OperationError, match=r"router r cannot be read here: nonsense"):
        loaded_of({"document": {"router": {"name": "r"}, "nonsense": 1}, "routerName": "r"})


def test_what_no_row_tells_of_stands_with_what_it_is_in() -> None:
    """Places are inherited."""
    rows = [{"path": ["a"], "file": "f", "line": 3, "column": 5}]
    document = document_of({"a": {"b": [1, 2]}}, rows, "g")
    assert document.key_at(("a", "b", 1)) == ("f", 3, 5)
    assert document.key_at(()) == ("g", 1, 1)
    assert document.has(("a", "b", 1))
