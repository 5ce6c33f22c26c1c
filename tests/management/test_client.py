"""The client of the management API: requests, pages, and what is said when they fail."""

import json
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

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


@pytest.fixture
def noted() -> Iterator[tuple[ManagementClient, list[str]]]:
    """A client, and method and target of each of its requests, which are all answered alike."""
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(f"{request.method} {request.url.raw_path.decode()}")
        lists = ("s", "matches")
        data = [{}] if request.url.path.endswith(lists) else {"routerName": "here"}
        meta = {"responseCode": 200, "mark": 9, "missed": 2, "tracing": False}
        return httpx.Response(200, json={"data": data, "meta": meta})

    with ManagementClient("http://h") as client:
        client._http.close()
        client._http = httpx.Client(transport=httpx.MockTransport(answer))
        yield client, asked


MONITOR = "GET /SEMP/v2/monitor/msgVpns/a%2Fb"
ACTION = "PUT /SEMP/v2/action/msgVpns/a%2Fb"


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda client: client.router(), "GET /vpnrouter/v1/router"),
        (lambda client: client.msg_vpn("a/b"), MONITOR),
        (lambda client: client.queue("a/b", "x,y"), f"{MONITOR}/queues/x%2Cy"),
        (lambda client: client.client("a/b", "c/1"), f"{MONITOR}/clients/c%2F1"),
        (
            lambda client: list(client.client_subscriptions("a/b", "c")),
            f"{MONITOR}/clients/c/subscriptions?count=100",
        ),
        (
            lambda client: list(client.children("a/b", "mqttSessions")),
            f"{MONITOR}/mqttSessions?count=100",
        ),
        (
            lambda client: list(client.clients("a/b", wanted=5)),
            f"{MONITOR}/clients?count=5",
        ),
        (lambda client: client.client_page(), "GET /vpnrouter/v1/clients?count=100"),
        (
            lambda client: client.matches("a/b", "t&u"),
            "GET /vpnrouter/v1/msgVpns/a%2Fb/matches?count=100&topic=t%26u",
        ),
        (
            lambda client: client.events(5_000, 7, "v"),
            "GET /vpnrouter/v1/events?count=1000&after=7&msgVpnName=v",
        ),
        (
            lambda client: client.traces(9, 4, topic="a/>", trace_id="f"),
            "GET /vpnrouter/v1/traces?count=9&after=4&topic=a%2F%3E&traceId=f",
        ),
        (lambda client: client.disconnect_client("a/b", "c"), f"{ACTION}/clients/c/disconnect"),
        (lambda client: client.clear_client_stats("a/b", "c"), f"{ACTION}/clients/c/clearStats"),
        (
            lambda client: client.disconnect_bridge("a/b", "x,y"),
            f"{ACTION}/bridges/x%2Cy,auto/disconnect",
        ),
        (
            lambda client: client.clear_bridge_stats("a/b", "x"),
            f"{ACTION}/bridges/x,auto/clearStats",
        ),
        (lambda client: client.clear_queue_stats("a/b", "q"), f"{ACTION}/queues/q/clearStats"),
    ],
)
def test_paths(noted: Any, call: Any, expected: str) -> None:
    """Each call asks for the field's path, or ours, with every name encoded by itself."""
    client, asked = noted
    call(client)
    assert asked == [expected]


def test_traces_and_subscriptions(noted: Any) -> None:
    """Traces come with their mark; subscriptions of a VPN are those of one that exists."""
    client, asked = noted
    assert client.traces(1)[1:] == (9, 2, False)
    asked.clear()
    assert list(client.subscriptions("v", where="qos==1")) == [{}]
    assert asked == [
        "GET /SEMP/v2/monitor/msgVpns/v",
        "GET /vpnrouter/v1/msgVpns/v/subscriptions?count=100&where=qos%3D%3D1",
    ]
    assert client.bridge("v", "b")["remotes"] == [{}]


BRIDGE = "/msgVpns/a%2Fb/bridges/x%2Cy,auto"


@pytest.fixture
def asked() -> list[tuple[str, str, Any]]:
    """Method, path and body of each request."""
    return []


@pytest.fixture
def client(asked: list[tuple[str, str, Any]]) -> ManagementClient:
    """A client whose requests are noted, and answered with their body."""

    def answer(request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content) if request.content else None
        asked.append((request.method, request.url.raw_path.decode(), body))
        data = [] if request.url.path.endswith("queues") else body or {"digest": "d"}
        return httpx.Response(200, json={"data": data, "meta": {"responseCode": 200}})

    made = ManagementClient("http://h")
    made._http = httpx.Client(transport=httpx.MockTransport(answer))
    return made


