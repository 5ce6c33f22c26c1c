"""Trace files of a running router."""

import os
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from vpnrouter import limits
from vpnrouter.config.trace import Trace
from vpnrouter.errors import OperationError
from vpnrouter.management.live_traces import LEASE_NS, LiveTraces, TraceFilter
from vpnrouter.server import traces
from vpnrouter.server.traces import terms_of
from vpnrouter.topics.grammar import MQTT, SMF
from vpnrouter.trace import events, parquet
from vpnrouter.trace.recorder import Context, Recorder
from vpnrouter.trace.writer import Writer
from vpnrouter.units import SECOND_NS


def rows(directory: Path) -> list[dict[str, Any]]:
    """The rows of all trace files, in the order of their times."""
    found: list[dict[str, Any]] = []
    for path in sorted(directory.glob("date=*/router=here/part-*.parquet")):
        found += pq.ParquetFile(path).read().to_pylist()
    return sorted(found, key=lambda row: row["ts_ns"])


def old_file(directory: Path, router: str = "here") -> Path:
    """A file that an earlier process of a router completed in 2001."""
    path = directory / "date=2001-09-09" / f"router={router}" / "part-1000000000000000000-1.parquet"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"PAR1")
    os.utime(path, (10**9, 10**9))
    return path


async def test_the_configuration_rules_rotation_and_retention(
    running: Any, client_of: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes, rows and seconds of a file reach the writer; old files of this router alone go away."""
    given: dict[str, Any] = {}

    class Watched(Writer):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            given.update(options)
            super().__init__(*arguments, **options)

    monkeypatch.setattr(traces, "Writer", Watched)
    mine, other = old_file(tmp_path / "traces"), old_file(tmp_path / "traces", "other")
    text = f"""
listeners: [{{protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}}]
trace:
  directory: {tmp_path}/traces
  sample: 1.0
  rotation: {{max_bytes: 2000000, max_rows: 5000, max_seconds: 7}}
  retention: {{max_days: 30, max_bytes: 100000000}}
msg_vpns: {{blue: {{authentication: {{basic: {{enabled: false}}}}}}}}
"""
    async with running(text) as node:
        client = await client_of(node)
        await client.connect("c")
        await client.subscribe("a")
    assert (given["file_bytes"], given["file_rows"]) == (2_000_000, 5_000)
    assert given["flush_ns"] == 7 * 10**9
    assert (mine.exists(), mine.parent.exists(), other.exists()) == (False, False, True)
    assert rows(tmp_path / "traces")


def test_what_is_missing_is_told_before_the_router_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a router that is to send spans needs the SDK."""
    traces.check_traces(None)
    traces.check_traces(Trace(directory="t"))
    wanted = {"directory": "t", "otlp": {"enabled": True}}
    traces.check_traces(Trace.model_validate(wanted))
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    traces.check_traces(Trace(directory="t"))
    traces.check_traces(Trace.model_validate({**wanted, "enabled": False}))
    with pytest.raises(OperationError, match=r"install '\.\[otel\]'"):
        traces.check_traces(Trace.model_validate(wanted))


# -- trace terms -----------------------------------------------------------------------------------


def written(**given: Any) -> Trace:
    """A block with a directory."""
    return Trace.model_validate({"directory": "t", **given})


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, (True, True)),
        ({"always": []}, (False, False)),
        ({"always": ["discard"]}, (True, False)),
        ({"always": ["reject"]}, (False, True)),
    ],
)
def test_always(given: dict[str, Any], wanted: tuple[bool, bool]) -> None:
    """What is told of messages that are not traced; by default a traceparent counts, and none is added."""
    assert terms_of(None, 1) is None
    assert terms_of(written(enabled=False), 1) is None
    terms = terms_of(written(**given), 1)
    assert terms is not None
    assert (terms.discards, terms.rejects) == wanted
    assert (terms.honours, terms.emits, terms.filters) == (True, False, [])


