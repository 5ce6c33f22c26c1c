"""Requests that mean harm: each gets an answer that says no, the configuration stays, nothing fails."""

import http.client
import json
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from management_routers import serving

CONFIG = "/SEMP/v2/config"
JSON = {"content-type": "application/json"}


@pytest.fixture
def place(desk: Any) -> Iterator[tuple[str, int]]:
    """Host and port of a router without users."""
    with serving(desk.application()) as url:
        parts = urlsplit(url)
        assert parts.hostname is not None
        assert parts.port is not None
        yield parts.hostname, parts.port


def asked(
    place: tuple[str, int],
    method: str,
    path: str,
    body: bytes | str | None = None,
    headers: dict[str, str] | None = None,
) -> tuple[int, dict[str, Any]]:
    """Response code and JSON body of one request that is sent as it is written."""
    connection = http.client.HTTPConnection(*place, timeout=20)
    try:
        connection.request(method, path, body, JSON if headers is None else headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read() or b"{}")
    finally:
        connection.close()


@pytest.mark.parametrize(
    "name",
    [
        "%00",
        "..",
        "%2e%2e",
        "..%2f..%2fetc%2fpasswd",
        "%2F",
        "%",
        "%zz",
        "%ff%fe",
        "%ed%a0%80",
        "a" * 5000,
        "%2C" * 300,
        ",",
        ",,,,,,",
        "{queueName}",
        "*",
        "__proto__",
        "$(reboot)",
        "a%0d%0aX-Bad:%201",
    ],
)
def test_names_that_are_none(place: tuple[str, int], editor: Any, name: str) -> None:
    """A name in a path leads to an object or to none, for every method, and nothing is made of it."""
    before = editor.digest()
    for path in (
        f"{CONFIG}/msgVpns/{name}",
        f"{CONFIG}/msgVpns/blue/queues/{name}",
        f"{CONFIG}/msgVpns/{name}/queues",
        f"{CONFIG}/msgVpns/blue/bridges/from-red,auto/remoteMsgVpns/{name}",
        f"{CONFIG}/msgVpns/blue/aclProfiles/default/publishTopicExceptions/{name}",
    ):
        for method in ("GET", "PATCH", "DELETE"):
            body = "{}" if method == "PATCH" else None
            status, answer = asked(place, method, path, body)
            assert status in {400, 404, 405}, (method, path, status, answer)
            assert answer["meta"]["error"]["code"] in {6, 11, 14, 535}, (method, path, answer)
    assert editor.digest() == before


@pytest.mark.parametrize(
    "body",
    [
        "",
        "[]",
        "null",
        "1",
        '"text"',
        "{",
        '{"queueName": }',
        '{"queueName": NaN}',
        '{"queueName": "q", "maxTtl": Infinity}',
        '{"queueName": "q", "maxTtl": 1e400}',
        '{"queueName": "q", "maxTtl": ' + "9" * 5000 + "}",
        '{"queueName": "\\ud800"}',
        '{"queueName": "\\u0000"}',
        '{"queueName": ["q"]}',
        '{"queueName": {"q": 1}}',
        '{"queueName": "q", "\\ud800": 1}',
        '{"queueName": "q", "__class__": 1}',
        '{"queueName": "q", "eventBindCountThreshold": {"setPercent": ' + "9" * 30 + "}}",
        '{"queueName": "q", "owner": {"file": "/etc/passwd"}}',
        '{"queueName": "q", "owner": {"env": "PATH"}}',
        '{"a": ' * 5000 + "1" + "}" * 5000,
        '{"queueName": "q", "x": ' + "[" * 30_000 + "]" * 30_000 + "}",
        '{"queueName": "' + "q" * 70_000 + '"}',
        b"\xff\xfe\x00",
        b'{"queueName": "\xff"}',
    ],
    ids=lambda body: str(body)[:40],
)
def test_bodies_that_are_none(place: tuple[str, int], editor: Any, body: bytes | str) -> None:
    """A body is refused as a whole, by a fault of whoever sent it."""
    before = editor.digest()
    status, answer = asked(place, "POST", f"{CONFIG}/msgVpns/blue/queues", body)
    assert status == 400, (status, answer)
    assert answer["meta"]["error"]["code"] in {11, 14}
    assert len(answer["meta"]["error"]["description"]) < 1000
    assert editor.digest() == before


def test_passwords_are_texts_and_never_name_files(place: tuple[str, int], editor: Any) -> None:
    """In a file a secret may stand elsewhere; by the API that would tell of the router's machine."""
    for secret in ({"file": "/etc/passwd"}, {"env": "HOME"}, 1, ["a"], True):
        body = json.dumps({"clientUsername": "u", "password": secret})
        status, answer = asked(place, "POST", f"{CONFIG}/msgVpns/blue/clientUsernames", body)
        assert (status, answer["meta"]["error"]["code"]) == (400, 11)
    assert "u" not in editor.config().msg_vpns["blue"].client_usernames


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"content-type": "text/plain"},
        {"content-type": "application/x-www-form-urlencoded"},
        {"content-type": "multipart/form-data; boundary=a"},
        {"content-type": "application/json-not"},
        {"content-type": ";application/json"},
    ],
)
def test_what_a_web_page_may_send_unasked_changes_nothing(
    place: tuple[str, int], editor: Any, headers: dict[str, str]
) -> None:
    """A POST of these types comes from any page without a question before it, so it is not taken."""
    before = editor.digest()
    body = json.dumps({"msgVpnName": "mine"})
    status, answer = asked(place, "POST", f"{CONFIG}/msgVpns", body, headers)
    assert (status, answer["meta"]["error"]["code"]) == (400, 11)
    assert editor.digest() == before


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "localhost.evil.example"},
        {"x-forwarded-for": "127.0.0.1", "host": "evil.example"},
    ],
)
def test_other_hosts_are_not_served(place: tuple[str, int], headers: dict[str, str]) -> None:
    """A page whose name leads to this address does not get in where nobody has to log in."""
    status, answer = asked(place, "GET", f"{CONFIG}/msgVpns", None, headers)
    assert (status, answer["meta"]["error"]["code"]) == (403, 72)


@pytest.mark.parametrize(
    "headers",
    [
        {"x-http-method-override": "DELETE"},
        {"x-original-url": f"{CONFIG}/msgVpns/blue"},
        {"x-forwarded-host": "evil.example", "x-forwarded-proto": "https"},
        {"x-forwarded-prefix": "/evil"},
        {"accept": "text/html"},
        {"range": "bytes=0-1"},
        {"expect": "nothing"},
        {"cookie": "a=" + "b" * 2000},
    ],
)
def test_headers_change_nothing(
    place: tuple[str, int], editor: Any, headers: dict[str, str]
) -> None:
    """No header makes another request of a request."""
    status, answer = asked(place, "GET", f"{CONFIG}/msgVpns/green", None, headers)
    assert status == 200
    assert answer["links"]["uri"] == f"http://{place[0]}:{place[1]}{CONFIG}/msgVpns/green"
    assert "green" in editor.config().msg_vpns


def test_a_path_that_is_not_ascii(place: tuple[str, int]) -> None:
    """What is no HTTP gets no answer of the API, and the next one is served."""
    for path in (b"/SEMP/v2/config/\xff\xfe", b"/SEMP/v2/config/msgVpns?where=\xe9"):
        with socket.create_connection(place, timeout=20) as connection:
            connection.sendall(b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert not connection.recv(100).startswith(b"HTTP/1.1 5")
    assert asked(place, "GET", f"{CONFIG}/msgVpns")[0] == 200
