"""One router of the terminal interface: requests, paths, and a connection that comes and goes."""

import asyncio
import http.server
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from management_routers import FAR, routers

from vpnrouter.tui import api as module
from vpnrouter.tui.api import (
    QUEUES_EVERY_S,
    Connection,
    DeniedError,
    Router,
    RouterApi,
    UnreachableError,
)


def asked(url: str, ask: Callable[[RouterApi], Any], user: str = "", password: str = "") -> Any:
    """What one request gives."""

    async def main() -> Any:
        api = RouterApi(url, user, password)
        try:
            return await ask(api)
        finally:
            await api.aclose()

    return asyncio.run(main())


def test_rows_of_all_pages(served: Any, tmp_path: Path) -> None:
    """A list is read page by page, as far as it is wanted."""
    names = [f"q{number:03}" for number in range(250)]
    (router,) = routers(
        tmp_path, many=f"msg_vpns: {{blue: {{queues: {{{': {}, '.join(names)}: {{}}}}}}}}"
    )
    url = served(router)
    rows = asked(url, lambda api: api.rows("/vpnrouter/v1/queues", 10_000))
    assert [row["queueName"] for row in rows] == names
    assert len(asked(url, lambda api: api.rows("/vpnrouter/v1/queues", 120))) == 120


def test_the_answer_is_no(served: Any, mesh: Any) -> None:
    """Its words are told in one line, with what kind of no it is."""
    url = served(mesh.edge)
    with pytest.raises(DeniedError, match="msgVpn nowhere") as caught:
        asked(url, lambda api: api.one("/SEMP/v2/monitor/msgVpns/nowhere"))
    assert caught.value.status == "NOT_FOUND"
    assert not caught.value.is_for_want_of_rights


def test_viewer_is_refused(served: Any, mesh: Any) -> None:
    """That it is for want of rights is told apart from other refusals."""
    users = {"ann": {"password": "pw", "role": "read-only"}}
    url = served(mesh.edge, users)
    path = "/SEMP/v2/action/msgVpns/blue/queues/orders/deleteMsgs"
    with pytest.raises(DeniedError, match="may look and not change") as caught:
        asked(url, lambda api: api.put(path, {}), "ann", "pw")
    assert caught.value.is_for_want_of_rights
    with pytest.raises(DeniedError) as caught:
        asked(url, lambda api: api.one("/vpnrouter/v1/router"), "ann", "wrong")
    assert caught.value.code == 401


def test_nobody_there() -> None:
    """A port that nobody listens on."""
    with pytest.raises(UnreachableError, match=r"\w"):
        asked("http://127.0.0.1:1", lambda api: api.one("/"))


@pytest.mark.parametrize(
    "body", [b"<html>hello</html>", b"[]", b'{"meta": 3}', b"\xff", b"[" * 99_999]
)
def test_something_else_answers(body: bytes) -> None:
    """What is no management API says so, whatever it sends."""
    with pytest.raises(DeniedError, match="no management API"):
        asked(_answering(body), lambda api: api.one("/"))


def test_answers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """An endless answer is given up."""
    monkeypatch.setattr(module, "TUI_ANSWER", 10_000)
    with pytest.raises(DeniedError, match="longer than 10,000 bytes"):
        asked(_answering(b"x" * 100_000), lambda api: api.content("/"))


@pytest.mark.parametrize("url", ["127.0.0.1:8080", "ftp://host", "http://", ""])
def test_url_is_none(url: str) -> None:
    """The way out is told."""
    with pytest.raises(ValueError, match="http://HOST:PORT"):
        RouterApi(url)


def test_url_holds_no_password() -> None:
    """It would stand on the screen; the message does not repeat it."""
    with pytest.raises(ValueError, match="--password-file") as caught:
        RouterApi("http://ann:secret@localhost:8080")
    assert "secret" not in str(caught.value)