def test_the_rest() -> None:
    """Filters in order, those that are off left out, each with draws of its own; traceparent both ways."""
    terms = terms_of(
        written(
            traceparent="ignore",
            emit_traceparent=True,
            filters=[
                {"trace_filter_name": "a", "subscriptions": ["a/*"], "sample": 0.25},
                {"trace_filter_name": "off", "enabled": False},
                {
                    "trace_filter_name": "b",
                    "subscriptions": ["a/*", "b/+"],
                    "topic_syntax": "mqtt",
                    "msg_vpns": ["blue"],
                    "client_usernames": ["ann"],
                    "client_names": ["s*"],
                },
            ],
        ),
        1,
    )
    assert terms is not None
    assert (terms.honours, terms.emits) == (False, True)
    a, b = terms.filters
    assert (a.sampler.rate, b.sampler.rate) == (0.25, 1.0)
    assert [one.dialect for one in a.subscriptions + b.subscriptions] == [SMF, MQTT, MQTT]
    assert (b.vpns, b.usernames, b.names) == (["blue"], ["ann"], ["s*"])
    assert b.fits_topic("b/x")
    assert not b.fits_topic("a/x")


# -- trace tap -------------------------------------------------------------------------------------


EVERYTHING = TraceFilter()


def table(*topics: str, vpn: str = "blue", event: int = events.INGRESS) -> Any:
    """A block of events, one for each topic; their trace ids are 1, 2 and so on."""
    recorder = Recorder()
    context = Context(event, vpn, client="c")
    for number, topic in enumerate(topics, 1):
        recorder.record(context, number, topic.encode(), 0, number, number, 3, 0, 1)
    recorder.cut()
    return parquet.table(recorder.take()[0])


@pytest.fixture
def now() -> list[int]:
    """The clock."""
    return [100 * SECOND_NS]


@pytest.fixture
def live(now: list[int]) -> LiveTraces:
    """The tap of a router that traces."""
    made = LiveTraces("here", lambda: now[0])
    made.writer = object()  # type: ignore[assignment]
    return made


def topics(rows: Any) -> list[Any]:
    """The topics of rows."""
    return [row["topic"] for row in rows]


def test_nothing_is_kept_for_nobody(live: LiveTraces) -> None:
    """What went by before somebody looked is not shown, and not even looked at."""
    live.offer(None)
    look = live.look(EVERYTHING, 0, 10)
    assert look is not None
    assert (look.rows, look.missed, look.tracing) == ([], 0, True)
    assert look.mark > 0


def test_rows(live: LiveTraces) -> None:
    """Each row once, in their order, page by page."""
    mark = live.look(EVERYTHING, 0, 10).mark  # type: ignore[union-attr]
    live.offer(table("a", "b", "c"))
    live.offer(table("d"))
    seen = []
    for _ in range(4):
        look = live.look(EVERYTHING, mark, 2)
        assert look is not None
        assert look.missed == 0
        mark = look.mark
        seen.append(topics(look.rows))
    assert seen == [["a", "b"], ["c", "d"], [], []]
    row = live.look(EVERYTHING, 1, 1).rows[0]  # type: ignore[union-attr]
    assert (row["router"], row["event"], row["client"]) == ("here", "ingress", "c")
    assert "bridge" not in row


@pytest.mark.parametrize(
    ("wish", "fits"),
    [
        (TraceFilter(topic="a/*"), ["a/1", "a/2"]),
        (TraceFilter(topic="a/>"), ["a/1", "a/2", "a/2/3"]),
        (TraceFilter(topic="A/*"), []),
        (TraceFilter(event="ingress"), ["a/1", "a/2", "a/2/3", "b"]),
        (TraceFilter(event="deliver"), ["b"]),
        (TraceFilter(msg_vpn="red"), ["b"]),
        (TraceFilter(msg_vpn="red", topic="a/>"), []),
        (TraceFilter(trace_id=f"{2:032x}"), ["a/2"]),
        (TraceFilter(seen=frozenset({"blue"})), ["a/1", "a/2", "a/2/3", "b"]),
        (TraceFilter(seen=frozenset({"blue"}), msg_vpn="red"), []),
        (TraceFilter(seen=frozenset()), []),
    ],
)
def test_filters(live: LiveTraces, wish: TraceFilter, fits: list[str]) -> None:
    """The router's own matcher decides on topics; who sees one message VPN is shown that alone."""
    live.look(wish, 0, 10)
    live.offer(table("a/1", "a/2", "a/2/3", "b"))
    live.offer(table("b", vpn="red", event=events.DELIVER))
    look = live.look(wish, 1, 10)
    assert look is not None
    assert topics(look.rows) == fits
    assert look.missed == 0


