import asyncio
import http.server
import threading
from collections.abc import Callable
from typing import Any

import pytest

from vpnrouter.tui import api as module
from vpnrouter.tui.api import DeniedError, RouterApi, UnreachableError


def asked(url: str, ask: Callable[[RouterApi], Any], user: str = "", password: str = "") -> Any:
    """What one request gives."""

    async def main() -> Any:
        api = RouterApi(url, user, password)
        try:
            return await ask(api)
        finally:
            await api.aclose()

    return asyncio.run(main())


def test_rows_of_all_pages(served: Any, mesh: Any) -> None:
    """A list is read page by page, as far as it is wanted."""
    router = mesh.edge()
    router.queues.contents = {("blue", f"q{number:03}"): {} for number in range(250)}
    url = served(router)
    rows = asked(url, lambda api: api.rows("/vpnrouter/v1/queues", 10_000))
    assert [row["queueName"] for row in rows] == [f"q{number:03}" for number in range(250)]
    assert len(asked(url, lambda api: api.rows("/vpnrouter/v1/queues", 120))) == 120


def test_page_with_conditions(served: Any, mesh: Any) -> None:
    """The router leaves out what is not wanted, and counts what is."""
    page = asked(
        served(mesh.edge()),
        lambda api: api.page("/vpnrouter/v1/clients", count=3, where="slowSubscriber==false"),
    )
    assert (len(page.rows), page.total) == (3, 7)
    assert page.cursor


def test_the_answer_is_no(served: Any, mesh: Any) -> None:
    """Its words are told in one line, with what kind of no it is."""
    url = served(mesh.edge())
    with pytest.raises(DeniedError, match="msgVpn nowhere") as caught:
        asked(url, lambda api: api.one("/SEMP/v2/monitor/msgVpns/nowhere"))
    assert caught.value.status == "NOT_FOUND"
    assert not caught.value.is_for_want_of_rights


def test_viewer_is_refused(served: Any, mesh: Any) -> None:
    """That it is for want of rights is told apart from other refusals."""
    users = {"ann": {"password": "pw", "role": "read-only"}}
    url = served(mesh.edge(), users)
    path = "/SEMP/v2/action/msgVpns/blue/queues/orders/deleteMsgs"
    with pytest.raises(DeniedError, match="may look and not change") as caught:
        asked(url, lambda api: api.put(path, {}), "ann", "pw")
    assert caught.value.is_for_want_of_rights
    with pytest.raises(DeniedError) as caught:
        asked(url, lambda api: api.one("/vpnrouter/v1/router"), "ann", "wrong")
    assert caught.value.code == 401


def test_payload_is_bytes(served: Any, mesh: Any) -> None:
    """Byte for byte; one that is not there is a no."""
    url = served(mesh.edge())
    path = "/vpnrouter/v1/msgVpns/blue/queues/raw/msgs/{}/payload"
    assert asked(url, lambda api: api.content(path.format(7))) == bytes(range(48))
    with pytest.raises(DeniedError, match="msg 9"):
        asked(url, lambda api: api.content(path.format(9)))


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
