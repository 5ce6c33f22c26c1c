"""Which trace files there are, which can be read, and over which range of time."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vpnrouter.errors import OperationError
from vpnrouter.report.traces.footers import SetAside
from vpnrouter.report.traces.inventory import read_footers, take_inventory
from vpnrouter.report.traces.span import Span, parse_range, parse_span, parse_time
from vpnrouter.report.traces.storage import StoredFile, is_uri, place_of
from vpnrouter.trace.schema import ALWAYS_KEY, COLUMNS, VERSION


def stored(*paths: Path) -> list[StoredFile]:
    """Files by their paths, as a storage lists them."""
    return [StoredFile(str(path), path.stat().st_size if path.exists() else 1) for path in paths]


def one(files: ModuleType, root: Path, router: str = "edge", **more: object) -> Path:
    """A trace file with one row."""
    path: Path = files.write(root, router, [files.row("ingress", 0, "blue")], **more)
    return path


def between(files: ModuleType, root: Path, part: int, first: int, last: int) -> Path:
    """A trace file whose rows lie from START + `first` to START + `last` nanoseconds."""
    rows = [files.row("ingress", at, "blue") for at in (last, first)]
    path: Path = files.write(root, "edge", rows, part=part)
    return path


def rewritten(path: Path, *, statistics: bool = True, **metadata: str) -> None:
    """Write a file again, with more metadata or without statistics in its footer."""
    table = pq.ParquetFile(path).read()
    known = table.schema.metadata | {key.encode(): text.encode() for key, text in metadata.items()}
    pq.write_table(table.replace_schema_metadata(known), path, write_statistics=statistics)


def test_whole_files_are_counted(tracefiles: ModuleType, tmp_path: Path) -> None:
    """Rows and bytes of all complete files under all roots, and single files, are found."""
    first = one(tracefiles, tmp_path / "a")
    second = one(tracefiles, tmp_path / "b", "core", sample=0.25)
    found = take_inventory([str(tmp_path / "a"), str(second)])
    assert [(Path(f.path), f.router, f.router_from, f.sample) for f in found.files] == [
        (first, "edge", "directory", None),
        (second, "core", "directory", 0.25),
    ]
    assert found.rows == 2
    assert found.size_bytes == first.stat().st_size + second.stat().st_size
    assert found.set_aside == ()


def test_half_written_files_are_passed_over(tracefiles: ModuleType, tmp_path: Path) -> None:
    """Hidden files, files in hidden directories, and names with an underscore are not looked at."""
    whole = one(tracefiles, tmp_path)
    for name in (".part-2.parquet", "_part-3.parquet", ".hidden/part-4.parquet"):
        (whole.parent / name).parent.mkdir(exist_ok=True)
        (whole.parent / name).write_bytes(b"half")
    (whole.parent / "notes.txt").write_text("no trace")
    found = take_inventory([str(tmp_path)])
    assert [Path(file.path) for file in found.files] == [whole]
    assert found.set_aside == ()


def test_what_cannot_be_read_is_named_with_its_reason(
    tracefiles: ModuleType, tmp_path: Path
) -> None:
    """Damaged, cut, empty and foreign files are set aside, each with a reason; the rest is kept."""
    whole = one(tracefiles, tmp_path)
    folder = whole.parent
    (folder / "cut.parquet").write_bytes(whole.read_bytes()[:-20])
    (folder / "noise.parquet").write_bytes(bytes(range(256)))
    (folder / "nothing.parquet").write_bytes(b"")
    tracefiles.write(tmp_path, "edge", [], part=7)
    pq.write_table(pa.table({"ts_ns": [1], "event": ["x"]}), folder / "other.parquet")
    found = take_inventory([str(tmp_path)])
    assert [Path(file.path) for file in found.files] == [whole]
    reasons = {Path(aside.path).name: aside.reason for aside in found.set_aside}
    assert set(reasons) == {
        "cut.parquet", "noise.parquet", "nothing.parquet", "part-00007.parquet", "other.parquet",
    }  # fmt: skip
    assert reasons["cut.parquet"].startswith("damaged: ")
    assert reasons["noise.parquet"].startswith("damaged: ")
    assert reasons["nothing.parquet"] == "empty: no bytes"
    assert reasons["part-00007.parquet"] == "empty: no rows"
    assert reasons["other.parquet"] == "not a trace file: no column vpn"
    assert all("\n" not in reason for reason in reasons.values())


WIDTHS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")
"""Types of whole numbers that are as good as the one that a router writes."""

UNLIKE = {
    "text": (pa.array(["7"]), ("string",)),
    "long text": (pa.array(["7"], pa.large_string()), ("string",)),
    "words": (pa.array(["7"]).dictionary_encode(), ("string",)),
    "bytes": (pa.array([b"7"]), ()),
    "float": (pa.array([7.0], pa.float32()), ()),
    "double": (pa.array([7.0]), ()),
    "bool": (pa.array([True]), ("bool",)),
    "date": (pa.array([7], pa.date32()), ()),
    "time": (pa.array([7], pa.time64("us")), ()),
    "timestamp": (pa.array([7], pa.timestamp("ns")), ()),
    "decimal": (pa.array([7]).cast(pa.decimal128(20, 0)), ()),
    "uint64": (pa.array([7], pa.uint64()), ()),
    "null": (pa.nulls(1), ()),
    "list": (pa.array([[7]]), ()),
    "list of text": (pa.array([["7"]]), ()),
    "struct": (pa.array([{"a": 7}]), ()),
    **{width: (pa.array([7], width), ("int32", "int64")) for width in WIDTHS},
}
"""Columns of one row, each with the types of trace columns that it may stand for."""


EXPECTED = {
    "string": "text",
    "int64": "a whole number",
    "int32": "a whole number",
    "bool": "true or false",
}
"""What is expected of a column of each type."""


@pytest.mark.parametrize("kind", UNLIKE)
def test_a_column_of_another_type(tracefiles: ModuleType, tmp_path: Path, kind: str) -> None:
    """Any column of any other type sets its file aside, by name, type found and type expected; widths do not count."""
    found, fits = UNLIKE[kind]
    rows = [tracefiles.row("ingress", 0, "blue", router="edge")]
    whole = tracefiles.write(tmp_path, "edge", rows, router_inside=True)
    table = pq.read_table(whole)
    for column in COLUMNS:
        path = whole.with_name(f"part-{column.name}.parquet")
        at = table.schema.get_field_index(column.name)
        pq.write_table(table.set_column(at, column.name, found), path)
        inventory = read_footers(stored(path, whole))
        if column.type in fits:
            assert [Path(file.path) for file in inventory.files] == [path, whole], column
        else:
            assert [Path(file.path) for file in inventory.files] == [whole], column
            (aside,) = inventory.set_aside
            assert Path(aside.path) == path
            assert f"column {column.name} is " in aside.reason
            assert f"expected {EXPECTED[column.type]}" in (aside.reason)
        inventory.times()


@pytest.mark.parametrize("name", ["Topic", "topic"])
def test_a_column_twice(tracefiles: ModuleType, tmp_path: Path, name: str) -> None:
    """Nor is a file read whose columns of one name, however it is written, are two."""
    whole = tracefiles.write(tmp_path, "edge", [tracefiles.row("ingress", 0, "blue")])
    table = pq.read_table(whole)
    pq.write_table(table.append_column(name, pa.array(["a"])), whole)
    (aside,) = read_footers(stored(whole)).set_aside
    assert "column topic is there more than once or in other letters" in aside.reason


def test_a_newer_format_is_refused(tracefiles: ModuleType, tmp_path: Path) -> None:
    """One file of a newer format stops the run, and all such files are named."""
    one(tracefiles, tmp_path)
    newer = [one(tracefiles, tmp_path, part=n, version=VERSION + 1) for n in (1, 2)]
    with pytest.raises(OperationError, match="newer vpnrouter") as refused:
        take_inventory([str(tmp_path)])
    assert all(str(path) in str(refused.value) for path in newer)


def test_the_router_is_found_in_three_places(tracefiles: ModuleType, tmp_path: Path) -> None:
    """A column, the directory's name with its escapes undone, or the metadata name the router."""
    one(tracefiles, tmp_path / "1", "a/b %")
    one(tracefiles, tmp_path / "2", "loose", partitioned=False)
    one(tracefiles, tmp_path / "3", "inside", router_inside=True)
    found = take_inventory([str(tmp_path)])
    assert [(file.router, file.router_from) for file in found.files] == [
        ("a/b %", "directory"),
        ("loose", "metadata"),
        ("inside", "column"),
    ]


