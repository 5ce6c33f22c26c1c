"""Whatever happens to commits, the ledger knows after a start what was acknowledged, and nothing else."""

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from vpnrouter.errors import SpoolError
from vpnrouter.spool.ledger import Ledger
from vpnrouter.spool.record import encode_record
from vpnrouter.spool.store import Batch
from vpnrouter.spool.verify import verify
from vpnrouter.testing.stores import AFTER, BEFORE, DURING, TornStore

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
        record = encode_record(b"t", payload, b"", 1, 4, 0, 1, 1, "me")
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
            record = encode_record(b"t", value, b"", 1, 4, 0, 1, 1, "")
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
