"""Trace rows as spans."""

import re
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from vpnrouter import limits
from vpnrouter.trace import span as names
from vpnrouter.trace.span import Span, span_id
from vpnrouter.trace.spans import COLUMNS, SEND_WAIT_NS, SpanMaker

HIGH, LOW, NUMBER = 0x11, 0x22, 7


TRACE = f"{HIGH:016x}{LOW:016x}"


T = 1_728_561_600_000_000_000


Row = dict[str, Any]


def row(event: str, at: int = 0, **fields: Any) -> Row:
    """A row of the message, `at` nanoseconds after its time; `fields` are columns."""
    found: Row = dict.fromkeys(COLUMNS)
    found |= {"ts_ns": T + at, "vpn": "blue", "event": event, "trace_id": TRACE}
    found |= {"message_id": NUMBER, "topic": "a/b", "mode": "direct", "size_bytes": 5, "hops": 0}
    return found | fields


def spans(*rows: Row, router: str = "edge") -> list[Span]:
    """All spans of the rows, taken at once."""
    maker = SpanMaker(router)
    return maker.take(rows) + maker.flush()


def name_of(
    event: str, client: str = "", endpoint: str = "", router: str = "edge", vpn: str = "blue"
) -> int:
    """The id of a span of the message."""
    return span_id(HIGH, LOW, NUMBER, router, vpn, event, client, endpoint)


def test_an_ingress_is_a_receive_span() -> None:
    """Name, kind, ids and attributes are the field's."""
    (span,) = spans(row("ingress", client="c", since_ingress_ns=0, origin_ts_ns=T))
    assert (span.name, span.kind, span.vpn) == ("(topic) receive", "consumer", "blue")
    assert span.trace_id == HIGH << 64 | LOW
    assert (span.span_id, span.parent, span.remote) == (name_of("receive"), 0, False)
    assert (span.start_ns, span.end_ns, span.error, span.events) == (T, T, "", [])
    assert span.attributes == {
        "messaging.system": "vpnrouter",
        "messaging.operation": "receive",
        "messaging.message_id": "7",
        "messaging.destination": "a/b",
        "messaging.message_payload_size_bytes": 5,
        "messaging.solace.client_name": "c",
        "messaging.solace.delivery_mode": "direct",
        "messaging.solace.broker_receive_time_unix_nano": T,
        "messaging.vpnrouter.hops": 0,
        "messaging.vpnrouter.origin_time_unix_nano": T,
    }


def test_the_sender_of_a_traceparent_is_the_parent() -> None:
    """The span id that came with the message is the receive span's parent, in another process."""
    (span,) = spans(row("ingress", client="c", parent_span_id="00f067aa0ba902b7"))
    assert (span.parent, span.remote) == (0x00F067AA0BA902B7, True)


def test_what_happens_on_arrival_are_events_of_the_receive_span() -> None:
    """Endpoints that took the message or not, promotion, discards; its end is the last of them."""
    (span,) = spans(
        row("ingress", client="c"),
        row("promote", 1, endpoint="q"),
        row("enqueue", 2, endpoint="q", partition=3),
        row("discard", 3, endpoint="r", reason="max-msg-spool-usage-exceeded"),
        row("discard", 4, client="d", reason="transmit-congestion"),
        row("demote", 5),
    )
    assert [(event.name, event.ts_ns - T, event.attributes) for event in span.events] == [
        ("q promote", 1, {}),
        ("q enqueue", 2, {"messaging.solace.partition_number": 3}),
        (
            "r enqueue",
            3,
            {"messaging.solace.enqueue_error_message": "max-msg-spool-usage-exceeded"},
        ),
        (
            "discard",
            4,
            {
                "messaging.vpnrouter.reason": "transmit-congestion",
                "messaging.solace.client_name": "d",
            },
        ),
        ("demote", 5, {}),
    ]
    assert span.end_ns == T + 5
    assert span.error == ""


def test_a_refused_message_is_an_error() -> None:
    """What the publisher was told is the span's status."""
    (span,) = spans(row("ingress"), row("reject", 2, reason="503 Spool Over Quota"))
    assert (span.error, span.end_ns) == ("503 Spool Over Quota", T + 2)
    assert span.events[0].name == "reject"


def test_a_span_has_so_many_events() -> None:
    """Further ones are counted, those that failed by themselves."""
    most = limits.OTLP_SPAN_EVENTS
    (span,) = spans(
        row("ingress"),
        *(row("enqueue", n, endpoint=f"q{n}") for n in range(most + 3)),
        row("discard", most + 9, endpoint="r", reason="queue-not-found"),
    )
    assert len(span.events) == most
    assert span.attributes["messaging.solace.dropped_enqueue_events_success"] == 3
    assert span.attributes["messaging.solace.dropped_enqueue_events_failed"] == 1
    assert span.end_ns == T + most + 9


