"""Keeps what a bridge has given up, until one of its dead message queues has it.

A message enters the bridge's own queue of dead letters in one unit with its position, or as it leaves the parking lot.
So it does not matter what becomes of the link meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from typing_extensions import override

from vpnrouter.core.guaranteed.dead_letters import letter_of
from vpnrouter.core.guaranteed.undelivered import Undelivered, UndeliveredOwner
from vpnrouter.events import table

if TYPE_CHECKING:
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.guaranteed.failure_policy import DeadMsgQueue
    from vpnrouter.core.message import Message


def dead_letters_of(bridge: str) -> str:
    """Return the name of the endpoint that keeps the dead letters of a bridge; no bridge has such a name."""
    return f"{bridge}/dead"


@final
class DeadLetters(UndeliveredOwner):
    """The dead letters of `bridge` in `endpoint`, which is of kind PARKING, on their way to the first of `places`."""

    __slots__ = ("_bridge", "_endpoint", "_undelivered")

    def __init__(self, endpoint: Endpoint, bridge: str, places: list[DeadMsgQueue]) -> None:
        self._bridge = bridge
        self._endpoint = endpoint
        self._undelivered = Undelivered(endpoint, f"#bridge/{bridge}", self, places)
        self._undelivered.consume()

    def take(self, places: list[DeadMsgQueue]) -> None:
        """Use another list, also for what waits."""
        self._undelivered.close()
        self._undelivered = Undelivered(self._endpoint, f"#bridge/{self._bridge}", self, places)
        self._undelivered.consume()

    def put(self, message: Message, why: str, more: list[tuple[str, str]]) -> bool:
        """Take a message that is given up for `why`, in the unit being built; False where there is no room."""
        letter = letter_of(message, why, "", more)
        letter.expires_ns = message.expires_ns
        endpoint = self._endpoint
        if endpoint.spool.place(endpoint, letter):
            return False
        fault = endpoint.spool.fault
        if fault is not None:
            fault("dead-letter-placed")
        return True

    def close(self) -> None:
        """Let go of the endpoint: what is in it waits there."""
        self._undelivered.close()

    @override
    def dead_letter(self, text: str) -> None:
        _tell(self._endpoint, self._bridge, table.BRIDGE_MESSAGE_REFUSED, text)

    @override
    def no_dead_letter(self, text: str) -> None:
        _tell(self._endpoint, self._bridge, table.BRIDGE_MESSAGE_STAYS, text)


def _tell(endpoint: Endpoint, bridge: str, kind: table.EventType, text: str) -> None:
    vpn = endpoint.vpn
    events = vpn.context.events
    if events is not None:
        events.raise_event(kind, vpn.name, bridge, f"VPN {vpn.name} bridge {bridge}: {text}")
