"""Rows of traces tell by which link of which connector a message came or went, and from or to which provider."""

from types import ModuleType
from typing import Any, Final

import pytest

from vpnrouter.trace.span import span_id
from vpnrouter.wire.mqtt.packets import Publish
from vpnrouter.wire.mqtt.properties import Properties

PROVIDER: Final = "mqtt://provider:1"
QUALITIES: Final = ["at-most-once", "duplicates-ok", "once-and-only-once"]


@pytest.fixture
def traced(kit: ModuleType, spooled: ModuleType) -> Any:
    """`traced(links)`: a connector in a router that traces all messages."""

    def make(links: dict[str, Any], **more: Any) -> Any:
        return kit.Connected(spooled.SpooledWorld(sample=1.0), links, **more)

    return make


def told(there: Any) -> list[tuple[str, str, str, str, str]]:
    """Event, client, endpoint, link and provider of what was recorded of messages."""
    return [
        (
            row.event,
            row.context.client,
            row.context.endpoint,
            row.context.bridge,
            row.context.peer_router,
        )
        for row in there.world.rows()
        if row.topic and row.event not in ("subscribe", "unsubscribe")
    ]


@pytest.mark.parametrize("quality", QUALITIES)
@pytest.mark.parametrize("qos", [0, 1])
@pytest.mark.parametrize("level", [5, 4])
def test_inward(traced: Any, quality: str, qos: int, level: int) -> None:
    """An ingress names the link and the provider, whatever the QoS."""
    there = traced(
        {"in": {"source": {"address": "a/#"}, "quality_of_service": quality}}, level=level
    )
    there.join()
    there.world.rows()
    arrives = min(qos, QUALITIES.index(quality))
    there.send(Publish(b"a/b", b"1", arrives, packet_id=7 if arrives else 0))
    there.got()
    first, *_ = told(there)
    assert first == ("ingress", "#connector/there", "", "there/in", PROVIDER)


@pytest.mark.parametrize("quality", QUALITIES)
@pytest.mark.parametrize("source", [{"topic": "out/>"}, {"queue": "q"}])
@pytest.mark.parametrize("level", [5, 4])
def test_outward(traced: Any, quality: str, source: dict[str, str], level: int) -> None:
    """A delivery names them too; in MQTT 5 the message carries the span of that very row."""
    there = traced({"out": {"source": source, "quality_of_service": quality}}, level=level)
    there.world.queue("q", "out/#")
    there.join()
    there.world.router.context.emits = True
    client = there.world.join("p")
    client.pub("out/a", b"1", 1, 1)
    (message,) = there.published()
    rows = [row for row in there.world.rows() if row.context.bridge]
    (row,) = rows
    queue = "q" if "queue" in source else ("" if quality == "at-most-once" else "there/out")
    context = row.context
    assert (row.event, context.client, context.endpoint, context.bridge, context.peer_router) == (
        "deliver",
        "#connector/there/out",
        queue,
        "there/out",
        PROVIDER,
    )
    if level == 5:
        span = span_id(
            row.trace >> 64,
            row.trace & (1 << 64) - 1,
            row.message_id,
            there.world.router.context.router_name,
            "blue",
            "deliver",
            context.client,
            queue,
        )
        (parent,) = [
            text for name, text in message.properties.user_properties if name == "traceparent"
        ]
        assert f"-{span:016x}-" in parent


def test_one_trace_across_providers(traced: Any) -> None:
    """A message that a provider's publisher traces keeps its trace through the router."""
    there = traced({"in": {"source": {"address": "a/#"}}})
    there.world.router.context.honours = True
    there.join()
    there.world.rows()
    properties = Properties()
    properties.user_properties = [("traceparent", f"00-{7:032x}-{9:016x}-01")]
    there.send(Publish(b"a/b", b"1", 1, packet_id=7, properties=properties))
    there.got()
    row = next(row for row in there.world.rows() if row.event == "ingress")
    assert (row.trace, row.context.parent_span_id) == (7, f"{9:016x}")
    assert (row.context.bridge, row.context.peer_router) == ("there/in", PROVIDER)
