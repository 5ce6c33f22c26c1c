"""The audit trail: events that tell who changed what by the API, and who could not log in."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, final

from vpnrouter import limits
from vpnrouter.events import table
from vpnrouter.events.log import RateLimit

if TYPE_CHECKING:
    from vpnrouter.events.log import EventLog


@final
class Audit:
    """Raises events in the log of a router. Texts have no secret in them.

    `name` is the user's name, "" for a request from this machine where no users are configured.
    """

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._denials = RateLimit(limits.EVENT_DENIALS)

    def acted(self, name: str, what: str, msg_vpn: str = "") -> None:
        """Raise an event for an action on clients, queues, bridges or the spool.

        `msg_vpn` is the message VPN that it was about, "" for several or none: name sees only one reads that.
        """
        user = f"user {name}" if name else "somebody on this machine"
        self._log.raise_event(table.ACTION, msg_vpn, name, f"{user}: {what}")

    def denied(self, peer: str, why: str) -> None:
        """Raise an event for a failed login from address `peer`, as often as the limit of such events allows.

        No name is told: it may be a password.
        """
        if not self._denials.admits(table.LOGIN_DENIED.name, time.time_ns()):
            return
        before = sum(self._denials.suppressed().values())
        more = f"; {before:,} more before" if before else ""
        text = f"login from {peer} failed: {why}{more}"
        self._log.raise_event(table.LOGIN_DENIED, "", peer, text)
