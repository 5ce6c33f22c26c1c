from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vpnrouter import limits
from vpnrouter.bridges.received_positions import (
    AcceptedPositions,
    PositionSet,
    ReceivedPositions,
    decode_positions,
)
from vpnrouter.core.guaranteed.spool import Spool
from vpnrouter.core.router import Router
from vpnrouter.errors import SpoolError
from vpnrouter.spool.ledger import Ledger
from vpnrouter.spool.store import MemoryStore
from vpnrouter.trace.recorder import Recorder

NEAR = st.integers(0, 30)
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("add"), NEAR, st.just(1)),
        st.tuples(st.just("remove"), NEAR, st.integers(1, 12)),
    ),
    max_size=60,
)


def filled(*positions: int) -> PositionSet:
    """A set with these positions."""
    out = PositionSet()
    for position in positions:
        out.add(position)
    return out


@settings(max_examples=400, deadline=None)
@given(CHANGES)
def test_a_set_of_ranges_is_a_set(changes: list[tuple[str, int, int]]) -> None:
    """Whatever comes and goes: the same members as a plain set, in ranges that are apart and ascending."""
    positions = PositionSet()
    model: set[int] = set()
    for what, first, count in changes:
        if what == "add":
            assert positions.add(first) == (first not in model)
            model.add(first)
        else:
            span = set(range(first, first + count))
            assert positions.remove(first, count) == len(model & span)
            model -= span
        assert positions.count == len(model)
        assert [n for n in range(45) if n in positions] == sorted(model)
        ranges = positions.ranges()
        assert all(a + n < b for (a, n), (b, _) in pairwise(ranges))


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(
        st.tuples(st.binary(min_size=16, max_size=16), st.text(max_size=20)),
        st.sets(st.one_of(NEAR, st.integers(2**64 - 30, 2**64 - 1)), min_size=1, max_size=20),
        max_size=limits.LINK_FLOW_STORES,
    )
)
def test_what_was_stored_is_read_again(sets: dict[tuple[bytes, str], set[int]]) -> None:
    """Stores, queues and positions come back as they were."""
    accepted = ReceivedPositions()
    for (store_id, queue), members in sets.items():
        positions = accepted.of(store_id, queue)
        for position in members:
            positions.add(position)
    again = decode_positions(accepted.encode())
    assert again.encode() == accepted.encode()
    for (store_id, queue), members in sets.items():
        found = again.of(store_id, queue)
        assert found.count == len(members)
        assert all(position in found for position in members)


def test_nothing_accepted_takes_no_room() -> None:
    """An empty set is no value at all, so the key can go."""
    accepted = ReceivedPositions()
    accepted.of(b"s" * 16, "q").add(1)
    accepted.of(b"s" * 16, "q").remove(1, 1)
    assert accepted.encode() == b""
    assert decode_positions(b"").encode() == b""


def test_bind_names_its_own_queue() -> None:
    """What was accepted from another queue, or all settled, is not named."""
    accepted = ReceivedPositions()
    accepted.of(b"a" * 16, "q").add(1)
    accepted.of(b"a" * 16, "other").add(2)
    accepted.of(b"b" * 16, "q").add(3)
    accepted.of(b"c" * 16, "q")
    accepted.of(b"d" * 16, "other").add(4)
    assert accepted.named("q") == {b"a" * 16: [(1, 1)], b"b" * 16: [(3, 1)]}


def test_bind_names_no_more_than_a_frame_may() -> None:
    """Beyond LINK_FLOW_POSITIONS the store used longest ago is left out, but not forgotten."""
    accepted = ReceivedPositions()
    accepted.of(b"a" * 16, "q").fill(1, 2)
    accepted.of(b"b" * 16, "q").fill(1, limits.LINK_FLOW_POSITIONS - 1)
    assert list(accepted.named("q")) == [b"b" * 16]
    assert 2 in accepted.of(b"a" * 16, "q")


def test_limit_of_stores() -> None:
    """Beyond LINK_FLOW_STORES one goes: one with nothing in it, else the one used longest ago."""
    accepted = ReceivedPositions()
    for n in range(limits.LINK_FLOW_STORES):
        accepted.of(bytes([n]) * 16, "q").add(n)
    accepted.of(b"\0" * 16, "q")
    accepted.of(b"x" * 16, "q").add(99)
    assert set(accepted.named("q")) == {bytes([n]) * 16 for n in (0, *range(2, 8))} | {b"x" * 16}
    accepted.of(b"x" * 16, "q").remove(99, 1)
    accepted.of(b"y" * 16, "q").add(1)
    assert b"x" * 16 not in accepted.named("q")
    assert b"\2" * 16 in accepted.named("q")


@pytest.mark.parametrize(
    "value",
    [
        b"\2",
        b"\1" + b"s" * 15,
        b"\1" + b"s" * 16 + b"\1q",
        b"\1" + b"s" * 16 + b"\1q\x09" + bytes(8),
        b"\1" + b"s" * 16 + b"\1q\x09" + bytes(9),
        b"\1" + b"s" * 16 + b"\1\xff\x09" + bytes(8) + b"\1",
        b"\1" + b"s" * 16 + b"\1q\x12" + bytes(8) + b"\1" + bytes(8) + b"\1",
    ],
)
def test_a_damaged_value_is_told(value: bytes) -> None:
    """Bytes that encode did not make are a SpoolError, never a guess."""
    with pytest.raises(SpoolError):
        decode_positions(value)


# -- taken -----------------------------------------------------------------------------------------


STORE = b"s" * 16
KEY = b"bvpn\0bridge"


def test_written_with_the_unit_and_only_when_it_changed() -> None:
    """What is added is in the store after the commit, what is forgotten is not, and no change writes nothing."""
    store = MemoryStore(STORE)
    spool = Spool(Router("r", 1, Recorder()).context, Ledger(store))
    taken = AcceptedPositions(spool, KEY, ReceivedPositions())

    def commit() -> ReceivedPositions:
        taken.write()
        batch = spool.end_round()
        if batch is not None:
            store.commit(batch)
            spool.committed()
        return decode_positions(store.get(KEY) or b"")

    assert not taken.is_open
    taken.open(STORE, "q", [])
    for position in (5, 6, 9):
        taken.add(position)
    assert taken.is_open
    assert (taken.count, taken.has(6), taken.has(7)) == (3, True, False)
    assert commit().named("q") == {STORE: [(5, 2), (9, 1)]}
    taken.write()
    assert spool.end_round() is None
    taken.forget([(5, 2), (100, 3)])
    taken.close()
    assert (taken.count, taken.has(9)) == (0, False)
    assert commit().named("q") == {STORE: [(9, 1)]}
    # What the sender says that it has settled is forgotten when the flow stands again.
    taken.open(STORE, "q", [(9, 1)])
    assert taken.count == 0
    commit()
    assert store.get(KEY) is None
