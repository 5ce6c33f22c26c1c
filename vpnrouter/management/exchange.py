"""A request and its answer: the body has its time, and an answer that comes before its end says so."""

from typing import Final, final

import trio
from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope, Send

from vpnrouter import limits
from vpnrouter.management.body import too_slow

BODY_S: Final = 30.0
"""Seconds for the body of a request, from its headers on: the largest one comes within them on any line that
is worth being used. A peer that sends a byte now and then would keep its connection, and its place, for ever.
"""

REST_S: Final = 1.0
"""Seconds for what is left of a body when the answer is ready."""


NO_SNIFFING: Final = (b"x-content-type-options", b"nosniff")
"""A browser that looks at the payload of a message takes it for bytes, whatever they look like."""


@final
class Exchange:
    """`receive` and `send` of an ASGI application for one request.

    A server cannot take another request from a connection on which the body of this one has not ended, so it
    closes that. Whoever is not told sends the next request there and gets no answer (RFC 9112 §9.6).
    """

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        headers = Headers(scope=scope)
        self._coming = (
            "transfer-encoding" in headers or headers.get("content-length", "0").strip("0") != ""
        )
        self._deadline = trio.current_time() + BODY_S

    @property
    def coming(self) -> bool:
        """True while more of the body is to come."""
        return self._coming

    async def receive(self) -> Message:
        """Give the next message of the request, as ASGI has it.

        Raises RequestError when the body takes longer than BODY_S.
        """
        if not self._coming:
            return await self._receive()
        with trio.move_on_at(self._deadline):
            return await self._next()
        raise too_slow(f"the body did not come within {BODY_S:.0f} s")

    async def send(self, message: Message) -> None:
        """Send a message of the answer, as ASGI has it.

        Before the answer's start the rest of the body is taken; if more is still to come then, the
        answer says that the connection closes.
        """
        if message["type"] == "http.response.start":
            message = dict(message)
            message["headers"] = [*message.get("headers", ()), NO_SNIFFING]
            if self._coming:
                await self._take_rest()
            if self._coming:
                message["headers"].append((b"connection", b"close"))
        await self._send(message)

    async def _next(self) -> Message:
        message = await self._receive()
        self._coming = message["type"] == "http.request" and message.get("more_body", False)
        return message

    async def _take_rest(self) -> None:
        """Take the rest of a body that is short and comes soon, so that the connection can stay."""
        size = 0
        with trio.move_on_at(min(self._deadline, trio.current_time() + REST_S)):
            while self._coming and size <= limits.MANAGEMENT_BODY_BYTES:
                size += len((await self._next()).get("body", b""))