def _answering(body: bytes) -> str:
    """Where one request gets this answer."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)

    def once() -> None:
        server.handle_request()
        server.server_close()

    threading.Thread(target=once, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


def test_delays_grow_to_a_bound_and_begin_anew() -> None:
    """Tries are 1, 2, 4, 8, 8 … seconds apart; an answer ends it."""
    one, waits = Connection(), []
    now = 50.0
    for _ in range(6):
        one.failed(now, "refused")
        waits.append(one.next_try - now)
        assert not one.is_due(one.next_try - 0.01)
        assert one.is_due(one.next_try)
        now = one.next_try
    assert waits == [1.0, 2.0, 4.0, 8.0, 8.0, 8.0]
    assert one.answered(now)
    assert not one.is_lost
    one.failed(now, "again")
    assert one.next_try == now + 1.0


def test_since_when_it_is_lost_stays() -> None:
    """The first failure counts, the last reason is told."""
    one = Connection()
    one.failed(10.0, "refused")
    one.failed(20.0, "no answer in time")
    assert (one.lost_at, one.why) == (10.0, "no answer in time")


def test_a_router_that_answers_is_asked_at_any_time() -> None:
    """Nothing is put off while all is well."""
    one = Connection()
    assert one.is_due(0.0)
    assert not one.answered(1.0)
    assert one.is_due(1.0)
    assert one.why == ""


def on(url: str, clock: Any, test: Callable[[Router], Awaitable[None]]) -> None:
    """Run a test with a router that is served."""

    async def main() -> None:
        router = Router(RouterApi(url), clock)
        try:
            await test(router)
        finally:
            await router.api.aclose()

    asyncio.run(main())


async def nothing(_: Router) -> None:
    """A screen that asks for nothing."""


def test_queues_are_not_gone_through_at_each_look(served: Any, mesh: Any, clock: Any) -> None:
    """The router looks at all of them for it."""
    router = mesh.edge

    async def test(one: Router) -> None:
        await one.fetch_queues()
        assert {row["queueName"] for row in one.store.queues} == {"orders", "raw"}
        for name in ("orders", "raw"):
            router.remove_queue("blue", name)
        clock.now += QUEUES_EVERY_S - 0.1
        await one.fetch_queues()
        assert len(one.store.queues) == 2
        clock.now += 0.1
        await one.fetch_queues()
        assert one.store.queues == []

    on(served(router), clock, test)


def test_many_bridges(served: Any, clock: Any, monkeypatch: Any, tmp_path: Path) -> None:
    """Beyond the bound the first ones are held, and those that are down."""
    monkeypatch.setattr("vpnrouter.tui.api.TUI_ROWS", 5)
    bridges = ", ".join(
        f"b{n}: {{remote_authentication: {{basic: {{client_username: any}}}}, remote_msg_vpns: "
        f"[{{name: red, router: {'far' if n < 7 else 'gone'}, location: '127.0.0.1:55556'}}]}}"
        for n in range(9)
    )
    made, _ = routers(tmp_path, many=f"msg_vpns: {{blue: {{bridges: {{{bridges}}}}}}}", far=FAR)

    async def test(one: Router) -> None:
        await one.fetch_bridges()
        names = [row["bridgeName"] for row in one.store.bridges]
        assert names == ["b0", "b1", "b2", "b3", "b4", "b7", "b8"]

    on(served(made), clock, test)


def test_it_may_come_back_as_another(served: Any, mesh: Any, clock: Any) -> None:
    """After a loss the name is asked for anew, and no rate stretches over it."""
    first, second = served(mesh.edge, others=True), served(mesh.core, others=True)

    async def test(router: Router) -> None:
        await router.look(nothing)
        router.store.meters.measure("x", 0.0, 0)
        router.store.meters.measure("x", 1.0, 5)
        router.api.url = "http://127.0.0.1:1"

        async def fetch(one: Router) -> None:
            await one.fetch_msg_vpns()

        assert not await router.look(fetch)
        assert router.connection.is_lost
        assert router.store.meters.rate("x") == 0.0
        router.api.url = second
        assert not await router.look(fetch), "its time has not come"
        clock.now += 1.0
        assert await router.look(fetch)
        assert router.label == "core"

    on(first, clock, test)
