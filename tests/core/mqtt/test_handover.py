"""vpnrouter.core.mqtt.handover: what waited for a member of a shared subscription whose session has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from vpnrouter.core.mqtt.handover import NAME
from vpnrouter.spool import keys
from vpnrouter.wire.mqtt.packets import Publish
from vpnrouter.wire.mqtt.properties import Properties

if TYPE_CHECKING:
    from tests.core.mqtt.spooled import SpooledClient, SpooledWorld

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


@pytest.mark.parametrize("others", [0, 1])
def test_a_shared_subscription_that_is_not_allowed_any_more(
    router: SpooledWorld, others: int
) -> None:
    """Its session ends as any other one, and leaves nothing behind; nothing is handed on for it."""
    member(router, "leaves").lose()
    burst(router, 3)
    for number in range(others):
        router.lasting(f"stays{number}").sub("$share/g/jobs/#")
    vpn = router.vpn()
    for held in list(vpn.clients["leaves"].subscriptions.values()):
        vpn.suspend(held, True)
    router.advance(61)
    router.settle()
    assert router.session_row("leaves") is None
    assert vpn.spooled_bytes == 0
    assert "leaves" not in waiting(router)


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
