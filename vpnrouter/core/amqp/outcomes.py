"""What becomes of a message for the outcome of its delivery that a client states."""

from __future__ import annotations

from typing import Final

from vpnrouter.core.guaranteed.flow import ACCEPTED, FAILED, REJECTED, RELEASED
from vpnrouter.wire.amqp.performatives import Accepted, Modified, Rejected, Released

OUTCOMES: Final[dict[str, int]] = {
    "Accepted": ACCEPTED,
    "Rejected": REJECTED,
    "Released": RELEASED,
}
"""Outcome of AMQP → what becomes of the message. Of `modified` its fields decide."""


def outcome_of(state: object) -> int:
    """Return what becomes of a message for an outcome of AMQP (3.4): one that fails counts, one elsewhere is dead."""
    if isinstance(state, Modified):
        if state.undeliverable_here:
            return REJECTED
        return FAILED if state.delivery_failed else RELEASED
    return OUTCOMES.get(type(state).__name__, RELEASED)


def is_outcome(state: object) -> bool:
    """Return whether a state ends a delivery (3.4); others say how far it has come."""
    return isinstance(state, (Accepted, Rejected, Released, Modified))
