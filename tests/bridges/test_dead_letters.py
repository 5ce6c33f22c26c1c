"""What becomes of messages that a bridge cannot deliver: refused too often, never possible, expired; any crash."""

import importlib.util
import random
from pathlib import Path
from typing import Any

import pytest

from vpnrouter.core.guaranteed.dead_letters import NAMES
from vpnrouter.core.guaranteed.failure_policy import DeadMsgQueue, FailurePolicy
from vpnrouter.wire.mqtt.properties import with_user_properties
from vpnrouter.wire.mqtt.user_properties import take_out

SPEC = importlib.util.spec_from_file_location("flow_pair", Path(__file__).parent / "flow_pair.py")
assert SPEC is not None
assert SPEC.loader is not None
flow_pair: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(flow_pair)

BLOCK, PARK, SKIP = 0, 1, 2
POLICIES = {"block": BLOCK, "park": PARK, "skip": SKIP}
SECOND_NS = flow_pair.SECOND_NS
RETRY_S = 1.01
ATTEMPTS = 3

QUEUES = {"in": "t/a", "other": "t/b", "buried": "", "late": "dead/>"}


def policy(*places: str, **more: Any) -> FailurePolicy:
    """A policy with these dead message queues, each tried once."""
    given = {"reject_attempts": ATTEMPTS, **more}
    listed = [DeadMsgQueue(shown=name, name=name, attempts=1) for name in places]
    return FailurePolicy(dead_msg_queues=listed, **given)


def linked(failures: FailurePolicy, on_reject: int = BLOCK, **more: Any) -> Any:
    """A pair whose flow stands. `dmq` is the dead message queue of the remote queue, and here."""
    pair = flow_pair.FlowPair(on_reject, queues=dict(QUEUES), window=10, failures=failures, **more)
    pair.edge.queues["#DEAD_MSG_QUEUE"] = ""
    pair.core.queues["#DEAD_MSG_QUEUE"] = ""
    pair.edge.live()
    pair.core.live()
    pair.bridge()
    pair.connect()
    pair.settle()
    return pair


def attempts(pair: Any, count: int) -> None:
    """So many more attempts."""
    for _ in range(count):
        pair.core.wait(RETRY_S)
        pair.settle()


def where(pair: Any) -> dict[str, list[bytes]]:
    """Where messages are, with those of the remote."""
    found = {name: pair.core.contents(name) for name in pair.core.ends}
    remote = {f"remote {name}": pair.edge.contents(name) for name in pair.edge.ends}
    return {name: held for name, held in (found | remote).items() if held}


def said(message: Any) -> dict[str, list[str]]:
    """What a dead letter says, by property."""
    found: dict[str, list[str]] = {}
    for name, text in take_out(message.block, NAMES)[1]:
        found.setdefault(name, []).append(text)
    return found


REST = {"other": [b"2"]}
"""Where the message behind the refused one is."""

REFUSED = {
    ("block", "dead-letter", True): {"buried": [b"1"]},
    ("block", "dead-letter", False): {"remote #DEAD_MSG_QUEUE": [b"1"]},
    ("block", "park", True): {"lot": [b"1"]},
    ("block", "park", False): {"lot": [b"1"]},
    ("block", "skip", True): {},
    ("block", "skip", False): {},
    ("park", "dead-letter", True): {"buried": [b"1"]},
    ("park", "dead-letter", False): {"#DEAD_MSG_QUEUE": [b"1"]},
    ("park", "park", True): {"lot": [b"1"]},
    ("park", "skip", True): {},
    ("skip", "dead-letter", True): {"buried": [b"1"]},
    ("skip", "dead-letter", False): {"remote #DEAD_MSG_QUEUE": [b"1"]},
    ("skip", "stop", True): {"buried": [b"1"]},
}
"""on_reject, then and whether there is a list → where a message is that was refused as often as is tolerated."""


@pytest.mark.parametrize(("on_reject", "then", "listed"), REFUSED)
def test_refused_too_often(on_reject: str, then: str, listed: bool) -> None:
    """After so many refusals, and not before, what `then` says is done; what is behind goes on."""
    failures = policy(*["buried"] * listed, then=then)
    pair = linked(failures, POLICIES[on_reject])
    pair.core.open("in", False)
    pair.publish("t/a")
    pair.publish("t/b")
    pair.settle()
    before = {"block": {"remote out": [b"1", b"2"]}, "park": {**REST, "lot": [b"1"]}}
    for _ in range(ATTEMPTS - 1):
        if on_reject != "skip":
            assert where(pair) == before[on_reject]
        attempts(pair, 1)
    attempts(pair, on_reject == "park")
    expected = REFUSED[on_reject, then, listed]
    assert where(pair) == {**REST, **expected}
    assert pair.taker.held == 0
    # It is done with, at both ends: a restart brings it to no other place.
    pair.kill(pair.core, synced=True)
    pair.connect()
    pair.settle()
    attempts(pair, 1)
    assert where(pair) == {**REST, **expected}


