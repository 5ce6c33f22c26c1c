"""vpnrouter.core.mqtt.subscribe: consuming from queues and topic endpoints, and browsing."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from vpnrouter.core.access import AclProfile, TopicRule
from vpnrouter.core.credentials import ClientUsername
from vpnrouter.core.guaranteed import refusals
from vpnrouter.core.guaranteed.endpoint_definition import read_definitions
from vpnrouter.core.guaranteed.endpoint_settings import (
    CONSUME,
    MODIFY_TOPIC,
    NO_ACCESS,
    READ_ONLY,
    REPLAY_LOG,
    TOPIC_ENDPOINT,
)
from vpnrouter.core.guaranteed.replay import ReplayLog
from vpnrouter.core.profile import ClientProfile
from vpnrouter.core.vpn import VpnLimits
from vpnrouter.events.log import EventLog
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


@pytest.mark.parametrize("level", [4, 5])
@pytest.mark.parametrize(("asked", "granted"), [(0, 1), (1, 1), (2, 2)])
def test_consuming(router: SpooledWorld, level: int, asked: int, granted: int) -> None:
    """What was there comes, then what arrives; each leaves the queue when it is acknowledged."""
    queue = router.queue("some/queue", "a")
    source = router.join("p")
    source.pub("a", b"1", qos=2, pid=1)
    source.pub("a", b"2", qos=1, pid=2)
    client = router.join("c", level)
    assert client.sub("$queue/some/queue", asked) == granted
    messages = [packet for packet in client.rest if isinstance(packet, Publish)]
    assert [(message.payload, message.qos) for message in messages] == [(b"1", granted), (b"2", 1)]
    assert [message.topic for message in messages] == [b"a", b"a"]
    assert queue.spooled_count == 2
    client.puback(messages[1])
    router.settle()
    assert queue.spooled_count == 1
    source.pub("a", b"3", qos=0, pid=0)
    (message,) = client.messages()
    # A promoted Direct message is consumed like any other.
    assert (message.payload, message.qos) == (b"3", 1)


def test_what_was_not_acknowledged_comes_again(router: SpooledWorld) -> None:
    """To the next consumer, in order, and that counts; without DUP, for it is another packet."""
    queue = router.queue("q", "a", delivery_count_enabled=True)
    fill(router, "a", b"1", b"2", b"3")
    first = router.lasting("c1")
    assert first.sub("$queue/q") == 1
    got = [packet for packet in first.rest if isinstance(packet, Publish)]
    assert [packet.properties.user_properties for packet in got] == [
        [("JMSXDeliveryCount", "1")]
    ] * 3
    first.puback(got[0])
    first.lose()
    second = router.join("c2")
    assert second.sub("$queue/q") == 1
    again = [packet for packet in second.rest if isinstance(packet, Publish)]
    assert [(packet.payload, packet.dup) for packet in again] == [(b"2", False), (b"3", False)]
    assert again[0].properties.user_properties == [
        ("JMSRedelivered", "true"),
        ("JMSXDeliveryCount", "2"),
    ]
    assert queue.counters.redelivered == 2
    assert router.lasting("c1").rest == []


@pytest.mark.parametrize("lasts", [False, True])
def test_unsubscribing(router: SpooledWorld, lasts: bool) -> None:
    """UNSUBSCRIBE unbinds; what was out comes again and does not count."""
    queue = router.queue("q", "a", max_redelivery_count=1)
    fill(router, "a", b"1")
    client = router.lasting("c") if lasts else router.join("c")
    for _ in range(3):
        assert client.sub("$queue/q") == 1
        assert payloads(client) == [b"1"]
        assert client.unsubscribe("$queue/q") == 0
        assert queue.flows == []
    assert client.unsubscribe("$queue/q") == 0x11
    assert router.vpn().egress_flows == 0


def test_a_filter_that_is_there_is_replaced(router: SpooledWorld) -> None:
    """A second SUBSCRIBE binds anew, with its options (MQTT-3.8.4-3)."""
    queue = router.queue("q", "a")
    client = router.join("c")
    assert client.sub("$queue/q", 1) == 1
    assert client.sub("$queue/q", 2, user=[("selector", "color = 'red'")]) == 2
    (flow,) = queue.flows
    assert flow.selector is not None
    fill(router, "a", b"plain")
    fill(router, "a", b"red", properties=Properties(user_properties=[("color", "red")]))
    assert [message.payload for message in client.messages()] == [b"red"]


def test_identifiers_of_a_bound_filter(router: SpooledWorld) -> None:
    """The subscription identifier comes with each message (MQTT-3.3.4-3)."""
    router.queue("q", "a")
    client = router.join("c")
    client.request([SubscriptionRequest("$queue/q", 1)], 77)
    fill(router, "a", b"1")
    (message,) = client.messages()
    assert message.properties.subscription_identifiers == [77]


def test_refusals(router: SpooledWorld) -> None:
    """Each has its code and the field's reason."""
    router.queue("none", permission=NO_ACCESS)
    router.queue("looked", permission=READ_ONLY)
    router.queue("full", max_bind_count=0)
    router.queue("open")
    client = router.join("c")
    assert client.refused("$queue/none") == (0x87, "403 Permission Denied")
    assert client.refused("$browse/none") == (0x87, "403 Permission Denied")
    assert client.refused("$queue/looked") == (0x87, "403 Permission Denied")
    assert client.refused("$queue/full") == (0x97, "503 Max clients exceeded for Queue")
    code, text = client.refused("$queue/open", [("selector", "a = = b")])
    assert code == 0x83
    assert text.startswith("400 Bad Selector")
    assert client.refused("$share/g/$queue/open")[0] == 0x83
    assert router.vpn().egress_flows == 0
    assert client.sub("$browse/looked") == 1