def test_a_file_of_no_router_is_set_aside(tracefiles: ModuleType, tmp_path: Path) -> None:
    """Without column, directory and metadata the rows belong to nobody."""
    path = one(tracefiles, tmp_path, partitioned=False)
    pq.write_table(pq.read_table(path).replace_schema_metadata({}), path)
    (aside,) = take_inventory([str(tmp_path)]).set_aside
    assert aside.reason.startswith("names no router")


def test_a_file_is_read_once(tracefiles: ModuleType, tmp_path: Path) -> None:
    """Overlapping roots and symbolic links do not double the counts."""
    path = one(tracefiles, tmp_path)
    (tmp_path / "link").symlink_to(path.parent)
    (path.parent / "again.parquet").symlink_to(path)
    assert (
        take_inventory([str(tmp_path), str(path.parent), str(path), str(tmp_path / "link")]).rows
        == 1
    )


def test_the_same_contents_count_once(tracefiles: ModuleType, tmp_path: Path) -> None:
    """Under another name, in another folder, and of an earlier batch; equal figures alone are not the same contents."""
    first, other = (
        tracefiles.write(
            tmp_path, "edge", [tracefiles.row("ingress", 0, "v", topic=topic)], part=part
        )
        for part, topic in enumerate("ab")
    )
    assert first.stat().st_size == other.stat().st_size
    elsewhere = tmp_path / "later/date=2013-06-12/router=edge"
    elsewhere.mkdir(parents=True)
    copies = [first.with_name("part-copy.parquet"), elsewhere / first.name]
    for copy in copies:
        copy.write_bytes(first.read_bytes())
    found = take_inventory([str(tmp_path)])
    assert [Path(file.path) for file in found.files] == [first, other]
    reason = f"has the contents of {first}, which count once"
    assert found.set_aside == tuple(
        SetAside(path=str(copy), reason=reason, same_as=str(first)) for copy in copies
    )
    batch = read_footers(stored(copies[0], first), known=found.files)
    assert batch.set_aside == found.set_aside[:1]
    assert [Path(file.path) for file in batch.files] == [first]
    first.unlink()
    assert len(read_footers(stored(*copies), known=found.files).files) == 1


