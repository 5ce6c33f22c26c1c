from typing import Any

import pytest
from opentelemetry.trace import SpanKind, StatusCode

from vpnrouter.server.otlp import SpanFactory
from vpnrouter.trace.span import CONSUMER, INTERNAL, PRODUCER, Span, SpanEvent


def span(kind: str = CONSUMER, parent: int = 0, **options: Any) -> Span:
    """A span of message VPN blue."""
    return Span("(topic) receive", kind, "blue", 1 << 100, 7, parent, 10, 20, {"a": 1}, **options)


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


def test_the_resource_is_router_and_vpn(monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing that stands in the environment; there is one object for each VPN."""
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.name=other,host.name=h")
    factory = SpanFactory("edge", "1.2")
    resource = factory.resource("blue")
    assert dict(resource.attributes) == {
        "service.name": "edge",
        "service.instance.id": "blue",
        "service.version": "1.2",
    }
    assert factory.resource("blue") is resource
    assert factory.resource("green") is not resource
