"""Trace files and their columns."""

import datetime as dt
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter import limits
from vpnrouter.trace import events, schema
from vpnrouter.trace.events import EVENT_NAMES
from vpnrouter.trace.parquet import PartFile, by_date, open_for_writing, partition_value, table
from vpnrouter.trace.recorder import Block, Context, Recorder
from vpnrouter.trace.schema import (
    BUFFER_FULL,
    COLUMNS,
    DISK_FULL,
    FILE_COLUMNS,
    INTERNAL_ERROR,
    IO_ERROR,
    PERMISSION,
    PROCESS_ENDED,
    VERSION,
    VERSION_KEY,
    context_of,
    file_metadata,
)

Row = dict[str, Any]


Record = tuple[Context, tuple[int, bytes, int, int, int, int, int, int]]


DAY_NS = 86_400 * 10**9


NOON_NS = 20_000 * DAY_NS + DAY_NS // 2


TEXTS = st.sampled_from(["", "blue", "edge/blue>core/yellow", "ü☃", "403 Publish ACL Denied"])


CONTEXTS = st.builds(
    Context,
    event=st.integers(0, len(events.EVENT_NAMES) - 1),
    vpn=TEXTS,
    mode=st.integers(0, 2),
    client=TEXTS,
    endpoint=TEXTS,
    bridge=TEXTS,
    peer_router=TEXTS,
    peer_vpn=TEXTS,
    hops=st.integers(0, 8),
    path=TEXTS,
    reason=TEXTS,
    origin_router=TEXTS,
    origin_vpn=TEXTS,
    topic_syntax=st.sampled_from(["", "mqtt", "smf"]),
    partition=st.sampled_from([-1, 0, 7]),
    parent_span_id=st.sampled_from(["", "00f067aa0ba902b7"]),
)


NUMBERS = st.tuples(
    st.integers(NOON_NS - DAY_NS, NOON_NS + DAY_NS),
    st.sampled_from([b"", b"a/b", "ü/☃".encode(), b"a" * 300]),
    st.sampled_from([0, 1, 2**64 - 1]) | st.integers(0, 2**64 - 1),
    st.sampled_from([0, 1, 2**64 - 1]) | st.integers(0, 2**64 - 1),
    st.sampled_from([0, 1, 2**63 - 1]) | st.integers(0, 2**63 - 1),
    st.integers(-1, 300_000_000),
    st.integers(-1, 10**12),
    st.sampled_from([-1, 0]) | st.integers(1, NOON_NS),
)


def block_of(records: list[Record]) -> Block:
    """One block with the records."""
    recorder = Recorder(max(1, len(records)), 1)
    for context, (ts, topic, *numbers) in records:
        recorder.record(context, ts, topic, *numbers)
    recorder.cut()
    (block,) = recorder.take()
    return block


def expected(context: Context, numbers: tuple[Any, ...]) -> Row:
    """The row of one record, column by column, as docs/traces.md has it."""
    ts, topic, high, low, message_id, size, since, origin = numbers
    message = events.EVENT_NAMES[context.event] not in {
        "link_up",
        "link_down",
        "subscribe",
        "unsubscribe",
        "link_rejected",
    }
    return {
        "ts_ns": ts,
        "vpn": context.vpn or None,
        "event": events.EVENT_NAMES[context.event],
        "trace_id": f"{high:016x}{low:016x}" if message and (high or low) else None,
        "message_id": message_id if message and message_id and (high or low) else None,
        "topic": topic.decode() or None,
        "mode": events.MODE_NAMES[context.mode] if message else None,
        "size_bytes": size if message and size >= 0 else None,
        "client": context.client or None,
        "endpoint": context.endpoint or None,
        "bridge": context.bridge or None,
        "peer_router": context.peer_router or None,
        "peer_vpn": context.peer_vpn or None,
        "hops": context.hops if message else None,
        "path": context.path or None,
        "reason": context.reason or None,
        "since_ingress_ns": since if message and since >= 0 else None,
        "origin_router": context.origin_router or None,
        "origin_vpn": context.origin_vpn or None,
        "origin_ts_ns": origin if message and origin > 0 else None,
        "count": message_id if message and message_id and not (high or low) else None,
        "partition": context.partition if context.partition >= 0 else None,
        "topic_syntax": context.topic_syntax or None,
        "parent_span_id": context.parent_span_id or None,
    }


