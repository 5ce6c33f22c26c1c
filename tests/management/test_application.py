"""Paths of the API, what a body may hold, errors, health, and what is said of the router."""

import inspect
import time
from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute

from vpnrouter import __version__, limits
from vpnrouter.errors import RequestError
from vpnrouter.management import errors
from vpnrouter.management.application import ROUTERS

OPENAPI = "/SEMP/v2/openapi.json"


@pytest.mark.parametrize("path", ["/", "/nope", "/SEMP/v2/monitor/msgVpns/", "/docs", "/%2e%2e"])
async def test_no_such_path(still: Any, opened: Any, path: str) -> None:
    """A path that is none is 404 in the envelope."""
    async with opened(still) as client:
        answer = await client.get(path)
    assert answer.status_code == 404
    assert answer.json()["meta"]["error"]["status"] == "INVALID_PATH"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_no_such_method(still: Any, opened: Any, method: str) -> None:
    """A known path with another method is 405, and says what it takes."""
    async with opened(still) as client:
        answer = await client.request(method, "/SEMP/v2/monitor/msgVpns")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET")
    error = answer.json()["meta"]["error"]
    assert error["description"] == f"{method} is not supported by /SEMP/v2/monitor/msgVpns"


async def test_a_bug_is_told_without_its_insides(
    still: Any, opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client hears that the router failed; the traceback is for its log."""
    monkeypatch.setattr(still.context.meters, "totals", lambda _: 1 // 0)
    async with opened(still) as client:
        answer = await client.get("/SEMP/v2/monitor/msgVpns")
    assert answer.status_code == 500
    assert answer.json()["meta"]["error"]["status"] == "FAIL"
    assert "ZeroDivision" not in answer.text


async def test_the_description_names_every_path(still: Any, opened: Any) -> None:
    """OpenAPI has each path with its parameters and attributes."""
    async with opened(still) as client:
        described = (await client.get(OPENAPI)).json()
    assert set(described["paths"]) == {
        route.path_format for route in all_routes() if route.include_in_schema
    }
    listed = described["paths"]["/SEMP/v2/monitor/msgVpns/{msgVpnName}/bridges"]["get"]
    assert {each["name"] for each in listed["parameters"]} == {
        "msgVpnName",
        "count",
        "cursor",
        "sort",
        "where",
        "select",
    }
    schema = listed["responses"]["200"]["content"]["application/json"]["schema"]
    row = schema["properties"]["data"]["items"]["properties"]
    assert row["inboundState"] == {"type": "string"}


def all_routes() -> list[APIRoute]:
    """The routes of all modules."""
    return [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]


@pytest.mark.parametrize("route", all_routes(), ids=lambda route: route.path)
def test_handlers_run_in_the_routers_own_thread(route: APIRoute) -> None:
    """All handlers and what they depend on are coroutines: a plain function would run in a thread."""
    waiting = [route.dependant]
    while waiting:
        dependant = waiting.pop()
        assert inspect.iscoroutinefunction(dependant.call), dependant.call
        waiting += dependant.dependencies


async def test_the_first_request_costs_no_more_than_others(still: Any, opened: Any) -> None:
    """Routes are ready when the application is: building them takes hundreds of times as long as an answer."""
    began = time.thread_time()
    async with opened(still) as client:
        built = time.thread_time() - began
        began = time.thread_time()
        assert (await client.get("/nope")).status_code == 404
        first = time.thread_time() - began
    assert first < 0.2 * built


BLUE_ONLY = {"bob": {"password": "pw", "msg_vpns": ["blue"]}}
MONITOR = "/SEMP/v2/monitor/msgVpns"


@pytest.mark.parametrize("path", ["/a%2Fb", "/a%2Fb/bridges", "/a%2Fb/bridges/x,auto", "/nope"])
async def test_a_hidden_msg_vpn_does_not_exist(still: Any, opened: Any, path: str) -> None:
    """Whoever may not see a message VPN hears the same as if there were none."""
    async with opened(still, BLUE_ONLY, auth=("bob", "pw")) as client:
        answer = await client.get(MONITOR + path)
    name = "nope" if path == "/nope" else "a/b"
    assert answer.status_code == 400
    error = answer.json()["meta"]["error"]
    assert error["description"] == f"Could not find match for msgVpn {name}"
    assert still.looked == 0


async def test_lists_leave_out_what_is_hidden(still: Any, opened: Any) -> None:
    """Neither rows nor counts tell of it."""
    async with opened(still, BLUE_ONLY, auth=("bob", "pw")) as client:
        vpns = (await client.get(MONITOR)).json()
        bridges = (await client.get("/vpnrouter/v1/bridges")).json()
    assert [row["msgVpnName"] for row in vpns["data"]] == ["blue"]
    assert vpns["meta"]["count"] == 1
    assert {row["msgVpnName"] for row in bridges["data"]} == {"blue"}
    assert bridges["meta"]["count"] == 2


async def test_what_is_seen(still: Any, opened: Any) -> None:
    """The message VPN that the user may see is answered in full."""
    async with opened(still, BLUE_ONLY, auth=("bob", "pw")) as client:
        assert (await client.get(f"{MONITOR}/blue/bridges/to-a,auto")).status_code == 200


PATH = "/SEMP/v2/action/msgVpns/blue/queues/orders/deleteMsgs"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"[]", "the body is no JSON object"),
        (b"{", "the body is no JSON object"),
        (b"[" * 50_000, "the body is no JSON object"),
        (b"\xff", "the body is no JSON object"),
        (b'{"ids": []}', "there is no attribute ids"),
        (b'{"msgIds": 3}', "msgIds: 3 is of the wrong kind"),
        (b'{"msgIds": true}', "msgIds: True is of the wrong kind"),
    ],
    ids=lambda value: value[:20] if isinstance(value, bytes) else "",
)
async def test_what_is_refused(still: Any, opened: Any, body: bytes, said: str) -> None:
    """Nothing is done for a body that is not understood."""
    async with opened(still) as client:
        answer = await client.put(PATH, content=body)
    assert answer.status_code == 400
    assert answer.json()["meta"]["error"]["description"] == said
    assert len(still.queues.contents["blue", "orders"]) == 25


@pytest.mark.parametrize("body", [b"", b"{}", b" {}" + b" " * (limits.MANAGEMENT_BODY_BYTES - 3)])
async def test_what_is_taken(still: Any, opened: Any, body: bytes) -> None:
    """No body says the same as an empty object; it may be as long as the bound."""
    async with opened(still) as client:
        assert (await client.put(PATH, content=body)).status_code == 200
    assert still.queues.contents["blue", "orders"] == {}


@pytest.mark.parametrize("more", [1, 10_000_000])
def test_a_body_that_is_too_long(standing: Any, still: Any, more: int) -> None:
    """It is refused as soon as the bound is passed, however long it goes on."""
    with standing.serving(still) as address, httpx.Client(trust_env=False) as client:
        body = b" " * (limits.MANAGEMENT_BODY_BYTES + more)
        answer = client.put(f"http://{address}{PATH}", content=body)
    said = "the body has more than 65,536 bytes"
    assert answer.json()["meta"]["error"]["description"] == said
    assert len(still.queues.contents["blue", "orders"]) == 25


@pytest.mark.parametrize(
    ("fault", "code", "status", "http_status"),
    [
        (errors.failed("x"), 2, "FAIL", 500),
        (errors.busy("x"), 2, "FAIL", 503),
        (errors.not_found("x"), 6, "NOT_FOUND", 400),
        (errors.invalid("x"), 11, "INVALID_PARAMETER", 400),
        (errors.not_supported("x"), 14, "NOT_SUPPORTED", 405),
        (errors.unauthorized("x"), 72, "UNAUTHORIZED", 401),
        (errors.forbidden("x"), 72, "UNAUTHORIZED", 403),
        (errors.too_many("x"), 72, "UNAUTHORIZED", 429),
        (errors.no_path("x"), 535, "INVALID_PATH", 404),
    ],
)
def test_codes_are_the_fields(
    fault: RequestError, code: int, status: str, http_status: int
) -> None:
    """Scripts look at the number, people at the name."""
    assert (fault.code, fault.status, fault.http_status) == (code, status, http_status)
    assert "x" in str(fault)


async def test_live(still: Any, opened: Any) -> None:
    """Whoever answers lives, whether ready or not, and says so to anybody."""
    still.context.edge.stopping = True
    async with opened(still, peer="192.0.2.1") as client:
        answer = await client.get("/health/live")
    assert (answer.status_code, answer.json()) == (200, {"status": "live"})


async def test_ready(still: Any, opened: Any) -> None:
    """Ready while the router serves, 503 while not."""
    async with opened(still, {"ann": {"password": "pw"}}) as client:
        assert (await client.get("/health/ready")).status_code == 200
        still.context.edge.stopping = True
        answer = await client.get("/health/ready")
    assert (answer.status_code, answer.json()) == (503, {"status": "not ready"})


async def test_whoever_asks_learns_what_may_be_done(still: Any, opened: Any) -> None:
    """A viewer is told that it is one, and what the router is called."""
    users = {"ann": {"password": "pw", "role": "read-only", "msg_vpns": ["blue"]}}
    async with opened(still, users, auth=("ann", "pw")) as client:
        answer = (await client.get("/vpnrouter/v1/router")).json()
    assert answer["data"] == {
        "routerName": "here",
        "version": __version__,
        "ready": True,
        "user": "ann",
        "role": "read-only",
        "allMsgVpns": False,
    }


async def test_this_machine_may_change(still: Any, opened: Any) -> None:
    """Without users, whoever is let in is an admin of everything."""
    async with opened(still) as client:
        answer = (await client.get("/vpnrouter/v1/router")).json()
    assert (answer["data"]["role"], answer["data"]["allMsgVpns"]) == ("admin", True)
