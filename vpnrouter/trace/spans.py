"""Trace rows become spans: what one message VPN did with one message, as OpenTelemetry shows it.

A span's id and its parent's are functions of the row (`span_id`), so the spans of a message hold
together over all its routers although none of them asks another.

Rows that make one span lie close together; what is still open waits for them a while:

* A receive span is open until the end of the next lot of rows, or until `flush()`. Its end is the last
  thing that belongs to the arrival: into which endpoints the message went, to whom it was sent, why it
  was refused.
* A send of an endpoint is open until the consumer has answered, `SEND_WAIT_NS` at most; then it goes
  out without an outcome.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from vpnrouter import limits
from vpnrouter.trace import span as names
from vpnrouter.trace.span import (
    ACCEPTED,
    REJECTED,
    RELEASED,
    Span,
    SpanEvent,
    Value,
    span_id,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Row = Mapping[str, Any]
    Key = tuple[str, int, str, str]

RECEIVE: Final = "receive"
"""The event in a receive span's id: a router that sends the message on need not know how it was received."""

SEND_WAIT_NS: Final = 60 * 10**9
"""Longest time that a send waits for its outcome."""

MOVES: Final = {
    "max-ttl-expired": "ttl_expired",
    "rejected": "rejected_nack",
    "max-redelivery-exceeded": "max_redeliveries_exceeded",
}
"""Why a message left its endpoint for the dead message queue or for good: reason of the row, of the span."""

COLUMNS: Final = (
    *("ts_ns", "vpn", "event", "trace_id", "message_id", "topic", "mode", "size_bytes", "client"),
    *("endpoint", "bridge", "peer_router", "peer_vpn", "hops", "path", "reason"),
    *("since_ingress_ns", "origin_router", "origin_vpn", "origin_ts_ns", "partition"),
    "parent_span_id",
)
"""Columns that a row needs; each may be None where docs/traces.md says so."""

_MASK: Final = (1 << 64) - 1
_MESSAGE: Final = (
    (names.DESTINATION, "topic"),
    (names.PAYLOAD_SIZE, "size_bytes"),
    (names.DELIVERY_MODE, "mode"),
    (names.CLIENT_NAME, "client"),
)
_WAY: Final = (
    (names.BRIDGE, "bridge"),
    (names.PEER_ROUTER, "peer_router"),
    (names.PEER_VPN, "peer_vpn"),
    (names.HOPS, "hops"),
    (names.PATH, "path"),
    (names.ORIGIN_ROUTER, "origin_router"),
    (names.ORIGIN_VPN, "origin_vpn"),
    (names.ORIGIN_TIME, "origin_ts_ns"),
)


def bridge_client(router: str, vpn: str, bridge: str) -> str:
    """Return the client as which a bridge of `router` and `vpn` logs in at the other end."""
    return f"#bridge/{router}/{vpn}/{bridge}"


