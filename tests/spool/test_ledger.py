"""The ledger, and what a crash leaves of it."""

from collections.abc import Callable

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from vpnrouter.errors import SpoolError
from vpnrouter.spool import keys
from vpnrouter.spool.ledger import Ledger
from vpnrouter.spool.record import encode_record
from vpnrouter.spool.rocks_store import RocksStore
from vpnrouter.spool.store import Batch, MemoryStore, Store
from vpnrouter.spool.verify import verify
from vpnrouter.testing.stores import AFTER, BEFORE, DURING, TornStore

Open = Callable[..., RocksStore]


def add(ledger: Ledger, *endpoints: int, record: bytes = b"record") -> int:
    """Add a message that needs nothing special."""
    return ledger.add(record, len(record), 4, 0, 0, list(endpoints))


def commit(ledger: Ledger, store: Store) -> Batch:
    """Seal the unit and commit it."""
    batch = ledger.seal()
    store.commit(batch)
    return batch


def waiting(store: Store, **bounds: int) -> dict[int, list[int]]:
    """What a start finds, by endpoint."""
    found: dict[int, list[int]] = {}
    for portion in Ledger(store, **bounds).recover():
        found.setdefault(portion.endpoint, []).extend(portion.ids)
    return found


def rows(store: Store) -> list[bytes]:
    """All keys, except the store's own and the lease."""
    return [key for key, _ in store.scan(b"") if key not in {keys.STORE, keys.SECRET, keys.NEXT_ID}]


def test_message_on_its_way(store: Store) -> None:
    """Added, committed, read, settled by one and then by the other: then nothing is left."""
    ledger = Ledger(store)
    assert (ledger.pending, ledger.pending_bytes) == (False, 0)
    number = add(ledger, 1, 2)
    assert ledger.pending
    assert ledger.pending_bytes >= len(b"record")
    commit(ledger, store)
    assert (ledger.pending, ledger.pending_bytes) == (False, 0)
    assert ledger.read(number) == [(number, b"record")]
    assert waiting(store) == {1: [number], 2: [number]}
    ledger.settle(1, number)
    commit(ledger, store)
    assert waiting(store) == {2: [number]}
    ledger.settle(2, number)
    commit(ledger, store)
    assert rows(store) == []
    with pytest.raises(KeyError):
        ledger.read(number)


def test_unit_is_few_rows(store: Store) -> None:
    """Hundreds of messages are two rows and the lease."""
    ledger = Ledger(store)
    numbers = [add(ledger, 1) for _ in range(500)]
    batch = commit(ledger, store)
    assert len(batch.puts) == 3
    assert ledger.read(numbers[250]) == [(number, b"record") for number in numbers]
    for number in numbers:
        ledger.settle(1, number)
    batch = commit(ledger, store)
    assert (batch.puts, len(batch.deletes)) == ([], 2)


def test_settled_before_it_was_stored(store: Store) -> None:
    """A unit whose messages are all settled in it writes the lease alone, once."""
    ledger = Ledger(store)
    for turn in range(2):
        for number in [add(ledger, 1, 2) for _ in range(3)]:
            ledger.settle(2, number)
            ledger.settle(1, number)
        assert ledger.pending
        batch = ledger.seal()
        assert [key for key, _ in batch.puts] == [keys.NEXT_ID][turn:]
        assert batch.deletes == []
        assert batch.empty == (turn == 1)


def test_partly_settled_before_it_was_stored(store: Store) -> None:
    """What others need is written; settling once more later, also after a start, changes nothing."""
    ledger = Ledger(store, hot_segments=0)
    first = add(ledger, 1, 2)
    second = add(ledger, 1)
    third = add(ledger, 2)
    ledger.settle(1, first)
    ledger.settle(1, second)
    commit(ledger, store)
    assert rows(store) == [keys.settled(1, first), keys.index(first), keys.bodies(first)]
    assert ledger.read(third) == [(first, b"record"), (third, b"record")]
    for _ in range(3):
        assert waiting(store) == {2: [first, third]}
        ledger.settle(1, first)
        ledger.settle(1, second)
        assert not ledger.pending
        commit(ledger, store)
    ledger = Ledger(store)
    assert [portion.endpoint for portion in ledger.recover()] == [2]
    ledger.settle(1, first)
    ledger.settle(2, first)
    ledger.settle(2, third)
    commit(ledger, store)
    assert rows(store) == []


