"""One connection to an HTTP server: a request, its answer, and the next request over the same connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from typing_extensions import override

from vpnrouter import limits
from vpnrouter.connectors.http.exchanges import BROKEN, STALE, UNHEARD
from vpnrouter.connectors.provider_connection import ProviderConnection
from vpnrouter.core.memory_account import OUTGROWN
from vpnrouter.errors import ProtocolError
from vpnrouter.wire.http1 import AnswerReader

if TYPE_CHECKING:
    from vpnrouter.connectors.http.exchanges import Exchange
    from vpnrouter.connectors.http.provider import HttpProvider

ANSWER_WORK: Final = 10
"""What an answer costs, in parts of a turn (TurnContext.work)."""

BYTES_SHIFT: Final = 10
"""What bytes cost, by their number: so many bits are shifted out of it."""

JOINED_BYTES: Final = 4_096
"""Bytes of a payload up to which it leaves in one piece with the head of its request."""


@final
class HttpConnection(ProviderConnection):
    """One connection of `server`. `exchange` is what is under way over it, None for nothing, since when it is idle
    says `idle_ns`. `used`: an answer has come over it.
    """

    __slots__ = ("_how", "answer", "exchange", "idle_ns", "server", "used")

    def __init__(self, provider: HttpProvider, peer: str) -> None:
        bounds = provider.vpn.limits
        most = bounds.max_msg_size + limits.HTTP_TARGET_BYTES + limits.PROPERTY_BYTES
        context = provider.vpn.context
        super().__init__(context, provider, peer, provider.account, max(limits.OUTBOX_BYTES, most))
        self.outbox.plain = True
        self.server = provider
        self.exchange: Exchange | None = None
        self.answer = AnswerReader()
        self.used = False
        self.idle_ns = provider.vpn.context.now_ns
        self._how = UNHEARD

    def send(self, exchange: Exchange, head: bytes, payload: bytes, most: int) -> None:
        """Send a request, and expect its answer; `most` bytes of its body are kept."""
        self.exchange = exchange
        self.answer.begin(most)
        outbox = self.outbox
        if len(payload) <= JOINED_BYTES:
            outbox.control(head + payload)
        else:
            outbox.control(head)
            outbox.control(payload)

    # -- input -----------------------------------------------------------------------------------

    @override
    def consume(self, data: bytes, pos: int) -> int:
        if self.ended:
            return -1
        context = self.context
        answer = self.answer
        end = len(data)
        try:
            while pos < end and not self.paused:
                if context.work > context.allowance:
                    self.rest()
                    break
                if self.exchange is None:
                    # It says why it is about to close, 408 for example; or it answers what it was not asked.
                    self.end("it sent what was not asked for", UNHEARD)
                    return -1
                before = pos
                pos = answer.feed(data, pos)
                context.work += (pos - before) >> BYTES_SHIFT
                if answer.done:
                    context.work += ANSWER_WORK
                    self.keep_packet(0)
                    self.server.answered(self, keeps=answer.keeps and pos == end)
                elif answer.held > limits.SPARE_BYTES:
                    self.keep_packet(answer.held)
                if self.closing:
                    return -1
        except ProtocolError as error:
            self.end(f"what it answered is no HTTP: {error}", BROKEN)
            return -1
        return pos

    @override
    def _needed(self) -> int:
        # Nothing waits for more but in the reader of answers.
        return 0

    @override
    def largest(self) -> int:
        return limits.HTTP_HEAD_BYTES

    # -- the end ---------------------------------------------------------------------------------

    @property
    def how(self) -> int:
        """How the request under way is lost if the connection ends now (exchanges.py)."""
        if self._how == BROKEN or self.answer.started:
            return BROKEN
        return STALE if self.used else UNHEARD

    @override
    def crowded_out(self) -> None:
        self.end(OUTGROWN, BROKEN)
        self.release_resources()

    @override
    def lost(self, reason: str) -> None:
        if not self.ended and self.exchange is not None and self.answer.closed():
            # The end of the connection is that of the body.
            self.server.answered(self, keeps=False)
        self.end(f"the connection ended before the answer was complete: {reason}", UNHEARD)
        self.outbox.close()

    def end(self, why: str, how: int = UNHEARD) -> None:
        """Read nothing more, and close; a message under way is lost for `why`, as `how` says at least."""
        if self.ended:
            return
        self.ended = True
        self.closing = True
        self._how = how
        try:
            self.server.gone(self, why)
        finally:
            self.release_resources()
            outbox = self.outbox
            # What has not left is of no use without an answer.
            outbox.chunks.clear()
            outbox.size = 0
            self.close_when_sent()
