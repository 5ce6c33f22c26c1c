"""Clients: `/SEMP/v2/monitor/msgVpns/{…}/clients`, and what an operator does to one."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from vpnrouter.management.answers.replies import object_reply
from vpnrouter.management.api_context import ApiContext
from vpnrouter.management.collections import (
    ACTION,
    OF_MSG_VPN,
    Children,
    Collection,
    Found,
    OperatorDep,
    name_in_path,
    serve,
    serve_all,
    serve_child,
    serve_children,
    serve_clear_stats,
)
from vpnrouter.management.dependencies import MsgVpnDep, audit_action, body_of, context_of
from vpnrouter.management.errors import not_allowed
from vpnrouter.management.status.clients import Clients, ClientStatus, SubscriptionStatus

routes: Final = APIRouter()


async def _source(request: Request) -> Clients:
    return context_of(request).clients


ClientsDep = Annotated[Clients, Depends(_source)]


def _clients(context: ApiContext, msg_vpn: str) -> Found:
    source = context.clients
    return Found(partial(source.client_names, msg_vpn), partial(source.client, msg_vpn))


CLIENTS: Final = Collection(
    path="clients",
    tag="client",
    key="clientName",
    kind=ClientStatus,
    one="client",
    many="clients",
    description="The clients of a message VPN, MQTT sessions whose clients are away included.",
    open=_clients,
    children=("subscriptions",),
)

SUBSCRIPTIONS: Final = Children(
    path="subscriptions",
    kind=SubscriptionStatus,
    many="the subscriptions of a client",
    name="client_subscriptions",
    description="The subscriptions of a client; what it has bound to queues is counted in `bindCount`.",
    found=lambda context, msg_vpn, name: context.clients.subscriptions(msg_vpn, name),
    key=lambda each: (each.subscription_topic,),
)

_client_name = name_in_path(CLIENTS)

ClientDep = Annotated[str, Depends(_client_name)]
"""The client of the path, which exists."""

serve(routes, CLIENTS, _client_name)
serve_children(routes, CLIENTS, _client_name, SUBSCRIPTIONS)
serve_child(
    routes,
    CLIENTS,
    _client_name,
    SUBSCRIPTIONS,
    name="client_subscription",
    one="subscription of a client",
    param="subscriptionTopic",
    missing=lambda topic, client: f"subscription {topic} of client {client}",
)
serve_all(routes, CLIENTS, "The clients of all message VPNs that the user sees.")
serve_clear_stats(
    routes,
    CLIENTS,
    _client_name,
    lambda context, msg_vpn, name: context.clients.clear_stats(msg_vpn, name),
    "Begin the counts of a client anew; those of its message VPN go on.",
)


@routes.put(
    f"{ACTION}{OF_MSG_VPN}/clients/{{clientName}}/disconnect",
    summary="Disconnect a client",
    tags=["client"],
    response_model=None,
)
async def disconnect(
    request: Request,
    caller: OperatorDep,
    source: ClientsDep,
    msg_vpn: MsgVpnDep,
    client: ClientDep,
) -> Response:
    """Disconnect a client. An MQTT 5 client is told so (0x98, administrative action); its will is published."""
    await body_of(request, {})
    if not source.disconnect(msg_vpn, client):
        raise not_allowed(f"client {client} is not connected")
    audit_action(request, caller, f"disconnected client {client}", msg_vpn)
    return object_reply(request, {}, {})
