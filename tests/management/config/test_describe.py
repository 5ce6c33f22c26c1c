"""Tests of the description of the paths in OpenAPI."""

from typing import Any

QUEUE = "/SEMP/v2/config/msgVpns/{msgVpnName}/queues/{queueName}"
REMOTE = (
    "/SEMP/v2/config/msgVpns/{msgVpnName}/bridges/{bridgeName},{bridgeVirtualRouter}"
    "/remoteMsgVpns/{remoteMsgVpnName},{remoteMsgVpnLocation},{remoteMsgVpnInterface}"
)


async def test_attributes_are_described(configuring: Any, editor: Any) -> None:
    """Type, range, choices, default and text, in bodies and answers."""
    async with configuring(editor) as client:
        answer = await client.get("http://localhost:8080/SEMP/v2/openapi.json")
    paths = answer.json()["paths"]
    assert set(paths[QUEUE]) == {"get", "patch", "put", "delete"}
    body = paths[QUEUE]["patch"]["requestBody"]["content"]["application/json"]["schema"]
    assert body["additionalProperties"] is False
    assert "required" not in body
    ttl = body["properties"]["maxTtl"]
    assert (ttl["type"], ttl["minimum"], ttl["maximum"], ttl["default"]) == (
        "integer",
        0,
        4_294_967_295,
        0,
    )
    assert ttl["description"].startswith("Seconds that a message may wait")
    permission = body["properties"]["permission"]
    assert permission["default"] == "no-access"
    assert "modify-topic" in permission["enum"]
    assert body["properties"]["consumerAckPropagationEnabled"]["enum"] == [True]
    assert "Not part of the field's API" in body["properties"]["topicSyntax"]["description"]
    made = paths[QUEUE.rpartition("/")[0]]["post"]["requestBody"]
    assert made["content"]["application/json"]["schema"]["required"] == ["queueName"]
    names = [each["name"] for each in paths[REMOTE]["get"]["parameters"] if each["in"] == "path"]
    assert names == [part for part in REMOTE.replace("}", "{").split("{") if part.isalpha()]


async def test_secrets_are_in_no_answer(configuring: Any, editor: Any) -> None:
    """They are marked in bodies and left out of rows."""
    async with configuring(editor) as client:
        answer = await client.get("http://localhost:8080/SEMP/v2/openapi.json")
    users = answer.json()["paths"]["/SEMP/v2/config/msgVpns/{msgVpnName}/clientUsernames"]
    body = users["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert body["properties"]["password"]["writeOnly"] is True
    answers = users["post"]["responses"]["200"]["content"]["application/json"]["schema"]
    assert "password" not in answers["properties"]["data"]["properties"]
