"""Histories with one broken promise each, and histories that keep all promises."""

import random
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter.testing.history import Event, Fault, History, Kind, check, describe

Step = tuple[Any, ...]

BOTH = ("q", "s")


def written(*steps: Step) -> History:
    """A history from short steps: `("pub", 1)`, `("get", 1, "q")`, `("get", 1, "q", True, 2)` and so on.

    Messages are numbers of producer a, and are for q and s where nothing else is said.
    """
    history = History()
    for verb, number, *rest in steps:
        name = f"a-{number}"
        if verb == "pub":
            targets = rest[0] if rest else BOTH
            history.published(name, producer="a", sequence=number, topic="t", targets=targets)
        elif verb == "again":
            history.resent(name)
        elif verb == "repeat":
            history.repeated(name)
        elif verb == "ack":
            history.acknowledged(name)
        elif verb == "nack":
            history.rejected(name, "0x97")
        elif verb == "get":
            endpoint, redelivered, qos = [*rest, False, 1][:3] if len(rest) < 3 else rest
            history.delivered(name, endpoint=endpoint, redelivered=redelivered, qos=qos)
        elif verb == "done":
            history.consumed(name, endpoint=rest[0])
        elif verb == "settled":
            history.settled(name, endpoint=rest[0])
    return history


def kinds(history: History, **options: Any) -> list[Fault]:
    """The faults found."""
    return [finding.fault for finding in check(history, **options)]


Q = ("q",)

CLEAN: dict[str, list[Step]] = {
    "nothing": [],
    "both get it": [("pub", 1), ("ack", 1), ("get", 1, "q"), ("get", 1, "s")],
    "before the answer": [("pub", 1, Q), ("get", 1, "q"), ("ack", 1)],
    "for nobody": [("pub", 1, ()), ("ack", 1)],
    "rejected, nowhere": [("pub", 1), ("nack", 1)],
    "no answer, nowhere": [("pub", 1)],
    "no answer, everywhere": [("pub", 1), ("get", 1, "q"), ("get", 1, "s")],
    "redelivered": [("pub", 1, Q), ("ack", 1), ("get", 1, "q"), ("get", 1, "q", True)],
    "redelivered at first": [("pub", 1, Q), ("ack", 1), ("get", 1, "q", True)],
    "two copies": [("pub", 1, Q), ("again", 1), ("ack", 1), ("get", 1, "q"), ("get", 1, "q")],
    "two copies at QoS 2": [
        *(("pub", 1, Q), ("again", 1), ("ack", 1)),
        *(("get", 1, "q", False, 2), ("get", 1, "q", False, 2)),
    ],
    "the second copy after the first is settled": [
        *(("pub", 1, Q), ("again", 1), ("ack", 1), ("get", 1, "q"), ("done", 1, "q")),
        *(("settled", 1, "q"), ("get", 1, "q", True)),
    ],
    "consumed, not known to be stored": [
        *(("pub", 1, Q), ("ack", 1), ("get", 1, "q"), ("done", 1, "q"), ("get", 1, "q", True)),
    ],
    "an attempt before the rejected one": [
        *(("pub", 1, Q), ("again", 1), ("nack", 1), ("get", 1, "q")),
    ],
    "an old one redelivered behind a new one": [
        *(("pub", 1, Q), ("pub", 2, Q), ("ack", 1), ("ack", 2)),
        *(("get", 1, "q"), ("get", 2, "q"), ("get", 1, "q", True)),
    ],
    "a gap for what was rejected": [
        *(("pub", 1, Q), ("pub", 2, Q), ("pub", 3, Q), ("ack", 1), ("nack", 2), ("ack", 3)),
        *(("get", 1, "q"), ("get", 3, "q")),
    ],
}

