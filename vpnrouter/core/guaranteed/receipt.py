"""Who waits for the spool: publishers for their acknowledgement, others for what must be synced first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

if TYPE_CHECKING:
    from vpnrouter.core.connection import Connection

SPOOLED: Final = 0
"""Every matching endpoint has the message in the synced spool (promise COMMIT)."""

DEMOTED: Final = 1
"""Only client subscriptions matched: the message went as Direct."""

UNMATCHED: Final = 2
"""Nothing matched; the message was discarded, and counted."""

REJECTED: Final = 3
"""Nobody keeps the message (promise ALLORNONE); the reason says why."""

SYNCED: Final = 4
"""What `Spool.when_synced` was asked for."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Receipt:
    """Somebody who is told what became of what he gave to the spool."""

    __slots__ = ()

    def settled(self, token: int, outcome: int, reason: str) -> None:
        """The thing named by `token` came to `outcome`; `reason` is the field's string for REJECTED, else "".

        Called exactly once for each token, in the order in which they were given.
        """
        raise AssertionError(token)

    def party(self) -> Connection | None:
        """The connection to close when `settled` raises, None for none."""
        return None
