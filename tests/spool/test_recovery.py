"""A spool that is opened again."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from vpnrouter import limits
from vpnrouter.errors import SpoolError
from vpnrouter.spool import keys
from vpnrouter.spool.ledger import Ledger
from vpnrouter.spool.record import encode_record
from vpnrouter.spool.recovery import Recovered, Recovery
from vpnrouter.spool.rocks_store import RocksStore
from vpnrouter.spool.segments import SegmentTable, encode_index, encode_segment
from vpnrouter.spool.store import Batch, MemoryStore, Store
from vpnrouter.spool.verify import verify


def store_with(rows: dict[bytes, bytes]) -> MemoryStore:
    """A store with these rows."""
    store = MemoryStore(bytes(16))
    batch = Batch()
    for key, value in rows.items():
        batch.put(key, value)
    store.commit(batch)
    return store


def index(sets: list[list[int]], which: list[int]) -> bytes:
    """An index whose columns tell the messages apart."""
    count = len(which)
    numbers = list(range(count))
    return encode_index(
        numbers, numbers, [9 - number for number in numbers], [0] * count, sets, which
    )


def told(found: Recovered) -> tuple[int, list[int], list[int], list[int]]:
    """What is looked at of a portion."""
    assert len(found.ids) == len(found.sizes) == len(found.priorities) == len(found.expires)
    return found.endpoint, found.ids.tolist(), found.sizes.tolist(), found.lanes.tolist()


def test_whole_and_partly_settled_segments() -> None:
    """Ids ascend per endpoint; columns stand beside their ids."""
    store = store_with(
        {
            keys.index(10): index([[1, 2]], [0, 0, 0]),
            keys.index(20): index([[1], [1, 3], []], [0, 1, 2, 1]),
            keys.settled(1, 10): b"\2",
            keys.settled(1, 20): b"\1",
        }
    )
    table = SegmentTable()
    recovery = Recovery(store, table)
    assert [told(found) for found in recovery.run()] == [
        (1, [10, 12, 21, 23], [0, 2, 1, 3], [9, 7, 8, 6]),
        (2, [10, 11, 12], [0, 1, 2], [9, 8, 7]),
        (3, [21, 23], [1, 3], [8, 6]),
    ]
    assert (recovery.next_id, recovery.spent) == (24, [])
    table.seek(10)
    assert (table.count, table.left, table.parts) == (3, 5, True)
    table.seek(20)
    assert (table.count, table.left, table.parts) == (4, 4, True)


def test_a_bitmap_without_its_segment_settles_nothing() -> None:
    """What is left of a segment that is gone says nothing of the next one."""
    store = store_with({keys.settled(1, 5): b"\3", keys.index(10): index([[1]], [0, 0])})
    assert [told(found)[1] for found in Recovery(store, SegmentTable()).run()] == [[10, 11]]


def test_portions() -> None:
    """Much is handed over in portions, each endpoint's in order."""
    rows = {keys.index(10 * number): index([[1]], [0] * 10) for number in range(1, 8)}
    recovery = Recovery(store_with(rows), SegmentTable(), 25)
    portions = [found.ids.tolist() for found in recovery.run()]
    assert [len(portion) for portion in portions] == [30, 30, 10]
    assert [number for portion in portions for number in portion] == list(range(10, 80))


def test_bodies_are_not_read() -> None:
    """Recovery asks for indexes and bitmaps alone."""
    store = store_with({keys.index(1): index([[1]], [0]), keys.bodies(1): b"not a segment"})
    assert [told(found)[1] for found in Recovery(store, SegmentTable()).run()] == [[1]]


def test_segment_of_which_nothing_is_left() -> None:
    """It is named, and not in the table."""
    store = store_with({keys.index(1): index([[1]], [0, 0]), keys.settled(1, 1): b"\3"})
    table = SegmentTable()
    recovery = Recovery(store, table)
    assert list(recovery.run()) == []
    assert recovery.spent == [1]
    assert len(table) == 0


@pytest.mark.parametrize(
    ("rows", "what"),
    [
        ({keys.index(1): b"x"}, "segment 1"),
        ({keys.index(1): index([[1]], [0, 0]), keys.index(2): index([[1]], [0])}, "segment 2"),
        ({keys.index(1): index([[1]], [0]), keys.settled(1, 1): b"\0\0"}, "bitmap"),
    ],
)
def test_damage(rows: dict[bytes, bytes], what: str) -> None:
    """What cannot be true is refused, and the segment is named."""
    with pytest.raises(SpoolError, match=what) as raised:
        list(Recovery(store_with(rows), SegmentTable()).run())
    assert raised.value.reason == "corrupt"


def test_a_million_messages() -> None:
    """Whole segments are taken as ranges: a start with a million messages takes no time worth telling."""
    units = 2_000
    value = encode_index([256] * 500, [4] * 500, [0] * 500, [0] * 500, [[1]], [0] * 500)
    store = store_with({keys.index(1 + 500 * number): value for number in range(units)})
    begun = time.perf_counter()
    count = sum(len(found.ids) for found in Recovery(store, SegmentTable()).run())
    assert count == 1_000_000
    assert time.perf_counter() - begun < 3.0


RECORD = encode_record(
    b"topic",
    b"payload",
    b"",
    flags=1,
    priority=4,
    expires_ns=0,
    ingress_ns=1,
    message_id=1,
    source_name="me",
)


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


def index_of(sets: list[list[int]], which: list[int]) -> bytes:
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
        lambda batch: batch.put(keys.index(10), index_of([[1]], [0])),
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
        put({keys.index(5): index_of([[1], [1, 2]], [0, 1, 1, 1]), keys.settled(2, 5): b"\1"}),
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
