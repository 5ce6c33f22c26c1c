"""Raises events of the edge in the event log of the router that the task belongs to.

The log is in a context variable, which tasks inherit from the one that starts them.
Without one, in tools and tests, a line goes to stderr as it is.
"""

from __future__ import annotations

import sys
import time
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

from vpnrouter import limits
from vpnrouter.bridges.link_registry import LinkLog, client_name_of
from vpnrouter.bridges.peer_half import host_of
from vpnrouter.events import table
from vpnrouter.events.log import Event, EventLog, readable

if TYPE_CHECKING:
    from collections.abc import Callable

    from vpnrouter.bridges.bridge import Bridge
    from vpnrouter.core.context import RouterContext
    from vpnrouter.events.table import EventType
    from vpnrouter.wire.link.frames import Hello


_LOG: ContextVar[EventLog | None] = ContextVar("vpnrouter-event-log", default=None)


def use_log(log: EventLog) -> None:
    """Raise the events of this task, and of those that it starts, in `log`."""
    _LOG.set(log)


def current_log() -> EventLog | None:
    """The log of the router that this task belongs to."""
    return _LOG.get()


def raise_event(
    kind: EventType,
    text: str,
    msg_vpn: str = "",
    name: str = "",
    log: EventLog | None = None,
) -> None:
    """Raise one event in `log`, or in that of this task."""
    log = log or _LOG.get()
    if log is not None:
        log.raise_event(kind, msg_vpn, name, text)
    else:
        print(readable(Event(0, time.time_ns(), kind, msg_vpn, name, text)), file=sys.stderr)


def raise_event_in(
    context: RouterContext, kind: EventType, text: str, msg_vpn: str = "", name: str = ""
) -> None:
    """Raise one event in the log of a router, which may be called from any task."""
    raise_event(kind, text, msg_vpn, name, context.events)


def raise_named(event: str, text: str) -> None:
    """Raise one event of the router itself; `event` is a name or label of events/table.py, or ""."""
    raise_event(table.named(event), text)


PLAIN: Final = "link listener without TLS"
NOT_HERE: Final = "it speaks TLS, and this listener does not"


class PeerLog(LinkLog):
    """Raises the events of other routers' bridges that log in here; `failed` is HandshakeFailures.note.

    A refused bridge goes on trying: an event is raised once for each reason and address until it is let in.
    """

    __slots__ = ("_failed", "_rejected")

    def __init__(self, failed: Callable[[str, str, str, float], None]) -> None:
        super().__init__()
        self._failed = failed
        self._rejected: dict[tuple[str, str], tuple[str, str]] = {}

    def peer_up(self, record: Bridge) -> None:
        """Raise the event of a login, and forget why the bridge was refused before."""
        self._rejected.pop((record.facts.msg_vpn, record.facts.name), None)
        self._tell(record, table.LINK_UP, "up")

    def peer_down(self, record: Bridge, why: str) -> None:
        """Raise the event of a bridge that is down."""
        self._tell(record, table.LINK_DOWN, f"down: {why}")

    def peer_rejected(self, hello: Hello, peer: str, why: str) -> None:
        """Raise the event of a refusal, once for each reason and address."""
        key = (hello.remote_vpn, client_name_of(hello.router, hello.local_vpn, hello.bridge))
        told = (host_of(peer), why)
        if self._rejected.get(key) == told:
            return
        if key not in self._rejected and len(self._rejected) >= limits.LINK_REJECTED_TOLD:
            del self._rejected[next(iter(self._rejected))]
        self._rejected[key] = told
        raise_event(
            table.LINK_REJECTED,
            f"VPN {hello.remote_vpn} remote bridge {hello.bridge} of VPN {hello.local_vpn}"
            f" on {hello.router} at {peer}: rejected: {why}",
            hello.remote_vpn,
            hello.bridge,
        )

    def tls_met(self, peer: str) -> None:
        """Count a peer that speaks TLS to a listener without it as a failed handshake."""
        self._failed(PLAIN, peer, NOT_HERE, time.monotonic())

    @staticmethod
    def _tell(record: Bridge, kind: EventType, what: str) -> None:
        facts = record.facts
        text = f"VPN {facts.msg_vpn} remote bridge {facts.name} at {record.remote_address}: {what}"
        raise_event(kind, text, facts.msg_vpn, facts.name)