@given(
    contexts=st.lists(CONTEXTS, min_size=1, max_size=5),
    picks=st.lists(st.tuples(st.integers(0, 4), NUMBERS), min_size=1, max_size=40),
)
def test_every_column_survives_the_file(
    contexts: list[Context],
    picks: list[tuple[int, tuple[Any, ...]]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """What pyarrow reads from the file is what was recorded, in order, with the schema's types."""
    records = [(contexts[pick % len(contexts)], numbers) for pick, numbers in picks]
    folder = tmp_path_factory.mktemp("trace")
    part = PartFile(folder, "part-1-1.parquet", {"key": "value ü"}, open_for_writing)
    part.write(table(block_of(records), "edge"))
    part.publish()
    file = pq.ParquetFile(folder / "part-1-1.parquet")
    read = file.read()
    rows = [expected(context, numbers) for context, numbers in records]
    known: set[int] = set()
    for row in rows:
        row["context"] = context_of([{"router": "edge", **row}[name] for name in schema.CONTEXT])
        is_first = row["context"] not in known
        row["in_full"] = is_first or row["event"] in EVENT_NAMES[events.FIRST_WITHOUT_MESSAGE :]
        known.add(row["context"])
    assert read.to_pylist() == rows
    assert file.metadata.metadata[b"key"].decode() == "value ü"
    assert [(f.name, str(f.type), f.nullable) for f in read.schema] == [
        (c.name, c.type, c.nullable) for c in schema.FILE_COLUMNS
    ]


def test_the_first_row_of_each_context_is_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once in a file, over tables; again where the writer has forgotten it. Contexts of alike values are one."""
    blue, red = Context(events.DELIVER, "blue", client="c"), Context(events.DELIVER, "red")
    same = Context(events.DELIVER, "blue", client="c", parent_span_id="00f067aa0ba902b7")

    def marks(name: str, *tables: list[Context]) -> list[bool]:
        part = PartFile(tmp_path, name, {}, open_for_writing)
        for contexts in tables:
            records = [(context, (1, b"t", 1, 1, 1, 1, 1, 1)) for context in contexts]
            part.write(table(block_of(records), "edge"))
        part.publish()
        found: list[bool] = pq.read_table(tmp_path / name)["in_full"].to_pylist()
        return found

    assert marks("one", [red, blue, red], [same, blue, red]) == [True, True, *[False] * 4]
    assert marks("two", [blue, blue]) == [True, False]
    monkeypatch.setattr(limits, "TRACE_FILE_CONTEXTS", 1)
    assert marks("three", [red, blue, red], [blue], [blue]) == [True, True, False, True, False]


def test_a_context_is_the_documented_hash() -> None:
    """A number that another program made of the same values as docs/traces.md says."""
    values = ["edge", "blue", "deliver", "direct", "c"] + [None] * 4 + [0] + [None] * 6
    assert context_of(values) == 0xDD3165DAC2AD011


def take(recorder: Recorder, context: Context, ts_ns: int, since_ingress_ns: int) -> None:
    """Record an event of a message so long after its entry."""
    recorder.record(
        context,
        ts_ns,
        b"t",
        trace_high=1,
        trace_low=1,
        message_id=1,
        size=1,
        since_ingress_ns=since_ingress_ns,
        origin_ts_ns=5,
    )


def test_sends_of_a_round_move_on_to_its_flush() -> None:
    """Deliver and bridge_send get the time of the flush and the wait until then; others do not."""
    recorder = Recorder(3, 9)
    known = [(event, Context(event, "blue")) for event in range(events.FIRST_WITHOUT_MESSAGE)]
    before = Context(events.DELIVER, "blue")
    take(recorder, before, 900, 7)
    recorder.begin_round()
    for _, context in known:
        take(recorder, context, 1000, 50)
    take(recorder, before, 1000, events.UNKNOWN)
    recorder.end_round(1234)
    take(recorder, before, 2000, 8)
    recorder.cut()
    rows = [row for block in recorder.take() for row in table(block, "edge").to_pylist()]
    times = [(row["event"], row["ts_ns"], row["since_ingress_ns"]) for row in rows]
    moved = {"deliver", "bridge_send"}
    assert times == [
        ("deliver", 900, 7),
        *[
            (name, 1234, 284) if name in moved else (name, 1000, 50)
            for name in events.EVENT_NAMES[: events.FIRST_WITHOUT_MESSAGE]
        ],
        ("deliver", 1234, None),
        ("deliver", 2000, 8),
    ]


def test_a_clock_set_back_within_a_round_makes_no_negative_time() -> None:
    """A flush before the message came leaves its times as they are."""
    recorder = Recorder(4, 4)
    recorder.begin_round()
    take(recorder, Context(events.DELIVER, "blue"), 1000, 0)
    recorder.end_round(400)
    recorder.cut()
    (row,) = table(recorder.take()[0], "edge").to_pylist()
    assert (row["ts_ns"], row["since_ingress_ns"]) == (1000, 0)


def test_ids_beyond_the_signed_range_keep_their_bits() -> None:
    """A message id of 2**64 - 1 is -1 in the signed column, and no error."""
    block = block_of([(Context(0, "blue"), (1, b"t", 1, 1, 2**64 - 1, 1, 1, 1))])
    assert table(block, "edge").column("message_id").to_pylist() == [-1]


def test_a_row_without_a_trace_counts_messages() -> None:
    """Its number is how many messages it stands for; a traced row has its message's, and no count."""
    context = Context(events.DISCARD, "blue")
    block = block_of(
        [
            (context, (1, b"t", 0, 0, 7, -1, -1, 0)),
            (context, (1, b"t", 0, 1, 7, -1, -1, 0)),
            (Context(events.SUBSCRIBE, "blue"), (1, b"t", 0, 0, 7, -1, -1, 0)),
        ]
    )
    rows = table(block, "edge").to_pylist()
    assert [(row["count"], row["message_id"]) for row in rows] == [
        (7, None),
        (None, 7),
        (None, None),
    ]


def test_text_that_is_not_utf8_is_repaired() -> None:
    """Bytes that are no UTF-8 and lone surrogates become U+FFFD, and the other rows stay."""
    numbers = (1, 1, 1, 1, 1, 1)
    block = block_of(
        [
            (Context(0, "blue", client="a\udc80b"), (1, b"a\xff/b", *numbers)),
            (Context(0, "blue", client="c"), (2, b"a\xfe/b", *numbers)),
            (Context(0, "blue", client="c"), (3, b"fine", *numbers)),
        ]
    )
    read = table(block, "edge")
    assert read.column("topic").to_pylist() == ["a\ufffd/b", "a\ufffd/b", "fine"]
    assert read.column("client").to_pylist() == ["a\ufffdb", "c", "c"]


@given(st.lists(st.integers(-3 * DAY_NS, 3 * DAY_NS), min_size=1, max_size=30))
def test_rows_are_split_by_date_and_none_is_lost(offsets: list[int]) -> None:
    """Every row goes to the UTC date of its time, dates ascend, and rows keep their order."""
    midnight = 20_000 * DAY_NS
    context = Context(0, "blue")
    block = block_of(
        [(context, (midnight + at, b"t", 1, 1, n, 1, 1, 1)) for n, at in enumerate(offsets, 1)]
    )
    split = [(date, rows.to_pylist()) for date, rows in by_date(table(block, "edge"))]
    assert [date for date, _ in split] == sorted({date for date, _ in split})
    for date, rows in split:
        begin = dt.datetime.fromisoformat(f"{date}T00:00:00+00:00").timestamp() * 10**9
        assert all(begin <= row["ts_ns"] < begin + DAY_NS for row in rows)
        assert [row["message_id"] for row in rows] == sorted(row["message_id"] for row in rows)
    ids = [row["message_id"] for _, rows in split for row in rows]
    assert sorted(ids) == list(range(1, len(offsets) + 1))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("edge", "edge"),
        ("a b_c-d.e", "a b_c-d.e"),
        ("x/y:z", "x%2Fy%3Az"),
        ("50%=half", "50%25%3Dhalf"),
        ("[a]{b}*?#", "%5Ba%5D%7Bb}%2A%3F%23"),
        ("tab\there", "tab%09here"),
        ("Süd☃", "Süd☃"),
    ],
)
def test_partition_values_are_escaped_as_spark_does(name: str, value: str) -> None:
    """What Spark escapes in a partition directory is escaped, and nothing else."""
    assert partition_value(name) == value


