"""From the `trace` block of a configuration to what the core traces by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vpnrouter.core.tracing import TraceFilter, TraceTerms
from vpnrouter.topics.grammar import MQTT, SMF, parse_filter
from vpnrouter.trace.sampler import Sampler

if TYPE_CHECKING:
    from vpnrouter.config import trace, trace_filter


def terms_of(written: trace.Trace | None, seed: int) -> TraceTerms | None:
    """What is traced besides the share of all messages; None where nothing is.

    `seed` is 64 random bits; each filter draws by its own.
    """
    if written is None or not written.enabled:
        return None
    enabled = [one for one in written.filters if one.enabled]
    return TraceTerms(
        "discard" in written.always,
        "reject" in written.always,
        [_filter(one, seed + index) for index, one in enumerate(enabled, start=1)],
        written.traceparent == "honour",
        written.emit_traceparent,
    )


def _filter(written: trace_filter.TraceFilter, seed: int) -> TraceFilter:
    dialect = MQTT if written.topic_syntax == "mqtt" else SMF
    return TraceFilter(
        Sampler(written.sample, seed),
        [parse_filter(text, dialect) for text in written.subscriptions],
        list(written.msg_vpns),
        list(written.client_usernames),
        list(written.client_names),
    )
