"""Trace files of a running router."""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from vpnrouter import limits
from vpnrouter.config.settings_models import Trace
from vpnrouter.errors import OperationError
from vpnrouter.management.live_traces import LEASE_NS, LiveTraces, TraceFilter, fitting
from vpnrouter.server import traces
from vpnrouter.server.trace_process import RESTART_NS, Terms, TraceProcess
from vpnrouter.server.traces import terms_of
from vpnrouter.topics.grammar import MQTT, SMF
from vpnrouter.trace import events, parquet
from vpnrouter.trace.recorder import Context, Recorder
from vpnrouter.trace.schema import PROCESS_ENDED
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


TRACED = """
listeners: [{{protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}}]
trace:
  directory: {folder}/traces
  sample: 1.0
  rotation: {{max_bytes: 2000000, max_rows: 3, max_seconds: {seconds}}}
  retention: {{max_days: 30, max_bytes: 100000000}}
msg_vpns: {{blue: {{authentication: {{basic: {{enabled: false}}}}}}}}
"""


async def test_the_configuration_rules_rotation_and_retention(
    running: Any, client_of: Any, tmp_path: Path, until: Any
) -> None:
    """Rows and seconds of a file are bounded; old files of this router alone go away."""
    mine, other = old_file(tmp_path / "traces"), old_file(tmp_path / "traces", "other")
    async with running(TRACED.format(folder=tmp_path, seconds=1)) as node:
        client = await client_of(node)
        await client.connect("c")
        for _ in range(4):
            await client.publish("a")
        # The router goes on: seconds complete a file.
        await until(lambda: not mine.exists() and len(rows(tmp_path / "traces")) >= 4)
    files = list((tmp_path / "traces").glob("date=*/router=here/part-*.parquet"))
    assert max(pq.ParquetFile(path).metadata.num_rows for path in files) == 3
    assert (mine.exists(), mine.parent.exists(), other.exists()) == (False, False, True)


# -- the process that writes -----------------------------------------------------------------------