def test_the_output_is_no_input(tracefiles: ModuleType, tmp_path: Path) -> None:
    """A report written among the traces is left out of the next one."""
    one(tracefiles, tmp_path)
    one(tracefiles, tmp_path / "report" / "tables")
    assert take_inventory([str(tmp_path)], leave_out=str(tmp_path / "report")).rows == 1


def test_a_missing_root_is_an_error(tmp_path: Path) -> None:
    """A path that does not exist is named."""
    with pytest.raises(OperationError, match="nowhere"):
        take_inventory([str(tmp_path / "nowhere")])


def test_a_rate_holds_where_all_files_agree(tracefiles: ModuleType, tmp_path: Path) -> None:
    """A router's rate is known when all its files state the same; 0 and nonsense state nothing."""
    one(tracefiles, tmp_path, "steady", sample=0.5)
    one(tracefiles, tmp_path, "steady", part=1, sample=0.5)
    one(tracefiles, tmp_path, "changed", sample=0.5)
    one(tracefiles, tmp_path, "changed", part=1, sample=0.1)
    one(tracefiles, tmp_path, "partly", sample=0.5)
    one(tracefiles, tmp_path, "partly", part=1)
    one(tracefiles, tmp_path, "off", sample=0.0)
    one(tracefiles, tmp_path, "absurd", sample=7.0)
    assert take_inventory([str(tmp_path)]).sampling() == {"steady": 0.5}


