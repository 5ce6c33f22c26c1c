"""Tests of the paths that configure: list, create, get, update, replace, delete."""

from typing import Any

import httpx
import trio

QUEUES = "/msgVpns/blue/queues"
BRIDGES = "/msgVpns/blue/bridges"
REMOTES = f"{BRIDGES}/from-red,auto/remoteMsgVpns"


def fault(answer: httpx.Response) -> tuple[int, int, str, str]:
    """Response code, error code, status and description of an answer that says no."""
    error = answer.json()["meta"]["error"]
    assert answer.json()["meta"]["responseCode"] == answer.status_code
    return answer.status_code, error["code"], error["status"], error["description"]


async def test_a_queue_that_is_created_has_the_fields_defaults(
    configuring: Any, editor: Any
) -> None:
    """A queue that is created has the field's defaults."""
    async with configuring(editor) as client:
        answer = await client.post(QUEUES, json={"queueName": "q/1", "maxTtl": 7})
        assert answer.status_code == 200, answer.text
        row = answer.json()["data"]
        expected = {
            "queueName": "q/1",
            "msgVpnName": "blue",
            "maxTtl": 7,
            "ingressEnabled": False,
            "egressEnabled": False,
            "permission": "no-access",
            "owner": "",
            "maxMsgSpoolUsage": 5000,
            "redeliveryDelayMultiplier": 200,
            "partitionCount": 0,
        }
        assert expected.items() <= row.items()
        uri = answer.json()["links"]["uri"]
        assert uri == "http://localhost:8080/SEMP/v2/config/msgVpns/blue/queues/q%2F1"
        assert answer.json()["links"]["subscriptionsUri"] == f"{uri}/subscriptions"
        assert (await client.get(uri)).json()["data"] == row
    # What the field starts otherwise is written out, so that the file says the same.
    assert editor.document()["msg_vpns"]["blue"]["queues"]["q/1"] == {
        "max_ttl": 7,
        "ingress_enabled": False,
        "egress_enabled": False,
        "permission": "no-access",
    }


async def test_what_is_there_already_is_not_created(configuring: Any, editor: Any) -> None:
    """What is there already is not created."""
    async with configuring(editor) as client:
        for path, body in (
            (QUEUES, {"queueName": "orders"}),
            ("/msgVpns", {"msgVpnName": "green"}),
            (f"{QUEUES}/orders/subscriptions", {"subscriptionTopic": "more/*"}),
            ("/msgVpns/blue/clientUsernames", {"clientUsername": "default"}),
            (
                f"{BRIDGES}/from-red,auto/remoteSubscriptions",
                {"remoteSubscriptionTopic": "weather/>", "deliverAlwaysEnabled": True},
            ),
            (REMOTES, {"remoteMsgVpnName": "red", "remoteMsgVpnLocation": "127.0.0.1:55556"}),
        ):
            answer = await client.post(path, json=body)
            assert fault(answer)[:3] == (400, 10, "ALREADY_EXISTS"), (path, answer.text)
    assert editor.overlay() == {}


async def test_what_is_not_there_is_not_found(configuring: Any, editor: Any) -> None:
    """What is not there is not found."""
    async with configuring(editor) as client:
        for method, path in (
            ("GET", "/msgVpns/gone"),
            ("GET", "/msgVpns/gone/queues"),
            ("GET", f"{QUEUES}/gone"),
            ("GET", f"{QUEUES}/gone/subscriptions"),
            ("PATCH", f"{QUEUES}/gone"),
            ("PUT", "/msgVpns/gone/queues/gone"),
            ("DELETE", f"{QUEUES}/gone"),
            ("DELETE", f"{QUEUES}/orders/subscriptions/gone"),
            ("GET", f"{BRIDGES}/from-red,primary"),
            ("PATCH", f"{BRIDGES}/from-red,primary"),
            ("DELETE", f"{REMOTES}/red,127.0.0.1%3A55556,eth0"),
            ("POST", f"{BRIDGES}/gone,auto/remoteSubscriptions"),
        ):
            body = None
            if method in {"PATCH", "PUT"}:
                body = {}
            if method == "POST":
                body = {"remoteSubscriptionTopic": "a", "deliverAlwaysEnabled": False}
            answer = await client.request(method, path, json=body)
            assert fault(answer)[:3] == (400, 6, "NOT_FOUND"), (path, answer.text)


async def test_a_patch_changes_what_it_names_alone(configuring: Any, editor: Any) -> None:
    """A patch changes what it names alone."""
    async with configuring(editor) as client:
        answer = await client.patch(
            f"{QUEUES}/orders",
            json={"queueName": "orders", "owner": "alice", "egressEnabled": False},
        )
        assert answer.json()["data"]["owner"] == "alice"
        assert answer.json()["data"]["maxTtl"] == 5
        answer = await client.patch(f"{QUEUES}/orders", json={"owner": ""})
        assert answer.json()["data"]["owner"] == ""
    written = editor.document()["msg_vpns"]["blue"]["queues"]["orders"]
    assert written == {
        "subscriptions": ["orders/>", "more/*"],
        "max_ttl": 5,
        "egress_enabled": False,
    }


