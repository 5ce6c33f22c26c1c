"""More of flows that clients bind to queues and topic endpoints."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from vpnrouter.core.access import AclProfile, TopicRule
from vpnrouter.core.guaranteed import refusals
from vpnrouter.core.guaranteed.endpoint_definition import read_definitions
from vpnrouter.core.guaranteed.endpoint_settings import MODIFY_TOPIC, REPLAY_LOG, TOPIC_ENDPOINT
from vpnrouter.core.guaranteed.replay import ReplayLog
from vpnrouter.topics.grammar import MQTT
from vpnrouter.wire.mqtt.packets import (
    Publish,
    Suback,
    Subscribe,
    SubscriptionRequest,
)
from vpnrouter.wire.mqtt.properties import Properties

if TYPE_CHECKING:
    from tests.core.mqtt.spooled import SpooledClient, SpooledWorld
    from vpnrouter.core.guaranteed.endpoint import Endpoint


def fill(router: SpooledWorld, topic: str, *payloads: bytes, **more: object) -> None:
    """Publish with QoS 1."""
    client = router.join("filler")
    for number, payload in enumerate(payloads, 1):
        client.pub(topic, payload, pid=number, **more)
    router.settle()


def payloads(client: SpooledClient) -> list[bytes]:
    """What came with the last SUBSCRIBE."""
    return [packet.payload for packet in client.rest if isinstance(packet, Publish)]


def test_browsing_with_a_selector(router: SpooledWorld) -> None:
    """Only what matches is shown."""
    router.queue("q", "a")
    fill(router, "a", b"1")
    fill(router, "a", b"2", properties=Properties(user_properties=[("k", "v")]))
    client = router.join("b")
    assert client.sub("$browse/q", user=[("selector", "k = 'v'")]) == 1
    assert payloads(client) == [b"2"]


def test_topic_endpoints(router: SpooledWorld) -> None:
    """Binding sets the one subscription; another is refused while bound, and needs permission after."""
    endpoint = router.queue("te", kind=TOPIC_ENDPOINT, exclusive=False)
    client = router.join("c")
    assert client.sub("$topic-endpoint/te/a/+") == 1
    fill(router, "a/b", b"1")
    assert [message.payload for message in client.messages()] == [b"1"]
    other = router.join("d")
    assert other.refused("$topic-endpoint/te/x") == (0x87, "503 Subscription Does Not Match")
    assert other.sub("$topic-endpoint/te/a/+") == 1
    other.lose()
    client.lose()
    assert list(endpoint.subscriptions) == ["a/+"]
    third = router.join("e")
    assert third.refused("$topic-endpoint/te/x") == (0x87, "403 Permission Denied")
    endpoint.settings.permission = MODIFY_TOPIC
    assert third.sub("$topic-endpoint/te/x") == 1
    assert list(endpoint.subscriptions) == ["x"]
    assert third.sub("$topic-endpoint/te/a+") == 0x8F
    assert third.sub("$topic-endpoint/te/") == 0x8F
    router.settle()
    definitions, _ = read_definitions(router.store)
    assert [one.subscription for one in definitions] == ["x"]


def test_topic_endpoints_and_the_acl(router: SpooledWorld) -> None:
    """The subscription is the client's: its ACL profile has to allow it."""
    acl = AclProfile("default", subscribe=TopicRule(True, [("secret", MQTT)]))
    router.add_vpn("blue", acl=acl)
    endpoint = router.queue("te", kind=TOPIC_ENDPOINT)
    client = router.join("c")
    assert client.sub("$topic-endpoint/te/secret") == 0x87
    assert endpoint.subscriptions == {}


def test_point_to_point(router: SpooledWorld) -> None:
    """What is published to $queue/NAME goes to that queue alone, at any QoS."""
    queue = router.queue("q")
    watcher = router.join("w")
    assert watcher.sub("#", 1) == 1
    source = router.join("p")
    source.pub("$queue/q", b"1", pid=1)
    source.pub("$queue/q", b"2", qos=0, pid=0)
    router.settle()
    assert queue.spooled_count == 2
    assert watcher.messages() == []


def test_a_deleted_queue_lets_its_consumers_go(router: SpooledWorld) -> None:
    """They hear no more of it, and may go on with everything else."""
    queue = router.queue("q", "a")
    client = router.join("c")
    assert client.sub("$queue/q") == 1
    fill(router, "a", b"1")
    (message,) = client.messages()
    queue.delete("503 Queue Shutdown")
    client.puback(message)
    assert client.got() == []
    assert client.unsubscribe("$queue/q") == 0x11
    assert not client.closed