def test_unit_of_several_segments(store: Store) -> None:
    """A large unit has several segments; settling finds the right one, before and after it is sealed."""
    ledger = Ledger(store, segment_messages=3)
    numbers = [add(ledger, 1, record=b"%d" % turn) for turn in range(8)]
    ledger.settle(1, numbers[1])
    ledger.settle(1, numbers[4])
    commit(ledger, store)
    assert len(ledger) == 3
    assert ledger.read(numbers[3]) == [(numbers[3], b"3"), (numbers[5], b"5")]
    ledger.settle(1, numbers[7])
    ledger.settle(1, numbers[0])
    commit(ledger, store)
    assert waiting(store) == {1: [numbers[place] for place in (2, 3, 5, 6)]}


def test_settle_between_seal_and_commit(store: Store) -> None:
    """It belongs to the next unit, whatever becomes of this one's commit."""
    ledger = Ledger(store)
    number = add(ledger, 1)
    batch = ledger.seal()
    with pytest.raises(KeyError):
        ledger.read(number)
    ledger.settle(1, number)
    store.commit(batch)
    assert waiting(store) == {1: [number]}
    commit(ledger, store)
    assert rows(store) == []


def test_settling_again(store: Store) -> None:
    """What is settled already, gone, or was never there, changes nothing."""
    ledger = Ledger(store)
    one, other = add(ledger, 1, 2), add(ledger, 1)
    commit(ledger, store)
    for _ in range(3):
        ledger.settle(1, one)
    commit(ledger, store)
    ledger.settle(1, one)
    ledger.settle(1, other + 1)
    assert not ledger.pending
    assert waiting(store) == {1: [other], 2: [one]}
    ledger.settle(1, other)
    ledger.settle(2, one)
    ledger.settle(2, one)
    commit(ledger, store)
    ledger.settle(2, one)
    assert not ledger.pending
    assert rows(store) == []


def test_other_state_goes_with_the_unit(store: Store) -> None:
    """Rows of others are in the same batch; the last change of a key holds."""
    ledger = Ledger(store)
    commit(ledger, store)
    ledger.put(b"t1", b"old")
    ledger.put(b"t1", b"new")
    ledger.put(b"t2", b"x")
    ledger.delete(b"t2")
    ledger.delete(b"t3")
    ledger.put(b"t3", b"y")
    assert ledger.pending
    batch = commit(ledger, store)
    assert batch.puts == [(b"t1", b"new"), (b"t3", b"y")]
    assert batch.deletes == [b"t2"]
    assert ledger.seal().empty


def test_ids_never_come_back(store: Store) -> None:
    """Not after all messages are gone, not after a start, not past the lease."""
    last = 0
    for _ in range(4):
        ledger = Ledger(store, id_lease=5)
        assert list(ledger.recover()) == []
        for _ in range(7):
            number = add(ledger, 1)
            assert number > last
            last = number
            commit(ledger, store)
            ledger.settle(1, number)
            commit(ledger, store)


def test_id_of_a_lost_unit_may_be_used(store: Store) -> None:
    """What was never committed was never told to anybody."""
    lost = add(Ledger(store), 1)
    assert add(Ledger(store), 1) == lost


def test_cold_segments(store: Store) -> None:
    """With state in memory for one segment only, all is as with all in memory."""
    ledger = Ledger(store, segment_messages=2, hot_segments=1)
    numbers = [add(ledger, 1, 2, 3) for _ in range(10)]
    commit(ledger, store)
    for endpoint in (1, 2):
        for number in numbers:
            ledger.settle(endpoint, number)
            commit(ledger, store)
            assert len(ledger._hot) <= 2
    assert waiting(store) == {3: numbers}
    for number in numbers[::-1]:
        ledger.settle(1, number)
        ledger.settle(3, number)
        commit(ledger, store)
    assert rows(store) == []


