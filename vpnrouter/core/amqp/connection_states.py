"""The states of a connection of AMQP, and what may come in each (AMQP 1.0, 2.2, 2.4 and 5.3)."""

from __future__ import annotations

from typing import Final

from vpnrouter.wire.amqp import frames
from vpnrouter.wire.amqp.frames import AMQP_HEADER, SASL_HEADER

HEADER_DUE: Final = 0
"""Transport open; the client's first protocol header is due."""

INIT_DUE: Final = 1
"""The mechanisms are out."""

RESPONSE_DUE: Final = 2
"""A challenge is out."""

VERIFYING: Final = 3
"""The edge verifies a password."""

AMQP_DUE: Final = 4
"""SASL has ended well; the protocol header of AMQP is due."""

OPEN_DUE: Final = 5
"""Both headers of AMQP are out."""

OPENED: Final = 6
"""Both sides have sent `open`."""

ENDED: Final = 7
"""Nothing more is read."""

ALLOWED: Final[dict[tuple[int, int, str], str]] = {
    (INIT_DUE, frames.SASL, "SaslInit"): "init",
    (RESPONSE_DUE, frames.SASL, "SaslResponse"): "response",
    (OPEN_DUE, frames.AMQP, "Open"): "open",
    (OPENED, frames.AMQP, "Begin"): "begin",
    (OPENED, frames.AMQP, "Attach"): "session",
    (OPENED, frames.AMQP, "Flow"): "session",
    (OPENED, frames.AMQP, "Transfer"): "session",
    (OPENED, frames.AMQP, "Disposition"): "session",
    (OPENED, frames.AMQP, "Detach"): "session",
    (OPENED, frames.AMQP, "End"): "end",
    (OPENED, frames.AMQP, "Close"): "close",
    (OPEN_DUE, frames.AMQP, "Close"): "close",
}
"""(state, type of frame, performative) → what happens."""

HEADERS: Final[dict[tuple[int, bytes], str]] = {
    (HEADER_DUE, SASL_HEADER): "offer",
    (HEADER_DUE, AMQP_HEADER): "answer",
    (AMQP_DUE, AMQP_HEADER): "answer",
}
"""(state, protocol header) → what happens. Anything else is answered with our own, and closed (2.2)."""