class Traced:
    """A process that writes what `recorder` holds to `folder`, driven by hand."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.folder = folder
        self.recorder = Recorder()
        self.live = LiveTraces("here")
        self.said: list[str] = []
        self.faults: list[Exception] = []
        configured = Trace.model_validate({"directory": str(folder), **options})
        self.process = TraceProcess(
            Terms(configured, "here", "host"),
            self.recorder,
            self.live,
            self.said.append,
            self.faults.append,
        )
        self.live.writer = self.process
        self.now_ns = time.monotonic_ns()

    def write(self, count: int) -> None:
        """Record `count` events, and hand them on."""
        context = Context(events.INGRESS, "blue", client="c")
        for number in range(1, count + 1):
            ts_ns = 1_700_000_000 * SECOND_NS + number
            self.recorder.record(
                context,
                ts_ns,
                b"t/%d" % number,
                trace_high=0,
                trace_low=number,
                message_id=number,
                size=3,
                since_ingress_ns=0,
                origin_ts_ns=ts_ns,
            )
        self.recorder.cut()
        self.step()

    def step(self, seconds: float = 0.0) -> None:
        """Let time pass, and hand on what is there."""
        self.now_ns += int(seconds * SECOND_NS)
        self.process.run_once(self.now_ns)

    @property
    def pid(self) -> int:
        """The living process."""
        process = self.process._process
        assert process is not None
        return process.pid


@pytest.fixture
def traced(tmp_path: Path) -> Iterator[Callable[..., Traced]]:
    """Starts such processes."""
    begun: list[Traced] = []

    def begin(**options: Any) -> Traced:
        begun.append(Traced(tmp_path, **options))
        begun[-1].process.load()
        # It answers once it has loaded what it needs: who looks waits for rows a bounded time.
        begun[-1].step()
        return begun[-1]

    yield begin
    for each in begun:
        each.process.abandon()
        each.process.stop(each.now_ns)


def test_what_a_process_writes(traced: Callable[..., Traced], tmp_path: Path) -> None:
    """Each row, whole, with who, where and which topic; counters agree."""
    here = traced()
    here.write(5)
    status = here.process.status()
    assert (status.recorded, status.open, status.written) == (5, 5, 0)
    here.write(2)
    here.process.stop(here.now_ns)
    status = here.process.status()
    assert (status.recorded, status.open, status.written, status.files) == (7, 0, 7, 1)
    assert (status.dropped, here.faults, here.said) == ({}, [], [])
    found = rows(tmp_path)
    assert sorted(row["topic"] for row in found) == sorted(
        ["t/1", "t/1", "t/2", "t/2", *map("t/{}".format, (3, 4, 5))]
    )
    assert {(row["vpn"], row["client"], row["event"]) for row in found} == {
        ("blue", "c", "ingress")
    }


def test_whoever_looks_gets_rows_from_the_process(traced: Callable[..., Traced]) -> None:
    """Rows that fit, up to a bound, and how many fitted."""
    here = traced()
    look = here.live.look(TraceFilter(topic="t/2"), 0, 10)
    assert look is not None
    here.write(3)
    seen = here.live.look(TraceFilter(topic="t/2"), look.mark, 10)
    assert seen is not None
    assert [(row["topic"], row["router"]) for row in seen.rows] == [("t/2", "here")]


def test_a_process_that_is_killed(traced: Callable[..., Traced], tmp_path: Path) -> None:
    """Its open rows are lost and counted; a new process writes what comes then, not before some seconds."""
    here = traced()
    here.write(4)
    os.kill(here.pid, signal.SIGKILL)
    os.waitid(os.P_PID, here.pid, os.WEXITED | os.WNOWAIT)
    here.write(3)
    assert here.process.status().dropped == {PROCESS_ENDED: 7}
    assert "ended (-9)" in here.process.status().last_error
    here.write(2)
    assert here.process.status().recorded == 9, "they wait in the recorder"
    here.step(RESTART_NS / SECOND_NS + 1)
    here.process.stop(here.now_ns)
    status = here.process.status()
    assert (status.written, status.dropped) == (2, {PROCESS_ENDED: 7})
    assert len(rows(tmp_path)) == 2


def test_signals_and_the_end_of_the_router(traced: Callable[..., Traced], tmp_path: Path) -> None:
    """What ends a router does not end the process; without a router it completes the file, and ends."""
    here = traced()
    here.write(3)
    pid = here.pid
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(pid, number)
    here.write(2)
    assert here.process.status().open == 5
    # As when the router is killed: its end of the pipe is closed.
    orders = here.process._orders
    assert orders is not None
    orders.close()
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert len(rows(tmp_path)) == 5


def test_a_disk_that_takes_nothing(traced: Callable[..., Traced], tmp_path: Path) -> None:
    """Rows are lost by reason, and the process goes on when the disk does."""
    here = traced(rotation={"max_rows": 2})
    (tmp_path / "date=2023-11-14").write_text("in the way")
    here.write(3)
    status = here.process.status()
    assert (sum(status.dropped.values()), status.written) == (3, 0)
    (tmp_path / "date=2023-11-14").unlink()
    here.write(2)
    assert here.process.status().written == 2


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
    monkeypatch.delitem(sys.modules, "vpnrouter.server.otlp")
    for missing in ("opentelemetry.sdk.resources", "opentelemetry.trace"):
        with monkeypatch.context() as without:
            without.setitem(sys.modules, missing, None)
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
        recorder.record(
            context,
            number,
            topic.encode(),
            trace_high=0,
            trace_low=number,
            message_id=number,
            size=3,
            since_ingress_ns=0,
            origin_ts_ns=1,
        )
    recorder.cut()
    return parquet.table(recorder.take()[0], "edge")


def offer(live: LiveTraces, block: Any) -> None:
    """Give a block of rows to whoever looks."""
    wishes = live.wishes()
    live.add(wishes, [fitting(block, wish, most) for wish, most in wishes])


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
    offer(live, None)
    look = live.look(EVERYTHING, 0, 10)
    assert look is not None
    assert (look.rows, look.missed, look.tracing) == ([], 0, True)
    assert look.mark > 0


def test_rows(live: LiveTraces) -> None:
    """Each row once, in their order, page by page."""
    mark = live.look(EVERYTHING, 0, 10).mark  # type: ignore[union-attr]
    offer(live, table("a", "b", "c"))
    offer(live, table("d"))
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
    offer(live, table("a/1", "a/2", "a/2/3", "b"))
    offer(live, table("b", vpn="red", event=events.DELIVER))
    look = live.look(wish, 1, 10)
    assert look is not None
    assert topics(look.rows) == fits
    assert look.missed == 0


def test_rows_without_topic_or_message_vpn(live: LiveTraces) -> None:
    """What has no topic fits no topic filter, and what has no message VPN is for those who see all."""
    wishes = [TraceFilter(topic=">"), TraceFilter(seen=frozenset({"blue"})), EVERYTHING]
    for wish in wishes:
        live.look(wish, 0, 10)
    offer(live, table("", vpn="", event=events.LINK_UP))
    shown = [len(live.look(wish, 1, 10).rows) for wish in wishes]  # type: ignore[union-attr]
    assert shown == [0, 0, 1]


def test_too_many_a_second(live: LiveTraces, now: list[int]) -> None:
    """Beyond the rate rows are left out and counted; the next second has room again."""
    live.look(EVERYTHING, 0, 10)
    most = limits.TRACE_TAIL_RATE
    offer(live, table(*[f"t/{number}" for number in range(most + 7)]))
    offer(live, table("u"))
    look = live.look(EVERYTHING, 1, most + 100)
    assert look is not None
    assert (len(look.rows), look.missed) == (most, 8)
    now[0] += SECOND_NS
    offer(live, table("v"))
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
        offer(live, block)
    look = live.look(EVERYTHING, 1, 10)
    assert look is not None
    assert len(look.rows) == 10
    assert look.missed == rounds * limits.TRACE_TAIL_RATE - limits.TRACE_TAIL_ROWS


def test_topics_beyond_the_bound(live: LiveTraces, monkeypatch: pytest.MonkeyPatch) -> None:
    """Topics that are not compared are counted as missed, and never shown."""
    monkeypatch.setattr(limits, "TRACE_TAIL_TOPICS", 2)
    wish = TraceFilter(topic="a/*")
    live.look(wish, 0, 10)
    offer(live, table("a/1", "b", "c", "d"))
    look = live.look(wish, 1, 10)
    assert look is not None
    assert (topics(look.rows), look.missed) == (["a/1"], 2)


def test_lease(live: LiveTraces, now: list[int]) -> None:
    """Who does not come back is forgotten; the marks of the same wish go on rising."""
    live.look(EVERYTHING, 0, 10)
    assert live.tails == 1
    now[0] += LEASE_NS
    offer(live, table("a"))
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
