"""vpnrouter.core.mqtt.handover: what waited for a member of a shared subscription whose session has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from vpnrouter.core.access import BoundRule
from vpnrouter.core.guaranteed.endpoint_settings import ALWAYS
from vpnrouter.core.mqtt.handover import NAME
from vpnrouter.core.mqtt.session import MqttSession
from vpnrouter.events.log import EventLog
from vpnrouter.events.table import SESSION_END
from vpnrouter.spool import keys
from vpnrouter.wire.mqtt.packets import Publish
from vpnrouter.wire.mqtt.properties import Properties
from vpnrouter.wire.mqtt.reason import QUOTA_EXCEEDED

if TYPE_CHECKING:
    from tests.core.mqtt.spooled import SpooledClient, SpooledWorld
    from vpnrouter.events.log import Event

MINUTE = Properties(session_expiry_interval=60)


def burst(world: SpooledWorld, count: int, topic: str = "jobs/a", qos: int = 1) -> list[bytes]:
    """Publish guaranteed messages, and return their payloads."""
    producer = world.join("producer", properties=Properties(session_expiry_interval=0))
    payloads = [b"%d" % number for number in range(count)]
    for number, payload in enumerate(payloads, 1):
        producer.pub(topic, payload, qos=qos, pid=number)
        world.settle()
    producer.lose()
    return payloads


def member(
    world: SpooledWorld, name: str, text: str = "$share/g/jobs/#", qos: int = 1
) -> SpooledClient:
    """A member of a group whose session lasts a minute."""
    client = world.join(name, clean_start=False, properties=MINUTE)
    client.sub(text, qos)
    return client


def drained(client: SpooledClient) -> list[bytes]:
    """What a client gets, acknowledged, from its CONNACK on."""
    came = [packet for packet in client.rest if isinstance(packet, Publish)]
    client.rest = []
    client.puback(*came)
    return [packet.payload for packet in came] + client.take()


def left(world: SpooledWorld) -> list[bytes]:
    """Rows of endpoints that are handed on."""
    return [key for key, _ in world.store.scan(keys.session("blue", NAME))]


def waiting(world: SpooledWorld) -> dict[str, int]:
    """How many messages wait for each session."""
    found = {}
    for name, client in world.vpn().clients.items():
        if client.endpoint is not None:
            found[name] = client.endpoint.spooled_count
    return found


def test_those_who_are_away_take_turns(router: SpooledWorld) -> None:
    """What is published while all members are away is shared out among them."""
    for name in "abc":
        member(router, name).lose()
    burst(router, 9)
    assert waiting(router) == {"a": 3, "b": 3, "c": 3}


@pytest.mark.parametrize(
    "how", ["expires", "clean start", "expires while the router is down", "crash"]
)
@pytest.mark.parametrize("others", ["here", "away", "none", "of another group"])
@pytest.mark.parametrize("count", [3, 700])
def test_the_others_get_what_is_left(
    router: SpooledWorld, how: str, others: str, count: int
) -> None:
    """However a session ends, what waited for it reaches the others once, in order; without any it is gone."""
    member(router, "leaves").lose()
    payloads = burst(router, count)
    text = "$share/other/jobs/#" if others == "of another group" else "$share/g/jobs/#"
    if others != "none":
        stays = router.lasting("stays")
        stays.sub(text)
        if others != "here":
            stays.lose()
    router.settle()
    if how == "expires":
        router.advance(61)
    elif how == "clean start":
        router.join("leaves", clean_start=True)
    elif how == "crash":
        router.advance(61)
        # The end of the session is synced, and nothing that followed.
        router.round()
        router = router.restart()
    else:
        router.now_ns += 61_000_000_000
        router = router.restart()
    router.settle()
    if others == "none":
        assert sum(waiting(router).values()) == 0
        assert router.vpn().spooled_bytes == 0
        return
    if others != "here" or how not in ("expires", "clean start"):
        stays = router.lasting("stays")
    expected = payloads if others in ("here", "away") else []
    assert drained(stays) == expected
    router.settle()
    assert router.vpn().spooled_bytes == 0
    assert sum(waiting(router).values()) == 0
    assert left(router) == []


@pytest.mark.parametrize("qos", [1, 2])
def test_what_is_half_sent_at_qos_2_is_for_nobody_else(router: SpooledWorld, qos: int) -> None:
    """A client may have it already (MQTT-4.8.2-5); what is QoS 1 is sent to another member."""
    leaves = member(router, "leaves", qos=qos)
    stays = router.lasting("stays")
    stays.lose()
    burst(router, 4, qos=qos)
    assert len(leaves.messages()) == 4
    leaves.lose()
    stays = router.lasting("stays")
    stays.sub("$share/g/jobs/#", qos)
    router.advance(61)
    assert len(drained(stays)) == (4 if qos == 1 else 0)
    router.settle()
    assert router.vpn().spooled_bytes == 0


def test_every_group_gets_its_copy(router: SpooledWorld) -> None:
    """A session in two groups hands on to both; what came by another subscription is for nobody else."""
    leaves = member(router, "leaves")
    leaves.sub("$share/h/jobs/+", 1)
    leaves.sub("mine", 1)
    leaves.lose()
    burst(router, 2, "mine")
    payloads = burst(router, 3)
    others = []
    for name, text in {"g": "jobs/#", "h": "jobs/+"}.items():
        others.append(router.lasting(name))
        others[-1].sub(f"$share/{name}/{text}")
    router.advance(61)
    assert [drained(other) for other in others] == [payloads, payloads]
    router.settle()
    assert router.vpn().spooled_bytes == 0


def test_what_nobody_has_room_for_is_gone(router: SpooledWorld) -> None:
    """The endpoint of another member takes what its quota allows, and counts the rest as refused."""
    member(router, "leaves").lose()
    burst(router, 10)
    stays = router.lasting("stays")
    stays.sub("$share/g/jobs/#")
    stays.lose()
    endpoint = router.vpn().clients["stays"].endpoint
    endpoint.settings.max_spooled_msg_count = 4
    router.advance(61)
    router.settle()
    assert waiting(router) == {"stays": 4}
    assert sum(endpoint.counters.refused.counts.values()) == 6
    assert router.vpn().discards.counts == {"max-msg-usage-exceeded": 6}


def test_the_next_one_with_room_gets_it(router: SpooledWorld) -> None:
    """A member whose session is full is passed over while another one has room; only then is one refused."""
    for name, most in {"a": 1, "b": 2, "c": 3}.items():
        member(router, name).lose()
        endpoint = router.vpn().clients[name].endpoint
        endpoint.settings.max_spooled_msg_count = most
        endpoint.settings.reject_behavior = ALWAYS
    member(router, "d", qos=0).lose()
    producer = router.join("producer")
    codes = []
    for number in range(1, 9):
        producer.pub("jobs/a", pid=number)
        ((_, _, code),) = producer.acks()
        codes.append(code)
    assert codes == [0] * 6 + [QUOTA_EXCEEDED] * 2
    assert waiting(router) == {"a": 1, "b": 2, "c": 3}


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("count", [3, 700])
def test_a_member_of_qos_0_that_is_connected_gets_what_is_left(
    router: SpooledWorld, full: bool, count: int
) -> None:
    """It gets it as a Direct message, in order, also where the session of another one has no room."""
    member(router, "leaves").lose()
    payloads = burst(router, count)
    stays = router.join("stays")
    stays.sub("$share/g/jobs/#", 0)
    if full:
        full_one = router.lasting("full")
        full_one.sub("$share/g/jobs/#")
        full_one.lose()
        router.vpn().clients["full"].endpoint.settings.max_spooled_msg_count = -1
    router.advance(61)
    messages = stays.messages()
    assert [message.payload for message in messages] == payloads
    assert {message.qos for message in messages} == {0}
    router.settle()
    vpn = router.vpn()
    assert (vpn.discards.counts, vpn.spooled_bytes, left(router)) == ({}, 0, [])


@pytest.mark.parametrize("reads", [True, False])
def test_a_member_of_qos_0_without_room_is_waited_for(router: SpooledWorld, reads: bool) -> None:
    """What it has no room for waits until it has read; one that reads nothing loses it, counted, and holds nothing."""
    member(router, "leaves").lose()
    payloads = burst(router, 10)
    stays = router.join("stays")
    stays.sub("$share/g/jobs/#", 0)
    outbox = router.vpn().clients["stays"].outbox
    outbox.set_limit(20)
    router.advance(61)
    came: list[bytes] = []
    for _ in range(200):
        if reads:
            came += [message.payload for message in stays.resolved(stays.received())]
        router.router.context.jobs.finish()
        router.round()
        router.advance(0.06)
    came += stays.take()
    router.settle()
    assert router.vpn().spooled_bytes == 0
    if reads:
        assert came == payloads
    assert len(came) + outbox.discarded == 10


@pytest.mark.parametrize(
    ("why", "reason"),
    [
        ("away", "client-not-connected"),
        ("forbidden", "no-subscription-match"),
        ("full", "max-msg-usage-exceeded"),
    ],
)
@pytest.mark.parametrize("dead_letters", [False, True])
def test_what_nobody_can_take_is_counted(
    router: SpooledWorld, why: str, reason: str, dead_letters: bool
) -> None:
    """It is a discard of the message VPN with its reason, unless a dead message queue has it."""
    dead = router.queue("#DEAD_MSG_QUEUE") if dead_letters else None
    member(router, "leaves").lose()
    burst(router, 3)
    stays = router.lasting("stays")
    stays.sub("$share/g/jobs/#", 0 if why == "away" else 1)
    stays.lose()
    vpn = router.vpn()
    if why == "forbidden":
        vpn.clients["stays"].rule = BoundRule(False, [])
        vpn.forget_all_routes()
    elif why == "full":
        vpn.clients["stays"].endpoint.settings.max_spooled_msg_count = -1
    # Here a message is eligible for a dead message queue if it says so, or nobody asks.
    vpn.clients["leaves"].endpoint.settings.respect_dmq_eligible_enabled = False
    router.advance(61)
    router.settle()
    if dead is None:
        assert vpn.discards.counts == {reason: 3}
        assert vpn.spooled_bytes == 0
    else:
        assert vpn.discards.counts == {}
        assert dead.spooled_count == 3
        assert reason.encode() in dead.browse(0, 1)[0].message.block


def test_a_full_message_vpn_hands_on(router: SpooledWorld) -> None:
    """What is handed on needs no more room than it had."""
    member(router, "leaves").lose()
    burst(router, 3)
    stays = router.lasting("stays")
    stays.sub("$share/g/jobs/#")
    stays.lose()
    vpn = router.vpn()
    vpn.limits.max_msg_spool_usage = vpn.spooled_bytes
    router.advance(61)
    router.settle()
    assert waiting(router) == {"stays": 3}


@pytest.mark.parametrize("others", [0, 1])
def test_the_event_says_what_became_of_what_waited(router: SpooledWorld, others: int) -> None:
    """The end of a session tells how many of its messages others have, and how many nobody."""
    told = EventLog("here", lambda: 1)
    heard: list[Event] = []
    told.listeners.append(heard.append)
    router.router.context.events = told
    leaves = member(router, "leaves")
    leaves.sub("mine", 1)
    leaves.lose()
    burst(router, 3)
    burst(router, 2, "mine")
    if others:
        member(router, "stays").lose()
    session = router.vpn().clients["leaves"]
    assert isinstance(session, MqttSession)
    session.end("it is gone")
    router.settle()
    (end,) = [event.text for event in heard if event.kind is SESSION_END]
    left = "3 messages handed on to others, 2 messages" if others else "5 messages"
    assert end.endswith(f"session ended: it is gone; {left} discarded")


@pytest.mark.parametrize("others", [0, 1])
@pytest.mark.parametrize("how", ["share name", "guaranteed messages"])
def test_a_shared_subscription_that_is_not_allowed_any_more(
    router: SpooledWorld, others: int, how: str
) -> None:
    """What waited for it is for the others, who may have it; without any it leaves nothing behind."""
    member(router, "leaves").lose()
    payloads = burst(router, 3)
    stays = [router.lasting(f"stays{number}") for number in range(others)]
    for other in stays:
        other.sub("$share/g/jobs/#")
    vpn = router.vpn()
    for held in list(vpn.clients["leaves"].subscriptions.values()):
        if how == "share name":
            vpn.suspend(held, True)
        else:
            held.qos = 0
    router.advance(61)
    assert [drained(other) for other in stays] == [payloads] * others
    router.settle()
    assert router.session_row("leaves") is None
    assert vpn.spooled_bytes == 0
    assert "leaves" not in waiting(router)
    assert left(router) == []


def test_a_spool_that_cannot_write_loses_nothing(router: SpooledWorld) -> None:
    """What is to be handed on waits until it can, and costs nothing meanwhile."""
    member(router, "leaves").lose()
    payloads = burst(router, 5)
    stays = router.lasting("stays")
    stays.sub("$share/g/jobs/#")
    router.settle()
    router.spool.failed("no space left")
    router.advance(61)
    jobs = router.router.context.jobs
    for _ in range(10):
        jobs.finish()
        assert len(jobs) == 0
        router.advance(0.01)
    assert stays.received() == []
    router.spool.down = ""
    router.advance(1)
    assert drained(stays) == payloads


def test_large_messages_are_handed_on_a_few_in_a_commit(router: SpooledWorld) -> None:
    """No commit has many of them, so that others wait no longer than for those of publishers."""
    member(router, "leaves").lose()
    producer = router.join("producer")
    for number in range(1, 41):
        producer.pub("jobs/a", bytes([number]) * 1_000_000, pid=number)
        router.settle()
    stays = router.lasting("stays")
    stays.sub("$share/g/jobs/#")
    stays.lose()
    router.settle()
    router.largest = 0
    router.advance(61)
    router.settle()
    assert waiting(router) == {"stays": 40}
    assert router.largest < 8_000_000


@pytest.mark.parametrize("to_one", [False, True])
def test_a_member_that_may_not_have_a_topic_keeps_it_from_nobody(
    router: SpooledWorld, to_one: bool
) -> None:
    """A guaranteed message that no member of QoS 1 or 2 may have goes to one of QoS 0 as Direct."""
    member(router, "denied")
    router.vpn().clients["denied"].rule = BoundRule(False, [])
    router.vpn().forget_all_routes()
    open_to = router.join("open")
    open_to.sub("$share/g/jobs/#", 0)
    producer = router.join("producer")
    properties = Properties(user_properties=[("deliver-to-one", "true")] if to_one else None)
    producer.pub("jobs/a", b"live", properties=properties)
    router.settle()
    assert [message.payload for message in open_to.messages()] == [b"live"]
    assert router.vpn().discards.counts == {}
