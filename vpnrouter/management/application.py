"""Builds the ASGI application of the management API: its paths, middleware and error answers."""

from functools import partial
from json import JSONEncoder
from typing import Final

import trio
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from vpnrouter import __version__
from vpnrouter.beside import beside
from vpnrouter.core.fault_barrier import fault_id
from vpnrouter.errors import RequestError
from vpnrouter.management import (
    clients,
    events,
    kind_actions,
    mqtt_sessions,
    router,
    router_config,
    spool,
    subscriptions,
    trace_tail,
)
from vpnrouter.management.access import Access
from vpnrouter.management.answers.replies import error_reply
from vpnrouter.management.api_context import ApiContext
from vpnrouter.management.config import about
from vpnrouter.management.config import routes as config
from vpnrouter.management.errors import failed, invalid, no_path, not_supported
from vpnrouter.management.kind_pages import all_pages
from vpnrouter.management.metrics import scrape
from vpnrouter.management.middleware import AuthMiddleware

OPENAPI: Final = "/SEMP/v2/openapi.json"
"""Where the description of the API is. Its pages for people would load scripts of others: left out."""

_DESCRIBING: Final = trio.CapacityLimiter(1)
"""The description is made once, and reading the sources for it is nothing for several threads."""

ROUTERS: Final = (
    # What is asked for most often comes first: each request is compared with all that come before.
    router.routes,
    scrape.routes,
    *all_pages(),
    kind_actions.routes,
    clients.routes,
    subscriptions.ours,
    mqtt_sessions.routes,
    spool.ours,
    router.ours,
    trace_tail.ours,
    events.ours,
    about.routes,
    config.routes,
    router_config.ours,
)
"""Everything that has a path."""


def build_app(
    context: ApiContext,
    access: Access,
) -> FastAPI:
    """Return the ASGI application for one router."""
    app = FastAPI(
        title="vpnrouter management",
        version=__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.context = context
    app.state.description = None
    app.add_middleware(AuthMiddleware, access=access)
    app.add_exception_handler(RequestError, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _no_route)
    app.add_exception_handler(Exception, _fault)
    app.add_api_route(OPENAPI, _description, include_in_schema=False)
    for routes in ROUTERS:
        app.include_router(routes)
    # FastAPI makes a route ready when a request first looks at it, all of them in a quarter of a second: do it now,
    # while there is nobody who would wait.
    nowhere = {
        "type": "http",
        "method": "GET",
        "path": "/",
        "root_path": "",
        "headers": [],
        "app": app,
    }
    for route in app.routes:
        route.matches(nowhere)
    return app


async def _description(request: Request) -> Response:
    state = request.app.state
    if state.description is None:
        # It takes as long as many requests, and needs nothing of the router.
        await beside(partial(_describe, request.app), _DESCRIBING)
    return Response(state.description, media_type="application/json")


def _describe(app: FastAPI) -> None:
    """Make the description, unless a request that waited before has had it made."""
    if app.state.description is None:
        config.describe_paths()
        # Piece by piece: in one go, the encoder would let no other thread of Python run meanwhile.
        pieces = JSONEncoder(separators=(",", ":")).iterencode(app.openapi())
        app.state.description = "".join(pieces).encode()


async def _refused(request: Request, error: Exception) -> Response:
    if isinstance(error, RequestError):
        return error_reply(request, error)
    return await _fault(request, error)


async def _invalid(request: Request, error: Exception) -> Response:
    """Return the error for a parameter that the framework refused."""
    errors = error.errors() if isinstance(error, RequestValidationError) else []
    text = "; ".join(f"{each['loc'][-1]}: {each['msg']}" for each in errors)
    return error_reply(request, invalid(text))


async def _no_route(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException) and error.status_code == 405:
        text = f"{request.method} is not supported by {request.url.path}"
        return error_reply(request, not_supported(text), error.headers)
    return error_reply(request, no_path(request.url.path))


async def _fault(request: Request, error: Exception) -> Response:
    """Answer a fault of the router; the event log says what was raised and where."""
    text = f"The router failed to answer; its log says why: fault {fault_id(error)}"
    return error_reply(request, failed(text))
