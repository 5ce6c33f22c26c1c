"""Spans on their way to a collector: a real HTTP server that decodes what it is sent."""

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import trio
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.trace import SpanKind, StatusCode

from vpnrouter import __version__
from vpnrouter.bridges.bridge import Inbound
from vpnrouter.config.settings_models import Otlp
from vpnrouter.errors import OperationError
from vpnrouter.server.otlp import SDK_LOGGER, OtlpThread, SpanFactory, open_exporter
from vpnrouter.trace import events
from vpnrouter.trace.parquet import table
from vpnrouter.trace.recorder import Context, Recorder
from vpnrouter.trace.span import CONSUMER, INTERNAL, PRODUCER, Span, SpanEvent, span_id

PATIENCE_S = 60.0
NOON_NS = 20_000 * 86_400 * 10**9


class Collector:
    """Takes spans over HTTP: `spans` gets (resource, span) pairs, `requests` paths and headers.

    It answers `status`, and only once `open` is set.
    """

    def __init__(self, port: int = 0) -> None:
        self.spans: queue.Queue[tuple[dict[str, Any], Any]] = queue.Queue()
        self.requests: queue.Queue[tuple[str, dict[str, str]]] = queue.Queue()
        self.status = 200
        self.open = threading.Event()
        self.open.set()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                data = self.rfile.read(int(self.headers["content-length"]))
                collector.requests.put((self.path, dict(self.headers)))
                collector.open.wait(PATIENCE_S)
                self.send_response(collector.status)
                self.send_header("content-length", "0")
                self.end_headers()
                if collector.status == 200:
                    collector.take(data)

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            def handle_error(self, *_: object) -> None:
                """A client that did not wait for the answer is no trouble."""

        self._server = Server(("127.0.0.1", port), Handler)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def take(self, data: bytes) -> None:
        """Decode a request."""
        for resource in ExportTraceServiceRequest.FromString(data).resource_spans:
            of = values(resource.resource.attributes)
            for scope in resource.scope_spans:
                assert scope.scope.name == "vpnrouter"
                for span in scope.spans:
                    self.spans.put((of, span))

    def next(self, count: int) -> list[tuple[dict[str, Any], Any]]:
        """The next `count` spans."""
        return [self.spans.get(timeout=PATIENCE_S) for _ in range(count)]

    def close(self) -> None:
        """End it."""
        self.open.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def values(attributes: Any) -> dict[str, Any]:
    """Protobuf's attributes as a dictionary."""
    return {a.key: getattr(a.value, a.value.WhichOneof("value")) for a in attributes}


@pytest.fixture
def collector() -> Iterator[Callable[..., Collector]]:
    """Starts collectors, which end with the test."""
    made: list[Collector] = []

    def begin(port: int = 0) -> Collector:
        made.append(Collector(port))
        return made[-1]

    yield begin
    for one in made:
        one.close()


class Sender:
    """An `OtlpThread` to a port, and what it said."""

    def __init__(self, port: int, max_queue: int = 10_000, **fields: Any) -> None:
        fields = {"endpoint": f"http://127.0.0.1:{port}/v1/traces", "timeout_s": 1} | fields
        self.said: queue.Queue[str] = queue.Queue()
        exporter = open_exporter(Otlp.model_validate(fields))
        self.thread = OtlpThread(exporter, "edge", max_queue, share=1.0, say=self.said.put)
        self.thread.start()
        self._ended = False

    def stop(self, timeout_s: float = PATIENCE_S) -> bool:
        """End it, once."""
        ended, self._ended = self._ended, True
        return ended or self.thread.stop(timeout_s)


@pytest.fixture
def sender() -> Iterator[Callable[..., Sender]]:
    """Starts senders, which end with the test."""
    made: list[Sender] = []

    def begin(port: int, **fields: Any) -> Sender:
        made.append(Sender(port, **fields))
        return made[-1]

    yield begin
    for one in made:
        one.stop(0.1)


def rows(count: int, traced: bool = True) -> Any:
    """A table of that many ingress rows, each of another message."""
    recorder = Recorder(count, 1)
    context = Context(events.INGRESS, "blue", client="c")
    for number in range(1, count + 1):
        recorder.record(
            context,
            NOON_NS,
            b"a/b",
            trace_high=int(traced),
            trace_low=number * traced,
            message_id=number,
            size=5,
            since_ingress_ns=0,
            origin_ts_ns=NOON_NS,
        )
    recorder.cut()
    return table(recorder.take()[0], "edge")