def test_restart_with_partly_settled_segments(rocks: Open) -> None:
    """Bitmaps are found again on disk, go on to be filled, and are gone in the end."""
    store = rocks()
    ledger = Ledger(store, segment_messages=4)
    numbers = [add(ledger, 1, 2, record=b"%d" % turn) for turn in range(10)]
    commit(ledger, store)
    for number in numbers[:7:2]:
        ledger.settle(1, number)
    commit(ledger, store)
    store.close()
    store = rocks()
    ledger = Ledger(store, segment_messages=4)
    found = {portion.endpoint: portion.ids.tolist() for portion in ledger.recover()}
    assert found == {1: [number for number in numbers if number not in numbers[:7:2]], 2: numbers}
    assert ledger.read(numbers[5])[1] == (numbers[5], b"5")
    for endpoint, mine in found.items():
        for number in mine:
            ledger.settle(endpoint, number)
    commit(ledger, store)
    assert rows(store) == []


def test_segment_without_anything_left_is_cleaned_up() -> None:
    """One more unit takes it away."""
    store = MemoryStore(bytes(16))
    ledger = Ledger(store)
    number = add(ledger, 1)
    batch = commit(ledger, store)
    batch.put(keys.settled(1, number), b"\1")
    store.commit(batch)
    ledger = Ledger(store)
    assert sum(len(portion.ids) for portion in ledger.recover()) == 0
    assert ledger.pending
    commit(ledger, store)
    assert rows(store) == []


def test_damage_is_told() -> None:
    """Missing bodies, a lease that is none, and messages beyond it."""
    store = MemoryStore(bytes(16))
    ledger = Ledger(store)
    number = add(ledger, 1)
    commit(ledger, store)
    commit(ledger, store)
    broken = Batch()
    broken.delete(keys.bodies(number))
    store.commit(broken)
    with pytest.raises(SpoolError, match="missing"):
        ledger.read(number)
    broken.put(keys.NEXT_ID, keys.pack_id(number))
    store.commit(broken)
    with pytest.raises(SpoolError, match="beyond"):
        list(Ledger(store).recover())
    broken.put(keys.NEXT_ID, b"x")
    store.commit(broken)
    with pytest.raises(SpoolError, match="next id"):
        Ledger(store)


ENDPOINTS = st.lists(st.integers(1, 4), min_size=1, max_size=4, unique=True)


class Model:
    """Messages: id → columns and record; who waits for which, who ever did; other rows."""

    def __init__(self) -> None:
        self.messages: dict[int, tuple[int, int, int, int, bytes]] = {}
        self.waiting: set[tuple[int, int]] = set()
        self.members: set[tuple[int, int]] = set()
        self.other: dict[bytes, bytes] = {}

    def copy(self) -> "Model":
        """The same, to be changed apart."""
        made = Model()
        made.messages = dict(self.messages)
        made.waiting = set(self.waiting)
        made.members = set(self.members)
        made.other = dict(self.other)
        return made