@pytest.mark.parametrize("prefix", ["$queue/", "$browse/"])
@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("#DEAD_MSG_QUEUE", "%23DEAD_MSG_QUEUE"),
        ("a+b#c", "a%2Bb%23c"),
        ("a+b", "a%2bb"),
        ("100%", "100%"),
        ("100%23", "100%23"),
        ("100%23", "100%2523"),
    ],
)
def test_names_that_no_filter_has(
    router: SpooledWorld, prefix: str, name: str, written: str
) -> None:
    """What a filter must not have within a level is written as in a URL, and whoever may consumes from the queue."""
    router.queue(name, "a", permission=READ_ONLY if prefix == "$browse/" else CONSUME)
    fill(router, "a", b"1")
    client = router.join("c")
    assert client.sub(prefix + written) == 1
    assert payloads(client) == [b"1"]
    router.queue(name, "a", permission=NO_ACCESS)
    assert client.refused(prefix + written) == (0x87, "403 Permission Denied")


def test_a_name_goes_before_what_it_escapes(router: SpooledWorld) -> None:
    """A queue of the very name that is written is meant by it."""
    for name in ("#q", "%23q"):
        router.queue(name, name.replace("#", "x"))
    fill(router, "%23q", b"1")
    client = router.join("c")
    assert client.sub("$queue/%23q") == 1
    assert payloads(client) == [b"1"]


def test_wishes_are_read_for_those_alone_who_may(router: SpooledWorld) -> None:
    """A queue that is missing or closed to the client is refused as such, whatever the selector and replay say."""
    router.queue("none", permission=NO_ACCESS)
    router.queue("open")
    client = router.join("c")
    for wish in ([("selector", "a = = b")], [("replay-from", "x" * 65_535)]):
        assert client.refused("$queue/missing", wish) == (0x87, "403 Permission Denied")
        assert client.refused("$queue/none", wish) == (0x87, "403 Permission Denied")


def told_of(router: SpooledWorld) -> list[tuple[str, str]]:
    """Name and text of every event from here on."""
    log = EventLog("here", lambda: 1)
    told: list[tuple[str, str]] = []
    log.listeners.append(lambda event: told.append((event.kind.name, event.text)))
    router.router.context.events = log
    return told