def test_a_direct_send_lasts_from_entry_to_the_system() -> None:
    """It is accepted when the system has it, and its parent is the receive span of the VPN."""
    send, receive = spans(
        row("ingress", client="c"), row("deliver", 900, client="d", since_ingress_ns=900)
    )
    assert (send.name, send.kind) == ("(anonymous) send", "producer")
    assert (send.start_ns, send.end_ns) == (T, T + 900)
    assert (send.span_id, send.parent) == (name_of("deliver", "d"), receive.span_id)
    assert send.attributes["messaging.solace.send.outcome"] == "accepted"
    assert send.attributes["messaging.operation"] == "send"
    assert "messaging.source.name" not in send.attributes
    assert receive.end_ns == T + 900


def test_a_bridge_links_the_spans_of_two_routers() -> None:
    """The receive span's parent there is the send span here, although neither knows the other."""
    send, _ = spans(
        row("ingress"),
        row(
            *("bridge_send", 50),
            client="#bridge/core/yellow/up",
            bridge="up",
            peer_router="core",
            peer_vpn="yellow",
            hops=1,
        ),
    )
    (receive,) = spans(
        row(
            *("bridge_receive", 70),
            vpn="yellow",
            bridge="up",
            peer_router="edge",
            peer_vpn="blue",
            hops=1,
            path="edge/blue",
            origin_router="edge",
            origin_vpn="blue",
        ),
        router="core",
    )
    assert receive.parent == send.span_id
    assert (receive.remote, receive.vpn) == (True, "yellow")
    assert receive.span_id == name_of("receive", router="core", vpn="yellow")
    assert receive.attributes["messaging.vpnrouter.bridge"] == "up"
    assert receive.attributes["messaging.vpnrouter.path"] == "edge/blue"
    assert send.attributes["messaging.vpnrouter.peer_router"] == "core"
    assert send.attributes["messaging.solace.send.outcome"] == "accepted"


def test_a_consumer_answers() -> None:
    """The send span of an endpoint lasts from the sending to the answer, which is its outcome."""
    fields = {"endpoint": "q", "client": "d", "mode": "persistent"}
    for answer, outcome in (("acknowledge", "accepted"), ("reject", "rejected")):
        (span,) = spans(row("deliver", 10, **fields), row(answer, 60, **fields, reason="rejected"))
        assert (span.name, span.kind) == ("q send", "producer")
        assert (span.start_ns, span.end_ns) == (T + 10, T + 60)
        assert span.attributes["messaging.source.name"] == "q"
        assert span.attributes["messaging.solace.send.outcome"] == outcome
        assert (span.span_id, span.parent) == (name_of("deliver", "d", "q"), name_of("receive"))


def test_a_message_that_comes_back_was_released() -> None:
    """Sent once more, to whomever, the first send ends as released and another begins."""
    first, second = spans(
        row("deliver", 10, endpoint="q", client="d", mode="persistent"),
        row("redeliver", 40, endpoint="q", client="e", mode="persistent"),
        row("acknowledge", 60, endpoint="q", client="e", mode="persistent"),
    )
    assert first.attributes["messaging.solace.send.outcome"] == "released"
    assert (first.end_ns, second.end_ns) == (T + 40, T + 60)
    assert second.attributes["messaging.solace.send.outcome"] == "accepted"
    assert second.attributes["messaging.vpnrouter.redelivered"] is True
    assert second.span_id == name_of("redeliver", "e", "q")


def test_a_guaranteed_send_over_a_bridge_is_answered_by_the_bridge() -> None:
    """Its row names no endpoint; the answer does."""
    client = "#bridge/core/yellow/up"
    (span,) = spans(
        row("bridge_send", 10, client=client, mode="persistent", bridge="up"),
        row("acknowledge", 70, client=client, mode="persistent", endpoint="q"),
    )
    assert (span.name, span.end_ns) == ("q send", T + 70)
    assert span.span_id == name_of("bridge_send", client)
    assert span.attributes["messaging.solace.send.outcome"] == "accepted"


def test_a_move_names_where_from_where_to_and_why() -> None:
    """To the dead message queue, or away: the reason is told in the field's words."""
    for reason, told in (
        ("max-ttl-expired", "ttl_expired"),
        ("rejected", "rejected_nack"),
        ("max-redelivery-exceeded", "max_redeliveries_exceeded"),
    ):
        enqueue, move = spans(
            row("expire", 1, endpoint="q", reason=reason),
            row("enqueue", 2, endpoint="#DEAD_MSG_QUEUE"),
            row("dead_letter", 3, endpoint="q", reason=reason),
        )
        assert (enqueue.name, enqueue.parent) == ("#DEAD_MSG_QUEUE enqueue", name_of("receive"))
        assert (move.name, move.kind, move.parent) == ("q move", "internal", name_of("receive"))
        assert move.span_id == name_of("dead_letter", "", "q")
        assert move.attributes["messaging.solace.operation.reason"] == told
        assert move.attributes["messaging.source.name"] == "q"
        assert move.attributes["messaging.destination.name"] == "#DEAD_MSG_QUEUE"
        (gone,) = spans(row("discard", 3, endpoint="q", reason=reason))
        assert gone.name == "q move"
        assert "messaging.destination.name" not in gone.attributes


