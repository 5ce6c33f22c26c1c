"""Holds what the connections of clients have in common, whatever protocol they speak."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr

from vpnrouter import limits
from vpnrouter.core.connection import Connection

if TYPE_CHECKING:
    from vpnrouter.core.login import Admission
    from vpnrouter.core.publisher import Publisher
    from vpnrouter.core.router import Router


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

    def judge_again(self, rights: Admission, *, told: bool) -> bool:
        """Apply changed rights of the client username; True when something has changed, which is an event if `told`."""
        raise AssertionError(rights)