async def test_a_patch_of_a_threshold_leaves_its_other_number(
    configuring: Any, editor: Any
) -> None:
    """A patch of a threshold leaves its other number."""
    async with configuring(editor) as client:
        row = (await client.get("/msgVpns/blue")).json()["data"]
        name = "eventConnectionCountThreshold"
        assert row[name] == {"setPercent": 80, "clearPercent": 60}
        row = (await client.patch("/msgVpns/blue", json={name: {"setPercent": 90}})).json()["data"]
        assert row[name] == {"setPercent": 90, "clearPercent": 60}
        row = (await client.patch("/msgVpns/blue", json={name: {"clearPercent": 9}})).json()["data"]
        assert row[name] == {"setPercent": 90, "clearPercent": 9}
        answer = await client.patch("/msgVpns/blue", json={name: {"clearPercent": 95}})
        assert fault(answer)[1] == 11
        assert fault(answer)[3].startswith(name)


async def test_a_put_gives_defaults_to_what_it_does_not_name(configuring: Any, editor: Any) -> None:
    """A put gives defaults to what it does not name."""
    async with configuring(editor) as client:
        answer = await client.put(f"{QUEUES}/orders", json={"accessType": "non-exclusive"})
        row = answer.json()["data"]
        assert (row["maxTtl"], row["ingressEnabled"]) == (0, False)
        listed = (await client.get(f"{QUEUES}/orders/subscriptions")).json()["data"]
        assert [each["subscriptionTopic"] for each in listed] == ["more/*", "orders/>"]
        answer = await client.put("/msgVpns/blue/clientUsernames/alice", json={"enabled": True})
        assert answer.status_code == 200
    written = editor.document()["msg_vpns"]["blue"]["client_usernames"]["alice"]
    assert written == {"enabled": True, "password": "secret-of-alice"}


async def test_a_put_takes_a_password_away_with_its_name(configuring: Any, editor: Any) -> None:
    """A put takes a password away with its name."""
    async with configuring(editor) as client:
        answer = await client.put(f"{BRIDGES}/from-red,auto", json={})
        assert answer.json()["data"]["remoteAuthenticationBasicClientUsername"] == ""
    written = editor.document()["msg_vpns"]["blue"]["bridges"]["from-red"]
    assert "remote_authentication" not in written
    assert written["remote_msg_vpns"] == [{"name": "red", "location": "127.0.0.1:55556"}]
    assert written["enabled"] is False
    assert "topic_mapping" not in written


async def test_a_put_makes_what_is_not_there(configuring: Any, editor: Any) -> None:
    """A put makes what is not there."""
    async with configuring(editor) as client:
        answer = await client.put(f"{QUEUES}/new", json={"maxTtl": 3})
        assert answer.json()["data"]["maxTtl"] == 3
        answer = await client.put("/msgVpns/red", json={"enabled": True})
        assert answer.json()["data"]["enabled"] is True
    red = editor.document()["msg_vpns"]["red"]
    assert (red["enabled"], red["max_msg_spool_usage"]) == (True, 0)


async def test_what_is_deleted_is_gone(configuring: Any, editor: Any) -> None:
    """What is deleted is gone."""
    async with configuring(editor) as client:
        for path in (
            f"{QUEUES}/a%2Fb%2Cc",
            f"{QUEUES}/orders/subscriptions/orders%2F%3E",
            f"{BRIDGES}/from-red,auto/remoteSubscriptions/weather%2F%3E",
            f"{REMOTES}/red,127.0.0.1%3A55556,",
            "/msgVpns/green",
        ):
            assert (await client.get(path)).status_code == 200, path
            answer = await client.delete(path)
            assert answer.status_code == 200, answer.text
            assert set(answer.json()) == {"meta"}
            assert fault(await client.get(path))[1] == 6
    blue = editor.document()["msg_vpns"]["blue"]
    assert blue["queues"] == {"orders": {"subscriptions": ["more/*"], "max_ttl": 5}}
    assert blue["bridges"]["from-red"]["remote_subscriptions"] == [
        {"topic": "news/>", "selector": "a = 1"}
    ]


async def test_what_something_else_needs_is_not_deleted(configuring: Any, editor: Any) -> None:
    """What something else needs is not deleted."""
    async with configuring(editor) as client:
        body = {"clientProfileName": "bridging"}
        await client.patch("/msgVpns/blue/clientUsernames/alice", json=body)
        answer = await client.delete("/msgVpns/blue/clientProfiles/bridging")
        assert fault(answer)[:3] == (400, 490, "CONFIGDB_OBJECT_DEPENDENCY")
        assert "alice" in fault(answer)[3]
        answer = await client.delete("/msgVpns/blue/clientProfiles/default")
        assert fault(answer)[:3] == (400, 89, "NOT_ALLOWED")