@pytest.mark.parametrize("wish", [[], [("selector", "a = = b")], [("replay-from", "beginning")]])
@pytest.mark.parametrize("level", [4, 5])
def test_names_that_strangers_cannot_tell_from_none(
    router: SpooledWorld, level: int, wish: list[tuple[str, str]]
) -> None:
    """An endpoint that is not open to a client is to it like one that is not there, even where it has no flow left;
    the event tells which it is.
    """
    router.queue("secret", permission=NO_ACCESS)
    router.queue("mine")
    router.queue("secret", permission=NO_ACCESS, kind=TOPIC_ENDPOINT)
    vpn = router.vpn()
    answers = []
    told = told_of(router)
    for name in ("secret", "nobody"):
        for form in (
            "$queue/{}",
            "$browse/{}",
            "$topic-endpoint/{}/a",
            "$topic-endpoint/{}/a//$x/#/b",
        ):
            client = router.join("c", level)
            vpn.profiles["default"].max_egress_flow_count = 1
            client.sub("$queue/mine")
            filter_ = form.format(name)
            properties = Properties(user_properties=wish if level == 5 else [])
            client.send(Subscribe(9, [SubscriptionRequest(filter_, 1)], properties))
            answers.append((form, client.drain()))
            client.lose()
    half = len(answers) // 2
    assert answers[:half] == answers[half:]
    assert all((b"403 Permission Denied" in data) == (level == 5) for _, data in answers)
    texts = [
        text.partition("client c: ")[2]
        for kind, text in told
        if kind == "CLIENT_CLIENT_BIND_FAILED"
    ]
    queue, endpoint = "503 Unknown Queue", "503 Unknown Durable Topic Endpoint"
    denied = "403 Permission Denied"
    whys = [text.rpartition(": ")[0] for text in texts]
    assert whys == [*[denied] * 4, queue, queue, endpoint, endpoint]
    assert texts[4] == "503 Unknown Queue: $queue/nobody"


def test_who_may_use_any_endpoint_learns_that_one_is_not_there(router: SpooledWorld) -> None:
    """Its client username overrides the permissions of all."""
    name = ClientUsername("app", guaranteed_endpoint_permission_override_enabled=True)
    router.add_vpn("blue", (name,))
    client = router.join("c", username="app")
    assert client.refused("$queue/missing") == (0x8F, "503 Unknown Queue")
    assert client.refused("$browse/missing") == (0x8F, "503 Unknown Queue")
    assert client.refused("$topic-endpoint/x/a") == (0x8F, "503 Unknown Durable Topic Endpoint")


def test_refusals_repeat_little_of_what_was_sent(router: SpooledWorld) -> None:
    """A start of a replay, or a selector, as long as MQTT has it is refused in a line, and the client goes on."""
    router.queue("open")
    client = router.join("c")
    for text in ("x" * 65_535, "id:" + "9" * 65_532, "\U0001f600" * 16_383):
        code, said = client.refused("$queue/open", [("replay-from", text)])
        assert code == 0x83
        assert said.startswith("400 Bad Replay Start: ")
        assert len(said) < 200
        code, said = client.refused("$queue/open", [("selector", text)])
        assert code == 0x83
        assert len(said) < 200
    assert client.sub("$queue/open") == 1


def test_one_selector_for_all_filters_of_a_packet(router: SpooledWorld) -> None:
    """A bad one is told with each filter and read once: 4,000 filters with one of 8 KB take less than a second."""
    router.queue("open")
    client = router.join("c")
    selector = "1+" * 4_000 + "a"
    filters = [SubscriptionRequest("$queue/open", 1)] * 4_000
    began = time.thread_time()
    client.send(Subscribe(9, filters, Properties(user_properties=[("selector", selector)])))
    (answer,) = client.got()
    assert time.thread_time() - began < 1
    assert isinstance(answer, Suback)
    assert answer.reason_codes == [0x83] * 4_000


def test_owners_and_overrides(router: SpooledWorld) -> None:
    """The owner may do everything; so may a client username with the override."""
    usernames = (
        ClientUsername("me"),
        ClientUsername("you"),
        ClientUsername("root", guaranteed_endpoint_permission_override_enabled=True),
    )
    router.add_vpn("blue", usernames)
    router.queue("q", owner="me", permission=NO_ACCESS, exclusive=False)
    assert router.join("a", username="me").sub("$queue/q") == 1
    assert router.join("b", username="you").sub("$queue/q") == 0x87
    assert router.join("c", username="root").sub("$queue/q") == 1


