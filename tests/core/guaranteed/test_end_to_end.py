"""vpnrouter.core.guaranteed.end_to_end: answers that wait until a bridge has the message."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from vpnrouter import limits
from vpnrouter.core.guaranteed import refusals
from vpnrouter.core.guaranteed.end_to_end import EndToEndAnswers, EndToEndCallback
from vpnrouter.core.guaranteed.endpoint_definition import read_definitions
from vpnrouter.core.guaranteed.endpoint_settings import TOPIC_ENDPOINT
from vpnrouter.core.guaranteed.flow import FAILED, REJECTED, RELEASED
from vpnrouter.core.guaranteed.unit_of_work import REJECTED as REFUSED
from vpnrouter.core.guaranteed.unit_of_work import SPOOLED, UNMATCHED
from vpnrouter.core.message import Message

if TYPE_CHECKING:
    from tests.core.guaranteed.spool_world import SpoolWorld
    from vpnrouter.core.guaranteed.endpoint import Endpoint

FAILURE = (REFUSED, refusals.PUBLISH_FAILURE)


class Told(EndToEndCallback):
    """Notes the answers: token, outcome, reason; and the tokens that were lost, as they stood then."""

    def __init__(self) -> None:
        self.heard: list[tuple[int, int, str]] = []
        self.gone: list[int] = []

    def on_outcome(self, token: int, outcome: int, reason: str) -> None:
        self.heard.append((token, outcome, reason))

    def lost(self, token: int) -> None:
        assert all(token != other for other, _, _ in self.heard)
        self.gone.append(token)


class Publisher:
    """A publisher whose answers wait for the bridge `x`."""

    def __init__(self, world: SpoolWorld) -> None:
        self.world = world
        self.told = Told()
        self.waits = EndToEndAnswers(world.spool, "x", self.told)

    def give(self, topic: str, token: int, payload: bytes = b"x", expires_s: float = 0) -> int:
        """Publish, and commit; returns the spool id that is waited for."""
        message = Message(topic.encode(), payload, b"")
        message.persistent = True
        message.qos = 1
        if expires_s:
            message.expires_ns = self.world.now_ns + int(expires_s * 1_000_000_000)
        self.waits.publish(self.world.vpn, message, token)
        held = self.waits.held_id
        self.world.commit()
        return held


def crossed(world: SpoolWorld, name: str, *filters: str, **settings: Any) -> Endpoint:
    """A queue from which the bridge x takes."""
    endpoint = world.endpoint(name, *filters, **settings)
    endpoint.remember_bridge("x")
    return endpoint


def test_only_what_the_bridge_takes(world: SpoolWorld) -> None:
    """Other queues, other bridges, no queue at all: answered as ever."""
    world.endpoint("plain", "p")
    other = world.endpoint("other", "o")
    other.remember_bridge("y")
    crossed(world, "q", "a")
    one = Publisher(world)
    for token, topic in enumerate(("p", "o", "none"), 1):
        assert one.give(topic, token) == 0
    assert one.told.heard == [(1, SPOOLED, ""), (2, SPOOLED, ""), (3, UNMATCHED, "")]
    assert other.watched is None


def test_answers_keep_their_order(world: SpoolWorld) -> None:
    """What could be answered waits for what came before it (MQTT-4.6.0-2)."""
    queue = crossed(world, "q", "a")
    world.endpoint("full", "full", max_msg_spool_usage=1)
    one = Publisher(world)
    one.give("a", 1)
    one.give("full", 2)
    one.waits.answer(3, REFUSED, refusals.ACL_DENIED)
    one.give("a", 4)
    one.give("none", 5)
    assert one.told.heard == []
    flow = world.bind(queue)
    world.commit()
    first, second = list(flow.unacked)
    queue.settle(flow, second, 0)
    world.commit()
    assert one.told.heard == []
    queue.settle(flow, first, 0)
    world.commit()
    assert one.told.heard == [
        (1, SPOOLED, ""),
        (2, REFUSED, refusals.SPOOL_OVER_QUOTA),
        (3, REFUSED, refusals.ACL_DENIED),
        (4, SPOOLED, ""),
        (5, UNMATCHED, ""),
    ]


def leave(world: SpoolWorld, queue: Endpoint, spool_id: int, how: str) -> None:
    """Let the message leave the queue without having gone over."""
    if how == "delete message":
        assert queue.delete_message(spool_id) == ""
    elif how == "purge":
        assert queue.purge() == 1
    elif how == "delete queue":
        queue.delete("503 Queue Shutdown")
    elif how == "move":
        assert queue.move_message(spool_id, world.endpoint("to")) == ""
    elif how == "expire":
        world.advance(61)
    else:
        flow = world.bind(queue)
        world.commit()
        flow.settle_all(REJECTED)


@pytest.mark.parametrize(
    "how", ["delete message", "purge", "delete queue", "move", "expire", "reject"]
)
def test_what_never_comes_over_is_refused(world: SpoolWorld, how: str) -> None:
    """However it left the queue, the publisher hears of it."""
    queue = crossed(world, "q", "a", respect_ttl_enabled=True)
    one = Publisher(world)
    spool_id = one.give("a", 1, expires_s=60)
    leave(world, queue, spool_id, how)
    assert one.told.gone == [1]
    world.commit()
    assert one.told.heard == [(1, *FAILURE)]


@pytest.mark.parametrize("outcome", [FAILED, RELEASED])
def test_what_comes_back_goes_on_waiting(world: SpoolWorld, outcome: int) -> None:
    """Neither a failed try nor the loss of the link answers anything."""
    queue = crossed(world, "q", "a")
    one = Publisher(world)
    one.give("a", 1)
    flow = world.bind(queue)
    world.commit()
    flow.settle_all(outcome)
    world.commit()
    queue.unbind(flow, counts=False)
    world.commit()
    assert one.told.heard == []
    again = world.bind(queue)
    world.commit()
    again.settle_all()
    world.commit()
    assert one.told.heard == [(1, SPOOLED, "")]


def test_dead_letters_and_last_values(world: SpoolWorld) -> None:
    """A queue that tries no more, and one that keeps the newest only, lose messages too."""
    queue = crossed(world, "q", "a", max_redelivery_count=1)
    last = crossed(world, "last", "b", max_msg_spool_usage=0)
    one = Publisher(world)
    one.give("a", 1)
    flow = world.bind(queue)
    for _ in range(2):
        world.commit()
        flow.settle_all(FAILED)
    one.give("b", 2)
    one.give("b", 3)
    assert one.told.heard == [(1, *FAILURE), (2, *FAILURE)]
    consumer = world.bind(last)
    world.commit()
    consumer.settle_all()
    world.commit()
    assert one.told.heard[2:] == [(3, SPOOLED, "")]


def test_purged_while_on_its_way(world: SpoolWorld) -> None:
    """A purge takes what is there: a message that is not synced yet is there afterwards."""
    queue = crossed(world, "q", "a")
    one = Publisher(world)
    message = Message(b"a", b"x", b"")
    message.persistent = True
    one.waits.publish(world.vpn, message, 1)
    assert queue.purge() == 0
    world.commit()
    assert queue.spooled_count == 1
    assert one.told.gone == []


def test_lost_in_one_of_two_queues_is_lost(world: SpoolWorld) -> None:
    """It does not wait for the other one then, which may go on with it."""
    first, second = crossed(world, "q1", "a"), crossed(world, "q2", "a")
    one = Publisher(world)
    one.give("a", 1)
    first.purge()
    world.commit()
    assert one.told.heard == [(1, *FAILURE)]
    second.purge()
    world.commit()
    assert (one.told.heard, one.told.gone) == ([(1, *FAILURE)], [1])


def test_after_the_end_nobody_is_told(world: SpoolWorld) -> None:
    """The connection is over; the queue keeps the message and nothing of the publisher."""
    queue = crossed(world, "q", "a")
    one = Publisher(world)
    one.give("a", 1)
    assert queue.watched is not None
    assert len(queue.watched) == 1
    one.waits.close()
    assert len(queue.watched) == 0
    flow = world.bind(queue)
    world.commit()
    flow.settle_all()
    world.commit()
    assert one.told.heard == []
    one.give("none", 2)
    assert one.told.heard == [(2, UNMATCHED, "")]


@pytest.mark.parametrize("in_flight", [False, True])
def test_taken_from_an_earlier_connection(world: SpoolWorld, in_flight: bool) -> None:
    """What is still in the queue, or on its way there, is waited for anew; what is gone is across."""
    queue = crossed(world, "q", "a")
    one = Publisher(world)
    message = Message(b"a", b"x", b"")
    message.persistent = True
    one.waits.publish(world.vpn, message, 1)
    spool_id = one.waits.held_id
    if not in_flight:
        world.commit()
    one.waits.close()
    two = Publisher(world)
    two.waits.again(world.vpn, spool_id, 7)
    # Asked twice, for what it is worth.
    two.waits.again(world.vpn, spool_id, 7)
    world.commit()
    assert two.told.heard == []
    flow = world.bind(queue)
    world.commit()
    flow.settle_all()
    world.commit()
    assert two.told.heard == [(7, SPOOLED, ""), (7, SPOOLED, "")]
    assert one.told.heard == []
    two.waits.again(world.vpn, spool_id, 8)
    world.commit()
    assert two.told.heard[2:] == [(8, SPOOLED, "")]


@pytest.mark.parametrize("seed", range(20))
def test_every_token_once_and_in_order(world: SpoolWorld, seed: int) -> None:
    """Whatever happens in the queues, each publish is answered once, and in its turn."""
    draw = random.Random(seed)
    queues = [crossed(world, "q1", "a", "b"), crossed(world, "q2", "b"), world.endpoint("q3", "#")]
    flows = [world.bind(queue) for queue in queues]
    one = Publisher(world)
    token = 0
    for _ in range(200):
        step = draw.randrange(8)
        if step < 4:
            token += 1
            one.give(draw.choice("abc"), token)
        elif step < 7:
            flow = draw.choice(flows)
            if flow.unacked:
                chosen = draw.choice(list(flow.unacked))
                flow.endpoint.settle(flow, chosen, draw.choice([0, 0, FAILED, REJECTED, RELEASED]))
        else:
            world.commit()
        told = [number for number, _, _ in one.told.heard]
        assert told == list(range(1, len(told) + 1)), f"seed {seed}"
    world.commit()
    for flow in flows:
        while flow.unacked:
            flow.settle_all()
            world.commit()
    assert [number for number, _, _ in one.told.heard] == list(range(1, token + 1)), f"seed {seed}"
    refused = {number for number, outcome, _ in one.told.heard if outcome == REFUSED}
    assert refused == set(one.told.gone), f"seed {seed}"
    assert [len(queue.watched or ()) for queue in queues] == [0, 0, 0], f"seed {seed}"


def test_names_of_bridges_are_written_down(world: SpoolWorld) -> None:
    """Once each, and no more than there may be: the first one is forgotten."""
    queue = world.endpoint("q", "a")
    names = [f"b{number}" for number in range(limits.ENDPOINT_BRIDGES + 1)]
    for name in [*names[:3], *names]:
        queue.remember_bridge(name)
    queue.remember_bridge("")
    world.commit()
    assert queue.bridges == names[1:]
    (definition,) = read_definitions(world.store)[0]
    assert (definition.name, definition.bridges) == ("q", names[1:])
    queue.remember_bridge(names[1])
    assert world.seal() is None


def test_nothing_else_than_queues(world: SpoolWorld) -> None:
    """Bridges take from queues; a topic endpoint stays as it is."""
    endpoint = world.endpoint("te", kind=TOPIC_ENDPOINT)
    endpoint.remember_bridge("x")
    assert endpoint.bridges == []