async def test_the_built_in_default_can_be_changed(configuring: Any, editor: Any) -> None:
    """The built in default can be changed."""
    async with configuring(editor) as client:
        path = "/msgVpns/green/aclProfiles/default"
        answer = await client.patch(path, json={"publishTopicDefaultAction": "disallow"})
        row = answer.json()["data"]
        assert row["publishTopicDefaultAction"] == "disallow"
        assert row["subscribeTopicDefaultAction"] == "allow"
        row = (await client.put(path, json={})).json()["data"]
        assert row["subscribeTopicDefaultAction"] == "disallow"


async def test_pages_conditions_and_selections(configuring: Any, editor: Any) -> None:
    """Pages conditions and selections."""
    async with configuring(editor) as client:
        for number in range(12):
            body = {"queueName": f"q{number:02}", "maxTtl": number}
            assert (await client.post(QUEUES, json=body)).status_code == 200
        names: list[str] = []
        where: str | None = f"{QUEUES}?count=5&select=queueName"
        while where:
            answer = (await client.get(where)).json()
            names += [row["queueName"] for row in answer["data"]]
            assert all(set(row) == {"queueName"} for row in answer["data"])
            assert answer["meta"]["count"] == 14
            where = answer["meta"].get("paging", {}).get("nextPageUri")
        assert names == ["a/b,c", "orders", *(f"q{number:02}" for number in range(12))]
        answer = await client.get(f"{QUEUES}?where=maxTtl>9,queueName==q*")
        assert [row["queueName"] for row in answer.json()["data"]] == ["q10", "q11"]
        assert fault(await client.get(f"{QUEUES}?select=nothing"))[1] == 11
        assert fault(await client.get(f"{QUEUES}?where=nothing==1"))[1] == 11


async def test_lists_are_sorted(configuring: Any, editor: Any) -> None:
    """A list is sorted by attributes, over its pages; what is no attribute, or has no order, is refused."""
    async with configuring(editor) as client:
        for number, ttl in enumerate((3, 9, 3)):
            body = {"queueName": f"q{number}", "maxTtl": ttl}
            assert (await client.post(QUEUES, json=body)).status_code == 200
        names: list[str] = []
        where: str | None = f"{QUEUES}?where=queueName==q*&sort=-maxTtl,-queueName&count=2"
        while where:
            answer = (await client.get(where)).json()
            names += [row["queueName"] for row in answer["data"]]
            assert answer["meta"]["count"] == 3
            where = answer["meta"].get("paging", {}).get("nextPageUri")
        assert names == ["q1", "q2", "q0"]
        for sort, said in (
            ("nothing", "sort: there is no attribute nothing"),
            ("maxTtl,-maxTtl", "sort: an attribute is there twice"),
            ("eventBindCountThreshold", "sort: eventBindCountThreshold has no order"),
        ):
            status, code, _, text = fault(await client.get(f"{QUEUES}?sort={sort}"))
            assert (status, code, text) == (400, 11, said)


async def test_two_changes_at_once_both_apply(configuring: Any, editor: Any) -> None:
    """Two changes at once both apply."""
    async with configuring(editor) as client, trio.open_nursery() as nursery:
        for body in ({"maxTtl": 77}, {"maxBindCount": 3}, {"accessType": "non-exclusive"}):
            nursery.start_soon(
                lambda body=body: client.patch(f"{QUEUES}/orders", json=body)  # type: ignore[misc]
            )
    queue = editor.config().msg_vpns["blue"].queues["orders"]
    assert (queue.max_ttl, queue.max_bind_count) == (77, 3)
    assert queue.access_type == "non-exclusive"


async def test_one_of_two_that_create_the_same_wins(configuring: Any, editor: Any) -> None:
    """One of two that create the same wins."""
    codes: list[int] = []

    async def make() -> None:
        answer = await client.post(QUEUES, json={"queueName": "one"})
        codes.append(answer.status_code if answer.status_code == 200 else fault(answer)[1])

    async with configuring(editor) as client, trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(make)
    assert sorted(codes) == [10, 10, 200]


async def test_without_an_editor_nothing_is_configured(configuring: Any) -> None:
    """Without an editor nothing is configured."""
    async with configuring(None) as client:
        for answer in (
            await client.get("/msgVpns"),
            await client.post("/msgVpns", json={"msgVpnName": "a"}),
            await client.get("http://localhost:8080/SEMP/v2/config"),
        ):
            assert fault(answer)[:3] == (400, 89, "NOT_ALLOWED")
            assert "not started from a file" in fault(answer)[3]
        assert (await client.get("/about/api")).status_code == 200
