"""What the connections to providers have in common, whatever they speak: whose memory they take, and how they end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr
from typing_extensions import override

from vpnrouter import limits
from vpnrouter.core.connection import Connection
from vpnrouter.core.memory_account import OUTGROWN, MemoryAccount

if TYPE_CHECKING:
    from vpnrouter.connectors.provider import Provider
    from vpnrouter.core.turn import TurnContext


@mypyc_attr(allow_interpreted_subclasses=True)
class ProviderConnection(Connection):
    """One connection of `provider`, which counts for the account `home`. `ended`: nothing more is read."""

    __slots__ = ("_home", "ended", "provider")

    def __init__(
        self,
        context: TurnContext,
        provider: Provider,
        peer: str,
        home: MemoryAccount,
        limit: int = limits.OUTBOX_BYTES,
    ) -> None:
        super().__init__(context, peer, limit)
        self.provider = provider
        self.ended = False
        self._home = home
        self.hold_in_account()

    @property
    @override
    def stranger(self) -> bool:
        return False

    @override
    def open_account(self) -> MemoryAccount | None:
        return MemoryAccount(self.peer, 0, self._home, self)

    @override
    def log_identity(self) -> tuple[str, str]:
        return self.provider.identity

    # -- the end ---------------------------------------------------------------------------------

    @override
    def crowded_out(self) -> None:
        self.provider.end(OUTGROWN)
        self.release_resources()

    @override
    def lost(self, reason: str) -> None:
        self.end(reason)
        lost = self.outbox.close()
        if lost:
            self.provider.vpn.count_lost(lost, self.outbox)

    def end(self, why: str) -> None:
        """Read nothing more, and close when everything has left."""
        if self.ended:
            return
        self.ended = True
        self.closing = True
        try:
            self.provider.ended(why)
        finally:
            self.release_resources()
            self.close_when_sent()
