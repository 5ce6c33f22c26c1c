"""Holds what the connections of clients have in common, whatever protocol they speak."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr
from typing_extensions import override

from vpnrouter import limits
from vpnrouter.core.connection import Connection
from vpnrouter.core.memory_account import OUTGROWN
from vpnrouter.core.pre_login_limits import NO_MEMORY, REASON_TEXTS
from vpnrouter.events import table

if TYPE_CHECKING:
    from vpnrouter.core.login import Admission
    from vpnrouter.core.publisher import Publisher
    from vpnrouter.core.router import Router
    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.events.table import EventType


@mypyc_attr(allow_interpreted_subclasses=True)
class ClientConnection(Connection):
    """The connection of one client. `listener_vpn` is the VPN its listener stands for, "" when clients choose.

    `admission` is the result of the login, `publisher` its publishing side; each is None before the login.
    """

    __slots__ = ("admission", "listener_vpn", "publisher", "router")

    def __init__(self, router: Router, peer: str, listener_vpn: str) -> None:
        super().__init__(router.context, peer, limits.OUTBOX_BYTES)
        self.router = router
        self.listener_vpn = listener_vpn
        self.admission: Admission | None = None
        self.publisher: Publisher | None = None
        self.hold_in(router.pre_login_limits.held)

    @property
    def platform(self) -> str:
        """The protocol and its version, as people write it."""
        raise AssertionError(self)

    @property
    def keepalive_s(self) -> int:
        """Seconds of silence for which the client may be, 0 for no bound."""
        raise AssertionError(self)

    @property
    def bind_count(self) -> int:
        """How many flows the client has bound to queues and topic endpoints."""
        raise AssertionError(self)

    def put_out(self, why: str, *, stopping: bool = False) -> None:
        """Disconnect the client: an operator or a changed configuration wants it, or the router is `stopping`."""
        raise AssertionError(why)

    @override
    def lost(self, reason: str) -> None:
        self.ends(reason)
        lost = self.outbox.close()
        if lost and self.admission is not None:
            self.admission.vpn.count_lost(lost, self.outbox)

    def ends(self, why: str) -> None:
        """End without a word to the client, which has gone or will learn nothing."""
        raise AssertionError(why)

    def evicted(self, *, logged_in: bool) -> str:
        """Count or report that the connection holds too much, and return the reason that its peer is told."""
        if logged_in:
            self.report_protocol_error(OUTGROWN)
            return OUTGROWN
        self.router.pre_login_limits.turned_away(NO_MEMORY, self.peer)
        return REASON_TEXTS[NO_MEMORY]

    # -- events ----------------------------------------------------------------------------------

    def report_protocol_error(self, why: str) -> None:
        """Report a violation of the protocol."""
        raise AssertionError(why)

    def report(self, kind: EventType, msg_vpn: str, name: str, text: str) -> None:
        """Raise an event about the client `name`, which is logged in to a message VPN; `text` follows what names it."""
        events = self.context.events
        if events is not None:
            username = "" if self.admission is None else self.admission.username.name
            who = f"VPN {msg_vpn} client {name} username {username} from {self.peer}"
            events.raise_event(kind, msg_vpn, name, who + text)

    def report_gone(self, publisher: Publisher, sent: int, why: str) -> None:
        """Raise the event of a client that was logged in; `sent` is how many messages it was sent."""
        text = f" disconnected: {why}; received {publisher.messages:,} sent {sent:,} messages"
        subscriber = publisher.subscriber
        self.report(table.DISCONNECT, publisher.vpn.name, subscriber.client_name, text)

    def report_failed(self, vpn: MessageVpn | None, name: str, username: str, why: str) -> None:
        """Raise the event of a login to `vpn` (None: unknown) that failed, by what the peer calls itself."""
        events = self.context.events
        if events is None:
            return
        # Not what a stranger calls one.
        place = "" if vpn is None or vpn.name not in self.router.vpns else vpn.name
        text = (
            f"VPN {place or '?'} client {name} username {username}"
            f" from {self.peer}: connect failed: {why}"
        )
        events.raise_event(table.CONNECT_FAIL, place, name, text)

    def judge_again(self, rights: Admission, *, told: bool) -> bool:
        """Apply changed rights of the client username; True when something has changed, which is an event if `told`."""
        raise AssertionError(rights)