BROKEN: dict[str, tuple[Fault, list[Step]]] = {
    "lost": (Fault.LOSS, [("pub", 1, Q), ("ack", 1)]),
    "lost at one of two": (Fault.LOSS, [("pub", 1), ("ack", 1), ("get", 1, "q")]),
    "twice without the flag": (
        Fault.DUPLICATE,
        [("pub", 1, Q), ("ack", 1), ("get", 1, "q"), ("get", 1, "q")],
    ),
    "twice at QoS 2, with the flag": (
        Fault.DUPLICATE,
        [("pub", 1, Q), ("ack", 1), ("get", 1, "q", False, 2), ("get", 1, "q", True, 2)],
    ),
    "more than its copies": (
        Fault.DUPLICATE,
        [("pub", 1, Q), ("again", 1), ("ack", 1), *[("get", 1, "q")] * 3],
    ),
    "the wrong way round": (
        Fault.REORDER,
        [
            *(("pub", 1, Q), ("pub", 2, Q), ("ack", 1), ("ack", 2)),
            *(("get", 2, "q"), ("get", 1, "q")),
        ],
    ),
    "sent again, and late without a rejection": (
        Fault.REORDER,
        [
            *(("pub", 1, Q), ("pub", 2, Q), ("repeat", 1), ("ack", 1), ("ack", 2)),
            *(("get", 2, "q"), ("get", 1, "q")),
        ],
    ),
    "twice, repeated at QoS 2": (
        Fault.DUPLICATE,
        [("pub", 1, Q), ("repeat", 1), ("ack", 1), ("get", 1, "q"), ("get", 1, "q")],
    ),
    "after it was settled": (
        Fault.RESURRECTION,
        [
            *(("pub", 1, Q), ("ack", 1), ("get", 1, "q"), ("done", 1, "q"), ("settled", 1, "q")),
            ("get", 1, "q", True),
        ],
    ),
    "rejected and everywhere": (
        Fault.RESURRECTION,
        [("pub", 1), ("nack", 1), ("get", 1, "q"), ("get", 1, "s")],
    ),
    "rejected and at one": (Fault.PARTIAL, [("pub", 1), ("nack", 1), ("get", 1, "s")]),
    "no answer and at one": (Fault.PARTIAL, [("pub", 1), ("get", 1, "s")]),
    "never published": (Fault.INVENTION, [("get", 1, "q"), ("done", 1, "q")]),
    "not for here": (
        Fault.INVENTION,
        [("pub", 1, Q), ("ack", 1), ("get", 1, "q"), ("get", 1, "s")],
    ),
}


@pytest.mark.parametrize("steps", CLEAN.values(), ids=CLEAN)
def test_clean_history_passes(steps: list[Step]) -> None:
    """Nothing is found where every promise was kept."""
    assert kinds(written(*steps)) == []


@pytest.mark.parametrize(("fault", "steps"), BROKEN.values(), ids=BROKEN)
def test_fault_is_found(fault: Fault, steps: list[Step]) -> None:
    """One broken promise is one finding of its kind."""
    assert kinds(written(*steps)) == [fault]


def test_each_fault_has_an_example() -> None:
    """No kind of fault is left out above; BALANCE has tests of its own."""
    assert {fault for fault, _ in BROKEN.values()} == set(Fault) - {Fault.BALANCE}


def test_no_order_where_consumers_take_turns() -> None:
    """An endpoint can be left out of the judgement of order, and only of that."""
    _, steps = BROKEN["the wrong way round"]
    assert kinds(written(*steps), unordered=frozenset({"q"})) == []
    assert kinds(written(*steps), unordered=frozenset({"s"})) == [Fault.REORDER]


def test_late_after_a_rejection_that_was_not_heard() -> None:
    """Where the router may reject, what was sent again may come late, and nothing else."""
    sent = [("pub", 1, Q), ("pub", 2, Q), ("ack", 1), ("ack", 2)]
    late = [("get", 2, "q"), ("get", 1, "q")]
    assert kinds(written(*sent, ("repeat", 1), *late), refusing=True) == []
    assert kinds(written(*sent, ("repeat", 2), *late), refusing=True) == [Fault.REORDER]


def test_producers_have_orders_of_their_own() -> None:
    """What one producer sent is not ordered against what another one sent."""
    history = History()
    for producer, sequence in (("a", 1), ("b", 1)):
        name = f"{producer}-{sequence}"
        history.published(name, producer=producer, sequence=sequence, topic="t", targets=("q",))
        history.acknowledged(name)
    for name in ("b-1", "a-1"):
        history.delivered(name, endpoint="q")
    assert check(history) == []


@pytest.mark.parametrize(
    ("steps", "waiting", "found"),
    [
        ([("pub", 1, Q), ("ack", 1)], 1, []),
        ([("pub", 1, Q), ("ack", 1)], 0, [Fault.LOSS, Fault.BALANCE]),
        ([("pub", 1, Q), ("ack", 1)], 2, [Fault.BALANCE]),
        ([("pub", 1, Q), ("ack", 1), ("get", 1, "q")], 0, [Fault.BALANCE]),
        ([("pub", 1, Q), ("ack", 1), ("get", 1, "q"), ("done", 1, "q")], 0, []),
        ([("pub", 1, Q), ("ack", 1), ("get", 1, "q"), ("done", 1, "q")], 1, []),
        (
            [("pub", 1, Q), ("ack", 1), ("get", 1, "q"), ("done", 1, "q"), ("settled", 1, "q")],
            1,
            [Fault.BALANCE],
        ),
        ([("pub", 1, Q), ("again", 1), ("ack", 1)], 2, []),
        ([("pub", 1, Q), ("nack", 1)], 1, [Fault.BALANCE]),
        ([("pub", 1, Q)], 1, []),
        ([("pub", 1), ("ack", 1), ("get", 1, "s")], 1, []),
    ],
)
def test_balance(steps: list[Step], waiting: int, found: list[Fault]) -> None:
    """What is left at an endpoint lies between what is due there and what can be there."""
    assert kinds(written(*steps), waiting={"q": waiting}) == found


