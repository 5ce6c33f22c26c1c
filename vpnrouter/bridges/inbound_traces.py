"""The trace events of an own bridge: its link came or went, a message came in."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from vpnrouter.trace.events import BRIDGE_RECEIVE, DIRECT, NON_PERSISTENT, PERSISTENT
from vpnrouter.trace.recorder import Context

if TYPE_CHECKING:
    from vpnrouter.bridges.link import Link
    from vpnrouter.bridges.terms import BridgeTerms
    from vpnrouter.core.message import Message


@final
class InboundTraces:
    """Records them for the bridge of `terms` on one link; remembers the last way a message came."""

    __slots__ = ("_bridge", "_link", "_received", "_remote_vpn")

    def __init__(self, link: Link, terms: BridgeTerms) -> None:
        self._link = link
        self._bridge = terms.bridge
        self._remote_vpn = terms.remote_vpn
        self._received: Context | None = None

    def link(self, event: int, why: str) -> None:
        """The link is up, down or was rejected; `why` is for people."""
        plane = self._link.plane
        if plane.tracing:
            context = self._context(event, why, 0, "")
            plane.recorder.record(context, plane.wall_ns, b"", 0, 0, 0, -1, -1, 0)

    def received(self, message: Message) -> None:
        """A traced message came over the link."""
        plane = self._link.plane
        context = self._received
        path = ">".join(message.path)
        mode = DIRECT
        if message.qos:
            mode = PERSISTENT if message.persistent else NON_PERSISTENT
        if (
            context is None
            or context.path != path
            or context.hops != message.hops
            or context.origin_router != message.origin_router
            or context.origin_vpn != message.origin_vpn
            or context.mode != mode
        ):
            context = self._context(BRIDGE_RECEIVE, "", message.hops, path, mode)
            context.origin_router = message.origin_router
            context.origin_vpn = message.origin_vpn
            self._received = context
        plane.recorder.record(
            context,
            plane.wall_ns,
            message.topic,
            message.trace_high,
            message.trace_low,
            message.message_id,
            len(message.payload),
            0,
            message.origin_ts_ns,
        )

    def _context(
        self, event: int, reason: str, hops: int, path: str, mode: int = DIRECT
    ) -> Context:
        link = self._link
        return Context(
            event,
            "" if link.vpn is None else link.vpn.name,
            mode,
            bridge=self._bridge,
            peer_router=link.peer_router,
            peer_vpn=link.peer_vpn or self._remote_vpn,
            reason=reason,
            hops=hops,
            path=path,
        )
