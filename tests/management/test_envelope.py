import json
from typing import Any

from starlette.requests import Request

from vpnrouter.management.errors import not_found
from vpnrouter.management.responses import (
    error_reply,
    list_reply,
    object_reply,
    segment,
)


def request(path: str = "/a", query: bytes = b"") -> Request:
    """A request for `path` on router.example."""
    return Request(
        {
            "type": "http",
            "method": "GET",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query,
            "headers": [(b"host", b"router.example:8080")],
            "server": ("127.0.0.1", 1),
        }
    )


def body_of(response: Any) -> Any:
    """What was answered."""
    assert response.media_type == "application/json"
    assert response.headers["cache-control"] == "no-store"
    return json.loads(response.body)


def test_one_object() -> None:
    """Data and links are objects, meta tells request and response code."""
    assert body_of(object_reply(request("/x"), {"a": 1}, {"uri": "u"})) == {
        "data": {"a": 1},
        "links": {"uri": "u"},
        "meta": {
            "request": {"method": "GET", "uri": "http://router.example:8080/x"},
            "responseCode": 200,
        },
    }


def test_a_page() -> None:
    """The last page has no paging; any other tells how to get the next, with the same query."""
    last = body_of(list_reply(request(), [{"a": 1}], [{}], 7))
    assert last["meta"]["count"] == 7
    assert "paging" not in last["meta"]
    more = body_of(list_reply(request("/a", b"count=1&select=a*&cursor=old"), [], [], 7, "n=w"))
    assert more["meta"]["paging"] == {
        "cursorQuery": "n%3Dw",
        "nextPageUri": "http://router.example:8080/a?count=1&select=a%2A&cursor=n%3Dw",
    }


def test_an_error() -> None:
    """There is no data; the error has number, name and text."""
    response = error_reply(request(), not_found("bridge b"), {"x-more": "1"})
    assert (response.status_code, response.headers["x-more"]) == (400, "1")
    body = body_of(response)
    assert body.keys() == {"meta"}
    assert body["meta"]["responseCode"] == 400
    assert body["meta"]["error"] == {
        "code": 6,
        "description": "Could not find match for bridge b",
        "status": "NOT_FOUND",
    }


def test_compound_keys() -> None:
    """Each name of a key is encoded by itself."""
    assert segment("a/b,c", "auto") == "a%2Fb%2Cc,auto"
