"""The client of the management API: requests, pages, and what is said when they fail."""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from management_routers import serving

from vpnrouter import limits
from vpnrouter.errors import OperationError
from vpnrouter.management.client import ManagementClient, config_path, queue_path
from vpnrouter.management.client_transport import Transport

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


@pytest.fixture
def url(here: Any) -> Iterator[str]:
    """Where the API of `here` is served."""
    with serving(here.application()) as place:
        yield place


def test_bridges(url: str) -> None:
    """Bridges of all message VPNs have their remotes inside; those of one that does not exist are an error."""
    with ManagementClient(f"{url}/") as client:
        names = [(row["bridgeName"], row["remotes"][0]["up"]) for row in client.bridges()]
        assert names == [("x,y[z]", False), ("to-a", True), ("to-b", True)]
        assert [row["bridgeName"] for row in client.bridges("a/b")] == ["x,y[z]"]
        assert client.bridges("empty") == []
        assert client.bridge("blue", "to-a")["remotes"][0]["remoteMsgVpnName"] == "red"
        with pytest.raises(OperationError, match=r"Could not find match for msgVpn nope$"):
            client.bridges("nope")


def test_users(here: Any) -> None:
    """Without a user, and with a wrong one, the error says what to give."""
    with serving(here.application(USERS)) as url:
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


