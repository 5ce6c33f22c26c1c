"""The double loses, fails and waits as it is told, and tells the truth about what is synced."""

import threading

import pytest

from vpnrouter.errors import SpoolError
from vpnrouter.spool.store import Batch
from vpnrouter.testing.stores import AFTER, BEFORE, DURING, POINTS, TornStore


def batch_of(key: bytes, value: bytes = b"1", delete: bytes = b"") -> Batch:
    """A batch with one row."""
    batch = Batch()
    batch.put(key, value)
    if delete:
        batch.delete(delete)
    return batch


def rows(store: TornStore) -> dict[bytes, bytes]:
    """What is there."""
    return dict(store.scan(b""))


def test_returned_commit_survives() -> None:
    """Synced is synced, whatever is kept."""
    store = TornStore(bytes(16))
    store.commit(batch_of(b"a"))
    store.commit(batch_of(b"b", delete=b"a"))
    assert (store.commits, store.unsynced) == (2, 0)
    after = store.crash()
    assert rows(after) == {b"b": b"1"}
    assert after.store_id == store.store_id


@pytest.mark.parametrize(
    ("point", "kept", "there"),
    [(BEFORE, 1, False), (DURING, 0, False), (DURING, 1, True), (AFTER, 0, True)],
)
def test_crash_in_a_commit(point: str, kept: int, there: bool) -> None:
    """A commit that has not returned may be there or not, and only as the whole batch."""
    store = TornStore(bytes(16), {b"old": b""})
    store.fail_at(point, "full")
    with pytest.raises(SpoolError) as raised:
        store.commit(batch_of(b"a", delete=b"old"))
    assert raised.value.reason == "full"
    assert rows(store.crash(kept)) == ({b"a": b"1"} if there else {b"old": b""})


@pytest.mark.parametrize("point", POINTS)
def test_same_batch_again(point: str) -> None:
    """After an error the same batch can be committed."""
    store = TornStore(bytes(16))
    store.fail_at(point, times=2)
    for _ in range(2):
        with pytest.raises(SpoolError, match=point):
            store.commit(batch_of(b"a"))
    store.commit(batch_of(b"a"))
    assert store.reached[-3:] == [BEFORE, DURING, AFTER]
    assert rows(store.crash()) == {b"a": b"1"}


@pytest.mark.parametrize("survives", [False, True])
def test_other_batch_after_a_failed_one(survives: bool) -> None:
    """The failed one is there or not, as it was told."""
    store = TornStore(bytes(16))
    store.failed_survives = survives
    store.fail_at(DURING)
    with pytest.raises(SpoolError):
        store.commit(batch_of(b"a"))
    assert rows(store) == {}
    store.commit(batch_of(b"b"))
    assert (b"a" in rows(store)) == survives


def test_full() -> None:
    """Room runs out, and comes back."""
    store = TornStore(bytes(16))
    store.space(5)
    store.commit(batch_of(b"a"))
    store.commit(batch_of(b"b"))
    with pytest.raises(SpoolError) as raised:
        store.commit(batch_of(b"c"))
    assert raised.value.reason == "full"
    store.space(None)
    store.commit(batch_of(b"c"))
    assert len(rows(store)) == 3


@pytest.mark.parametrize(("point", "seen"), [(BEFORE, False), (DURING, False), (AFTER, True)])
def test_stalled_commit(point: str, seen: bool) -> None:
    """A commit waits in its thread; reads go on and see what is synced; then it ends."""
    store = TornStore(bytes(16))
    store.stall_at(point)
    thread = threading.Thread(target=store.commit, args=(batch_of(b"a"),))
    thread.start()
    store.wait_for_stall()
    assert (store.get(b"a") is not None) == seen
    assert store.commits == 0
    store.go_on()
    thread.join()
    assert (store.get(b"a"), store.commits) == (b"1", 1)


def test_crash_ends_a_stalled_commit() -> None:
    """Whoever waits is told, and the store refuses everything from then on."""
    store = TornStore(bytes(16))
    store.stall_at(DURING)
    raised: list[str] = []

    def commit() -> None:
        try:
            store.commit(batch_of(b"a"))
        except SpoolError as error:
            raised.append(error.reason)

    thread = threading.Thread(target=commit)
    thread.start()
    store.wait_for_stall()
    after = store.crash(1)
    thread.join()
    assert raised == ["closed"]
    assert rows(after) == {b"a": b"1"}
    for ask in (lambda: store.get(b"a"), lambda: store.scan(b""), lambda: store.commit(Batch())):
        with pytest.raises(SpoolError):
            ask()


def test_nobody_stalls() -> None:
    """Waiting for a commit that never comes ends."""
    store = TornStore(bytes(16))
    store.stall_at(AFTER)
    with pytest.raises(TimeoutError, match="after"):
        store.wait_for_stall(0.01)
