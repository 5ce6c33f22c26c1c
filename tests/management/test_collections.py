"""Collections of objects, which all are listed, read, searched and hidden alike."""

from dataclasses import dataclass, fields
from typing import Any
from urllib.parse import quote

import pytest

from vpnrouter.bridges.status import BridgeStatus, RemoteStatus
from vpnrouter.management.answers.rows import names_of
from vpnrouter.management.status.clients import (
    ClientStatus,
    MqttSessionStatus,
    SubscriptionStatus,
)
from vpnrouter.management.status.msg_vpns import MsgVpnStatus
from vpnrouter.management.status.profiles import (
    AclProfileStatus,
    ClientProfileStatus,
    ClientUsernameStatus,
)
from vpnrouter.management.status.queues import FlowStatus, MsgStatus, QueueStatus
from vpnrouter.management.topic_endpoints import TopicEndpointStatus
from vpnrouter.text import camel

VPNS = "/SEMP/v2/monitor/msgVpns"
BLUE = f"{VPNS}/blue"
OTHERS_ALONE = {"rob": {"password": "right", "msg_vpns": ["a/b"]}}


@dataclass(frozen=True)
class Listed:
    """A collection of `blue`: its path, the attribute with a name, all names, and what follows one in a path."""

    path: str
    attribute: str
    names: tuple[str, ...]
    kind: Any
    suffix: str = ""


COLLECTIONS = [
    Listed("bridges", "bridgeName", ("to-a", "to-b"), BridgeStatus, ",auto"),
    Listed(
        "clients",
        "clientName",
        ("#bridge/to-a", "#bridge/to-b", "c/3,x", "c1", "c2"),
        ClientStatus,
    ),
    Listed(
        "mqttSessions", "mqttSessionClientId", ("c/3,x", "c1", "c2"), MqttSessionStatus, ",auto"
    ),
    Listed(
        "queues",
        "queueName",
        ("#topic-endpoint/s", "#topic-endpoint/t", "dead", "orders", "small"),
        QueueStatus,
    ),
    Listed("topicEndpoints", "topicEndpointName", ("s", "t"), TopicEndpointStatus),
    Listed("clientUsernames", "clientUsername", ("ann", "d/e", "default"), ClientUsernameStatus),
    Listed("clientProfiles", "clientProfileName", ("default", "z"), ClientProfileStatus),
    Listed("aclProfiles", "aclProfileName", ("a/b", "default", "z"), AclProfileStatus),
]

each_collection = pytest.mark.parametrize("listed", COLLECTIONS, ids=lambda one: one.path)


@each_collection
async def test_listed_by_name_with_links_that_lead_on(here: Any, listed: Listed) -> None:
    """Objects come by name with all attributes, and each link of each of them answers."""
    async with here.api() as client:
        answer = (await client.get(f"{BLUE}/{listed.path}")).json()
        assert tuple(row[listed.attribute] for row in answer["data"]) == listed.names
        assert answer["meta"]["count"] == len(listed.names)
        for row, links in zip(answer["data"], answer["links"], strict=True):
            assert set(row) == set(names_of(listed.kind))
            name = quote(row[listed.attribute], safe="")
            path = f"{BLUE}/{listed.path}/{name}{listed.suffix}"
            assert links["uri"] == f"http://localhost:8080{path}"
            one = (await client.get(links["uri"])).json()
            assert (one["data"], one["links"]) == (row, links)
            for uri in links.values():
                assert (await client.get(uri)).status_code == 200, uri


@each_collection
async def test_what_is_not_there(here: Any, listed: Listed) -> None:
    """The error names what was looked for and where, and is the same for the objects of another message VPN."""
    async with here.api() as client:
        for name in ("none", "other", "x,y"):
            path = f"{BLUE}/{listed.path}/{name}{listed.suffix}"
            answer = await client.get(path)
            error = answer.json()["meta"]["error"]
            assert (answer.status_code, error["code"], error["status"]) == (400, 6, "NOT_FOUND")
            assert error["description"].startswith("Could not find match for ")
            assert error["description"].endswith(f" {name}{listed.suffix} in msgVpn blue")


