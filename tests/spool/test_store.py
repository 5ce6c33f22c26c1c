"""What both stores promise."""

import itertools
import threading
from collections.abc import Callable

import pytest

from vpnrouter.errors import SpoolError
from vpnrouter.spool.store import Batch, Store

Make = Callable[..., Batch]


def test_empty_store(store: Store) -> None:
    """Nothing is there, except the store's own row."""
    assert store.get(b"x") is None
    assert [key for key, _ in store.scan(b"") if key != b"#"] == []
    assert len(store.store_id) == 16


def test_commit_puts_and_deletes(store: Store, batch: Make) -> None:
    """A batch changes what it names and nothing else."""
    store.commit(batch({b"a": b"1", b"b": b"2", b"c": b""}))
    store.commit(batch({b"a": b"3"}, (b"b", b"never there")))
    assert (store.get(b"a"), store.get(b"b"), store.get(b"c")) == (b"3", None, b"")


def test_same_batch_twice(store: Store, batch: Make) -> None:
    """A batch tried again changes nothing more."""
    store.commit(batch({b"b": b"0"}))
    made = batch({b"a": b"1"}, (b"b",))
    store.commit(made)
    before = list(store.scan(b""))
    store.commit(made)
    assert list(store.scan(b"")) == before


def test_scan_is_ordered_and_bounded(store: Store, batch: Make) -> None:
    """Keys come in byte order, and only those that begin with the prefix."""
    names = [b"m\x00", b"m\xff", b"m", b"m\x7f\xff", b"n", b"l\xff", b"m\xff\xff\xff"]
    store.commit(batch({name: name[::-1] for name in names}))
    wanted = sorted(name for name in names if name.startswith(b"m"))
    assert list(store.scan(b"m")) == [(name, name[::-1]) for name in wanted]
    assert [key for key, _ in store.scan(b"m\xff")] == [b"m\xff", b"m\xff\xff\xff"]


def test_scan_of_the_highest_prefix(store: Store, batch: Make) -> None:
    """A prefix that no other key can follow has an end too."""
    store.commit(batch({b"\xff\xff": b"1", b"\xfe": b"2", b"\xff": b"3"}))
    assert list(store.scan(b"\xff")) == [(b"\xff", b"3"), (b"\xff\xff", b"1")]


def test_scan_is_of_one_moment(store: Store, batch: Make) -> None:
    """What is committed during a scan is not part of it."""
    store.commit(batch({b"x1": b"", b"x2": b"", b"x3": b""}))
    rows = store.scan(b"x")
    assert next(rows)[0] == b"x1"
    store.commit(batch({b"x25": b"", b"x4": b""}, (b"x3",)))
    assert [key for key, _ in rows] == [b"x2", b"x3"]
    assert [key for key, _ in store.scan(b"x")] == [b"x1", b"x2", b"x25", b"x4"]


def test_reads_beside_commits(store: Store, batch: Make) -> None:
    """One thread reads while another one commits; a row is the old one or the new one."""
    store.commit(batch({b"k%d" % number: b"0" for number in range(50)}))
    failures: list[BaseException] = []

    def commit() -> None:
        try:
            for turn in range(1, 40):
                store.commit(batch({b"k%d" % number: b"%d" % turn for number in range(50)}))
        except BaseException as error:  # noqa: BLE001 - told to the test
            failures.append(error)

    thread = threading.Thread(target=commit)
    thread.start()
    last = 0
    for turn in itertools.count():
        number = int(store.get(b"k%d" % (turn % 50)) or b"-1")
        assert number >= last
        last = number
        rows = list(store.scan(b"k"))
        assert len(rows) == 50
        if not thread.is_alive():
            break
    thread.join()
    assert failures == []
    assert {value for _, value in store.scan(b"k")} == {b"39"}


def test_closed_store_refuses(store: Store, batch: Make) -> None:
    """After `close` everything is refused; closing again is nothing."""
    store.close()
    store.close()
    for ask in (
        lambda: store.get(b"a"),
        lambda: store.scan(b"a"),
        lambda: store.commit(batch({b"a": b"1"})),
    ):
        with pytest.raises(SpoolError) as raised:
            ask()
        assert raised.value.reason == "closed"


def test_batch_knows_its_size() -> None:
    """Bytes of keys and values, and whether there is anything."""
    made = Batch()
    assert made.empty
    made.put(b"ab", b"cde")
    made.delete(b"f")
    assert (made.size, made.empty) == (6, False)


@pytest.mark.parametrize("name", ["commit", "get", "scan", "backup", "close"])
def test_base_does_nothing(name: str) -> None:
    """A store that forgets to say how is noticed."""
    argument = () if name == "close" else (b"",)
    with pytest.raises((AssertionError, TypeError)):
        getattr(Store(), name)(*argument)