def logged(router: SpooledWorld) -> tuple[Endpoint, ReplayLog]:
    """A queue on `a`, and a replay log that has three messages which the queue had too."""
    queue = router.queue("q", "a")
    endpoint = router.queue("log", kind=REPLAY_LOG)
    log = ReplayLog(endpoint)
    router.spool.replay_logs["blue"] = log
    fill(router, "a", b"1", b"2", b"3")
    reader = router.join("reader")
    reader.sub("$queue/q")
    reader.puback(*[packet for packet in reader.rest if isinstance(packet, Publish)])
    router.settle()
    reader.lose()
    assert (queue.spooled_count, endpoint.spooled_count) == (0, 3)
    return queue, log


def begin(router: SpooledWorld, client: SpooledClient, text: str, where: str) -> list[bytes]:
    """Subscribe with a replay; what came once it was all there."""
    assert client.sub(text, user=[("replay-from", where)]) == 1
    router.advance(0.1)
    return payloads(client)


def test_replay_from_the_beginning(router: SpooledWorld) -> None:
    """Everything that was logged comes once more."""
    queue, _ = logged(router)
    client = router.join("c")
    assert begin(router, client, "$queue/q", "beginning") == [b"1", b"2", b"3"]
    assert queue.counters.replay_start_count == 1


def test_replay_from_a_message(router: SpooledWorld) -> None:
    """What came behind it."""
    _, log = logged(router)
    first = log.endpoint.waiting[0].first()
    assert begin(router, router.join("c"), "$queue/q", f"id:{first}") == [b"2", b"3"]


@pytest.mark.parametrize(("seconds", "count"), [(-10, 3), (0, 0)])
def test_replay_from_a_time(router: SpooledWorld, seconds: int, count: int) -> None:
    """What was published since then."""
    logged(router)
    router.advance(5)
    moment = datetime.fromtimestamp(router.router.context.wall_ns / 1e9 + seconds, UTC)
    found = begin(router, router.join("c"), "$queue/q", moment.isoformat().replace("+00:00", "Z"))
    assert len(found) == count


@pytest.mark.parametrize(
    ("text", "where", "said"),
    [
        ("$queue/q", "id:999", refusals.REPLAY_MESSAGE),
        ("$queue/q", "2999-01-01T00:00:00Z", refusals.REPLAY_TIME),
        ("$queue/turns", "beginning", refusals.REPLAY_NON_EXCLUSIVE),
        ("$queue/busy", "beginning", refusals.REPLAY_INACTIVE),
        ("$browse/q", "beginning", refusals.REPLAY_BROWSER),
        ("$topic-endpoint/te/a", "beginning", refusals.REPLAY_TEMPORARY),
        ("$queue/q", "tomorrow", "400 Bad Replay Start: tomorrow is no date and time"),
        ("$queue/q", "id:x", "400 Bad Replay Start: x is no message id"),
    ],
)
def test_replays_refused(router: SpooledWorld, text: str, where: str, said: str) -> None:
    """The reason is the field's; nobody is bound then, and nothing is replayed."""
    logged(router)
    router.queue("turns", exclusive=False)
    busy = router.queue("busy")
    router.queue("te", kind=TOPIC_ENDPOINT)
    router.join("first").sub("$queue/busy")
    client = router.join("c")
    properties = Properties(user_properties=[("replay-from", where)])
    client.send(Subscribe(9, [SubscriptionRequest(text, 1)], properties))
    (answer,) = client.got()
    assert isinstance(answer, Suback)
    assert answer.reason_codes[0] >= 0x80
    assert (answer.properties.reason_string or "").startswith(said)
    endpoints = router.vpn().endpoints.values()
    assert [endpoint.name for endpoint in endpoints if endpoint.flows] == ["busy"]
    assert len(busy.flows) == 1
    assert not any(endpoint.counters.replay_start_count for endpoint in endpoints)


def test_no_replay_without_a_log(router: SpooledWorld) -> None:
    """The message VPN keeps none."""
    queue = router.queue("q", "a")
    client = router.join("c")
    assert client.sub("$queue/q", user=[("replay-from", "beginning")]) >= 0x80
    assert queue.flows == []