@each_collection
async def test_a_hidden_message_vpn_does_not_exist(here: Any, listed: Listed) -> None:
    """Whoever may not see a message VPN gets the answer of one that there is not, for all that is in it."""
    paths = [listed.path, f"{listed.path}/{quote(listed.names[-1], safe='')}{listed.suffix}"]
    async with here.api(OTHERS_ALONE, auth=("rob", "right")) as client:
        for path in paths:
            hidden = await client.get(f"{BLUE}/{path}")
            missing = await client.get(f"{VPNS}/none/{path}")
            assert hidden.status_code == missing.status_code == 400
            told = [answer.json()["meta"]["error"] for answer in (hidden, missing)]
            assert told[0]["description"] == "Could not find match for msgVpn blue"
            assert str(told[0]).replace("blue", "none") == str(told[1])


@pytest.mark.parametrize(
    ("path", "attribute", "others", "count"),
    [
        ("bridges", "bridgeName", ["x,y[z]"], 3),
        ("clients", "clientName", ["other"], 6),
        ("queues", "queueName", ["x,y"], 6),
        ("subscriptions", "name", ["other", "x,y"], 8),
    ],
)
async def test_of_all_message_vpns(
    here: Any, path: str, attribute: str, others: list[str], count: int
) -> None:
    """Page by page by message VPN and name, each once; what is hidden is neither listed nor counted."""
    async with here.api() as client:
        seen: list[dict[str, Any]] = []
        uri = f"/vpnrouter/v1/{path}?count=2"
        while uri:
            answer = (await client.get(uri)).json()
            assert answer["meta"]["count"] == count
            assert len(answer["data"]) == len(answer["links"]) <= 2
            seen += answer["data"]
            uri = answer["meta"].get("paging", {}).get("nextPageUri", "")
        vpns = [row["msgVpnName"] for row in seen]
        assert vpns == ["a/b"] * len(others) + ["blue"] * (count - len(others))
        assert [row[attribute] for row in seen[: len(others)]] == others
        assert len({str(row) for row in seen}) == count
    async with here.api(OTHERS_ALONE, auth=("rob", "right")) as client:
        answer = (await client.get(f"/vpnrouter/v1/{path}")).json()
    assert [row[attribute] for row in answer["data"]] == others
    assert answer["meta"]["count"] == len(others)


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("clients?where=connected==false&select=clientName", [{"clientName": "c2"}]),
        (
            "queues?where=msgCount>0&select=queueName,msgCount",
            [{"queueName": "orders", "msgCount": 25}],
        ),
        ("bridges?where=health==down,bridgeName==*&select=-*", []),
        ("clients?where=clientName==c*&select=clientName&sort=-clientName&count=1",
         [{"clientName": "c2"}]),
    ],
)  # fmt: skip
async def test_searched(here: Any, query: str, rows: list[Any]) -> None:
    """The rows that meet the conditions, with the attributes that are selected, in the order asked for."""
    here.clients["c2"].lose()
    async with here.api() as client:
        answer = (await client.get(f"{BLUE}/{query}")).json()
    assert answer["data"] == rows