def test_rows_without_topic_or_message_vpn(live: LiveTraces) -> None:
    """What has no topic fits no topic filter, and what has no message VPN is for those who see all."""
    wishes = [TraceFilter(topic=">"), TraceFilter(seen=frozenset({"blue"})), EVERYTHING]
    for wish in wishes:
        live.look(wish, 0, 10)
    live.offer(table("", vpn="", event=events.LINK_UP))
    shown = [len(live.look(wish, 1, 10).rows) for wish in wishes]  # type: ignore[union-attr]
    assert shown == [0, 0, 1]


def test_too_many_a_second(live: LiveTraces, now: list[int]) -> None:
    """Beyond the rate rows are left out and counted; the next second has room again."""
    live.look(EVERYTHING, 0, 10)
    most = limits.TRACE_TAIL_RATE
    live.offer(table(*[f"t/{number}" for number in range(most + 7)]))
    live.offer(table("u"))
    look = live.look(EVERYTHING, 1, most + 100)
    assert look is not None
    assert (len(look.rows), look.missed) == (most, 8)
    now[0] += SECOND_NS
    live.offer(table("v"))
    following = live.look(EVERYTHING, look.mark, 10)
    assert following is not None
    assert (topics(following.rows), following.missed) == (["v"], 0)


def test_who_is_slow_misses_the_oldest(live: LiveTraces, now: list[int]) -> None:
    """The ring is bounded: rows that fell out are counted."""
    live.look(EVERYTHING, 0, 10)
    block = table(*["t"] * limits.TRACE_TAIL_RATE)
    rounds = limits.TRACE_TAIL_ROWS // limits.TRACE_TAIL_RATE + 1
    for _ in range(rounds):
        now[0] += SECOND_NS
        live.offer(block)
    look = live.look(EVERYTHING, 1, 10)
    assert look is not None
    assert len(look.rows) == 10
    assert look.missed == rounds * limits.TRACE_TAIL_RATE - limits.TRACE_TAIL_ROWS


def test_topics_beyond_the_bound(live: LiveTraces, monkeypatch: pytest.MonkeyPatch) -> None:
    """Topics that are not compared are counted as missed, and never shown."""
    monkeypatch.setattr(limits, "TRACE_TAIL_TOPICS", 2)
    wish = TraceFilter(topic="a/*")
    live.look(wish, 0, 10)
    live.offer(table("a/1", "b", "c", "d"))
    look = live.look(wish, 1, 10)
    assert look is not None
    assert (topics(look.rows), look.missed) == (["a/1"], 2)


def test_lease(live: LiveTraces, now: list[int]) -> None:
    """Who does not come back is forgotten; the marks of the same wish go on rising."""
    live.look(EVERYTHING, 0, 10)
    assert live.tails == 1
    now[0] += LEASE_NS
    live.offer(table("a"))
    assert live.tails == 0
    look = live.look(EVERYTHING, 41, 10)
    assert look is not None
    assert (look.mark, look.rows) == (41, [])


def test_too_many_wishes(live: LiveTraces) -> None:
    """One more than the bound is refused, and those that look go on."""
    wishes = [TraceFilter(topic=f"a/{number}") for number in range(limits.TRACE_TAILS)]
    for wish in wishes:
        assert live.look(wish, 0, 1) is not None
    assert live.look(EVERYTHING, 0, 1) is None
    assert live.look(wishes[0], 1, 1) is not None


def test_without_tracing_in_trace_tap() -> None:
    """A router that traces nothing says so."""
    live = LiveTraces("here")
    look = live.look(EVERYTHING, 5, 1)
    assert look is not None
    assert (look.mark, look.tracing) == (5, False)
    assert live.tails == 0
    assert live.status() is None
