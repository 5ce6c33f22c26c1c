from vpnrouter.spool import keys
from vpnrouter.spool.segments import Parts, encode_index
from vpnrouter.spool.store import Batch, MemoryStore


def store_with(*bitmaps: tuple[int, bytes]) -> MemoryStore:
    """A store with segment 10, ten messages for endpoints 1, 2 and 3, and these bitmaps of it."""
    store = MemoryStore(bytes(16))
    batch = Batch()
    batch.put(
        keys.index(10), encode_index([1] * 10, [4] * 10, [0] * 10, [0] * 10, [[1, 2, 3]], [0] * 10)
    )
    for endpoint, value in bitmaps:
        batch.put(keys.settled(endpoint, 10), value)
    store.commit(batch)
    return store


def test_bits() -> None:
    """A bit for each message, set once."""
    store = store_with()
    parts = Parts(10, 10, 30, False)
    assert parts.settle(store, 1, 10)
    assert parts.settle(store, 1, 19)
    assert parts.settle(store, 2, 11)
    assert not parts.settle(store, 1, 19)
    assert parts.left == 27
    batch = Batch()
    parts.write(batch)
    assert parts.written()
    assert sorted(batch.puts) == [(keys.settled(1, 10), b"\1\2"), (keys.settled(2, 10), b"\2\0")]


def test_only_what_changed_is_written() -> None:
    """The bitmap of an endpoint that settled nothing in this unit stays as it is."""
    store = store_with()
    parts = Parts(10, 10, 30, False)
    parts.settle(store, 1, 10)
    parts.settle(store, 2, 10)
    parts.write(Batch())
    parts.written()
    parts.settle(store, 2, 11)
    batch = Batch()
    parts.write(batch)
    assert parts.written()
    assert batch.puts == [(keys.settled(2, 10), b"\3\0")]


def test_erase_deletes_only_what_is_stored() -> None:
    """A bitmap that was never written is never deleted."""
    store = store_with()
    parts = Parts(10, 10, 30, False)
    parts.settle(store, 1, 10)
    parts.write(Batch())
    parts.written()
    parts.settle(store, 2, 10)
    batch = Batch()
    parts.erase(store, batch)
    assert batch.deletes == [keys.bodies(10), keys.index(10), keys.settled(1, 10)]


def test_cold_state_is_read_again() -> None:
    """What was settled and forgotten in memory stays settled, and its bitmap is deleted in the end."""
    store = store_with((1, b"\1\0"), (3, b"\xff\3"))
    parts = Parts(10, 10, 19, True)
    assert not parts.settle(store, 1, 10)
    assert parts.settle(store, 1, 11)
    assert parts.settle(store, 2, 11)
    batch = Batch()
    parts.erase(store, batch)
    gone = [keys.settled(1, 10), keys.settled(3, 10)]
    assert batch.deletes == [keys.bodies(10), keys.index(10), *gone]


def test_cold_state_without_changes() -> None:
    """A segment that may have bitmaps in the store is said to have them until they are known."""
    assert Parts(10, 10, 19, True).written()
    assert not Parts(10, 10, 30, False).written()
