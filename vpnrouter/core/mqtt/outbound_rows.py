"""Rows of the outbound packet identifiers of QoS 2 that one session has in the store (keys.py), and what they say.

A row has the message, until PUBREC comes; then the turn of its PUBREL: PUBRELs are sent in the order of the PUBRECs
(MQTT-4.6.0-4), also after a restart. A receiver may pass a message on when its PUBREL comes, as mosquitto does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter.spool import keys

if TYPE_CHECKING:
    from vpnrouter.spool.store import Store

_TURN_BYTES: Final = 6

FOREIGN: Final = b"q"
"""Ends the row of a message of another endpoint than the session's own, which has the message again after a crash."""


@final
class OutboundRows:
    """The rows of the session whose number is `number`.

    `sent` has the packet identifiers of messages that may have been sent, by message id; `due` those whose PUBREL is
    due, in their order; `turn` is the last of their turns.
    """

    __slots__ = ("due", "sent", "turn")

    def __init__(self, store: Store, number: int) -> None:
        self.sent: dict[int, int] = {}
        self.turn = 0
        # Earlier builds wrote no turns: those come first.
        turns: list[tuple[int, int]] = []
        gone_back: list[int] = []
        for key, value in store.scan(keys.outbound(number, 0)[:-2]):
            packet_id = keys.second_of(key)
            if len(value) == keys.ID_BYTES:
                self.sent[keys.unpack_id(value)] = packet_id
            elif len(value) > keys.ID_BYTES:
                gone_back.append(packet_id)
            else:
                turns.append((int.from_bytes(value, "big"), packet_id))
        turns.sort()
        if turns:
            self.turn = turns[-1][0]
        self.due = [packet_id for _, packet_id in turns] + gone_back


def release_row(turn: int) -> bytes:
    """Return the value of the row of an identifier whose PUBREL is due."""
    return turn.to_bytes(_TURN_BYTES, "big")
