"""A sound store gives no finding; each kind of damage gives its own."""

from collections.abc import Callable
from pathlib import Path

import pytest

from vpnrouter import limits
from vpnrouter.spool import keys
from vpnrouter.spool.ledger import Ledger
from vpnrouter.spool.record import encode_record
from vpnrouter.spool.rocks_store import RocksStore
from vpnrouter.spool.segments import encode_index, encode_segment
from vpnrouter.spool.store import Batch, MemoryStore, Store
from vpnrouter.spool.verify import verify

RECORD = encode_record(b"topic", b"payload", b"", 1, 4, 0, 1, 1, "me")


def filled(store: Store) -> Ledger:
    """A store with three segments: 1 to 4, 5 to 8 (2 has settled 5), 9 to 10, and something of each kind."""
    ledger = Ledger(store, segment_messages=4)
    for _ in range(10):
        ledger.add(RECORD, 7, 4, 0, 0, [1, 2])
    store.commit(ledger.seal())
    ledger.settle(2, 5)
    ledger.put(keys.endpoint(1), b"{}")
    ledger.put(keys.mark(1), keys.pack_id(3))
    ledger.put(keys.redeliveries(1, 3), b"\0\1")
    ledger.put(keys.outbound(1, 7), b"")
    ledger.put(keys.outbound(1, 8), keys.pack_id(4))
    ledger.put(keys.inbound(1, 7), b"")
    ledger.put(keys.session("v", "c"), b"{}")
    ledger.put(keys.retained("v", b"topic"), RECORD)
    ledger.put(keys.bridge("v", "b"), b"")
    store.commit(ledger.seal())
    return ledger


def test_sound_store(store: Store) -> None:
    """Nothing is found, in an empty store and in one with something of everything."""
    assert verify(store) == []
    filled(store)
    assert verify(store) == []


def test_nothing_is_changed(store: Store) -> None:
    """It only looks."""
    filled(store)
    before = list(store.scan(b""))
    verify(store)
    assert list(store.scan(b"")) == before


def index(sets: list[list[int]], which: list[int]) -> bytes:
    """An index."""
    zeros = [0] * len(which)
    return encode_index(zeros, zeros, zeros, zeros, sets, which)


def put(rows: dict[bytes, bytes]) -> Callable[[Batch], None]:
    """Puts several rows."""

    def change(batch: Batch) -> None:
        for key, value in rows.items():
            batch.put(key, value)

    return change


def delete(*gone: bytes) -> Callable[[Batch], None]:
    """Deletes several rows."""

    def change(batch: Batch) -> None:
        for key in gone:
            batch.delete(key)

    return change


DAMAGE: dict[str, tuple[Callable[[Batch], None], str]] = {
    "bodies gone": (
        lambda batch: batch.delete(keys.bodies(5)),
        "segment 5: an index without bodies",
    ),
    "index gone": (lambda batch: batch.delete(keys.index(1)), "segment 1: bodies without an index"),
    "index and bodies gone": (
        delete(keys.index(5), keys.bodies(5)),
        "segment 5: a bitmap without an index",
    ),
    "index damaged": (lambda batch: batch.put(keys.index(1), b"x"), "segment 1: the index"),
    "bodies damaged": (
        lambda batch: batch.put(keys.bodies(1), b"x"),
        "segment 1: a segment is cut",
    ),
    "body missing": (
        lambda batch: batch.put(keys.bodies(9), encode_segment([RECORD])),
        "segment 9: 1 bodies for 2 messages",
    ),
    "body empty": (
        lambda batch: batch.put(keys.bodies(9), encode_segment([RECORD, b""])),
        "message 10: no body",
    ),
    "record damaged": (
        lambda batch: batch.put(keys.bodies(9), encode_segment([RECORD, b"?"])),
        "message 10: a spooled message is cut short",
    ),
    "overlap": (
        lambda batch: batch.put(keys.index(10), index([[1]], [0])),
        "segment 10: begins before",
    ),
    "lease gone": (lambda batch: batch.delete(keys.NEXT_ID), "the next id lies below"),
    "lease too low": (
        lambda batch: batch.put(keys.NEXT_ID, keys.pack_id(10)),
        "the next id lies below",
    ),
    "bitmap too long": (
        lambda batch: batch.put(keys.settled(2, 5), b"\1\0"),
        "segment 5, endpoint 2: the bitmap has 2 bytes for 4 messages",
    ),
    "bitmap of a stranger": (
        lambda batch: batch.put(keys.settled(3, 5), b"\1"),
        "segment 5, endpoint 3: a bitmap of an endpoint that has no message there",
    ),
    "bitmap beyond": (
        lambda batch: batch.put(keys.settled(2, 5), b"\x11"),
        "segment 5, endpoint 2: messages are settled that it never had",
    ),
    "bitmap with a neighbour's message": (
        put({keys.index(5): index([[1], [1, 2]], [0, 1, 1, 1]), keys.settled(2, 5): b"\1"}),
        "segment 5, endpoint 2: messages are settled that it never had",
    ),
    "all settled": (
        put({keys.settled(each, 5): b"\x0f" for each in (1, 2)}),
        "segment 5: all of it is settled",
    ),
    "unknown kind": (lambda batch: batch.put(b"?", b""), "key 3f: of no known kind"),
    "key too long": (lambda batch: batch.put(keys.endpoint(1) + b"x", b""), "wrong length"),
    "index key too long": (
        lambda batch: batch.put(keys.settled(2, 5) + b"x", b"\1"),
        "wrong length",
    ),
    "no message VPN": (lambda batch: batch.put(keys.SESSION + b"x", b""), "no message VPN"),
    "retained damaged": (
        lambda batch: batch.put(keys.retained("v", b"topic"), b"x"),
        "retained message b'v\\x00topic'",
    ),
    "mark damaged": (lambda batch: batch.put(keys.mark(1), b"x"), "its value has 1 bytes"),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_damage_is_found(what: str) -> None:
    """Each damage has a line of its own."""
    store = MemoryStore(bytes(16))
    filled(store)
    change, line = DAMAGE[what]
    batch = Batch()
    change(batch)
    store.commit(batch)
    found = verify(store)
    assert any(line in each for each in found), found


def test_findings_are_bounded() -> None:
    """A store full of damage gives as many lines as one can read."""
    store = MemoryStore(bytes(16))
    batch = Batch()
    for number in range(limits.SPOOL_FINDINGS + 10):
        batch.put(b"?%d" % number, b"")
    store.commit(batch)
    found = verify(store)
    assert len(found) == limits.SPOOL_FINDINGS
    assert found[-1] == "there are more findings"


def test_backup_is_sound(tmp_path: Path) -> None:
    """A copy made while messages come and go is a sound store with the same messages."""
    store = RocksStore(tmp_path / "spool")
    ledger = filled(store)
    store.backup(tmp_path / "copy")
    for number in range(1, 11):
        ledger.settle(1, number)
        ledger.settle(2, number)
    store.commit(ledger.seal())
    store.close()
    copy = RocksStore(tmp_path / "copy", create=False)
    assert verify(copy) == []
    found = {portion.endpoint: portion.ids.tolist() for portion in Ledger(copy).recover()}
    assert found == {1: list(range(1, 11)), 2: [1, 2, 3, 4, 6, 7, 8, 9, 10]}
    copy.close()
