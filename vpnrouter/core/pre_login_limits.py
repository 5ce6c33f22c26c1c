"""Limits what connections may hold before login: places, bytes and verifications, for each address and in all.

At a bound, the address that holds most makes room: its oldest connection, its largest unfinished packet, or its
longest waiting login. So a flood from one address hurts that address alone, and there the newest connections come in:
an honest client sends its CONNECT within a round trip, a hostile one waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.core.login_throttle import PRETEND, REFUSE, TOO_MANY_FAILURES, LoginThrottle
from vpnrouter.core.origin import origin_of
from vpnrouter.core.pending_connections import BufferedBytes, PendingConnections
from vpnrouter.core.verifications import Verifications
from vpnrouter.errors import Refused
from vpnrouter.events import table
from vpnrouter.wire.mqtt.reason import CONNECTION_RATE_EXCEEDED

if TYPE_CHECKING:
    from vpnrouter.core.turn import TurnContext
    from vpnrouter.core.verifications import PendingLogin

NO_DESCRIPTOR: Final = "no-descriptor-left"
MADE_ROOM: Final = "made-room"
NO_MEMORY: Final = "too-many-bytes"
LOGIN_BUSY: Final = "too-many-logins"
THROTTLED: Final = "too-many-failures"
"""Reasons for which strangers are turned away, as metrics and events name them."""

REASON_TEXTS: Final[dict[str, str]] = {
    NO_DESCRIPTOR: "no file descriptor is left beside the reserve",
    MADE_ROOM: "had not logged in, and others wanted the place",
    NO_MEMORY: "too many bytes of packets before login",
    LOGIN_BUSY: "too many passwords wait to be verified",
    THROTTLED: "too many failed logins",
}

EVENT_INTERVAL_NS: Final = 60_000_000_000
"""Each reason has at most one event in this time: a flood must not fill the log."""


@final
class PreLoginLimits:
    """The connections before login of one router, and the counts of those that were refused.

    `plain` are on plain sockets, `shaken` over TLS or WebSocket, which cost more. `held` are the bytes that they sent
    and that are not handled yet. `open` counts connections of all kinds; `most_open` bounds them, so that a reserve of
    descriptors is left. `refused` counts by reason.
    """

    __slots__ = (
        "_told",
        "context",
        "held",
        "most_open",
        "open",
        "plain",
        "refused",
        "shaken",
        "throttle",
        "verifications",
    )

    def __init__(self, context: TurnContext) -> None:
        self.context = context
        self.plain = PendingConnections(limits.STRANGERS, limits.STRANGERS_OF_ADDRESS)
        self.shaken = PendingConnections(
            limits.STRANGERS_SHAKING, limits.STRANGERS_SHAKING_OF_ADDRESS, context.ids.high | 1
        )
        self.held = BufferedBytes(limits.STRANGER_BYTES)
        self.throttle = LoginThrottle()
        self.verifications = Verifications(self.throttle)
        self.open = 0
        self.most_open = limits.OPEN_CONNECTIONS
        self.refused: dict[str, int] = {}
        self._told: dict[str, tuple[int, int]] = {}

    @property
    def strangers(self) -> int:
        """Connections that have not logged in."""
        return self.plain.count + self.shaken.count

    def bound(self, descriptors: int) -> None:
        """Set the bounds by the descriptors that the process may have; a reserve is left."""
        reserve = min(limits.RESERVED_DESCRIPTORS, descriptors // 2)
        self.most_open = min(limits.OPEN_CONNECTIONS, descriptors - reserve)
        self.plain.most = min(limits.STRANGERS, self.most_open // 2)
        self.shaken.most = min(limits.STRANGERS_SHAKING, self.most_open // 4)

    def has_place(self, strangers: PendingConnections, peer: str) -> bool:
        """Return whether one more connection from `peer` may come in; another one may be closed for it."""
        victim = strangers.victim(origin_of(peer))
        if victim is None and self.open >= self.most_open:
            victim = self.plain.of_greatest() or self.shaken.of_greatest()
            if victim is None:
                self.turned_away(NO_DESCRIPTOR, peer)
                return False
        if victim is not None:
            self.turned_away(MADE_ROOM, peer)
            victim.cut(REASON_TEXTS[MADE_ROOM])
        return True

    def out_of_descriptors(self, shortage: bool) -> bool:
        """Close a stranger if there is a `shortage` of descriptors. True when there is one and no stranger is left."""
        if not shortage:
            return False
        self.turned_away(NO_DESCRIPTOR, "")
        victim = self.plain.of_greatest() or self.shaken.of_greatest()
        if victim is not None:
            victim.cut(REASON_TEXTS[MADE_ROOM])
        return victim is None

    def turned_away(self, reason: str, peer: str) -> None:
        """Count that `peer` was turned away, and raise an event at most once in EVENT_INTERVAL_NS."""
        count = self.refused.get(reason, 0) + 1
        self.refused[reason] = count
        events = self.context.events
        if events is None:
            return
        now_ns = self.context.now_ns
        told_ns, told = self._told.get(reason, (now_ns - EVENT_INTERVAL_NS, 0))
        if now_ns - told_ns < EVENT_INTERVAL_NS:
            return
        self._told[reason] = (now_ns, count)
        text = f"turned away: {REASON_TEXTS[reason]}; {count - told:,} since last told, now from {peer or 'all'}"
        events.raise_event(table.STRANGERS_REFUSED, "", reason, text)

    def verify(self, login: PendingLogin, *, known: bool) -> None:
        """Queue a new login for verification; `known`: the username exists.

        Raises Refused after too many failures, with a reason code of MQTT 5 that links use as well.
        """
        waiting = self.verifications
        connection = login.connections[0]
        if waiting.share(connection, login.key):
            return
        now_ns = self.context.now_ns
        verdict = self.throttle.begin(
            login.origin, login.vpn, login.name, known=known, now_ns=now_ns
        )
        if verdict == REFUSE:
            self.turned_away(THROTTLED, connection.peer)
            raise Refused(TOO_MANY_FAILURES, CONNECTION_RATE_EXCEEDED)
        connection.login = login
        if verdict == PRETEND and login.hashed:
            self.context.timers.arm(now_ns + waiting.took_ns, login, 0)
            return
        displaced = waiting.add(login)
        if displaced is not None:
            waiting.drop(displaced)
            self.turned_away(LOGIN_BUSY, connection.peer)
            displaced.busy()
