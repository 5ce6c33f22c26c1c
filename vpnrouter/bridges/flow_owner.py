"""Whom a guaranteed flow of a link talks to: the half of the link that carries it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr

if TYPE_CHECKING:
    from vpnrouter.bridges.guaranteed_out import GuaranteedOut
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.message import Message


@mypyc_attr(allow_interpreted_subclasses=True)
class FlowOwner:
    """The link under a flow, and whoever wants to know how the flow fares."""

    __slots__ = ()

    def party(self) -> Connection | None:
        """The link to close when something raises."""
        return None

    def say(self, data: bytes) -> None:
        """Queue one frame of the flow on the link; never discarded."""
        raise AssertionError(data)

    def full(self) -> bool:
        """True while so much waits for the link that no more should be added."""
        return False

    # -- of a sender -----------------------------------------------------------------------------

    def send(self, data: bytes, message: Message) -> None:
        """Queue the frame of one message on the link; never discarded."""
        self.say(data)

    def discarded(self, message: Message, reason: str) -> None:
        """A message went no further, for a reason of core/discards.py; it is settled at both ends."""

    def permits(self, endpoint: Endpoint) -> bool:
        """True while the peer may take from `endpoint`."""
        return True

    def opened(self, flow: GuaranteedOut) -> None:
        """A flow was bound, or it became active or inactive."""

    # -- of a receiver ---------------------------------------------------------------------------

    def stalled(self, reason: str) -> None:
        """The message VPN refuses a message and everything behind it waits."""

    def released(self) -> None:
        """What was refused was accepted."""

    def bound(self) -> None:
        """The flow stands."""

    def unbound(self, code: int, reason: str) -> None:
        """The flow is over, or never came to be; `code` is one of LINK-40."""

    def received(self, message: Message, size: int) -> None:
        """A message came, in a frame of `size` bytes; what becomes of it is told later."""

    def passed_over(self, size: int, reason: str) -> None:
        """A message came in a frame of `size` bytes and was not looked at, for a reason of core/discards.py."""

    def entered(self, outcome: int) -> None:
        """A message that came was accepted; `outcome` is the spool's."""

    def returned(self, count: int, reason: str) -> None:
        """So many messages that came are the sender's again, for a reason of core/discards.py."""