def test_the_record_is_laid_out_as_the_recorder_packs_it() -> None:
    """Every field comes back from its own place: distinct numbers in distinct columns."""
    block = block_of([(Context(0, "blue"), (11, b"t", 12, 13, 14, 15, 16, 17))])
    (row,) = table(block, "edge").to_pylist()
    fields = ("ts_ns", "message_id", "size_bytes", "since_ingress_ns", "origin_ts_ns")
    assert [row[name] for name in fields] == [11, 14, 15, 16, 17]
    assert row["trace_id"] == f"{12:016x}{13:016x}"


class Refusing:
    """A file that takes `room` bytes and then has no space left."""

    def __init__(self, room: int) -> None:
        self.room = room

    def __call__(self, path: Path) -> BinaryIO:
        real = path.open("wb")
        room = self.room

        class File:
            def __getattr__(self, name: str) -> object:
                return getattr(real, name)

            def write(self, data: bytes) -> int:
                nonlocal room
                room -= len(data)
                if room < 0:
                    raise OSError(28, "No space left on device")
                return real.write(data)

        return File()  # type: ignore[return-value]


@pytest.mark.parametrize("room", [0, 10, 1_000, 40_000])
def test_a_file_that_fails_leaves_nothing_behind(room: int, tmp_path: Path) -> None:
    """Wherever writing fails, OSError says so, and after abandon() the directory is empty."""
    noise = np.random.default_rng(1).integers(0, 2**63, 4_000).tolist()
    context = Context(0, "blue")
    rows = table(block_of([(context, (n, b"t", n, n, n, 1, n, n)) for n in noise]), "edge")

    def attempt() -> None:
        part = PartFile(tmp_path, "part-1-1.parquet", {"key": "value ü"}, Refusing(room))
        try:
            part.write(rows)
            part.publish()
        except OSError:
            part.abandon()
            raise

    with pytest.raises(OSError, match="No space left"):
        attempt()
    assert list(tmp_path.iterdir()) == []