def test_the_document(client: ManagementClient, asked: list[Any]) -> None:
    """It is read, examined, replaced where it still is what it was, and returned to."""
    assert client.config()["digest"] == "d"
    client.examine({"router": {}})
    client.replace_config({"router": {}}, "d")
    client.return_config("e")
    assert asked == [
        ("GET", "/vpnrouter/v1/config", None),
        ("POST", "/vpnrouter/v1/config/examine", {"document": {"router": {}}}),
        ("PUT", "/vpnrouter/v1/config/replace", {"document": {"router": {}}, "expected": "d"}),
        ("PUT", "/vpnrouter/v1/config/return", {"digest": "e"}),
    ]


def test_objects(client: ManagementClient, asked: list[Any]) -> None:
    """Objects are read, created, changed and deleted under the field's paths."""
    path = config_path("msgVpns", "a/b", "bridges", ("x,y", "auto"))
    assert path == BRIDGE
    client.config_object(path)
    client.config_objects("/msgVpns/v/queues")
    client.create_config("/msgVpns/v/queues", {"queueName": "q"})
    client.enable_bridge("a/b", "x,y", enabled=False)
    client.delete_config(path)
    assert asked == [
        ("GET", f"/SEMP/v2/config{BRIDGE}", None),
        ("GET", "/SEMP/v2/config/msgVpns/v/queues?count=100", None),
        ("POST", "/SEMP/v2/config/msgVpns/v/queues", {"queueName": "q"}),
        ("PATCH", f"/SEMP/v2/config{BRIDGE}", {"enabled": False}),
        ("DELETE", f"/SEMP/v2/config{BRIDGE}", None),
    ]


def test_messages(standing: Any, still: Any) -> None:
    """They are browsed, read, copied and deleted by the names that a path encodes."""
    with standing.serving(still) as address, ManagementClient(f"http://{address}") as client:
        assert [row["msgId"] for row in client.msgs("blue", "orders", 3, 20)] == [21, 22, 23]
        assert client.payload("a/b", "x,y", 7) == b"seven"
        assert [row["flowId"] for row in client.tx_flows("blue", "orders")] == [2, 10]
        assert client.put_msgs("blue", "orders", "dead", [1, 2], move=True) == 2
        assert client.delete_msgs("blue", "orders", [3, 3, 4]) == 2
        assert client.delete_msgs("blue", "dead") == 2


def test_as_many_as_a_request_may_name(standing: Any, still: Any) -> None:
    """More messages are named in several requests."""
    count = limits.MANAGEMENT_MSG_IDS + 1
    still.queues.contents["blue", "orders"] = dict.fromkeys(range(1, count + 1), b"")
    with standing.serving(still) as address, ManagementClient(f"http://{address}") as client:
        assert client.delete_msgs("blue", "orders", range(1, count + 1)) == count


def test_path_of_a_queue() -> None:
    """Each name is encoded by itself."""
    assert queue_path("a/b", "x,y") == "/msgVpns/a%2Fb/queues/x%2Cy"


MOST = limits.MANAGEMENT_PAGE_ROWS


def served(standing: Any, count: int) -> Any:
    """A router with `count` bridges."""
    names = [f"b{number:03}" for number in range(count)]
    return standing.Still(["blue"], [standing.bridge_status("blue", name) for name in names])


def test_pages(standing: Any) -> None:
    """A page says how many there are in all, and where the next one begins."""
    with (
        standing.serving(served(standing, MOST + 5)) as address,
        Transport(f"http://{address}/") as transport,
    ):
        assert transport.url == f"http://{address}"
        first = transport.page("/vpnrouter/v1/bridges")
        assert (len(first.rows), first.total) == (MOST, MOST + 5)
        rest = transport.page("/vpnrouter/v1/bridges", cursor=first.cursor)
        assert (rest.rows[0]["bridgeName"], rest.cursor) == (f"b{MOST}", "")


def test_rows_are_asked_for_as_they_are_taken(standing: Any) -> None:
    """Who takes few costs the router few; a condition is the router's to look at."""
    still = served(standing, 2 * MOST)
    with standing.serving(still) as address, Transport(f"http://{address}") as transport:
        rows = transport.rows("/vpnrouter/v1/bridges")
        next(rows)
        assert still.looked <= MOST
        taken = [row["bridgeName"] for row in transport.rows("/vpnrouter/v1/bridges", wanted=3)]
        assert taken == ["b000", "b001", "b002"]
        found = transport.rows(
            "/vpnrouter/v1/bridges", where="bridgeName==b1*", select="bridgeName"
        )
        assert {tuple(row) for row in found} == {("bridgeName",)}


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
