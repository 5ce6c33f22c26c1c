"""What a client says about the configuration: method, path and body of each request."""

import json
from typing import Any

import httpx
import pytest

from vpnrouter.management.client import ManagementClient, config_path

BRIDGE = "/msgVpns/a%2Fb/bridges/x%2Cy,auto"


@pytest.fixture
def asked() -> list[tuple[str, str, Any]]:
    """Method, path and body of each request."""
    return []


@pytest.fixture
def client(asked: list[tuple[str, str, Any]]) -> ManagementClient:
    """A client whose requests are noted, and answered with their body."""

    def answer(request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content) if request.content else None
        asked.append((request.method, request.url.raw_path.decode(), body))
        data = [] if request.url.path.endswith("queues") else body or {"digest": "d"}
        return httpx.Response(200, json={"data": data, "meta": {"responseCode": 200}})

    made = ManagementClient("http://h")
    made._http = httpx.Client(transport=httpx.MockTransport(answer))
    return made


def test_the_document(client: ManagementClient, asked: list[Any]) -> None:
    """It is read, examined, replaced where it still is what it was, and returned to."""
    assert client.config()["digest"] == "d"
    client.examine({"router": {}})
    client.replace_config({"router": {}}, "d")
    client.return_config("e")
    assert asked == [
        ("GET", "/vpnrouter/v1/config", None),
        ("POST", "/vpnrouter/v1/config/examine", {"document": {"router": {}}}),
        ("PUT", "/vpnrouter/v1/config/replace", {"document": {"router": {}}, "expected": "d"}),
        ("PUT", "/vpnrouter/v1/config/return", {"digest": "e"}),
    ]


def test_objects(client: ManagementClient, asked: list[Any]) -> None:
    """Objects are read, created, changed and deleted under the field's paths."""
    path = config_path("msgVpns", "a/b", "bridges", ("x,y", "auto"))
    assert path == BRIDGE
    client.config_object(path)
    client.config_objects("/msgVpns/v/queues")
    client.create_config("/msgVpns/v/queues", {"queueName": "q"})
    client.enable_bridge("a/b", "x,y", enabled=False)
    client.delete_config(path)
    assert asked == [
        ("GET", f"/SEMP/v2/config{BRIDGE}", None),
        ("GET", "/SEMP/v2/config/msgVpns/v/queues?count=100", None),
        ("POST", "/SEMP/v2/config/msgVpns/v/queues", {"queueName": "q"}),
        ("PATCH", f"/SEMP/v2/config{BRIDGE}", {"enabled": False}),
        ("DELETE", f"/SEMP/v2/config{BRIDGE}", None),
    ]
