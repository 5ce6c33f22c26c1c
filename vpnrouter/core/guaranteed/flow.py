"""A flow: one consumer bound to one endpoint, with a window of messages that it may hold unacknowledged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

from vpnrouter.spool.ledger import IdQueue

if TYPE_CHECKING:
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.message import Message
    from vpnrouter.selectors import Selector

ACCEPTED: Final = 0
"""The consumer has it: it leaves the endpoint."""

FAILED: Final = 1
"""The consumer could not take it: it is delivered again, and that counts."""

REJECTED: Final = 2
"""The consumer never wants it: it goes to the dead message queue."""

RELEASED: Final = 3
"""It was never looked at: it is delivered again, and that does not count."""

PRIORITIES: Final = 10
"""0 to 9."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Flow:
    """A consumer of `endpoint`. Subclasses: an MQTT session's, a bridge's.

    `window` is how many messages it may hold unacknowledged, `unacked` those that it holds, by id, in the
    order of their delivery. `selector` lets only matching messages through. `active` is False for one that
    stands by at an exclusive queue. `client_name` is who it is, for those who look.
    Counters: `delivered`, `acked`, `window_closed` (times that a message waited for the window).
    """

    __slots__ = (
        "acked",
        "active",
        "came_back",
        "client_name",
        "cursors",
        "delivered",
        "endpoint",
        "selector",
        "unacked",
        "window",
        "window_closed",
    )

    def __init__(
        self, endpoint: Endpoint, client_name: str, window: int, selector: Selector | None = None
    ) -> None:
        self.endpoint = endpoint
        self.client_name = client_name
        self.window = window
        self.selector = selector
        self.unacked: dict[int, Message] = {}
        self.active = False
        # With a selector: up to where the endpoint's messages have been looked at, by priority, and what
        # came back behind that.
        self.cursors: list[int] = []
        self.came_back: IdQueue | None = None
        if selector is not None:
            self.start_over()
        self.delivered = 0
        self.acked = 0
        self.window_closed = 0

    def start_over(self) -> None:
        """Look at all messages of the endpoint again."""
        self.cursors = [0] * PRIORITIES
        self.came_back = IdQueue()

    def party(self) -> Connection | None:
        """The connection to close when a delivery raises, None for none."""
        return None

    def room(self) -> int:
        """How many messages it can be sent now."""
        raise AssertionError(self.client_name)

    def send(self, message_id: int, message: Message, count: int) -> None:
        """Send one message; it is in `unacked` already. `count` says how often it was delivered before.

        -1 says that it may have been: before a crash, or to a consumer that did not look at it. May settle
        the message at once, but neither bind nor unbind: the endpoint is in the middle of its work.
        """
        raise AssertionError(message_id)

    def activated(self, active: bool) -> None:
        """The flow became the active one of an exclusive queue, or stands by again."""

    def letting_go(self) -> None:
        """Called when the flow ends, before what it holds in `unacked` goes back."""

    def permitted(self) -> bool:
        """True while the consumer may still take what it was bound to."""
        return True

    def unbound(self, reason: str) -> None:
        """Called when the endpoint has unbound the flow: it was shut down or deleted, or permits it no more."""
        raise AssertionError(reason)