class SpanMaker:
    """Makes spans of the rows of one router, given in the order of its trace files.

    Args:
        router: the router's name.
        open_sends: sends that may wait for their outcome.
    """

    def __init__(self, router: str, open_sends: int = limits.OTLP_OPEN_SPANS) -> None:
        self._router = router
        self._open_sends = open_sends
        # Both in the order of their beginning.
        self._receives: dict[Key, Span] = {}
        self._sends: dict[Key, Span] = {}
        self._done: list[Span] = []
        # The last endpoint that took a message: right before a dead letter it is where that went.
        self._placed: tuple[Key, str] | None = None
        self._rules: dict[str, Callable[[Row], None]] = {
            "ingress": self._received,
            "bridge_receive": self._received,
            "enqueue": self._enqueued,
            "promote": self._noted,
            "demote": self._noted,
            "discard": self._discarded,
            "reject": self._refused,
            "deliver": self._sent,
            "redeliver": self._sent_again,
            "bridge_send": self._sent,
            "acknowledge": self._accepted,
            "dead_letter": self._moved,
        }
        # "expire" is followed by what became of the message; the rest is about no message.

    def take(self, rows: Iterable[Row]) -> list[Span]:
        """Return the spans that are complete with these rows; rows without a trace make none."""
        before = list(self._receives)
        for row in rows:
            rule = self._rules.get(row["event"])
            if rule is not None and row["trace_id"] is not None:
                rule(row)
        for key in before:
            span = self._receives.pop(key, None)
            if span is not None:
                self._done.append(span)
        while len(self._sends) > self._open_sends:
            self._done.append(self._sends.pop(next(iter(self._sends))))
        return self._out()

    def flush(self, now_ns: int | None = None) -> list[Span]:
        """Return the receive spans that are open, and the sends that have waited long enough.

        Args:
            now_ns: wall clock, nanoseconds since 1970; None when no more rows come, for all sends.
        """
        self._done += self._receives.values()
        self._receives.clear()
        for key, span in list(self._sends.items()):
            if now_ns is None or now_ns - span.start_ns > SEND_WAIT_NS:
                self._done.append(self._sends.pop(key))
        return self._out()

    def _out(self) -> list[Span]:
        done = self._done
        self._done = []
        return done

    # -- arrival ---------------------------------------------------------------------------------

    def _received(self, row: Row) -> None:
        ts = row["ts_ns"]
        attributes = _attributes(row, "receive")
        attributes[names.RECEIVE_TIME] = ts
        parent = 0
        if row["parent_span_id"] is not None:
            parent = int(row["parent_span_id"], 16)
        elif row["event"] == "bridge_receive" and row["peer_router"] is not None:
            parent = _id(
                row,
                row["peer_router"],
                row["peer_vpn"] or "",
                "bridge_send",
                bridge_client(self._router, row["vpn"] or "", row["bridge"] or ""),
            )
        span = self._span(row, "(topic) receive", names.CONSUMER, ts, ts, attributes)
        span.span_id = _id(row, self._router, row["vpn"] or "", RECEIVE)
        span.parent = parent
        span.remote = parent != 0
        key = _key(row, "")
        earlier = self._receives.pop(key, None)
        if earlier is not None:
            self._done.append(earlier)
        self._receives[key] = span

    def _enqueued(self, row: Row) -> None:
        attributes: dict[str, Value] = {}
        if row["partition"] is not None:
            attributes[names.PARTITION] = row["partition"]
        self._note(row, f"{row['endpoint']} enqueue", attributes)
        self._placed = _key(row, ""), row["endpoint"] or ""

    def _noted(self, row: Row) -> None:
        event = row["event"]
        self._note(row, event if row["endpoint"] is None else f"{row['endpoint']} {event}", {})

    def _discarded(self, row: Row) -> None:
        reason = row["reason"] or ""
        if row["endpoint"] is None:
            attributes: dict[str, Value] = {names.REASON: reason}
            if row["client"] is not None:
                attributes[names.CLIENT_NAME] = row["client"]
            self._note(row, "discard", attributes)
        elif reason in MOVES:
            self._moved(row)
        else:
            self._note(row, f"{row['endpoint']} enqueue", {names.ENQUEUE_ERROR: reason})

    def _refused(self, row: Row) -> None:
        if row["endpoint"] is not None:
            self._settled(row, REJECTED)
            return
        reason = row["reason"] or "rejected"
        self._note(row, "reject", {names.REASON: reason}, reason)

    def _note(self, row: Row, name: str, attributes: dict[str, Value], error: str = "") -> None:
        """Add an event to the message's receive span; if that was sent already, make a span of the event."""
        span = self._receives.get(_key(row, ""))
        ts = row["ts_ns"]
        if span is None:
            span = self._span(row, name, names.INTERNAL, ts, ts, attributes)
            span.error = error
            self._done.append(span)
            return
        span.end_ns = max(span.end_ns, ts)
        span.error = span.error or error
        if len(span.events) < limits.OTLP_SPAN_EVENTS:
            span.events.append(SpanEvent(name, ts, attributes))
            return
        failed = row["event"] in {"discard", "reject"}
        counter = names.DROPPED_FAILED if failed else names.DROPPED_SUCCESS
        span.attributes[counter] = int(span.attributes.get(counter, 0)) + 1

    # -- sends -----------------------------------------------------------------------------------

    def _sent(self, row: Row) -> None:
        end = row["ts_ns"]
        if row["endpoint"] is None and (row["event"] == "deliver" or row["mode"] == "direct"):
            receive = self._receives.get(_key(row, ""))
            if receive is not None:
                receive.end_ns = max(receive.end_ns, end)
            span = self._send(row, end - (row["since_ingress_ns"] or 0), end)
            span.attributes[names.OUTCOME] = ACCEPTED
            self._done.append(span)
            return
        key = _key(row, row["endpoint"] or row["client"] or "")
        earlier = self._sends.pop(key, None)
        if earlier is not None:
            self._done.append(earlier)
        self._sends[key] = self._send(row, end, end)

    def _sent_again(self, row: Row) -> None:
        earlier = self._sends.pop(_key(row, row["endpoint"] or ""), None)
        if earlier is not None:
            self._end(earlier, row["ts_ns"], RELEASED)
        self._sent(row)

    def _accepted(self, row: Row) -> None:
        self._settled(row, ACCEPTED)

    def _settled(self, row: Row, outcome: str) -> None:
        span = self._sends.pop(_key(row, row["endpoint"] or ""), None)
        if span is None:
            # A send over a bridge names no endpoint.
            span = self._sends.pop(_key(row, row["client"] or ""), None)
        if span is None:
            span = self._send(row, row["ts_ns"], row["ts_ns"])
        elif row["endpoint"] is not None:
            span.name = f"{row['endpoint']} send"
            span.attributes[names.SOURCE_NAME] = row["endpoint"]
        self._end(span, row["ts_ns"], outcome)

    def _send(self, row: Row, start_ns: int, end_ns: int) -> Span:
        attributes = _attributes(row, "send")
        name = "(anonymous) send"
        if row["endpoint"] is not None:
            name = f"{row['endpoint']} send"
            attributes[names.SOURCE_NAME] = row["endpoint"]
        if row["event"] == "redeliver":
            attributes[names.REDELIVERED] = True
        return self._span(row, name, names.PRODUCER, start_ns, end_ns, attributes)

    def _end(self, span: Span, end_ns: int, outcome: str) -> None:
        span.end_ns = max(span.end_ns, end_ns)
        span.attributes[names.OUTCOME] = outcome
        self._done.append(span)

    # -- moves -----------------------------------------------------------------------------------

    def _moved(self, row: Row) -> None:
        endpoint = row["endpoint"] or ""
        reason = row["reason"] or ""
        attributes = _attributes(row, "move")
        attributes[names.SOURCE_NAME] = endpoint
        attributes[names.MOVE_REASON] = MOVES.get(reason, reason)
        placed = self._placed
        if row["event"] == "dead_letter" and placed is not None and placed[0] == _key(row, ""):
            attributes[names.DESTINATION_NAME] = placed[1]
            attributes[names.DESTINATION_KIND] = "queue"
        ts = row["ts_ns"]
        self._done.append(self._span(row, f"{endpoint} move", names.INTERNAL, ts, ts, attributes))

    def _span(
        self,
        row: Row,
        name: str,
        kind: str,
        start_ns: int,
        end_ns: int,
        attributes: dict[str, Value],
    ) -> Span:
        """Return a span of the row, whose parent is the receive span of its message VPN."""
        vpn = row["vpn"] or ""
        event = row["event"]
        # The other end of a bridge knows as whom it logged in, and no more.
        endpoint = "" if event == "bridge_send" else row["endpoint"] or ""
        return Span(
            name,
            kind,
            vpn=vpn,
            trace_id=int(row["trace_id"], 16),
            span_id=_id(row, self._router, vpn, event, row["client"] or "", endpoint),
            parent=_id(row, self._router, vpn, RECEIVE),
            start_ns=start_ns,
            end_ns=end_ns,
            attributes=attributes,
        )


def _key(row: Row, place: str) -> Key:
    return row["trace_id"], row["message_id"] or 0, row["vpn"] or "", place


def _id(row: Row, router: str, vpn: str, kind: str, client: str = "", endpoint: str = "") -> int:
    trace = int(row["trace_id"], 16)
    number = (row["message_id"] or 0) & _MASK
    return span_id(trace >> 64, trace & _MASK, number, router, vpn, kind, client, endpoint)


def _attributes(row: Row, operation: str) -> dict[str, Value]:
    """Return what every span says of its message."""
    attributes: dict[str, Value] = {names.SYSTEM: names.SYSTEM_NAME, names.OPERATION: operation}
    if row["message_id"] is not None:
        attributes[names.MESSAGE_ID] = str(row["message_id"])
    for name, column in _MESSAGE:
        value = row[column]
        if value is not None:
            attributes[name] = value
    for name, column in _WAY:
        value = row[column]
        if value is not None:
            attributes[name] = value
    return attributes