def test_the_environments_proxy_is_not_asked(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A router is reached directly, whatever proxy the machine has for the web."""
    monkeypatch.setenv("HTTP_PROXY", "http://192.0.2.1:1")
    with ManagementClient(url) as client:
        assert len(client.bridges()) == 3


def test_no_authorities() -> None:
    """A file of authorities that cannot be read is named."""
    with pytest.raises(OperationError, match="cannot use authorities /no/such: No such file"):
        ManagementClient("https://h", ca_file="/no/such")


def test_what_is_looked_at(url: str) -> None:
    """Each call asks for the path of what it names, with every name encoded by itself."""
    with ManagementClient(url) as client:
        assert client.router()["routerName"] == "here"
        assert client.msg_vpn("a/b")["msgVpnName"] == "a/b"
        assert client.queue("a/b", "x,y")["msgCount"] == 1
        assert client.client("blue", "c/3,x")["clientName"] == "c/3,x"
        assert client.payload("a/b", "x,y", 26) == b"seven"
        topics = [row["subscriptionTopic"] for row in client.client_subscriptions("blue", "c1")]
        assert topics == ["a", "c/+/d"]
        sessions = [row["mqttSessionClientId"] for row in client.children("blue", "mqttSessions")]
        assert sessions == ["c/3,x", "c1", "c2"]
        found = client.subscriptions("blue", where="subscriptionTopic==a")
        assert [row["name"] for row in found] == ["c1", "c2"]
        assert [row["name"] for row in client.matches("blue", "c/&/d")] == ["c1"]
        events = client.events(7, 0, "a/b")
        assert {(row["msgVpnName"], row["name"]) for row in events} == {("a/b", "other")}
        rows, mark, missed, tracing = client.traces(9, 4, topic="a/>", trace_id="f" * 32)
        assert (rows, mark, missed, tracing) == ([], 4, 0, False)


def test_what_is_changed(here: Any, url: str) -> None:
    """Each action is done to what it names."""
    with ManagementClient(url) as client:
        here.clients["c1"].publish("nobody")
        client.clear_client_stats("blue", "c1")
        assert client.client("blue", "c1")["rxMsgCount"] == 0
        client.disconnect_client("blue", "c/3,x")
        assert not client.client("blue", "c/3,x")["connected"]
        client.clear_queue_stats("a/b", "x,y")
        assert client.queue("a/b", "x,y")["spooledMsgCount"] == 0
        client.clear_bridge_stats("blue", "to-a")
        assert client.bridge("blue", "to-a")["txByteCount"] == 0
        client.disconnect_bridge("blue", "to-a")
        assert client.bridge("blue", "to-a")["health"] == "down"
        assert client.bridge("blue", "to-b")["health"] == "up"


def test_messages(here: Any, url: str) -> None:
    """They are browsed, copied and deleted; of more than a request may name, in several requests."""
    here.clients["c/3,x"].bind("$queue/orders")
    with ManagementClient(url) as client:
        assert [row["msgId"] for row in client.msgs("blue", "orders", 3, 20)] == [21, 22, 23]
        assert [row["clientName"] for row in client.tx_flows("blue", "orders")] == ["c/3,x"]
        here.clients["c/3,x"].lose()
        assert client.put_msgs("blue", "orders", "dead", [1, 2], move=True) == 2
        assert client.delete_msgs("blue", "orders", [3, 3, 4]) == 2
        assert client.delete_msgs("blue", "dead") == 2
        count = limits.MANAGEMENT_MSG_IDS + 1
        here.publish("c1", "orders", *[b""] * count)
        assert client.delete_msgs("blue", "orders", range(1, count + 40)) == count + 21


def test_the_configuration(here: Any, url: str) -> None:
    """The document is read, examined, replaced where it still is what it was, and returned to."""
    here.edited()
    with ManagementClient(url) as client:
        first = client.config()
        document = first["document"]
        document["msg_vpns"]["empty"]["max_connection_count"] = 5
        (change,) = client.examine(document)["changes"]
        assert "max_connection_count" in change["text"]
        client.replace_config(document, first["digest"])
        assert client.config()["document"] == document
        with pytest.raises(OperationError, match="another one by now"):
            client.replace_config(document, first["digest"])
        path = config_path("msgVpns", "a/b", "bridges", ("x,y[z]", "auto"))
        assert path == "/msgVpns/a%2Fb/bridges/x%2Cy%5Bz%5D,auto"
        assert client.config_object(path)["enabled"] is True
        client.act("disable", "msgVpns", "a/b", "bridges", ("x,y[z]", "auto"))
        assert client.config_object(path)["enabled"] is False
        client.create_config("/msgVpns/empty/queues", {"queueName": "a/b,c"})
        names = [row["queueName"] for row in client.config_objects("/msgVpns/empty/queues")]
        assert names == ["a/b,c"]
        client.delete_config(queue_path("empty", "a/b,c"))
        assert list(client.config_objects("/msgVpns/empty/queues")) == []
        client.return_config(first["digest"])
        assert client.config()["digest"] == first["digest"]


MOST = limits.MANAGEMENT_PAGE_ROWS


def test_pages(here: Any, url: str) -> None:
    """A page says how many there are in all; rows are asked for as they are taken."""
    for number in range(2 * MOST):
        here.connect("empty", f"b{number:03}")
    made = []
    status = here.context.clients.client
    here.context.clients.client = lambda *key: made.append(key) or status(*key)
    with ManagementClient(url) as client:
        page = client.client_page("empty")
        assert (len(page.rows), page.total) == (MOST, 2 * MOST)
        rest = client.client_page("empty", cursor=page.cursor)
        assert (rest.rows[0]["clientName"], rest.cursor) == (f"b{MOST}", "")
        made.clear()
        rows = client.clients("empty")
        assert next(rows)["clientName"] == "b000"
        assert len(made) == MOST
        taken = [row["clientName"] for row in client.clients("empty", limit=3)]
        assert taken == ["b000", "b001", "b002"]
        found = client.clients("empty", where="clientName==b11*")
        assert [row["clientName"] for row in found] == [f"b11{n}" for n in range(10)]


@contextmanager
def resetting(answered: list[int]) -> Iterator[str]:
    """A server that answers so many requests of each connection, then resets it; yields its URL."""
    body = b'{"data":[],"meta":{"responseCode":200,"count":0}}'
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body

    def run(server: socket.socket) -> None:
        for count in answered:
            with server.accept()[0] as taken:
                for _ in range(count):
                    taken.recv(65_536)
                    taken.sendall(answer)
                taken.recv(65_536)
                taken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=run, args=(server,))
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        thread.join(20)


def test_a_connection_that_was_closed_meanwhile() -> None:
    """A request that changes nothing is sent once more over a new connection, and no second time."""
    with resetting([1, 1, 0]) as url, Transport(url) as transport:
        for _ in range(2):
            assert transport.page("/vpnrouter/v1/bridges").rows == []
        with pytest.raises(OperationError, match="cannot connect"):
            transport.page("/vpnrouter/v1/bridges")
