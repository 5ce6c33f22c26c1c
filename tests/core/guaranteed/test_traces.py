"""vpnrouter.core.guaranteed.traces: what is recorded of a traced guaranteed message, and of no other."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import pytest

from vpnrouter.core.guaranteed.flow import ACCEPTED, FAILED, REJECTED, RELEASED
from vpnrouter.trace.events import EVENT_NAMES, FIRST_WITHOUT_MESSAGE, MODE_NAMES

if TYPE_CHECKING:
    from tests.core.guaranteed.spool_world import SpoolWorld

TRACE = 4711


@pytest.fixture
def publish(world: SpoolWorld, spool_kit: Any) -> Any:
    """Publishes a traced message; one that is not goes before it."""

    def run(topic: str, persistent: bool = True, **fields: Any) -> None:
        for number in (0, TRACE):
            message = spool_kit.guaranteed(topic)
            message.persistent = persistent
            message.trace_low = number
            message.message_id = number
            for name, value in fields.items():
                setattr(message, name, value)
            if persistent:
                world.give(message)
            else:
                world.vpn.publish(message)
        world.commit()

    return run


@pytest.fixture
def events(world: SpoolWorld) -> Any:
    """What was recorded of messages since the last call: (event, endpoint, client, reason)."""

    def run() -> list[tuple[str, str, str, str]]:
        recorder = world.plane.recorder
        recorder.cut()
        found = []
        for block in recorder.take():
            for place in range(block.count):
                fields = struct.unpack_from("<qQQQqqqII", block.data, place * 64)
                context = block.contexts[fields[7]]
                if context.event < FIRST_WITHOUT_MESSAGE:
                    assert fields[2:4] == (TRACE, TRACE)
                    name = EVENT_NAMES[context.event]
                    found.append((name, context.endpoint, context.client, context.reason))
                    # A client with QoS 0 gets a Direct message, whatever it came as.
                    assert (MODE_NAMES[context.mode] == "direct") == (name == "deliver")
        return found

    return run


@pytest.mark.parametrize(
    ("outcome", "wanted"),
    [
        (ACCEPTED, [("acknowledge", "q", "c", "")]),
        (REJECTED, [("reject", "q", "c", "rejected"), ("discard", "q", "", "rejected")]),
        (FAILED, []),
        (RELEASED, []),
    ],
)
def test_what_a_consumer_says(
    world: SpoolWorld, publish: Any, events: Any, outcome: int, wanted: list[Any]
) -> None:
    """Taken, or refused and so discarded; what comes back is told when it is delivered again (flow.py)."""
    queue = world.endpoint("q", "a")
    flow = world.bind(queue)
    publish("a")
    assert events() == [("enqueue", "q", "", "")]
    flow.settle_all(outcome)
    assert events() == wanted


def test_dead_letters(world: SpoolWorld, publish: Any, events: Any) -> None:
    """One refused by its consumer goes to the dead message queue, where it is new."""
    world.endpoint("dead")
    flow = world.bind(world.endpoint("q", "a", dead_msg_queue="dead"))
    publish("a")
    events()
    flow.settle_all(REJECTED)
    assert sorted(events()) == [
        ("dead_letter", "q", "", "rejected"),
        ("enqueue", "dead", "", ""),
        ("reject", "q", "c", "rejected"),
    ]


def test_expiry(world: SpoolWorld, publish: Any, events: Any) -> None:
    """It outlives its time, and is given up."""
    world.endpoint("q", "a", respect_ttl_enabled=True, max_ttl=2)
    publish("a")
    events()
    world.advance(3)
    reason = "max-ttl-expired"
    assert events() == [("expire", "q", "", reason), ("discard", "q", "", reason)]


def test_refusal(world: SpoolWorld, publish: Any, events: Any) -> None:
    """Nobody keeps it, and its publisher is told."""
    world.endpoint("q", "a", max_spooled_msg_count=0, max_msg_size=1)
    publish("a", payload=b"xx")
    ((event, endpoint, _, reason),) = events()
    assert (event, endpoint) == ("reject", "")
    assert reason


def test_demotion(world: SpoolWorld, spool_kit: Any, publish: Any, events: Any) -> None:
    """A client with QoS 0 gets a Direct message of it."""
    spool_kit.Listener(world.vpn, "l").subscribe("a")
    publish("a")
    assert [row[0] for row in events()] == ["deliver", "demote"]


def test_promotion(world: SpoolWorld, publish: Any, events: Any) -> None:
    """A queue keeps a Direct message."""
    world.endpoint("q", "a")
    publish("a", persistent=False)
    assert events() == [("promote", "q", "", ""), ("enqueue", "q", "", "")]


def test_it_is_traced_after_a_restart(world: SpoolWorld, publish: Any, events: Any) -> None:
    """The decision is kept with the message."""
    world.endpoint("q", "a")
    publish("a")
    world.restart()
    events()
    flow = world.bind(world.endpoints[0])
    world.commit()
    flow.settle_all()
    assert events() == [("acknowledge", "q", "c", "")]