def test_flows_are_bounded(router: SpooledWorld) -> None:
    """By the client profile for one client, by the message VPN for all."""
    profile = ClientProfile("default", max_egress_flow_count=2)
    router.add_vpn("blue", profile=profile, bounds=VpnLimits(max_egress_flow_count=3))
    for name in "wxyz":
        router.queue(name, exclusive=False)
    first, second = router.join("c1"), router.join("c2")
    assert [first.sub(f"$queue/{name}") for name in "wxy"] == [1, 1, 0x97]
    assert [second.sub(f"$queue/{name}") for name in "wx"] == [1, 0x97]
    first.unsubscribe("$queue/w")
    assert second.sub("$queue/x") == 1


@pytest.mark.parametrize(("of_client", "of_vpn"), [(0, 3), (3, 0)])
def test_no_flow_at_all(router: SpooledWorld, of_client: int, of_vpn: int) -> None:
    """With a bound of 0, of the client profile or of the message VPN, no queue is bound."""
    profile = ClientProfile("default", max_egress_flow_count=of_client)
    router.add_vpn("blue", profile=profile, bounds=VpnLimits(max_egress_flow_count=of_vpn))
    router.queue("w")
    assert router.join("c").sub("$queue/w") == 0x97


def test_the_profile_may_forbid_receiving(router: SpooledWorld) -> None:
    """Without allow_guaranteed_msg_receive_enabled no queue is bound, and topics have QoS 0."""
    profile = ClientProfile("default", allow_guaranteed_msg_receive_enabled=False)
    router.add_vpn("blue", profile=profile)
    router.queue("q")
    client = router.join("c")
    assert client.sub("$queue/q") == 0x87
    assert client.sub("a", 2) == 0


@pytest.mark.parametrize("by_property", [False, True])
def test_browsing(router: SpooledWorld, by_property: bool) -> None:
    """A browser sees everything, also what comes later; nothing leaves the queue, and it takes no turn."""
    queue = router.queue("q", "a", max_bind_count=1)
    fill(router, "a", b"1", b"2")
    client = router.join("b", properties=Properties(receive_maximum=1))
    if by_property:
        assert client.sub("$queue/q", user=[("browse", "true")]) == 1
    else:
        assert client.sub("$browse/q") == 1
    seen = payloads(client)
    waiting = [packet for packet in client.rest if isinstance(packet, Publish)]
    for _ in range(5):
        client.puback(*waiting)
        router.advance(0.2)
        waiting = client.messages()
        seen += [message.payload for message in waiting]
    assert seen == [b"1", b"2"]
    assert queue.spooled_count == 2
    fill(router, "a", b"3")
    router.advance(0.2)
    (message,) = client.messages()
    assert message.payload == b"3"
    consumer = router.join("c")
    assert consumer.sub("$queue/q") == 1
    assert payloads(consumer) == [b"1", b"2", b"3"]
    consumer.puback(*[packet for packet in consumer.rest if isinstance(packet, Publish)])
    router.settle()
    assert queue.spooled_count == 0
    client.puback(message)
    client.lose()
    timers = len(router.router.context.timers)
    router.advance(5)
    assert len(router.router.context.timers) <= timers


@pytest.mark.parametrize("respected", [True, False])
def test_browsing_what_has_expired(router: SpooledWorld, respected: bool) -> None:
    """What has expired, and was not removed yet, is not shown where life times are respected."""
    router.queue("q", "a", respect_ttl_enabled=respected)
    fill(router, "a", b"short", properties=Properties(message_expiry_interval=1))
    fill(router, "a", b"long")
    router.router.context.now_ns += 2_000_000_000
    client = router.join("b")
    assert client.sub("$browse/q") == 1
    assert payloads(client) == ([b"long"] if respected else [b"short", b"long"])


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