@pytest.mark.parametrize("on_reject", ["block", "park"])
def test_stop(on_reject: str) -> None:
    """The bridge is to stop, for the reason, and the message stays."""
    pair = linked(policy(then="stop"), POLICIES[on_reject])
    pair.core.open("in", False)
    pair.publish("t/a")
    pair.settle()
    attempts(pair, ATTEMPTS)
    told = [why for name, why in pair.here.told if name == "stopped"]
    assert told[0] == "a message was refused 3 times: in: 503 Queue Shutdown"
    pair.cut()
    assert (where(pair).get("remote out") or where(pair).get("lot")) == [b"1"]


def test_room_elsewhere_is_no_attempt() -> None:
    """What tries again because another queue has room says nothing of the message: only time counts."""
    pair = linked(policy("buried"))
    pair.core.open("in", False)
    pair.publish("t/a")
    pair.settle()
    for _ in range(2 * ATTEMPTS):
        pair.taker.retry()
        pair.settle()
    assert where(pair) == {"remote out": [b"1"]}


def test_a_message_that_enters_before_is_forgotten() -> None:
    """Refusals of one message do not count against the next one."""
    pair = linked(policy("buried"))
    for _ in range(3):
        pair.core.open("in", False)
        pair.publish("t/a")
        pair.settle()
        attempts(pair, ATTEMPTS - 2)
        pair.core.open("in", True)
        attempts(pair, 1)
    assert where(pair) == {"in": [b"1", b"2", b"3"]}


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("forged", [True, False])
def test_what_a_dead_letter_says(listed: bool, forged: bool) -> None:
    """Each property once, whether the dead message queue is here or the remote's."""
    pair = linked(policy(*["buried"] * listed, reject_attempts=1))
    pair.core.open("in", False)
    pairs = [("message-id", "id-7"), *[(name, "forged") for name in NAMES] * forged]
    pair.publish("t/a", block=with_user_properties(b"", pairs))
    pair.settle()
    end = pair.core.ends["buried"] if listed else pair.edge.ends["#DEAD_MSG_QUEUE"]
    (row,) = end.browse(0, 10)
    found = said(row.message)
    del found["dead-letter-time"], found["dead-letter-arrival-time"]
    queues = ["forged"] * forged + ["out"] * (not listed)
    assert found.pop("dead-letter-queue", []) == queues
    assert found == {
        "dead-letter-reason": ["in: 503 Queue Shutdown" if listed else "503 Queue Shutdown"],
        "dead-letter-cause": ["refused"],
        "dead-letter-by": ["bridge b"] if listed else [f"bridge {pair.peer.client_name}"],
        "dead-letter-source": ["out"],
        "dead-letter-source-at": ["edge/blue"],
        "dead-letter-topic": ["t/a"],
        "dead-letter-target": ["t/a"],
        "dead-letter-target-at": ["core/red"],
        "dead-letter-message-id": ["id-7"],
    }


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("why", ["too large", "topic"])
def test_what_can_never_enter(listed: bool, why: str) -> None:
    """It is a dead letter here where there is a list, else of the remote queue, under each on_reject."""
    pair = linked(policy(*["buried"] * listed))
    if why == "too large":
        pair.core.vpn.limits.max_msg_size = 10
        pair.publish(payload=bytes(11))
    else:
        pair.core.vpn.limits.max_topic_levels = 2
        pair.publish("t/a/b")
    pair.publish("t/b")
    pair.settle()
    place = "buried" if listed else "remote #DEAD_MSG_QUEUE"
    held = where(pair)
    assert len(held.pop(place)) == 1
    assert held == {"other": [b"2"]}
    end = pair.core.ends["buried"] if listed else pair.edge.ends["#DEAD_MSG_QUEUE"]
    (row,) = end.browse(0, 10)
    cause = {"too large": "msg-too-big", "topic": "topic-parse-error"}[why]
    assert said(row.message)["dead-letter-cause"] == [cause if listed else "refused"]


def test_where_no_dead_message_queue_takes_it() -> None:
    """It stays in the bridge's own queue, over a restart too, and goes when there is one."""
    pair = linked(policy("absent", "shut", reject_attempts=1))
    pair.core.open("in", False)
    pair.publish("t/a")
    pair.publish("t/b")
    pair.settle()
    assert where(pair) == {**REST, "dead": [b"1"]}
    pair.failures = policy("buried")
    pair.kill(pair.core, synced=True)
    pair.settle()
    assert where(pair) == {**REST, "buried": [b"1"]}