# The contract that readers script against.
NAMES = (
    "ts_ns, router, vpn, event, trace_id, message_id, topic, mode, size_bytes, client, endpoint, "
    "bridge, peer_router, peer_vpn, hops, path, reason, since_ingress_ns, origin_router, "
    "origin_vpn, origin_ts_ns, count, partition, topic_syntax, parent_span_id, context, in_full"
)


def test_the_columns_are_those_promised_in_order() -> None:
    """Names and order are the contract's."""
    assert [column.name for column in COLUMNS] == NAMES.split(", ")


def test_new_columns_keep_the_version() -> None:
    """Readers of the first version's columns pass over what was added."""
    assert VERSION == 1
    assert all(column.nullable for column in COLUMNS[21:])


def test_types_are_ones_that_every_reader_knows() -> None:
    """Columns are strings, signed integers and booleans, no more."""
    assert {column.type for column in COLUMNS} == {"string", "int64", "int32", "bool"}


def test_only_the_router_stands_in_the_path() -> None:
    """Inside files stand all columns but the router, in the same order."""
    assert [c.name for c in COLUMNS if c not in FILE_COLUMNS] == ["router"]
    assert [c for c in COLUMNS if c in FILE_COLUMNS] == list(FILE_COLUMNS)


PAGE = (Path(__file__).parents[2] / "docs" / "traces.md").read_text(encoding="utf-8")


def rows_under(heading: str) -> list[list[str]]:
    """Cells of the first table under a heading of docs/traces.md, without its two first lines."""
    section = PAGE.split(f"\n## {heading}\n", 1)[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip(" `") for cell in line.split("|")[1:-1]] for line in lines[2:]]


def test_the_page_lists_every_column() -> None:
    """docs/traces.md has the columns in order, with their types and whether they may be null."""
    assert [(name, kind, null != "never") for name, kind, null, _ in rows_under("Columns")] == [
        (column.name, column.type, column.nullable) for column in COLUMNS
    ]


def test_the_page_lists_every_event() -> None:
    """docs/traces.md has the events in order of their numbers."""
    assert [name for name, _ in rows_under("Events")] == EVENT_NAMES


def test_the_page_lists_the_metadata() -> None:
    """docs/traces.md has each key that a file carries, and the present version."""
    keys = {row[0]: row[1] for row in rows_under("Metadata of a file")}
    assert set(keys) == set(file_metadata("edge", 0.5))
    assert keys[VERSION_KEY].startswith(f"{VERSION}`")


def test_the_page_lists_the_reasons() -> None:
    """docs/traces.md has each reason for which the writer drops events."""
    reasons = {BUFFER_FULL, DISK_FULL, PERMISSION, IO_ERROR, INTERNAL_ERROR, PROCESS_ENDED}
    assert {reason for reason, _ in rows_under("Costs of tracing")} == reasons
