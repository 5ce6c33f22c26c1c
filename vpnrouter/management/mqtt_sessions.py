"""MQTT sessions: `/SEMP/v2/monitor/msgVpns/{…}/mqttSessions`, and what an operator does to them."""

from functools import partial
from typing import Annotated, Final
from urllib.parse import unquote

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from vpnrouter.errors import SpoolError
from vpnrouter.management.answers.replies import object_reply
from vpnrouter.management.answers.rows import segment
from vpnrouter.management.api_context import ApiContext
from vpnrouter.management.clients import ClientsDep
from vpnrouter.management.collections import (
    OF_MSG_VPN,
    OURS,
    Collection,
    Found,
    OperatorDep,
    name_in_path,
    serve,
    serve_clear_stats,
)
from vpnrouter.management.dependencies import MsgVpnDep, audit_action, body_of
from vpnrouter.management.errors import busy, not_allowed
from vpnrouter.management.status.clients import MqttSessionStatus

routes: Final = APIRouter()

VIRTUAL_ROUTER: Final = "auto"


def _client_id(key: str) -> str | None:
    # A client id may hold a comma: encoded or not.
    client_id, comma, virtual_router = key.rpartition(",")
    return unquote(client_id) if comma and unquote(virtual_router) == VIRTUAL_ROUTER else None


def _sessions(context: ApiContext, msg_vpn: str) -> Found:
    source = context.clients
    return Found(partial(source.session_names, msg_vpn), partial(source.session, msg_vpn))


SESSIONS: Final = Collection(
    path="mqttSessions",
    tag="mqttSession",
    key="sessionKey",
    key_description="mqttSessionClientId,mqttSessionVirtualRouter",
    kind=MqttSessionStatus,
    one="MQTT session",
    many="MQTT sessions",
    article="an",
    description="The MQTT sessions of a message VPN, those whose clients are away included.",
    open=_sessions,
    parse=_client_id,
    suffix=(VIRTUAL_ROUTER,),
    links=lambda msg_vpn, client_id: {"clientUri": f"{msg_vpn}/clients/{segment(client_id)}"},
)

_session = name_in_path(SESSIONS)

SessionDep = Annotated[str, Depends(_session)]
"""The client id of the session of the path, which exists."""

serve(routes, SESSIONS, _session)
serve_clear_stats(
    routes,
    SESSIONS,
    _session,
    lambda context, msg_vpn, name: context.clients.clear_session_stats(msg_vpn, name),
    "Begin the counts of a session, of its client and of its queue anew.",
)


@routes.put(
    f"{OURS}{OF_MSG_VPN}/mqttSessions/{{sessionKey}}/delete",
    summary="Delete an MQTT session",
    tags=["vpnrouter"],
    response_model=None,
)
async def delete(
    request: Request,
    caller: OperatorDep,
    source: ClientsDep,
    msg_vpn: MsgVpnDep,
    client_id: SessionDep,
) -> Response:
    """Delete the session of a client that is away: its subscriptions and all messages that are kept for it."""
    await body_of(request, {})
    try:
        ended = await source.end_session(msg_vpn, client_id)
    except SpoolError as error:
        raise busy(str(error)) from error
    if not ended:
        raise not_allowed(f"client {client_id} is connected: disconnect it first")
    audit_action(request, caller, f"deleted MQTT session {client_id}", msg_vpn)
    return object_reply(request, {}, {})
