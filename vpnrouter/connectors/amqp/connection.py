"""The client's end of an AMQP connection to a provider: headers, bytes to frames, and which is allowed when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, final

from mypy_extensions import i64
from typing_extensions import override

from vpnrouter import limits
from vpnrouter.connectors.provider_connection import ProviderConnection
from vpnrouter.errors import OperationError, ProtocolError
from vpnrouter.wire.amqp import conditions, frames
from vpnrouter.wire.amqp.frames import AMQP_HEADER, HEADER_BYTES, SASL_HEADER
from vpnrouter.wire.amqp.transfers import PlainTransfer
from vpnrouter.wire.amqp.types import Budget

if TYPE_CHECKING:
    from vpnrouter.connectors.amqp.client import AmqpProvider
    from vpnrouter.core.memory_account import MemoryAccount
    from vpnrouter.core.turn import TurnContext

SASL_DUE: Final = 0
"""Our header of SASL is out; the provider's is due."""

MECHANISMS_DUE: Final = 1
"""The provider's mechanisms are due."""

OUTCOME_DUE: Final = 2
"""Our choice is out."""

AMQP_DUE: Final = 3
"""The login has ended well; our header of AMQP and `open` are out, the provider's header is due."""

OPEN_DUE: Final = 4
"""The provider's `open` is due."""

OPENED: Final = 5
"""Both sides have sent `open`."""

HEADERS: Final[dict[tuple[int, bytes], int]] = {
    (SASL_DUE, SASL_HEADER): MECHANISMS_DUE,
    (AMQP_DUE, AMQP_HEADER): OPEN_DUE,
}
"""(state, protocol header) → the next state. Any other header ends the connection (2.2)."""

ALLOWED: Final[dict[tuple[int, int, str], str]] = {
    (MECHANISMS_DUE, frames.SASL, "SaslMechanisms"): "login",
    (OUTCOME_DUE, frames.SASL, "SaslChallenge"): "login",
    (OUTCOME_DUE, frames.SASL, "SaslOutcome"): "login",
    (OPEN_DUE, frames.AMQP, "Open"): "open",
    (OPEN_DUE, frames.AMQP, "Close"): "close",
    (OPENED, frames.AMQP, "Begin"): "session",
    (OPENED, frames.AMQP, "End"): "session",
    (OPENED, frames.AMQP, "Attach"): "session",
    (OPENED, frames.AMQP, "Detach"): "session",
    (OPENED, frames.AMQP, "Flow"): "session",
    (OPENED, frames.AMQP, "Transfer"): "session",
    (OPENED, frames.AMQP, "Disposition"): "session",
    (OPENED, frames.AMQP, "Close"): "close",
}
"""(state, type of frame, performative) → what happens. What is missing is an error of the provider."""

FRAME_WORK: Final = 8
TRANSFER_WORK: Final = 5
"""What a frame costs, and a message in one frame, in parts of a turn (TurnContext.work)."""

BYTES_SHIFT: Final = 10
VALUES_SHIFT: Final = 2
"""What the bytes and the values of a frame cost: so many bits are shifted out of their numbers."""

_PLAIN: Final = PlainTransfer()


