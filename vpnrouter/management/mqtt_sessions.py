"""MQTT sessions: `/SEMP/v2/monitor/msgVpns/{…}/mqttSessions`, and what an operator does to them."""

from functools import partial
from typing import Annotated, Final
from urllib.parse import unquote

from fastapi import APIRouter, Depends, Path, Request
from starlette.responses import Response

from vpnrouter.errors import SpoolError
from vpnrouter.management.body import body_of, busy, not_allowed, not_found
from vpnrouter.management.clients import ClientsHere
from vpnrouter.management.context import MsgVpnHere, acted, answers
from vpnrouter.management.msg_vpns import MONITOR
from vpnrouter.management.queues import ACTION, OperatorHere
from vpnrouter.management.rows import (
    AskedMany,
    AskedOne,
    Key,
    Links,
    Row,
    object_reply,
    root_of,
    row_of,
    segment,
)
from vpnrouter.management.status.clients import Clients, MqttSessionStatus

_SESSIONS: Final = "/msgVpns/{msgVpnName}/mqttSessions"

routes: Final = APIRouter(prefix=f"{MONITOR}{_SESSIONS}", tags=["mqttSession"])

actions: Final = APIRouter(prefix=f"{ACTION}{_SESSIONS}/{{sessionKey}}", tags=["mqttSession"])

ours: Final = APIRouter(prefix=f"/vpnrouter/v1{_SESSIONS}/{{sessionKey}}", tags=["vpnrouter"])

VIRTUAL_ROUTER: Final = "auto"


async def _client_id(
    source: ClientsHere,
    msg_vpn: MsgVpnHere,
    written: Annotated[
        str,
        Path(alias="sessionKey", description="mqttSessionClientId,mqttSessionVirtualRouter"),
    ],
) -> str:
    # A client id may hold a comma: encoded or not.
    client_id, comma, virtual_router = written.rpartition(",")
    found = unquote(client_id)
    if (
        not comma
        or unquote(virtual_router) != VIRTUAL_ROUTER
        or source.session(msg_vpn, found) is None
    ):
        raise not_found(f"mqttSession {unquote(written)} in msgVpn {msg_vpn}")
    return found


SessionHere = Annotated[str, Depends(_client_id)]
"""The client id of the session of the path, which exists."""


@routes.get(
    "",
    summary="List MQTT sessions",
    responses=answers(MqttSessionStatus, many=True),
    response_model=None,
)
async def mqtt_sessions(
    request: Request, source: ClientsHere, msg_vpn: MsgVpnHere, asked: AskedMany
) -> Response:
    """The MQTT sessions of a message VPN, those whose clients are away included."""
    keys = [(msg_vpn, name) for name in source.session_names(msg_vpn)]
    links = partial(_links, root_of(request))
    return await asked.reply(request, keys, partial(_row, source), links, MqttSessionStatus)


@routes.get(
    "/{sessionKey}",
    summary="Get an MQTT session",
    responses=answers(MqttSessionStatus, many=False),
    response_model=None,
)
async def mqtt_session(
    request: Request,
    source: ClientsHere,
    msg_vpn: MsgVpnHere,
    client_id: SessionHere,
    asked: AskedOne,
) -> Response:
    """One MQTT session."""
    key = (msg_vpn, client_id)
    row = _row(source, key)
    if row is None:
        raise not_found(f"mqttSession {client_id} in msgVpn {msg_vpn}")
    return asked.reply(request, row, _links(root_of(request), key), MqttSessionStatus)


@actions.put("/clearStats", summary="Clear the counts of an MQTT session", response_model=None)
async def clear_stats(
    request: Request,
    caller: OperatorHere,
    source: ClientsHere,
    msg_vpn: MsgVpnHere,
    client_id: SessionHere,
) -> Response:
    """Begin the counts of a session, of its client and of its queue anew."""
    await body_of(request, {})
    if not source.clear_session_stats(msg_vpn, client_id):
        raise not_found(f"mqttSession {client_id} in msgVpn {msg_vpn}")
    acted(request, caller, f"cleared the counts of MQTT session {client_id}", msg_vpn)
    return object_reply(request, {}, {})


@ours.put("/delete", summary="Delete an MQTT session", response_model=None)
async def delete(
    request: Request,
    caller: OperatorHere,
    source: ClientsHere,
    msg_vpn: MsgVpnHere,
    client_id: SessionHere,
) -> Response:
    """Delete the session of a client that is away: its subscriptions and all messages that are kept for it."""
    await body_of(request, {})
    try:
        ended = await source.end_session(msg_vpn, client_id)
    except SpoolError as error:
        raise busy(str(error)) from error
    if not ended:
        raise not_allowed(f"client {client_id} is connected: disconnect it first")
    acted(request, caller, f"deleted MQTT session {client_id}", msg_vpn)
    return object_reply(request, {}, {})


def _row(source: Clients, key: Key) -> Row | None:
    status = source.session(*key)
    return None if status is None else row_of(status)


def _links(root: str, key: Key) -> Links:
    msg_vpn, client_id = key
    vpn = f"{root}{MONITOR}/msgVpns/{segment(msg_vpn)}"
    return {
        "uri": f"{vpn}/mqttSessions/{segment(client_id, VIRTUAL_ROUTER)}",
        "clientUri": f"{vpn}/clients/{segment(client_id)}",
    }