async def test_gone_meanwhile(here: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that goes between its name and its row is left out."""
    names = here.context.clients.client_names

    def then_gone(msg_vpn: str) -> Any:
        found = names(msg_vpn)
        del here.router.vpns["blue"].clients["c1"]
        return found

    monkeypatch.setattr(type(here.context.clients), "client_names", lambda _, name: then_gone(name))
    async with here.api() as client:
        rows = (await client.get(f"{BLUE}/clients?where=clientName==c*")).json()["data"]
    assert [row["clientName"] for row in rows] == ["c/3,x", "c2"]


async def test_message_vpns(here: Any) -> None:
    """Message VPNs come by name, and each link of each of them answers."""
    async with here.api() as client:
        answer = (await client.get(VPNS)).json()
        assert [row["msgVpnName"] for row in answer["data"]] == ["a/b", "blue", "empty"]
        assert answer["meta"]["count"] == 3
        uri = f"http://localhost:8080{VPNS}/a%2Fb"
        below = sorted(listed.path for listed in COLLECTIONS)
        assert answer["links"][0] == {"uri": uri} | {f"{one}Uri": f"{uri}/{one}" for one in below}
        for links in answer["links"]:
            for uri in links.values():
                assert (await client.get(uri)).status_code == 200, uri
    async with here.api(OTHERS_ALONE, auth=("rob", "right")) as client:
        answer = (await client.get(VPNS)).json()
    assert [row["msgVpnName"] for row in answer["data"]] == ["a/b"]
    assert answer["meta"]["count"] == 1


async def test_a_message_vpn_counts(here: Any) -> None:
    """A message VPN counts what goes in and out, and what it discards by reason and direction."""
    here.clients["c1"].publish("a")
    here.clients["c1"].publish("nobody")
    here.clients["c2"].lose()
    here.clients["c1"].publish("b/1")
    here.router.vpns["blue"].enabled = False
    async with here.api() as client:
        data = (await client.get(BLUE)).json()["data"]
    assert (data["state"], data["bridgeCount"], data["msgVpnConnections"]) == ("down", 2, 4)
    assert (data["rxMsgCount"], data["txMsgCount"]) == (28, 1)
    assert data["rxDiscarded"] == {"no-subscription-match": 2}
    assert data["txDiscarded"] == {"client-not-connected": 1}
    assert data["discarded"] == data["rxDiscarded"] | data["txDiscarded"]
    counts = ("discardedMsgCount", "rxDiscardedMsgCount", "txDiscardedMsgCount")
    assert [data[name] for name in counts] == [3, 2, 1]
    assert names_of(MsgVpnStatus) == tuple(camel(field.name) for field in fields(MsgVpnStatus))


async def test_bridges_of_all_message_vpns_have_their_remotes(here: Any) -> None:
    """A list of all bridges has the remotes inside, with why the last connection failed."""
    async with here.api() as client:
        down, up, _ = (await client.get("/vpnrouter/v1/bridges")).json()["data"]
        remotes = (await client.get(f"{BLUE}/bridges/to-a,auto/remoteMsgVpns")).json()
        one = (await client.get(remotes["links"][0]["uri"])).json()
    assert down["remotes"][0]["remoteMsgVpnName"] == "gone"
    assert down["inboundFailureReason"] == "no given file describes router gone"
    assert (up["inboundState"], up["uptime"], up["health"]) == ("ready-in-sync", 50, "up")
    assert up["remotes"] == remotes["data"]
    assert set(remotes["data"][0]) == set(names_of(RemoteStatus))
    assert remotes["data"][0]["up"] is True
    assert remotes["links"][0]["uri"].endswith("/remoteMsgVpns/red,127.0.0.1%3A55556,")
    assert one["data"] == remotes["data"][0]


async def test_subscriptions_of_bridges(here: Any) -> None:
    """What a bridge asks its remote for, with whether it was granted."""
    async with here.api() as client:
        rows = (await client.get(f"{BLUE}/bridges/to-a,auto/remoteSubscriptions")).json()["data"]
    topics = [(row["remoteSubscriptionTopic"], row["deliverAlwaysEnabled"]) for row in rows]
    assert topics == [("a/>", False), ("b/*", True)]


@pytest.mark.parametrize("key", ["x%2Cy%5Bz%5D,auto", "x,y%5Bz%5D,auto"])
async def test_a_bridge_name_with_a_comma(here: Any, key: str) -> None:
    """A bridge is found whether the comma of its name was encoded or not."""
    async with here.api() as client:
        answer = (await client.get(f"{VPNS}/a%2Fb/bridges/{key}")).json()
    assert answer["data"]["bridgeName"] == "x,y[z]"


@pytest.mark.parametrize(
    ("path", "code", "said"),
    [
        ("bridges/to-a,primary", 6, "Could not find match for bridge to-a,primary in msgVpn blue"),
        ("bridges/none,auto/remoteMsgVpns", 6, "Could not find match for bridge none,auto"),
        ("bridges/to-a", 11, "to-a is no key of 2 names joined by commas"),
        ("bridges/to-a,auto/remoteMsgVpns/far,h", 11, "far,h is no key of 3 names"),
        (
            "bridges/to-a,auto/remoteMsgVpns/far,h,",
            6,
            "Could not find match for remoteMsgVpn far,h,",
        ),
        ("mqttSessions/c1", 6, "Could not find match for mqttSession c1 in msgVpn blue"),
        ("mqttSessions/c1,primary", 6, "Could not find match for mqttSession c1,primary"),
        ("mqttSessions/,auto", 6, "Could not find match for mqttSession ,auto"),
        ("clients/none/subscriptions", 6, "Could not find match for client none in msgVpn blue"),
        ("clients/none/subscriptions/a", 6, "Could not find match for client none in msgVpn blue"),
        ("clients/c1/subscriptions/b", 6, "Could not find match for subscription b"),
        ("queues/none/msgs", 6, "Could not find match for queue none in msgVpn blue"),
        ("queues/none/txFlows", 6, "Could not find match for queue none in msgVpn blue"),
        ("topicEndpoints/orders", 6, "Could not find match for topicEndpoint orders in"),
    ],
)
async def test_keys_that_lead_nowhere(here: Any, path: str, code: int, said: str) -> None:
    """One error says what is wrong with the key, or names what was looked for."""
    async with here.api() as client:
        answer = await client.get(f"{BLUE}/{path}")
    error = answer.json()["meta"]["error"]
    assert (answer.status_code, error["code"]) == (400, code)
    assert error["description"].startswith(said)


async def test_subscriptions_of_a_client(here: Any) -> None:
    """The subscriptions of one client, each with its own path."""
    async with here.api() as client:
        answer = (await client.get(f"{BLUE}/clients/c1/subscriptions")).json()
        one = (await client.get(answer["links"][1]["uri"])).json()
        of_session = (await client.get(f"{BLUE}/mqttSessions/c1,auto")).json()
        linked = (await client.get(of_session["links"]["clientUri"])).json()
    assert [row["subscriptionTopic"] for row in answer["data"]] == ["a", "c/+/d"]
    assert set(answer["data"][0]) == set(names_of(SubscriptionStatus))
    assert one["data"] == answer["data"][1]
    assert linked["data"]["clientName"] == "c1"


async def test_topic_endpoints_hold_messages_of_their_topic(here: Any) -> None:
    """A topic endpoint shows the topic that its consumer bound it to, and its messages."""
    here.clients["c2"].bind("$topic-endpoint/t/level/+")
    here.publish("c1", "level/1", b"one", b"two")
    async with here.api() as client:
        row = (await client.get(f"{BLUE}/topicEndpoints/t")).json()
        messages = await client.get(row["links"]["msgsUri"])
    assert (row["data"]["destinationTopic"], row["data"]["msgCount"]) == ("level/+", 2)
    assert len(messages.json()["data"]) == 2


BRIDGE_NAMES = """
    averageRxByteRate averageRxMsgRate averageTxByteRate averageTxMsgRate boundToQueue clientName
    compressed controlRxByteCount controlRxMsgCount controlTxByteCount controlTxMsgCount
    dataRxByteCount dataRxMsgCount dataTxByteCount dataTxMsgCount discardedRxMsgCount
    discardedTxMsgCount encrypted establisher inboundFailureReason inboundState localInterface
    localQueueName loginRxMsgCount loginTxMsgCount outboundState remoteAddress remoteMsgVpnName
    remoteRouterName rxByteCount rxByteRate rxMsgCount rxMsgRate ttlExceededEventRaised
    txByteCount txByteRate txMsgCount txMsgRate uptime msgVpnName bridgeName
    bridgeVirtualRouter
"""
QUEUE_NAMES = """
    accessType bindRequestCount bindSuccessCount deadMsgQueue deletedMsgCount durable egressEnabled
    disabledDiscardedMsgCount highestMsgId ingressEnabled lastReplayFailureReason lastSpooledMsgId
    lowPriorityMsgCongestionDiscardedMsgCount lowestMsgId maxBindCount
    maxBindCountExceededBindFailureCount maxDeliveredUnackedMsgsPerFlow maxMsgSize
    maxMsgSizeExceededDiscardedMsgCount maxMsgSpoolUsage maxMsgSpoolUsageExceededDiscardedMsgCount
    maxRedeliveryCount maxRedeliveryExceededDiscardedMsgCount
    maxRedeliveryExceededToDmqFailedMsgCount maxRedeliveryExceededToDmqMsgCount maxTtl
    maxTtlExpiredDiscardedMsgCount maxTtlExpiredToDmqFailedMsgCount maxTtlExpiredToDmqMsgCount
    msgSpoolPeakUsage msgSpoolUsage msgVpnName otherBindFailureCount owner partitionCount permission
    queueName redeliveredMsgCount rejectMsgToSenderOnDiscardBehavior replayFailureCount
    replayStartCount replayState replaySuccessCount respectMsgPriorityEnabled respectTtlEnabled
    spooledByteCount spooledMsgCount txUnackedMsgCount
"""
FLOW_NAMES = """
    activityState clientName flowId unackedMsgCount usedWindowSize windowClosedCount windowSize
"""
MSG_NAMES = """
    contentSize dmqEligible expiryTime msgId partitionKey priority publisherId redeliveryCount
    spooledTime undelivered
"""


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (BridgeStatus, BRIDGE_NAMES),
        (QueueStatus, QUEUE_NAMES),
        (FlowStatus, FLOW_NAMES),
        (MsgStatus, MSG_NAMES),
    ],
)
def test_names_of_the_field(kind: type, names: str) -> None:
    """Every attribute that scripts know is there under its name."""
    assert set(names_of(kind)) >= set(names.split())