DAY_NS = 86_400_000_000_000
EVER = (1 << 63) - 1
RATES = {
    "one rate": ([(0, 9, 0.5), (10, 19, 0.5)], [(-EVER, EVER, 0.5)]),
    "changed": ([(0, 9, 0.01), (10, 19, 0.02)], [(-EVER, 10, 0.01), (10, EVER, 0.02)]),
    "changed and back": (
        [(20, 29, 0.5), (0, 9, 0.5), (10, 19, 0.1)],
        [(-EVER, 10, 0.5), (10, 20, 0.1), (20, EVER, 0.5)],
    ),
    "not stated for a time": (
        [(0, 9, 0.5), (10, 19, None), (20, 29, 0.1)],
        [(-EVER, 10, 0.5), (20, EVER, 0.1)],
    ),
    "at once": ([(0, 9, 0.5), (9, 19, 0.1)], []),
    "never stated": ([(0, 9, None)], []),
}


@pytest.mark.parametrize("case", RATES)
def test_rates_hold_for_a_time(tracefiles: ModuleType, tmp_path: Path, case: str) -> None:
    """A rate that was changed begins with the first row of its first file; another router does not mind."""
    files, wanted = RATES[case]
    for part, (first, last, sample) in enumerate(files):
        rows = [tracefiles.row("ingress", at, "v") for at in (first, last)]
        tracefiles.write(tmp_path, "edge", rows, part=part, sample=sample)
    tracefiles.write(tmp_path, "core", [tracefiles.row("ingress", 0, "v")], sample=0.25)
    start = tracefiles.START
    shifted = [
        (at if abs(at) == EVER else at + start, to if abs(to) == EVER else to + start, rate)
        for at, to, rate in wanted
    ]
    found = take_inventory([str(tmp_path)]).rates()
    assert [
        (one.since_ns, one.until_ns, one.rate) for one in found if one.router == "edge"
    ] == shifted
    assert [one.rate for one in found if one.router == "core"] == [0.25]


@pytest.mark.parametrize(
    ("at_ns", "doubtful"),
    [(0, False), (-1_371_000_000 * 10**9, True), (100 * 365 * DAY_NS, True)],
    ids=["2013", "1970", "2113"],
)
def test_times_that_cannot_be_right(
    tracefiles: ModuleType, tmp_path: Path, at_ns: int, doubtful: bool
) -> None:
    """Before 2000 and in the future: the file is named, and the range of time is not taken from its footer."""
    path = tracefiles.write(
        tmp_path, "edge", [tracefiles.row("ingress", at, "v") for at in (0, at_ns)]
    )
    found = take_inventory([str(tmp_path)])
    assert [Path(file.path) for file in found.doubtful()] == [path] * doubtful
    assert found.times() == ((None, None) if doubtful else (tracefiles.START, tracefiles.START))


PLACES = {
    "traces": "traces",
    "/a b/c": "/a b/c",
    "file:///a%20b/c": "/a b/c",
    "file:/a": "/a",
    "FILE://localhost/a": "/a",
    "odd:name": "odd:name",
    "./a:/b": "./a:/b",
}
ELSEWHERE = {
    "s3a://bucket/day": "s3a://bucket/day",
    "s3a://bucket/day/": "s3a://bucket/day",
    "hdfs://name:8020/a": "hdfs://name:8020/a",
    "abfs://c@a.net/x%20y": "abfs://c@a.net/x%20y",
    "dbfs:/a": "dbfs:/a",
}