def test_spans_reach_the_collector(
    collector: Callable[..., Collector],
    sender: Callable[..., Sender],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With name, resource, ids, attributes and the headers of the configuration alone; untraced rows do not."""
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.name=other,host.name=h")
    there = collector()
    here = sender(there.port, headers={"authorization": "Bearer abc"})
    here.thread.offer(rows(700))
    here.thread.offer(rows(50, traced=False))
    found = there.next(700)
    assert here.stop()
    assert there.spans.empty()
    path, headers = there.requests.get_nowait()
    assert path == "/v1/traces"
    assert {name.lower(): value for name, value in headers.items()}["authorization"] == "Bearer abc"
    resource, span = found[0]
    assert resource == {
        "service.name": "edge",
        "service.instance.id": "blue",
        "service.version": __version__,
    }
    assert span.name == "(topic) receive"
    assert span.trace_id == bytes([0] * 7 + [1] + [0] * 7 + [1])
    assert span.span_id == span_id(1, 1, 1, "edge", "blue", "receive").to_bytes(8, "big")
    assert span.start_time_unix_nano == NOON_NS
    assert values(span.attributes)["messaging.destination"] == "a/b"
    assert len({span.trace_id for _, span in found}) == 700
    status = here.thread.status()
    assert (status.sent, status.lost, status.dropped_rows, status.waiting_rows) == (700, 0, 0, 0)
    assert here.said.empty()


def test_a_collector_that_is_down_costs_spans_and_one_line(
    collector: Callable[..., Collector], sender: Callable[..., Sender]
) -> None:
    """Lost spans are counted; when it is back, spans arrive again, which is told too."""
    there = collector()
    there.close()
    here = sender(there.port)
    here.thread.offer(rows(3))
    assert here.said.get(timeout=PATIENCE_S).startswith("trace.otlp: spans are lost: ")
    back = collector(there.port)
    here.thread.offer(rows(2))
    assert len(back.next(2)) == 2
    assert here.said.get(timeout=PATIENCE_S) == "trace.otlp: the collector takes spans again"
    assert here.stop()
    status = here.thread.status()
    assert (status.sent, status.lost, status.dropped_rows) == (2, 3, 0)
    assert status.last_error
    assert here.said.empty()


def test_a_slow_collector_fills_the_queue_and_no_more(
    collector: Callable[..., Collector], sender: Callable[..., Sender]
) -> None:
    """Offering never waits: rows beyond the bound are counted; the others arrive in the end."""
    there = collector()
    there.open.clear()
    here = sender(there.port, max_queue=1_000, timeout_s=20)
    here.thread.offer(rows(1))
    # From here on the thread waits for the answer.
    there.requests.get(timeout=PATIENCE_S)
    for _ in range(4):
        here.thread.offer(rows(600))
    status = here.thread.status()
    assert (status.waiting_rows, status.dropped_rows) == (1_000, 1_400)
    there.open.set()
    assert len(there.next(1_001)) == 1_001
    assert here.stop()
    assert here.thread.status().sent == 1_001


def test_a_collector_that_hangs_does_not_keep_the_router(
    collector: Callable[..., Collector], sender: Callable[..., Sender]
) -> None:
    """Stopping gives up after its time, and what was not sent is lost or waits for ever."""
    there = collector()
    there.open.clear()
    here = sender(there.port, timeout_s=20)
    here.thread.offer(rows(600))
    there.requests.get(timeout=PATIENCE_S)
    began = time.monotonic()
    here.stop(0.05)
    assert time.monotonic() - began < PATIENCE_S / 2
    assert here.thread.status().sent == 0


def test_the_sdk_writes_no_lines_of_its_own(
    collector: Callable[..., Collector],
    sender: Callable[..., Sender],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A refusal loses the spans at once and is named in one line, and no handler is left when the thread has ended."""
    there = collector()
    there.status = 401
    here = sender(there.port)
    here.thread.offer(rows(1))
    assert "401" in here.said.get(timeout=PATIENCE_S)
    assert here.stop()
    assert here.thread.status().lost == 1
    assert capsys.readouterr() == ("", "")
    assert here.thread._word not in logging.getLogger(SDK_LOGGER).handlers


def test_rows_that_make_no_sense_cost_themselves(
    collector: Callable[..., Collector],
    sender: Callable[..., Sender],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A defect in making spans is counted with its rows; the next rows make spans."""
    there = collector()
    here = sender(there.port)
    real = here.thread._maker.take
    calls = iter([True])

    def broken(found: Any) -> Any:
        if next(calls, False):
            raise KeyError("a defect")
        return real(found)

    monkeypatch.setattr(here.thread._maker, "take", broken)
    here.thread.offer(rows(300))
    assert len(there.next(44)) == 44
    assert here.stop()
    status = here.thread.status()
    assert (status.sent, status.dropped_rows, status.waiting_rows) == (44, 256, 0)
    assert "a defect" in status.last_error


def test_what_the_sdk_refuses_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own environment variables may name what does not exist."""
    monkeypatch.setenv("OTEL_PYTHON_EXPORTER_OTLP_HTTP_CREDENTIAL_PROVIDER", "nobody")
    with pytest.raises(OperationError, match=r"trace\.otlp: .*nobody"):
        open_exporter(Otlp())


def traces_in(folder: Path) -> set[str | None]:
    """The trace ids in the files of all routers; null once a row has none."""
    found: set[str | None] = set()
    for path in folder.glob("traces/date=*/router=*/part-*.parquet"):
        found |= set(pq.ParquetFile(path).read().column("trace_id").to_pylist())
    return found


VPN = """
TRACE
listeners:
  - {protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}
  - {protocol: link, bind: "127.0.0.1:0"}
msg_vpns:
  blue:
    authentication: {basic: {enabled: false}}
    client_profiles: {default: {allow_bridge_connections_enabled: true}}
"""

BRIDGE = """
    bridges:
      from-blue:
        remote_authentication: {basic: {client_username: core}}
        remote_msg_vpns: [{name: blue, location: "LOCATION"}]
        remote_subscriptions: ["weather/>"]
"""


async def test_a_message_over_a_bridge_is_one_trace(
    running: Any,
    client_of: Any,
    port: Any,
    collector: Callable[..., Collector],
    tmp_path: Path,
    until: Any,
) -> None:
    """Four spans of two routers hang together; trace files have the same trace."""
    there = collector()
    trace = (
        f"trace: {{directory: {tmp_path}/traces, sample: 1.0, otlp: "
        f'{{enabled: true, endpoint: "http://127.0.0.1:{there.port}/v1/traces"}}}}'
    )
    async with running(VPN.replace("TRACE", trace), "edge") as edge:
        location = f"127.0.0.1:{port(edge, 'link')}"
        text = (VPN + BRIDGE).replace("blue", "yellow", 2).replace("TRACE", trace)
        text = text.replace("LOCATION", location)
        async with running(text, "core") as core:
            await until(lambda: core.bridges[0].record.inbound_state is Inbound.READY_IN_SYNC)
            subscriber, publisher = await client_of(core), await client_of(edge)
            await subscriber.connect("s")
            await subscriber.subscribe("#")
            await publisher.connect("p")
            await publisher.publish("weather/1", b"rain")
            assert await subscriber.payload() == b"rain"
    found = await trio.to_thread.run_sync(there.next, 4)
    spans = {
        (resource["service.name"], resource["service.instance.id"], span.name): span
        for resource, span in found
    }
    entry = spans["edge", "blue", "(topic) receive"]
    over = spans["edge", "blue", "(anonymous) send"]
    arrival = spans["core", "yellow", "(topic) receive"]
    out = spans["core", "yellow", "(anonymous) send"]
    assert entry.parent_span_id == b""
    assert over.parent_span_id == entry.span_id
    assert arrival.parent_span_id == over.span_id
    assert out.parent_span_id == arrival.span_id
    assert values(entry.attributes)["messaging.solace.client_name"] == "p"
    assert values(out.attributes)["messaging.solace.client_name"] == "s"
    assert values(out.attributes)["messaging.solace.send.outcome"] == "accepted"
    assert values(arrival.attributes)["messaging.vpnrouter.bridge"] == "from-blue"
    assert entry.start_time_unix_nano <= over.end_time_unix_nano
    assert traces_in(tmp_path) - {None} == {span.trace_id.hex() for span in spans.values()}


# -- otlp spans ------------------------------------------------------------------------------------


def span(kind: str = CONSUMER, parent: int = 0, **options: Any) -> Span:
    """A span of message VPN blue."""
    return Span(
        "(topic) receive",
        kind,
        vpn="blue",
        trace_id=1 << 100,
        span_id=7,
        parent=parent,
        start_ns=10,
        end_ns=20,
        attributes={"a": 1},
        **options,
    )


def test_a_span_is_the_same_afterwards() -> None:
    """Ids, times, name, attributes and events come through."""
    made = span(parent=9, remote=True, error="503 Spool Over Quota")
    made.events.append(SpanEvent("q enqueue", 15, {"b": "x"}))
    read = SpanFactory("edge", "1.2").span(made)
    assert read.name == "(topic) receive"
    assert (read.context.trace_id, read.context.span_id) == (1 << 100, 7)
    assert read.context.trace_flags.sampled
    assert read.parent is not None
    assert (read.parent.trace_id, read.parent.span_id, read.parent.is_remote) == (1 << 100, 9, True)
    assert (read.start_time, read.end_time) == (10, 20)
    assert read.attributes == {"a": 1}
    (event,) = read.events
    assert (event.name, event.timestamp, event.attributes) == ("q enqueue", 15, {"b": "x"})
    assert read.status.status_code == StatusCode.ERROR
    assert read.status.description == "503 Spool Over Quota"


def test_the_kinds() -> None:
    """Each kind is the SDK's of the same name; without a parent and an error there are none."""
    factory = SpanFactory("edge", "1.2")
    for kind, same in (
        (CONSUMER, SpanKind.CONSUMER),
        (PRODUCER, SpanKind.PRODUCER),
        (INTERNAL, SpanKind.INTERNAL),
    ):
        read = factory.span(span(kind))
        assert read.kind == same
        assert read.parent is None
        assert read.status.status_code == StatusCode.UNSET