@final
class AmqpProviderConnection(ProviderConnection):
    """One connection to a provider, of `client`."""

    __slots__ = ("client", "state")

    def __init__(
        self, context: TurnContext, client: AmqpProvider, peer: str, home: MemoryAccount
    ) -> None:
        super().__init__(context, client, peer, home)
        self.outbox.amqp = True
        self.client = client
        self.state = SASL_DUE

    # -- input -----------------------------------------------------------------------------------

    @override
    def _needed(self) -> int:
        first = self._parts[0]
        if self.state in (SASL_DUE, AMQP_DUE):
            return HEADER_BYTES
        if len(first) < 4:
            return 0
        # A size beyond the bound is for `consume` to refuse.
        return min(int.from_bytes(first[:4], "big"), self.largest() + HEADER_BYTES)

    @override
    def largest(self) -> int:
        if self.state == OPENED:
            return limits.AMQP_FRAME_BYTES
        return limits.AMQP_LOGIN_FRAME_BYTES

    @override
    def consume(self, data: bytes, pos: int) -> int:
        if self.ended:
            return -1
        end = len(data)
        context = self.context
        try:
            while pos < end and not self.paused:
                if context.work > context.allowance:
                    self.rest()
                    break
                if self.state in (SASL_DUE, AMQP_DUE):
                    if end - pos < HEADER_BYTES:
                        break
                    self._header(data[pos : pos + HEADER_BYTES])
                    pos += HEADER_BYTES
                elif self.state == OPENED and (after := self._plain(data, pos, end)) != pos:
                    pos = after
                else:
                    length = frames.frame_at(data, pos, end, self.largest())
                    if length == 0:
                        break
                    context.work += FRAME_WORK
                    self._handle(data, pos, length)
                    pos += length
                if self.closing:
                    return -1
        except ProtocolError as error:
            self.client.violated(error)
            return -1
        except OperationError as error:
            self.client.end(str(error))
            return -1
        return pos

    def _plain(self, buf: bytes, pos: i64, end: i64) -> i64:
        """Take the messages in one frame each that begin at `pos`; return the position of the first other frame."""
        plain = _PLAIN
        context = self.context
        client = self.client
        while (
            not self.paused
            and not self.closing
            and context.work <= context.allowance
            and plain.read(buf, pos, end, limits.AMQP_FRAME_BYTES)
        ):
            if plain.channel != client.session.peer_channel or plain.message_format > 0:
                return pos
            receiver = client.session.receiver(plain.handle)
            if receiver is None or not receiver.whole:
                return pos
            context.work += TRANSFER_WORK
            following = plain.end
            payload = buf[plain.message : following]
            client.session.came()
            receiver.take(plain.delivery_id, payload, following - pos, settled=plain.settled)
            pos = following
        return pos

    def _header(self, header: bytes) -> None:
        after = HEADERS.get((self.state, header), -1)
        if after >= 0:
            self.state = after
        elif header in (SASL_HEADER, AMQP_HEADER):
            self.client.end("the provider wants to be logged in to in another way than by SASL")
        else:
            self.client.end("the provider does not speak AMQP 1.0")

    def _handle(self, data: bytes, pos: int, length: int) -> None:
        most = limits.AMQP_VALUES if self.state == OPENED else limits.AMQP_LOGIN_VALUES
        budget = Budget(most)
        frame = frames.decode(data, pos, length, budget)
        self.context.work += (length >> BYTES_SHIFT) + (budget.spent >> VALUES_SHIFT)
        performative = frame.performative
        if performative is None:
            return
        name = type(performative).__name__
        action = ALLOWED.get((self.state, frame.kind, name))
        client = self.client
        if action == "session":
            client.session.handle(frame.channel, performative, frame.payload, length)
        elif action == "login":
            client.login(performative)
        elif action == "open":
            client.opened(performative)
        elif action == "close":
            client.closed(performative)
        else:
            text = f"it sent {name} in state {self.state}, out of turn"
            raise ProtocolError(conditions.NOT_ALLOWED, text)

    # -- output ----------------------------------------------------------------------------------

    def begin(self) -> None:
        """Send the first header."""
        self.outbox.control(SASL_HEADER)

    def say_login(self, performative: tuple[Any, ...]) -> None:
        """Send a frame of SASL; the outcome is due, or a challenge."""
        self.state = OUTCOME_DUE
        self.outbox.control(frames.encode(performative, 0, frames.SASL))

    def say(self, performative: tuple[Any, ...], channel: int = 0) -> None:
        """Send a frame of AMQP without a payload."""
        self.outbox.control(frames.encode(performative, channel))