@pytest.mark.parametrize("text", PLACES)
def test_paths_of_this_machine(text: str) -> None:
    """A path, and its URI."""
    assert place_of(text) == PLACES[text]
    assert not is_uri(place_of(text))


@pytest.mark.parametrize("text", ELSEWHERE)
def test_places_elsewhere(text: str) -> None:
    """They stay as they are, and nothing on this machine stands for them."""
    assert place_of(text) == ELSEWHERE[text]
    assert is_uri(place_of(text))
    with pytest.raises(OperationError, match="is not on this machine"):
        take_inventory([place_of(text)])


def test_a_file_of_another_machine() -> None:
    """A file: URI with a host is refused in one line."""
    with pytest.raises(OperationError, match=r"file://other/a is on other: a file: URI is of this"):
        place_of("file://other/a")


def test_a_path_that_looks_like_a_uri(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is there is meant."""
    monkeypatch.chdir(tmp_path)
    Path("s3a:/bucket").mkdir(parents=True)
    assert place_of("s3a:/bucket") == "s3a:/bucket"
    assert not is_uri("s3a:/bucket")


def test_a_file_can_be_set_aside_later(tracefiles: ModuleType, tmp_path: Path) -> None:
    """What turns out to be damaged moves from the files to those set aside."""
    path = one(tracefiles, tmp_path)
    one(tracefiles, tmp_path, "core")
    less = take_inventory([str(tmp_path)]).without(str(path), "damaged")
    assert [file.router for file in less.files] == ["core"]
    assert [Path(aside.path) for aside in less.set_aside] == [path]
    more = less.without_any([SetAside(path=str(path), reason="again"), *less.set_aside])
    assert more == less
    none = less.without_any([SetAside(path=less.files[0].path, reason="too")])
    assert (none.files, [aside.reason for aside in none.set_aside]) == ((), ["damaged", "too"])


def test_files_outside_the_time_are_not_read(tracefiles: ModuleType, tmp_path: Path) -> None:
    """By their footers: what ends before is earlier, what begins after is nothing, what touches is read."""
    before, into, inside, out_of, after = (
        between(tracefiles, tmp_path, part, first, last)
        for part, (first, last) in enumerate([(0, 9), (5, 10), (12, 15), (19, 30), (20, 40)])
    )
    start = tracefiles.START
    found = take_inventory([str(tmp_path)], span=Span(since_ns=start + 10, until_ns=start + 20))
    assert [Path(file.path) for file in found.files] == [into, inside, out_of]
    assert [Path(file.path) for file in found.earlier] == [before]
    assert (found.rows, found.times()) == (6, (start + 5, start + 30))
    later = take_inventory([str(tmp_path)], span=Span(since_ns=start + 41))
    assert (later.files, len(later.earlier)) == ((), 5)
    less = later.without(str(before), "damaged")
    assert [Path(file.path) for file in less.earlier] == [into, inside, out_of, after]


def test_a_file_that_does_not_tell_its_times_is_read(
    tracefiles: ModuleType, tmp_path: Path
) -> None:
    """Without statistics it may hold rows of any time, and the times of all are not known."""
    between(tracefiles, tmp_path, 1, 0, 9)
    silent = between(tracefiles, tmp_path, 2, 0, 9)
    rewritten(silent, statistics=False)
    start = tracefiles.START
    for span in (Span(since_ns=start + 100), Span(until_ns=start - 100)):
        assert [Path(file.path) for file in take_inventory([str(tmp_path)], span=span).files] == [
            silent
        ]
    assert take_inventory([str(tmp_path)]).times() == (None, None)


def test_always_is_what_all_files_say(tracefiles: ModuleType, tmp_path: Path) -> None:
    """An event that one writer records of picked messages only is not always recorded."""
    for part, events in ((1, "discard,reject"), (2, "discard,expire")):
        rewritten(one(tracefiles, tmp_path, part=part), **{ALWAYS_KEY: events})
    assert take_inventory([str(tmp_path)]).always() == {"edge": {"discard"}}
    one(tracefiles, tmp_path, part=3)
    assert take_inventory([str(tmp_path)]).always() == {}


def test_files_can_be_named_one_by_one(tracefiles: ModuleType, tmp_path: Path) -> None:
    """Sound ones, those that are not, and one that has gone again."""
    path = one(tracefiles, tmp_path)
    bad = tmp_path / "part-1.parquet"
    bad.write_bytes(b"")
    found = read_footers(stored(path, bad, tmp_path / "part-2.parquet"))
    assert [Path(file.path) for file in found.files] == [path]
    assert [aside.reason for aside in found.set_aside] == [
        "empty: no bytes",
        "cannot be read: No such file or directory",
    ]


SECOND = 1_000_000_000
NOW = 1_772_366_400 * SECOND
"""2026-03-01T12:00Z."""


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2026-03-01T12:00", 0),
        ("2026-03-01", -12 * 3600),
        ("2026-03-01T13:00:30.5+01:00", 30.5),
        (" 2026-03-01 11:59 ", -60),
        ("90m", -5400),
        ("1.5 h", -5400),
        ("2w", -14 * 86_400),
    ],
)
def test_times(text: str, seconds: float) -> None:
    """Dates, times with and without a zone, and durations before now."""
    assert parse_time(text, NOW) == NOW + round(seconds * SECOND)


@pytest.mark.parametrize("text", ["", "yesterday", "12", "2026-13-01", "-5m", "5 parsecs"])
def test_what_is_no_time_is_refused(text: str) -> None:
    """The error names the text and says what would do."""
    with pytest.raises(OperationError, match="not a time"):
        parse_time(text, NOW)


def test_spans() -> None:
    """Ends may be open, but a span may not be empty."""
    assert parse_span(None, None, NOW) == Span()
    assert parse_span("1h", "30m", NOW) == Span(
        since_ns=NOW - 3600 * SECOND, until_ns=NOW - 1800 * SECOND
    )
    with pytest.raises(OperationError, match="nothing lies between"):
        parse_span("30m", "1h", NOW)


def test_ranges() -> None:
    """SINCE..UNTIL, either end open."""
    assert parse_range("2026-03-01..", NOW) == Span(since_ns=NOW - 12 * 3600 * SECOND)
    assert parse_range("..1h", NOW) == Span(until_ns=NOW - 3600 * SECOND)
    for wrong in ("..", "1h", ""):
        with pytest.raises(OperationError, match="not a range"):
            parse_range(wrong, NOW)


@pytest.mark.parametrize("inside", ["", "traces"])
def test_traces_in_the_output_directory(
    tmp_path: Path, tracefiles: ModuleType, inside: str
) -> None:
    """They would be read by no report, and are refused by name."""
    root = tmp_path / "report" / inside
    tracefiles.write(root, "edge", [tracefiles.row("ingress", 1, "blue")])
    with pytest.raises(OperationError, match=f"{root} are in the output directory"):
        take_inventory([str(root)], leave_out=str(tmp_path / "report"))


def test_a_link_to_nothing(tmp_path: Path, tracefiles: ModuleType) -> None:
    """It is set aside by name; a directory of that name is one, as Spark writes them."""
    tracefiles.write(tmp_path / "all.parquet", "edge", [tracefiles.row("ingress", 1, "blue")])
    (tmp_path / "lost.parquet").symlink_to(tmp_path / "nowhere")
    inventory = take_inventory([str(tmp_path)])
    assert inventory.rows == 1
    assert [(Path(file.path).name, file.reason) for file in inventory.set_aside] == [
        ("lost.parquet", "cannot be read: No such file or directory")
    ]
