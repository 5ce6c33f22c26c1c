"""Requests are admitted, their bodies bounded in time, and connections ended."""

from collections.abc import Sequence
from typing import Any

import pytest
import trio
from starlette.requests import Request

from vpnrouter import limits
from vpnrouter.errors import RequestError
from vpnrouter.management.middleware import BODY_S, REST_S, Body

USERS = {"ann": {"password": "right"}}
PATH = "/SEMP/v2/monitor/msgVpns"


async def test_nothing_is_told_without_login(here: Any) -> None:
    """Every path but health wants a user, those that do not exist and the description as well."""
    async with here.api(USERS) as client:
        for path in (PATH, "/vpnrouter/v1/bridges", "/SEMP/v2/openapi.json", "/nope", "/health"):
            answer = await client.get(path)
            assert answer.status_code == 401, path
            assert answer.headers["www-authenticate"].startswith('Basic realm="vpnrouter"')
            assert answer.json()["meta"]["error"]["status"] == "UNAUTHORIZED"
        assert (await client.get("/health/live")).status_code == 200


async def test_login(here: Any) -> None:
    """With user and password the answer comes; with a wrong one it does not."""
    async with here.api(USERS, peer="192.0.2.1") as client:
        assert (await client.get(PATH, auth=("ann", "right"))).status_code == 200
        assert (await client.get(PATH, auth=("ann", "wrong"))).status_code == 401


async def test_elsewhere(here: Any) -> None:
    """Without users an address elsewhere is refused, and no header talks the router out of it."""
    async with here.api(peer="192.0.2.1") as client:
        for headers in ({}, {"x-forwarded-for": "127.0.0.1"}, {"forwarded": "for=127.0.0.1"}):
            answer = await client.get(PATH, headers=headers)
            assert answer.status_code == 403
            assert "www-authenticate" not in answer.headers


LENGTH = {"content-length": "5"}


class Wire:
    """An exchange whose body comes in these parts, each after so many seconds; None never comes."""

    def __init__(self, headers: dict[str, str], parts: Sequence[tuple[float, Any]] = ()) -> None:
        self._parts = list(parts)
        self.said: list[Any] = []
        scope = {
            "type": "http",
            "method": "PUT",
            "path": "/",
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }
        self.exchange = Body(scope, self._receive, self._send)
        self.request = Request(scope, self.exchange.receive)

    async def _receive(self) -> Any:
        wait_s, part = self._parts.pop(0) if self._parts else (0.0, None)
        if part is None:
            await trio.sleep_forever()
        await trio.sleep(wait_s)
        return part

    async def _send(self, message: Any) -> None:
        self.said.append(message)

    async def answer(self) -> bool:
        """Answer; whether the answer says that the connection closes."""
        message = {"type": "http.response.start", "status": 200, "headers": [(b"a", b"b")]}
        await self.exchange.send(message)
        await self.exchange.send({"type": "http.response.body", "body": b""})
        assert message["headers"] == [(b"a", b"b")]
        assert self.said[0]["headers"][0] == (b"a", b"b")
        return (b"connection", b"close") in self.said[0]["headers"]


def part(data: bytes, *, more: bool) -> Any:
    """One part of a body."""
    return {"type": "http.request", "body": data, "more_body": more}


@pytest.mark.parametrize("headers", [{}, {"content-length": "0"}, {"content-length": "00"}])
async def test_no_body(headers: dict[str, str]) -> None:
    """Nothing is waited for."""
    assert not await Wire(headers).answer()


async def test_a_body_that_was_read(autojump_clock: Any) -> None:
    """The connection stays, and waiting for the end of the connection has no bound."""
    wire = Wire(LENGTH, [(1, part(b"abc", more=True)), (1, part(b"de", more=False))])
    assert await wire.request.body() == b"abcde"
    with trio.move_on_after(10 * BODY_S) as waiting:
        await wire.exchange.receive()
    assert waiting.cancelled_caught
    assert not await wire.answer()


async def test_a_body_that_nobody_wants_and_that_comes(autojump_clock: Any) -> None:
    """It is taken before the answer, so that the connection stays."""
    parts = [(0.1, part(b"abc", more=True)), (0.1, part(b"de", more=False))]
    assert not await Wire(LENGTH, parts).answer()
    assert not await Wire({"transfer-encoding": "chunked"}, parts).answer()
    assert not await Wire(LENGTH, [(0.1, {"type": "http.disconnect"})]).answer()


async def test_a_body_that_nobody_wants_and_that_does_not_come(autojump_clock: Any) -> None:
    """The answer comes soon, and says that it is the last one."""
    began = trio.current_time()
    assert await Wire(LENGTH).answer()
    assert trio.current_time() - began == pytest.approx(REST_S)


async def test_a_body_without_end(autojump_clock: Any) -> None:
    """Not more is taken of it than an ordinary one may have."""
    endless = [(0.0, part(bytes(limits.MANAGEMENT_BODY_BYTES // 4), more=True))] * 100
    wire = Wire({"transfer-encoding": "chunked"}, endless)
    assert await wire.answer()
    assert len(wire._parts) == 95


async def test_a_body_that_takes_too_long(autojump_clock: Any) -> None:
    """A byte now and then does not keep a request open for ever."""
    wire = Wire(LENGTH, [(1.0, part(b"", more=True))] * 1_000)
    began = trio.current_time()
    with pytest.raises(RequestError, match="did not come within 30 s") as caught:
        await wire.request.body()
    assert caught.value.http_status == 408
    assert trio.current_time() - began == pytest.approx(BODY_S)
    assert await wire.answer()
