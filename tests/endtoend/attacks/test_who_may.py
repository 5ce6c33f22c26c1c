"""Every path and method of the API's own description, asked by everybody who may not.

New paths are covered by themselves; a name in a path that this page does not know gets one that is none.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

MARK = "redmark"
RED = f"{MARK}-vpn"
NOWHERE = "nowhere-vpn"

OPENAPI = "/SEMP/v2/openapi.json"

UNDESCRIBED = (("GET", OPENAPI), ("GET", "/SEMP/v2/config/"))
"""What the description leaves out."""

OPEN = ("/health/live", "/health/ready")
"""What needs no login."""

CHANGES = frozenset({"POST", "PUT", "PATCH", "DELETE"})


class Operation(NamedTuple):
    """A method and the template of a path."""

    method: str
    path: str


@pytest.fixture(scope="module")
def operations(attacked: Any) -> list[Operation]:
    """All that the router has."""
    with attacked.client("root") as client:
        described = client.get(OPENAPI).json()["paths"]
    found = [Operation(method.upper(), path) for path, each in described.items() for method in each]
    assert len(found) > 100
    assert {"GET"} | CHANGES == {each.method for each in found}
    return [*found, *(Operation(*each) for each in UNDESCRIBED)]


def names(mark: str, msg_vpn: str) -> dict[str, str]:
    """Names of what there is in a message VPN, by the parameter that takes them."""
    return {
        "msgVpnName": msg_vpn,
        "queueName": f"{mark}-queue",
        "msgId": "1",
        "bridgeName": f"{mark}-bridge",
        "bridgeVirtualRouter": "auto",
        "bridgeKey": f"{mark}-bridge,auto",
        "remoteMsgVpnName": f"{mark}-remote",
        "remoteMsgVpnLocation": "127.0.0.1:9",
        "remoteMsgVpnInterface": "",
        "remoteMsgVpnKey": f"{mark}-remote,127.0.0.1:9,",
        "remoteSubscriptionTopic": f"{mark}%2Fbridge",
        "clientName": f"{mark}-client",
        "subscriptionTopic": f"{mark}%2Ftopic",
        "mqttSessionClientId": f"{mark}-client",
        "mqttSessionVirtualRouter": "auto",
        "mqttSessionKey": f"{mark}-client,auto",
        "sessionKey": f"{mark}-client,auto",
        "topicEndpointName": f"{mark}-endpoint",
        "clientUsername": f"{mark}-user",
        "clientProfileName": f"{mark}-profile",
        "aclProfileName": f"{mark}-acl",
    }


def path_of(path: str, known: dict[str, str]) -> str:
    """A template with names in it."""
    return re.sub(r"{([^}:]+)[^}]*}", lambda found: known.get(found[1], "auto"), path)


def asked(client: Any, operation: Operation, path: str) -> Any:
    """One request; those that may change something come with an object."""
    if operation.method in CHANGES - {"DELETE"}:
        return client.request(operation.method, path, json={})
    return client.request(operation.method, path)


def test_without_login(attacked: Any, operations: list[Operation]) -> None:
    """Nothing is told to nobody, nor to a wrong login, whether the path exists or not."""
    before = attacked.state()
    with attacked.client() as client:
        for each in operations:
            path = path_of(each.path, names("blue", "blue"))
            expected = 200 if path in OPEN else 401
            answer = asked(client, each, path)
            assert answer.status_code == expected, each
            assert expected == 200 or "data" not in answer.json()
            for method in ("GET", "HEAD", "OPTIONS", "TRACE", "PROPFIND"):
                if path not in OPEN:
                    assert client.request(method, path).status_code == 401, (method, path)
        for path in ("/", "/nope", "/health", "/health/..%2fmetrics", "/health/../metrics"):
            answer = client.get(path)
            assert answer.status_code in {401, 404}, path
            assert "data" not in answer.json()
    assert attacked.state() == before


@pytest.mark.parametrize("user", ["viewer", "blue-viewer"])
def test_who_may_only_look(attacked: Any, operations: list[Operation], user: str) -> None:
    """Every change is refused as such, before anything else is said, and nothing is changed."""
    before = attacked.state()
    with attacked.client(user) as client:
        for each in operations:
            if each.method not in CHANGES:
                continue
            for known in (names("blue", "blue"), {}):
                answer = asked(client, each, path_of(each.path, known))
                assert answer.status_code == 403, (each, answer.text)
            for override in ("X-HTTP-Method-Override", "X-Method-Override"):
                path = path_of(each.path, names("blue", "blue"))
                client.get(path, headers={override: each.method})
    assert attacked.state() == before


def told(text: str, *msg_vpns: str) -> str:
    """An answer without the names that the request brought."""
    for name in msg_vpns:
        text = text.replace(name, "*")
    return text


@pytest.mark.parametrize("user", ["blue-admin", "blue-viewer"])
def test_another_message_vpn_is_like_none(
    peopled: Any, operations: list[Operation], user: str
) -> None:
    """Whatever is asked of it, the answer is word for word that of one that does not exist."""
    router = peopled.router
    peopled.say()
    before = router.state()
    asked_of = 0
    with router.client(user) as client:
        for each in operations:
            if "{msgVpnName}" not in each.path:
                continue
            asked_of += 1
            known = names(MARK, RED)
            hidden = asked(client, each, path_of(each.path, known))
            absent = asked(client, each, path_of(each.path, known | {"msgVpnName": NOWHERE}))
            assert hidden.status_code == absent.status_code, each
            assert hidden.status_code in {400, 403}, (each, hidden.text)
            assert told(hidden.text, RED) == told(absent.text, NOWHERE), each
            assert dict(hidden.headers, **{"content-length": "", "date": ""}) == dict(
                absent.headers, **{"content-length": "", "date": ""}
            )
    assert asked_of > 50
    assert router.state() == before


QUERIES = {
    "/vpnrouter/v1/events": [f"msgVpnName={RED}", "after=0&count=1000"],
    "/vpnrouter/v1/traces": [f"msgVpnName={RED}", f"topic={MARK}/>", "count=1000"],
    "/vpnrouter/v1/queues": [f"where=msgVpnName=={RED}", "count=100", f"where=queueName=={MARK}*"],
    "/vpnrouter/v1/bridges": [f"where=msgVpnName=={RED}", "count=100"],
    "/vpnrouter/v1/clients": [f"where=msgVpnName=={RED}", "count=100"],
    "/vpnrouter/v1/subscriptions": [f"where=msgVpnName=={RED}", "count=100"],
    "/SEMP/v2/monitor/msgVpns": [f"where=msgVpnName=={RED}", "count=100"],
    "/SEMP/v2/config/msgVpns": [f"where=msgVpnName=={RED}", "count=100"],
}
"""What else to ask some paths."""


def lookable(operations: list[Operation]) -> Iterator[str]:
    """All that can be looked at without a message VPN of others, each with its queries."""
    for each in operations:
        if each.method == "GET":
            path = path_of(each.path, names("blue", "blue"))
            yield path
            yield from (f"{path}?{query}" for query in QUERIES.get(path, ()))
            yield from (f"{path}?{query}" for query in QUERIES if path == query)


@pytest.mark.parametrize("user", ["blue-admin", "blue-viewer"])
def test_no_name_of_another_message_vpn(
    peopled: Any, operations: list[Operation], user: str, patiently: Any
) -> None:
    """No row, count, series, event or trace is of a message VPN that the user does not see."""
    with peopled.router.client("root") as root, peopled.router.client(user) as client:
        # Traces are kept for whoever has looked already.
        marks = {
            who: who.get("/vpnrouter/v1/traces").json()["meta"]["mark"] for who in (root, client)
        }
        rows: dict[Any, list[Any]] = {root: [], client: []}

        def traced() -> bool:
            peopled.say()
            for who in rows:
                query = f"?after={marks[who]}&count=1000"
                answer = who.get(f"/vpnrouter/v1/traces{query}").json()
                marks[who] = answer["meta"]["mark"]
                rows[who] += answer["data"]
            return MARK in json.dumps(rows[root]) and "blue/topic" in json.dumps(rows[client])

        patiently(traced, "traces of both")
        assert MARK not in json.dumps(rows[client])
        seen = 0
        for path in lookable(operations):
            answer = client.get(path)
            # The request itself is repeated in the answer.
            text = answer.text.replace(json.dumps(str(answer.request.url))[1:-1], "")
            assert MARK not in told(text, f"msgVpn {RED}"), path
            seen += MARK in root.get(path).text
            if answer.status_code != 200 or not answer.text.startswith("{"):
                continue
            body = answer.json()
            if isinstance(body.get("data"), list):
                assert all(row.get("msgVpnName", "blue") in {"blue", ""} for row in body["data"])
                if "paging" not in body["meta"] and "cursor" not in path:
                    assert body["meta"]["count"] == len(body["data"]), path
        assert seen > 10, "the same paths tell who sees all"
        assert client.get("/vpnrouter/v1/config").status_code == 403
        assert client.get("/SEMP/v2/config").status_code == 400


def test_an_administrator_of_one_message_vpn(attacked: Any) -> None:
    """It makes and removes none, has no say in the router, and cannot make it read files."""
    before = attacked.state()
    document = before["config"]["document"]
    config = "/SEMP/v2/config/msgVpns"
    bridge = f"{config}/blue/bridges/blue-bridge,auto"
    refused = [
        ("POST", config, {"msgVpnName": "green"}),
        ("POST", config, {"msgVpnName": "blue"}),
        ("POST", config, {"msgVpnName": RED}),
        ("PUT", f"{config}/green", {}),
        ("PUT", f"{config}/{RED}", {}),
        ("PATCH", f"{config}/{RED}", {"enabled": False}),
        ("DELETE", f"{config}/blue", None),
        ("DELETE", f"{config}/{RED}", None),
        ("POST", f"{config}/{RED}/queues", {"queueName": "q"}),
        ("GET", "/vpnrouter/v1/config", None),
        ("POST", "/vpnrouter/v1/config/examine", {"document": document}),
        ("PUT", "/vpnrouter/v1/config/replace", {"document": document}),
        ("PUT", "/vpnrouter/v1/config/return", {"digest": before["config"]["digest"]}),
        ("PUT", "/vpnrouter/v1/spool/backup", {"directory": f"{attacked.folder}/backup"}),
        ("PATCH", bridge, {"remoteAuthenticationBasicPassword": {"file": "edge.yaml"}}),
        ("PATCH", bridge, {"remoteAuthenticationBasicPassword": {"env": "HOME"}}),
        ("PATCH", f"{config}/blue", {"bridgingTlsServerCertCa": "/etc/passwd"}),
        ("PATCH", f"{config}/blue", {"msgVpnName": RED}),
        ("PATCH", f"{config}/blue%2F..%2F{RED}", {"enabled": False}),
        ("PATCH", f"{config}/blue/../{RED}", {"enabled": False}),
    ]
    with attacked.client("blue-admin") as client:
        for method, path, body in refused:
            answer = client.request(method, path, json=body)
            assert answer.status_code in {400, 403, 404}, (method, path, answer.text)
            assert "data" not in answer.json()
        again = attacked.state()
        assert again == before
        assert not (attacked.folder / "backup").exists()
        # What it may do it can do.
        name = {"queueName": "extra"}
        assert client.post(f"{config}/blue/queues", json=name).status_code == 200
        assert client.delete(f"{config}/blue/queues/extra").status_code == 200
