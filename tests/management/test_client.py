import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from vpnrouter import limits
from vpnrouter.errors import OperationError
from vpnrouter.management.client import ManagementClient

USERS = {"ann": {"password": "right"}}


@contextmanager
def answering(data: bytes) -> Iterator[str]:
    """A server that answers anything with `data` and closes; yields its URL."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def run() -> None:
            with server.accept()[0] as taken:
                taken.recv(65_536)
                taken.sendall(data)

        thread = threading.Thread(target=run)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        thread.join(20)


def test_all_bridges(standing: Any) -> None:
    """All pages together, with the remotes inside."""
    names = [f"b{number:03}" for number in range(2 * limits.MANAGEMENT_PAGE_ROWS + 1)]
    still = standing.Still(["blue"], [standing.bridge_status("blue", name) for name in names])
    with standing.serving(still) as address, ManagementClient(f"http://{address}/") as client:
        rows = client.bridges()
    assert [row["bridgeName"] for row in rows] == names
    assert rows[0]["remotes"][0]["remoteMsgVpnName"] == "far"


def test_bridges_of_one_msg_vpn(standing: Any, still: Any) -> None:
    """Those of the VPN asked for; one without bridges has none, one that does not exist is an error."""
    with standing.serving(still) as address, ManagementClient(f"http://{address}") as client:
        assert [row["bridgeName"] for row in client.bridges("a/b")] == ["x,y [z]"]
        assert client.bridges("empty") == []
        with pytest.raises(OperationError, match=r"Could not find match for msgVpn nope$"):
            client.bridges("nope")


def test_users(standing: Any, still: Any) -> None:
    """Without a user, and with a wrong one, the error says what to give."""
    with standing.serving(still, USERS) as address:
        url = f"http://{address}"
        with ManagementClient(url, "ann", "right") as client:
            assert len(client.bridges()) == 3
        with (
            ManagementClient(url) as client,
            pytest.raises(OperationError, match=r"wants a user; give --user and --password-file$"),
        ):
            client.bridges()
        with (
            ManagementClient(url, "ann", "wrong") as client,
            pytest.raises(OperationError, match=r"refused user ann: Unknown user or wrong"),
        ):
            client.bridges()


def test_nobody_there() -> None:
    """What cannot be connected to is named, with the way out."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with (
        ManagementClient(f"http://127.0.0.1:{port}") as client,
        pytest.raises(
            OperationError,
            match=rf"^cannot connect to http://127.0.0.1:{port}: .*refused; does the router run.*"
            r"--url or VPNROUTER_URL says where$",
        ),
    ):
        client.bridges()


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]",
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}",
    ],
)
def test_something_else_is_there(data: bytes) -> None:
    """A server that is no router's is said to be none."""
    with (
        answering(data) as url,
        ManagementClient(url) as client,
        pytest.raises(OperationError, match="is no management API; --url says where"),
    ):
        client.bridges()


def test_what_does_not_speak_http() -> None:
    """An MQTT listener, for instance, is one error in one line."""
    with (
        answering(b"\x20\x02\x00\x00") as url,
        ManagementClient(url) as client,
        pytest.raises(OperationError, match=r"^cannot connect to .*; does the router run"),
    ):
        client.bridges()


@pytest.mark.parametrize("url", ["", "localhost:8080", "ftp://h", "http://", "http://h:x"])
def test_what_is_no_url(url: str) -> None:
    """Only http and https with a host are taken."""
    with pytest.raises(ValueError, match="is not of the form http://HOST:PORT"):
        ManagementClient(url)


def test_the_environments_proxy_is_not_asked(
    standing: Any, still: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A router is reached directly, whatever proxy the machine has for the web."""
    monkeypatch.setenv("HTTP_PROXY", "http://192.0.2.1:1")
    with standing.serving(still) as address, ManagementClient(f"http://{address}") as client:
        assert len(client.bridges()) == 3


def test_no_authorities() -> None:
    """A file of authorities that cannot be read is named."""
    with pytest.raises(OperationError, match="cannot use authorities /no/such: No such file"):
        ManagementClient("https://h", ca_file="/no/such")
