"""What every store does, and what stands in it."""

import contextlib
import itertools
import struct
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter.errors import SpoolError
from vpnrouter.spool import keys
from vpnrouter.spool.record import (
    DEFAULT_PRIORITY,
    Record,
    decode_record,
    encode_rare,
    encode_record,
)
from vpnrouter.spool.store import Batch, MemoryStore, Store

Make = Callable[..., Batch]


def test_empty_store(store: Store) -> None:
    """Nothing is there, except the store's own rows."""
    assert store.get(b"x") is None
    assert [key for key, _ in store.scan(b"") if key not in (b"#", b"y")] == []
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


def test_has_the_id_it_was_given() -> None:
    """Its id is drawn by whoever makes it."""
    assert MemoryStore(b"0123456789abcdef").store_id == b"0123456789abcdef"


def test_has_nothing_to_back_up(tmp_path: Path) -> None:
    """A backup of memory is refused, and leaves no directory."""
    with pytest.raises(SpoolError, match="in memory"):
        MemoryStore(bytes(16)).backup(tmp_path / "backup")
    assert not (tmp_path / "backup").exists()


ONE_OF_EACH = [
    keys.bodies(7),
    keys.index(7),
    keys.settled(3, 7),
    keys.endpoint(3),
    keys.mark(3),
    keys.redeliveries(3, 7),
    keys.outbound(3, 9),
    keys.inbound(3, 9),
    keys.session("v", "c"),
    keys.retained("v", b"t"),
    keys.bridge("v", "b"),
    keys.NEXT_ID,
    keys.STORE,
    keys.SECRET,
]


def test_each_kind_has_a_byte_of_its_own() -> None:
    """No prefix of one kind is that of another."""
    assert len({key[:1] for key in ONE_OF_EACH}) == len(ONE_OF_EACH)


def test_layout() -> None:
    """The bytes of the keys: stores of an earlier day must stay readable."""
    assert [key.hex() for key in ONE_OF_EACH] == [
        "6d0000000000000007",
        "690000000000000007",
        "61000000000000000700000003",
        "6500000003",
        "6b00000003",
        "63000000030000000000000007",
        "70000000030009",
        "71000000030009",
        "73760063",
        "74760074",
        "62760062",
        "6e",
        "23",
        "79",
    ]


@pytest.mark.parametrize("make", [keys.bodies, keys.index])
def test_keys_sort_as_they_count(make: object) -> None:
    """Byte order is number order, over all lengths of a number."""
    assert callable(make)
    numbers = [0, 1, 255, 256, 65_535, 65_536, (1 << 32) - 1, 1 << 32, (1 << 64) - 1]
    made = [make(number) for number in numbers]
    assert made == sorted(made)
    assert [keys.number_of(key) for key in made] == numbers


def test_numbers_come_back() -> None:
    """What was put into a key can be read from it."""
    assert keys.endpoint_of(keys.settled(3, 7)) == 3
    assert keys.number_of(keys.settled(3, 7)) == 7
    assert keys.endpoint_of(keys.redeliveries(3, 7)) == 3
    assert keys.second_of(keys.redeliveries(3, 7)) == 7
    assert keys.second_of(keys.outbound(3, 9)) == 9
    assert keys.unpack_id(keys.pack_id(1 << 60)) == 1 << 60


def test_names_come_back() -> None:
    """A topic may have any bytes; the VPN ends with the first NUL."""
    assert keys.vpn_and_rest(keys.retained("größe", b"a\0b")) == ("größe", b"a\0b")
    assert keys.retained("v", b"t").startswith(keys.of_vpn(keys.RETAINED, "v"))
    assert not keys.retained("vv", b"t").startswith(keys.of_vpn(keys.RETAINED, "v"))


def test_number_that_does_not_fit() -> None:
    """A number is never cut to its field."""
    with pytest.raises(struct.error):
        keys.settled(1 << 32, 1)
    with pytest.raises(struct.error):
        keys.bodies(1 << 64)


U64 = st.integers(0, (1 << 64) - 1)


TIME = st.integers(0, (1 << 63) - 1)


NAME = st.text(st.characters(codec="utf-8"), max_size=40)


def fields(record: Record) -> dict[str, object]:
    """All that a record has."""
    return {name: getattr(record, name) for name in sorted(vars_of(record))}


def vars_of(record: Record) -> list[str]:
    """Names of a record's fields, of either build."""
    return [name for name in dir(record) if not name.startswith("_")]


