"""Serves what client libraries request first: the API, the user and the router."""

from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from vpnrouter import __version__
from vpnrouter.management.access import Caller
from vpnrouter.management.answers.conditions import parse_where
from vpnrouter.management.answers.pages import Key, page_of
from vpnrouter.management.answers.query import ListQueryDep, ObjectQueryDep
from vpnrouter.management.answers.replies import list_reply, object_reply, root_of
from vpnrouter.management.answers.rows import Links, Row, segment
from vpnrouter.management.answers.selection import parse_select
from vpnrouter.management.config.editing import NO_OPAQUE_PASSWORD, EditorDep
from vpnrouter.management.config.routes import CONFIG
from vpnrouter.management.dependencies import CallerDep, ContextDep
from vpnrouter.management.errors import not_found

SEMP_VERSION: Final = "2.49"
"""The version of the field's API whose attribute names are the newest of those here."""

PLATFORM: Final = "vpnrouter"

_USER_VPN: Final = ("accessLevel", "msgVpnName")
routes: Final = APIRouter(prefix="/SEMP/v2", tags=["about"], dependencies=[NO_OPAQUE_PASSWORD])


def _reply(request: Request, row: Row, links: Links, select: str) -> Response:
    selected = parse_select(select, tuple(row))
    cut = row if selected is None else {name: row[name] for name in row if name in selected}
    return object_reply(request, cut, links)


def _level(caller: Caller) -> str:
    """Return what a user may do in a message VPN that it sees."""
    return "read-write" if caller.may_change else "read-only"


def _global_level(caller: Caller) -> str:
    """Return what a user may do in the router as a whole, in the field's words."""
    if caller.msg_vpns is not None:
        return "none"
    return "admin" if caller.may_change else "read-only"


def _about(request: Request, api: str, name: str) -> str:
    return f"{root_of(request)}/SEMP/v2/{api}/about/{name}"


def _add(api: str) -> None:
    """Add the paths of one of the three APIs."""

    async def about_api(request: Request, _: CallerDep, query: ObjectQueryDep) -> Response:
        row = {"platform": PLATFORM, "sempVersion": SEMP_VERSION, "version": __version__}
        return _reply(request, row, {"uri": _about(request, api, "api")}, query.select)

    async def about_user(request: Request, caller: CallerDep, query: ObjectQueryDep) -> Response:
        row = {
            "globalAccessLevel": _global_level(caller),
            "sessionActive": False,
            "userName": caller.name,
        }
        uri = _about(request, api, "user")
        return _reply(request, row, {"uri": uri, "msgVpnsUri": f"{uri}/msgVpns"}, query.select)

    async def user_msg_vpns(
        request: Request, caller: CallerDep, context: ContextDep, query: ListQueryDep
    ) -> Response:
        keys = [(name,) for name in context.router.vpns if caller.sees(name)]
        selected = parse_select(query.select, _USER_VPN)

        def row(key: Key) -> Row:
            return {"accessLevel": _level(caller), "msgVpnName": key[0]}

        conditions = parse_where(query.where, _USER_VPN)
        page = await page_of(keys, row, query.count, query.cursor, conditions)
        uri = _about(request, api, "user")
        cut = [
            {name: each[name] for name in each if selected is None or name in selected}
            for _, each in page.rows
        ]
        links = [{"uri": f"{uri}/msgVpns/{segment(*key)}"} for key, _ in page.rows]
        return list_reply(request, cut, links, page.total, page.cursor)

    for path, handler in (
        ("about/api", about_api),
        ("about/user", about_user),
        ("about/user/msgVpns", user_msg_vpns),
    ):
        routes.add_api_route(
            f"/{api}/{path}",
            handler,
            methods=["GET"],
            summary=f"About {'this API' if path == 'about/api' else 'the user'}",
            response_model=None,
        )


for _api in ("config", "monitor", "action"):
    _add(_api)


# Client libraries write the slash: they put "/" behind the base path.
@routes.get("/config/", include_in_schema=False, response_model=None)
@routes.get("/config", summary="Get the router", response_model=None)
async def broker(
    request: Request, caller: CallerDep, editor: EditorDep, query: ObjectQueryDep
) -> Response:
    """The router as a whole, as far as the field has attributes for it. It is changed in its file."""
    if caller.msg_vpns is not None:
        raise not_found("the router, which only users of all message VPNs see")
    config = editor.config()
    row = {
        "guaranteedMsgingEnabled": config.guaranteed_msging.enabled,
        "guaranteedMsgingMaxMsgSpoolUsage": config.guaranteed_msging.max_msg_spool_usage,
        "routerName": config.router.name,
    }
    uri = f"{root_of(request)}{CONFIG}"
    about = {
        name: f"{uri}/{path}" for name, path in (("aboutUri", "about"), ("msgVpnsUri", "msgVpns"))
    }
    return _reply(request, row, {"uri": uri} | about, query.select)


@routes.get("/config/about", summary="About", response_model=None)
async def about(request: Request, _: CallerDep, query: ObjectQueryDep) -> Response:
    """Where to ask about the API and the user."""
    uri = f"{root_of(request)}{CONFIG}/about"
    return _reply(
        request, {}, {"uri": uri, "apiUri": f"{uri}/api", "userUri": f"{uri}/user"}, query.select
    )