@pytest.mark.parametrize("steps", [[("pub", 1), ("pub", 1)], [("ack", 1)], [("again", 1)]])
def test_history_without_sense(steps: list[Step]) -> None:
    """A history that cannot be is the test's own error, not the router's."""
    with pytest.raises(ValueError, match="published"):
        check(written(*steps))


def test_description_tells_the_story() -> None:
    """A failing test shows each finding and what happened to its message."""
    history = written(("pub", 1, Q), ("ack", 1))
    history.noted("cut")
    history.noted("killed")
    assert describe(check(history), history).splitlines() == [
        "1 findings",
        "loss of a-1 at q: acknowledged, never delivered",
        "    published a-1 by a to t for q",
        "    acknowledged a-1",
        "    -- killed",
    ]


# --- generated ------------------------------------------------------------------------------------


def generated(seed: int) -> History:
    """A clean history of 3 to 30 messages: both endpoints, answers of all kinds, redeliveries, settlements."""
    draws = random.Random(seed)
    history = History()
    stored: dict[str, list[str]] = {"q": [], "s": []}
    settled: set[tuple[str, str]] = set()
    for number in range(1, draws.randint(4, 31)):
        name = f"a-{number}"
        # The first one has a full life: there is something to break in every history.
        taken = number == 1 or draws.random() < 0.7
        history.published(name, producer="a", sequence=number, topic="t", targets=BOTH)
        if taken and (number == 1 or draws.random() < 0.8):
            history.acknowledged(name)
        elif not taken:
            history.rejected(name)
        for endpoint, held in stored.items():
            if not taken:
                continue
            held.append(name)
            history.delivered(name, endpoint=endpoint)
            history.consumed(name, endpoint=endpoint)
            again = draws.choice(held)
            if (again, endpoint) not in settled and draws.random() < 0.5:
                history.delivered(again, endpoint=endpoint, redelivered=True)
            if number == 1 or draws.random() < 0.5:
                history.settled(name, endpoint=endpoint)
                settled.add((name, endpoint))
    # The last one is rejected, so that an event of it can be planted.
    history.published("a-99", producer="a", sequence=99, topic="t", targets=BOTH)
    history.rejected("a-99")
    return history


def deliveries(history: History, endpoint: str) -> list[Event]:
    """First deliveries at an endpoint."""
    return [
        each
        for each in history.events
        if each.kind is Kind.DELIVERED and each.party == endpoint and not each.redelivered
    ]


def lose(history: History, draws: random.Random) -> None:
    """Take the deliveries of an acknowledged message at one endpoint away."""
    known = {each.message for each in history.events if each.kind is Kind.ACKNOWLEDGED}
    victim = draws.choice(sorted(known))
    gone = {Kind.DELIVERED, Kind.CONSUMED, Kind.SETTLED}
    history.events[:] = [
        each
        for each in history.events
        if not (each.message == victim and each.party == "q" and each.kind in gone)
    ]


def repeat(history: History, draws: random.Random) -> None:
    """Deliver something again at once, without the flag."""
    event = draws.choice(deliveries(history, "q"))
    history.events.insert(history.events.index(event) + 1, event)


def swap(history: History, draws: random.Random) -> None:
    """Deliver something new before the first one."""
    history.published("a-100", producer="a", sequence=100, topic="t", targets=("q",))
    late = history.events.pop()
    first = history.events.index(deliveries(history, "q")[0])
    history.events[first:first] = [late, Event(Kind.DELIVERED, "a-100", "q")]


def revive(history: History, draws: random.Random) -> None:
    """Deliver the first one again, at the end."""
    history.delivered("a-1", endpoint="q", redelivered=True)


def take_half(history: History, draws: random.Random) -> None:
    """Deliver at one endpoint what was rejected."""
    history.delivered("a-99", endpoint=draws.choice(BOTH))


def invent(history: History, draws: random.Random) -> None:
    """Deliver what nobody published."""
    position = draws.randrange(len(history.events) + 1)
    history.events.insert(position, Event(Kind.DELIVERED, "b-1", draws.choice(BOTH)))


PLANTS: dict[Fault, Callable[[History, random.Random], None]] = {
    Fault.LOSS: lose,
    Fault.DUPLICATE: repeat,
    Fault.REORDER: swap,
    Fault.RESURRECTION: revive,
    Fault.PARTIAL: take_half,
    Fault.INVENTION: invent,
}


@given(st.integers(0, 2**32))
def test_generated_clean_history_passes(seed: int) -> None:
    """No finding in a history that keeps all promises, however it is mixed."""
    assert check(generated(seed)) == []


def names(findings: Iterable[Any]) -> set[Fault]:
    """The kinds of findings."""
    return {finding.fault for finding in findings}


@pytest.mark.parametrize("fault", PLANTS, ids=lambda fault: fault.value)
@given(seed=st.integers(0, 2**32))
def test_planted_fault_is_found(fault: Fault, seed: int) -> None:
    """One fault planted anywhere in a generated history is found, and by its name."""
    history = generated(seed)
    PLANTS[fault](history, random.Random(seed))
    assert fault in names(check(history))