def encoded(record: Record) -> bytes:
    """The bytes of a record."""
    rare = encode_rare(
        record.hops,
        record.path,
        record.origin_router,
        record.origin_vpn,
        record.origin_ts_ns,
        record.trace_high,
        record.trace_low,
    )
    return encode_record(
        record.topic,
        record.payload,
        record.block,
        flags=record.flags,
        priority=record.priority,
        expires_ns=record.expires_ns,
        ingress_ns=record.ingress_ns,
        message_id=record.message_id,
        source_name=record.source_name,
        rare=rare,
    )


@st.composite
def records(draw: st.DrawFn) -> Record:
    """Any message, with and without each of its parts."""
    record = Record(draw(st.binary(max_size=300)), draw(st.binary(max_size=300)))
    record.block = draw(st.binary(max_size=50))
    record.flags = draw(st.integers(0, 65_535))
    record.priority = draw(st.integers(0, 9))
    record.expires_ns = draw(st.just(0) | TIME)
    record.ingress_ns = draw(TIME)
    record.message_id = draw(U64)
    record.source_name = draw(NAME)
    if draw(st.booleans()):
        record.hops = draw(st.integers(0, 255))
        record.path = draw(st.lists(NAME, max_size=5))
        record.origin_router = draw(NAME)
        record.origin_vpn = draw(NAME)
        record.origin_ts_ns = draw(TIME)
        record.trace_high = draw(U64)
        record.trace_low = draw(U64)
    return record


@given(records())
def test_comes_back(record: Record) -> None:
    """What was encoded is decoded, whatever it is."""
    assert fields(decode_record(encoded(record))) == fields(record)


@given(records(), st.data())
def test_cut_or_changed_record(record: Record, data: st.DataObject) -> None:
    """Damage is a SpoolError or another record, never anything else."""
    whole = encoded(record)
    if data.draw(st.booleans()):
        damaged = whole[: data.draw(st.integers(0, len(whole) - 1))]
    else:
        place = data.draw(st.integers(0, len(whole) - 1))
        changed = bytes([data.draw(st.integers(0, 255))])
        damaged = whole[:place] + changed + whole[place + 1 :]
    # Whatever else is raised fails the test.
    with contextlib.suppress(SpoolError):
        assert isinstance(decode_record(damaged).source_name, str)


def test_plain_message_is_short() -> None:
    """A plain message costs 24 bytes, its topic and its source beside the payload."""
    made = encode_record(
        b"a/b",
        b"x" * 256,
        b"",
        flags=1,
        priority=4,
        expires_ns=0,
        ingress_ns=10**18,
        message_id=5,
        source_name="me",
        rare=b"",
    )
    assert len(made) == 24 + 3 + 2 + 256


def test_defaults() -> None:
    """What a record has that nobody said anything of."""
    record = Record(b"t", b"p")
    assert (record.priority, record.flags, record.path) == (DEFAULT_PRIORITY, 0, [])
    assert fields(decode_record(encoded(record))) == fields(record)


@pytest.mark.parametrize(
    ("at", "value"),
    [(0, b"x" * 65_536), (3, 65_536), (3, -1), (4, 10), (4, -1), (7, 1 << 64), (7, -1)],
)
def test_field_out_of_range(at: int, value: object) -> None:
    """Nothing is cut to fit."""
    arguments: list[object] = [b"t", b"p", b"", 0, 4, 0, 1, 1, "me"]
    arguments[at] = value
    with pytest.raises(OverflowError):
        encode_record(*arguments)  # type: ignore[arg-type]


def test_longest_topic_and_source() -> None:
    """Both have 16 bits of length; a source is cut at the end of a character."""
    made = decode_record(
        encode_record(
            b"t" * 65_535,
            b"",
            b"",
            flags=0,
            priority=4,
            expires_ns=0,
            ingress_ns=1,
            message_id=1,
            source_name="é" * 40_000,
        )
    )
    assert made.topic == b"t" * 65_535
    assert made.source_name == "é" * 32_767


def test_rare_part_has_a_bound() -> None:
    """A path beyond 64 KiB, or a number beyond its field, is refused."""
    with pytest.raises(OverflowError):
        encode_rare(1, ["x" * 255] * 257, "", "", 0, 0, 0)
    with pytest.raises(OverflowError):
        encode_rare(256, [], "", "", 0, 0, 0)
    assert encode_rare(0, [], "", "", 0, 0, 0) == b""