class LedgerMachine(RuleBasedStateMachine):
    """A ledger over a store that fails and crashes."""

    @initialize(
        messages=st.integers(1, 5),
        hot=st.integers(0, 3),
        lease=st.integers(1, 6),
        portion=st.integers(1, 10),
    )
    def begin(self, messages: int, hot: int, lease: int, portion: int) -> None:
        """Small bounds, so that all of them are met."""
        self.bounds = (messages, hot, lease, portion)
        self.store = TornStore(bytes(16))
        self.ledger = Ledger(self.store, *self.bounds)
        # What is synced, what is with the batch on its way, what is with the unit being built.
        self.synced = Model()
        self.sealed: tuple[Batch, Model] | None = None
        self.now = Model()
        self.highest_told = 0

    # -- the unit --------------------------------------------------------------------------------

    @rule(
        endpoints=ENDPOINTS,
        columns=st.tuples(
            st.integers(0, 2), st.integers(0, 9), st.integers(0, 1), st.integers(0, 1)
        ),
        payload=st.binary(max_size=5),
        times=st.integers(1, 6),
    )
    def add(
        self, endpoints: list[int], columns: tuple[int, int, int, int], payload: bytes, times: int
    ) -> None:
        """Add messages."""
        record = encode_record(
            b"t",
            payload,
            b"",
            flags=1,
            priority=4,
            expires_ns=0,
            ingress_ns=1,
            message_id=1,
            source_name="me",
        )
        for _ in range(times):
            number = self.ledger.add(record, *columns, endpoints)
            assert number > self.highest_told
            assert number not in self.now.messages
            self.now.messages[number] = (*columns, record)
            mine = {(endpoint, number) for endpoint in endpoints}
            self.now.waiting |= mine
            self.now.members |= mine

    @precondition(lambda self: self.now.waiting)
    @rule(data=st.data(), times=st.integers(1, 8))
    def settle(self, data: st.DataObject, times: int) -> None:
        """Settle what waits, wherever it stands."""
        for _ in range(min(times, len(self.now.waiting))):
            pair = data.draw(st.sampled_from(sorted(self.now.waiting)))
            self.ledger.settle(*pair)
            self.now.waiting.discard(pair)

    @precondition(lambda self: self.now.members - self.now.waiting)
    @rule(data=st.data())
    def settle_again(self, data: st.DataObject) -> None:
        """Settle what was settled before."""
        pair = data.draw(st.sampled_from(sorted(self.now.members - self.now.waiting)))
        self.ledger.settle(*pair)

    @rule(key=st.sampled_from([b"ta", b"tb"]), value=st.none() | st.binary(max_size=3))
    def other(self, key: bytes, value: bytes | None) -> None:
        """Change a row that is not a message's."""
        key = key[:1] + b"v\0" + key[1:]
        if value is None:
            self.ledger.delete(key)
            self.now.other.pop(key, None)
        else:
            record = encode_record(
                b"t",
                value,
                b"",
                flags=1,
                priority=4,
                expires_ns=0,
                ingress_ns=1,
                message_id=1,
                source_name="",
            )
            self.ledger.put(key, record)
            self.now.other[key] = record

    # -- commits ---------------------------------------------------------------------------------

    @precondition(lambda self: self.sealed is None)
    @rule()
    def seal(self) -> None:
        """End the unit."""
        self.sealed = (self.ledger.seal(), self.now.copy())

    @precondition(lambda self: self.sealed is not None)
    @rule(failures=st.lists(st.sampled_from([BEFORE, DURING, AFTER]), max_size=2))
    def commit(self, failures: list[str]) -> None:
        """Commit what was sealed, perhaps only after some attempts."""
        assert self.sealed is not None
        batch, model = self.sealed
        for point in failures:
            self.store.fail_at(point)
            with pytest.raises(SpoolError):
                self.store.commit(batch)
        self.store.commit(batch)
        self.sealed = None
        self.synced = model
        self.highest_told = max([self.highest_told, *model.messages])
        assert verify(self.store) == []

    @rule(during=st.sampled_from(["", BEFORE, DURING, AFTER]), kept=st.integers(0, 1))
    def crash(self, during: str, kept: int) -> None:
        """Lose power: between commits, or in the middle of one."""
        if self.sealed is not None and during:
            batch, model = self.sealed
            self.store.fail_at(during)
            with pytest.raises(SpoolError):
                self.store.commit(batch)
            if during == AFTER or (during == DURING and kept):
                self.synced = model
        self.store = self.store.crash(kept)
        self.ledger = Ledger(self.store, *self.bounds)
        self.sealed = None
        self.now = self.synced.copy()
        self.check_recovered()

    def check_recovered(self) -> None:
        """All that recovery says, and what reading says, is what was synced."""
        found: dict[tuple[int, int], tuple[int, ...]] = {}
        last: dict[int, int] = {}
        for portion in self.ledger.recover():
            rows = zip(
                portion.ids,
                portion.sizes,
                portion.priorities,
                portion.lanes,
                portion.expires,
                strict=True,
            )
            for number, *columns in rows:
                assert number > last.get(portion.endpoint, 0)
                last[portion.endpoint] = number
                found[portion.endpoint, number] = tuple(columns)
        messages = self.synced.messages
        wanted = {pair: messages[pair[1]][:4] for pair in self.synced.waiting}
        assert found == wanted
        assert not self.ledger.pending
        assert verify(self.store) == []

    # -- what always holds -----------------------------------------------------------------------

    @invariant()
    def committed_messages_can_be_read(self) -> None:
        """What is synced and waits, also with this unit, can be read from its segment."""
        for number in {number for _, number in self.now.waiting & self.synced.waiting}:
            assert (number, self.now.messages[number][4]) in self.ledger.read(number)

    @invariant()
    def other_rows(self) -> None:
        """Rows that are not messages' are as synced."""
        assert dict(self.store.scan(b"t")) == self.synced.other


LedgerMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40)


TestLedger = LedgerMachine.TestCase
