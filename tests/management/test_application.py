"""Paths of the API, what a body may hold, errors, health, and what is said of the router."""

import inspect
import time
from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute
from management_routers import serving

from vpnrouter import __version__, limits
from vpnrouter.core.guaranteed.spool import spool_of
from vpnrouter.management.access import Access
from vpnrouter.management.application import ROUTERS, build_app

OPENAPI = "/SEMP/v2/openapi.json"


@pytest.mark.parametrize("path", ["/", "/nope", "/SEMP/v2/monitor/msgVpns/", "/docs", "/%2e%2e"])
async def test_no_such_path(here: Any, path: str) -> None:
    """A path that is none is 404 in the envelope."""
    async with here.api() as client:
        answer = await client.get(path)
    assert answer.status_code == 404
    error = answer.json()["meta"]["error"]
    assert (error["code"], error["status"]) == (535, "INVALID_PATH")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_no_such_method(here: Any, method: str) -> None:
    """A known path with another method is 405, and says what it takes."""
    async with here.api() as client:
        answer = await client.request(method, "/SEMP/v2/monitor/msgVpns")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET")
    error = answer.json()["meta"]["error"]
    assert (error["code"], error["status"]) == (14, "NOT_SUPPORTED")
    assert error["description"] == f"{method} is not supported by /SEMP/v2/monitor/msgVpns"


async def test_a_bug_is_told_without_its_insides(
    here: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client hears that the router failed; the traceback is for its log."""
    monkeypatch.setattr(here.context.meters, "totals", lambda _: 1 // 0)
    async with here.api() as client:
        answer = await client.get("/SEMP/v2/monitor/msgVpns")
    assert answer.status_code == 500
    error = answer.json()["meta"]["error"]
    assert (error["code"], error["status"]) == (2, "FAIL")
    assert "ZeroDivision" not in answer.text


async def test_the_description_names_every_path(here: Any) -> None:
    """OpenAPI has each path with its parameters and attributes."""
    async with here.api() as client:
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


async def test_the_first_request_costs_no_more_than_others(here: Any) -> None:
    """Routes are ready when the application is: building them takes hundreds of times as long as an answer."""
    began = time.thread_time()
    app = build_app(here.context, Access({}))
    built = time.thread_time() - began
    transport = httpx.ASGITransport(app, client=("127.0.0.1", 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        began = time.thread_time()
        assert (await client.get("/nope")).status_code == 404
        first = time.thread_time() - began
    assert first < 0.2 * built


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
async def test_what_is_refused(here: Any, body: bytes, said: str) -> None:
    """Nothing is done for a body that is not understood."""
    async with here.api() as client:
        answer = await client.put(PATH, content=body)
    assert answer.status_code == 400
    assert answer.json()["meta"]["error"]["description"] == said
    assert len(here.ids("blue", "orders")) == 25


@pytest.mark.parametrize("body", [b"", b"{}", b" {}" + b" " * (limits.MANAGEMENT_BODY_BYTES - 3)])
async def test_what_is_taken(here: Any, body: bytes) -> None:
    """No body says the same as an empty object; it may be as long as the bound."""
    async with here.api() as client:
        assert (await client.put(PATH, content=body)).status_code == 200
    assert here.ids("blue", "orders") == []


@pytest.mark.parametrize("more", [1, 10_000_000])
def test_a_body_that_is_too_long(here: Any, more: int) -> None:
    """It is refused as soon as the bound is passed, however long it goes on."""
    with serving(here.application()) as url, httpx.Client(trust_env=False) as client:
        body = b" " * (limits.MANAGEMENT_BODY_BYTES + more)
        answer = client.put(f"{url}{PATH}", content=body)
    said = "the body has more than 65,536 bytes"
    assert answer.json()["meta"]["error"]["description"] == said
    assert len(here.ids("blue", "orders")) == 25


async def test_live(here: Any) -> None:
    """Whoever answers lives, whether ready or not, and says so to anybody."""
    here.context.edge.stopping = True
    async with here.api(peer="192.0.2.1") as client:
        answer = await client.get("/health/live")
    assert (answer.status_code, answer.json()) == (200, {"status": "live"})


async def test_ready(here: Any) -> None:
    """Ready while the router serves, 503 while not."""
    async with here.api({"ann": {"password": "pw"}}) as client:
        assert (await client.get("/health/ready")).status_code == 200
        here.context.edge.stopping = True
        answer = await client.get("/health/ready")
    told = {"status": "not ready", "reason": "the router stops"}
    assert (answer.status_code, answer.json()) == (503, told)


async def test_not_ready_while_the_spool_fails(here: Any) -> None:
    """Not ready, with the reason, from a commit that failed to one that succeeds; it lives all the time."""
    spool = spool_of(here.context.router.context)
    assert spool is not None
    async with here.api({"ann": {"password": "pw"}}, auth=("ann", "pw")) as client:
        spool.failed("/secret/place: no space")
        answer = await client.get("/health/ready")
        assert answer.status_code == 503
        assert "spool cannot be written" in answer.json()["reason"]
        assert "secret" not in answer.text
        assert not (await client.get("/vpnrouter/v1/router")).json()["data"]["ready"]
        assert 'vpnrouter_ready{router="here"} 0' in (await client.get("/metrics")).text
        assert (await client.get("/health/live")).status_code == 200
        spool.down = ""
        assert (await client.get("/health/ready")).status_code == 200


async def test_whoever_asks_learns_what_may_be_done(here: Any) -> None:
    """A viewer is told that it is one, and what the router is called."""
    users = {"ann": {"password": "pw", "role": "read-only", "msg_vpns": ["blue"]}}
    async with here.api(users, auth=("ann", "pw")) as client:
        answer = (await client.get("/vpnrouter/v1/router")).json()
    assert answer["data"] == {
        "routerName": "here",
        "version": __version__,
        "ready": True,
        "user": "ann",
        "role": "read-only",
        "allMsgVpns": False,
        "certificateExpiries": {},
    }


async def test_this_machine_may_change(here: Any) -> None:
    """Without users, whoever is let in is an admin of everything."""
    async with here.api() as client:
        answer = (await client.get("/vpnrouter/v1/router")).json()
    assert (answer["data"]["role"], answer["data"]["allMsgVpns"]) == ("admin", True)
