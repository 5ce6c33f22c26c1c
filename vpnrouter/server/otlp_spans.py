"""The spans of `vpnrouter.trace.span` as objects of the OpenTelemetry SDK.

The only module here that imports the SDK when it is imported: import it when spans are to be sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from vpnrouter.trace import span as names

if TYPE_CHECKING:
    from vpnrouter.trace.span import Span

_KINDS: Final = {
    names.CONSUMER: SpanKind.CONSUMER,
    names.PRODUCER: SpanKind.PRODUCER,
    names.INTERNAL: SpanKind.INTERNAL,
}
_SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)
_FINE: Final = Status(StatusCode.UNSET)


class SpanFactory:
    """Makes the SDK's spans for one router.

    Args:
        router: `service.name`.
        version: `service.version`.
    """

    def __init__(self, router: str, version: str) -> None:
        self._router = router
        self._version = version
        self._scope = InstrumentationScope("vpnrouter", version)
        self._resources: dict[str, Resource] = {}

    def resource(self, vpn: str) -> Resource:
        """Who made the spans of a message VPN; the environment has no say in it."""
        known = self._resources.get(vpn)
        if known is None:
            known = Resource(
                {
                    "service.name": self._router,
                    "service.instance.id": vpn,
                    "service.version": self._version,
                }
            )
            self._resources[vpn] = known
        return known

    def span(self, span: Span) -> ReadableSpan:
        """The same span."""
        trace = span.trace_id
        parent = None
        if span.parent:
            parent = SpanContext(trace, span.parent, span.remote, _SAMPLED)
        return ReadableSpan(
            name=span.name,
            context=SpanContext(trace, span.span_id, is_remote=False, trace_flags=_SAMPLED),
            parent=parent,
            resource=self.resource(span.vpn),
            attributes=span.attributes,
            events=[Event(e.name, e.attributes, e.ts_ns) for e in span.events],
            kind=_KINDS[span.kind],
            status=Status(StatusCode.ERROR, span.error) if span.error else _FINE,
            start_time=span.start_ns,
            end_time=span.end_ns,
            instrumentation_scope=self._scope,
        )