def test_a_spool_that_is_down_gives_nothing_up() -> None:
    """It is no fault of the message."""
    pair = linked(policy("buried", reject_attempts=1))
    pair.core.spool.down = "503 Service Unavailable"
    pair.publish("t/a")
    pair.edge.sync()
    pair.to_core()
    assert pair.taker.held == 1
    pair.core.spool.down = ""
    attempts(pair, 1)
    assert where(pair) == {"in": [b"1"]}


EXPIRED = {
    ("deliver", True): {"in": [b"1"]},
    ("discard", True): {},
    ("dead-letter", True): {"buried": [b"1"]},
    ("dead-letter", False): {"remote #DEAD_MSG_QUEUE": [b"1"]},
}


@pytest.mark.parametrize(("what", "listed"), EXPIRED)
@pytest.mark.parametrize("waited", ["in its queue", "here"])
def test_expired_before_it_could_enter(what: str, listed: bool, waited: str) -> None:
    """What is found expired goes where the policy says, and counts by its own reason."""
    pair = linked(policy(*["buried"] * listed, expired=what, reject_attempts=0))
    pair.cut() if waited == "in its queue" else pair.core.open("in", False)
    pair.publish("t/a", expires_ns=pair.edge.now_ns + SECOND_NS)
    pair.settle() if waited == "here" else pair.edge.sync()
    pair.edge.wait(2)
    pair.core.wait(2)
    pair.core.open("in", True)
    if waited == "in its queue":
        pair.connect()
    pair.settle()
    attempts(pair, 1)
    assert where(pair) == EXPIRED[what, listed]
    reasons = [why for name, why in pair.here.told if name in ("discarded", "returned")]
    assert reasons == ["ttl-expired"] * (what != "deliver")


@pytest.mark.parametrize(
    ("what", "place"), [("deliver", "in"), ("discard", ""), ("dead-letter", "buried")]
)
def test_expired_while_it_was_parked(what: str, place: str) -> None:
    """What is parked is looked at when it is tried again."""
    pair = linked(policy("buried", expired=what, reject_attempts=0), PARK)
    pair.core.open("in", False)
    pair.publish("t/a", expires_ns=pair.edge.now_ns + SECOND_NS)
    pair.settle()
    assert where(pair) == {"lot": [b"1"]}
    pair.core.open("in", True)
    attempts(pair, 2)
    assert where(pair) == ({place: [b"1"]} if place else {})


STEPS = {
    "publish": 6,
    "sync edge": 8,
    "seal core": 4,
    "sync core": 6,
    "to core": 8,
    "to edge": 6,
    "connect": 4,
    "cut": 1,
    "kill edge": 1,
    "kill core": 1,
    "shut": 2,
    "open": 1,
    "wait": 4,
}
"""What happens, and how often."""


@pytest.mark.parametrize("on_reject", POLICIES)
@pytest.mark.parametrize("seed", range(20))
def test_once_whatever_breaks(on_reject: str, seed: int) -> None:
    """Whoever dies, wherever the link is cut: each message is in one place, once, be it a dead letter or not."""
    draw = random.Random(seed)
    failures = policy("full", "buried", reject_attempts=2)
    pair = flow_pair.FlowPair(POLICIES[on_reject], queues=dict(QUEUES), window=5, failures=failures)
    steps = {
        "publish": lambda: pair.publish(draw.choice(["t/a", "t/b"])),
        "sync edge": pair.edge.sync,
        "seal core": pair.core.seal,
        "sync core": pair.core.sync,
        "to core": lambda: pair.to_core(draw.randint(1, 6)),
        "to edge": lambda: pair.to_edge(draw.randint(1, 6)),
        "connect": lambda: pair.linked or pair.connect(),
        "cut": pair.cut,
        "kill edge": lambda: pair.kill(pair.edge, synced=draw.random() < 0.5),
        "kill core": lambda: pair.kill(pair.core, synced=draw.random() < 0.5),
        "shut": lambda: pair.core.open("in", False),
        "open": lambda: pair.core.open("in", True),
        "wait": lambda: pair.core.wait(1.1),
    }
    for what in draw.choices(list(STEPS), list(STEPS.values()), k=300):
        steps[what]()
    pair.core.open("in", True)
    if not pair.linked:
        pair.connect()
    for _ in range(6):
        pair.settle()
        pair.core.wait(1.1)
    pair.settle()
    held = where(pair)
    assert held.keys() <= {"in", "other", "buried"}
    found = [int(one) for each in held.values() for one in each]
    assert len(found) == len(set(found))
    assert set(pair.publisher.safe) <= set(found)
    assert pair.core.store.get(pair.key) is None
