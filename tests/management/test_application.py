import inspect
import time
from typing import Any

import pytest
from fastapi.routing import APIRoute

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