def test_an_answer_alone_is_a_span_too() -> None:
    """What comes when the send is forgotten is not lost."""
    (span,) = spans(row("acknowledge", 5, endpoint="q", client="d"))
    assert (span.name, span.start_ns, span.end_ns) == ("q send", T + 5, T + 5)
    assert span.attributes["messaging.solace.send.outcome"] == "accepted"
    assert span.span_id == name_of("acknowledge", "d", "q")


def test_rows_without_a_trace_or_a_message_make_no_span() -> None:
    """Sums of discards, links and subscriptions have none."""
    events = ("link_up", "link_down", "link_rejected", "subscribe", "unsubscribe", "expire")
    rows = [row(event) for event in events]
    assert (
        spans(*rows, row("discard", trace_id=None, reason="x"), row("ingress", trace_id=None)) == []
    )


def test_a_receive_span_waits_for_one_more_lot() -> None:
    """Rows of one message may fall into two lots; after them, or a flush, the span goes out."""
    maker = SpanMaker("edge")
    assert maker.take([row("ingress")]) == []
    (span,) = maker.take([row("enqueue", 4, endpoint="q")])
    assert [event.name for event in span.events] == ["q enqueue"]
    (late,) = maker.take([row("enqueue", 9, endpoint="r")])
    assert (late.name, late.parent, late.start_ns) == ("r enqueue", span.span_id, T + 9)
    assert maker.take([row("ingress", message_id=8)]) == []
    (other,) = maker.flush(T)
    assert other.attributes["messaging.message_id"] == "8"


def test_a_send_waits_so_long_for_its_outcome() -> None:
    """Then it goes out without one; and so does the oldest when too many wait."""
    maker = SpanMaker("edge", open_sends=2)
    maker.take([row("deliver", endpoint="q", client="d", mode="persistent")])
    assert maker.flush(T + SEND_WAIT_NS) == []
    (span,) = maker.flush(T + SEND_WAIT_NS + 1)
    assert "messaging.solace.send.outcome" not in span.attributes
    rows = [row("deliver", n, endpoint="q", client="d", message_id=n) for n in range(1, 5)]
    assert [span.start_ns - T for span in maker.take(rows)] == [1, 2]
    assert [span.start_ns - T for span in maker.flush()] == [3, 4]


def test_a_message_that_comes_twice_has_two_receive_spans() -> None:
    """By two ways: the first goes out as it is."""
    first, second = spans(row("bridge_receive", bridge="a"), row("bridge_receive", 3, bridge="b"))
    assert [span.attributes["messaging.vpnrouter.bridge"] for span in (first, second)] == ["a", "b"]


def test_ids_beyond_the_signed_range() -> None:
    """The span id of a message id that stands as a negative number is that of the number meant."""
    (span,) = spans(row("ingress", message_id=-1))
    assert span.span_id == span_id(HIGH, LOW, 2**64 - 1, "edge", "blue", "receive")


PAGE = (Path(__file__).parents[2] / "docs" / "opentelemetry.md").read_text(encoding="utf-8")


def test_the_page_lists_every_attribute() -> None:
    """docs/opentelemetry.md has each attribute name once, and no other."""
    section = PAGE.split("\n## Attributes\n", 1)[1].split("\n## ")[0]
    listed = re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)
    known = [value for value in vars(names).values() if str(value).startswith("messaging.")]
    assert sorted(listed) == sorted(known)


def test_spans_share_no_list() -> None:
    """Each span has events of its own."""
    first, second = (
        Span(
            "n",
            names.INTERNAL,
            vpn="v",
            trace_id=1,
            span_id=1,
            parent=0,
            start_ns=1,
            end_ns=1,
            attributes={},
        )
        for _ in range(2)
    )
    first.events.append(names.SpanEvent("e", 1, {}))
    assert second.events == []


half = st.integers(0, (1 << 64) - 1)


row_of = st.tuples(
    half, half, half, st.text(), st.text(), st.sampled_from(("deliver", "ingress")), st.text()
)


def test_it_stays() -> None:
    """The number is part of what others have written down: it never changes."""
    assert span_id(1, 2, 3, "edge", "blue", "deliver", "c", "q") == 0x435C7D16D47B789B


@given(row_of, row_of)
def test_it_tells_rows_apart(
    one: tuple[int, int, int, str, str, str, str], other: tuple[int, int, int, str, str, str, str]
) -> None:
    """Two rows have the same id just when they are the same."""
    assert (span_id(*one) == span_id(*other)) == (one == other)
    assert 0 < span_id(*one) < 1 << 64


def test_names_do_not_run_together() -> None:
    """What ends one name does not begin the next."""
    found = {
        span_id(1, 2, 3, router, vpn, "deliver", client, endpoint)
        for router, vpn, client, endpoint in (
            ("ab", "c", "d", ""),
            ("a", "bc", "d", ""),
            ("ab", "", "cd", ""),
            ("ab", "c", "", "d"),
        )
    }
    assert len(found) == 4
