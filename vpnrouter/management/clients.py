"""Clients: `/SEMP/v2/monitor/msgVpns/{…}/clients`, and what an operator does to one."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Final
from urllib.parse import unquote

from fastapi import APIRouter, Depends, Path, Request
from starlette.responses import Response

from vpnrouter.management.body import body_of, not_allowed, not_found
from vpnrouter.management.context import (
    CallerHere,
    MsgVpnHere,
    SourcesHere,
    acted,
    answers,
    sources_of,
)
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
from vpnrouter.management.status.clients import Clients, ClientStatus, SubscriptionStatus

routes: Final = APIRouter(prefix=f"{MONITOR}/msgVpns/{{msgVpnName}}/clients", tags=["client"])

ours: Final = APIRouter(prefix="/vpnrouter/v1/clients", tags=["vpnrouter"])
"""What the field's API has no path for."""


async def _source(request: Request) -> Clients:
    return sources_of(request).clients


ClientsHere = Annotated[Clients, Depends(_source)]


async def _client_name(
    source: ClientsHere, msg_vpn: MsgVpnHere, name: Annotated[str, Path(alias="clientName")]
) -> str:
    client = unquote(name)
    if source.client(msg_vpn, client) is None:
        raise not_found(f"client {client} in msgVpn {msg_vpn}")
    return client


ClientHere = Annotated[str, Depends(_client_name)]
"""The client of the path, which exists."""


@routes.get(
    "", summary="List clients", responses=answers(ClientStatus, many=True), response_model=None
)
async def clients(
    request: Request, source: ClientsHere, msg_vpn: MsgVpnHere, asked: AskedMany
) -> Response:
    """The clients of a message VPN, MQTT sessions whose clients are away included."""
    keys = [(msg_vpn, name) for name in source.client_names(msg_vpn)]
    links = partial(_links, root_of(request))
    return await asked.reply(request, keys, partial(_row, source), links, ClientStatus)


@routes.get(
    "/{clientName}",
    summary="Get a client",
    responses=answers(ClientStatus, many=False),
    response_model=None,
)
async def client(
    request: Request, source: ClientsHere, msg_vpn: MsgVpnHere, name: ClientHere, asked: AskedOne
) -> Response:
    """One client."""
    key = (msg_vpn, name)
    row = _row(source, key)
    if row is None:
        raise not_found(f"client {name} in msgVpn {msg_vpn}")
    return asked.reply(request, row, _links(root_of(request), key), ClientStatus)


@routes.get(
    "/{clientName}/subscriptions",
    summary="List the subscriptions of a client",
    responses=answers(SubscriptionStatus, many=True),
    response_model=None,
)
async def client_subscriptions(
    request: Request, source: ClientsHere, msg_vpn: MsgVpnHere, name: ClientHere, asked: AskedMany
) -> Response:
    """The subscriptions of a client; what it has bound to queues is counted in `bindCount`."""
    held: dict[Key, SubscriptionStatus] = {
        (each.subscription_topic,): each for each in source.subscriptions(msg_vpn, name)
    }
    uri = _links(root_of(request), (msg_vpn, name))["subscriptionsUri"]
    return await asked.reply(
        request,
        list(held),
        lambda key: row_of(held[key]),
        lambda key: {"uri": f"{uri}/{segment(*key)}"},
        SubscriptionStatus,
    )


@routes.get(
    "/{clientName}/subscriptions/{subscriptionTopic}",
    summary="Get a subscription of a client",
    responses=answers(SubscriptionStatus, many=False),
    response_model=None,
)
async def client_subscription(
    request: Request,
    source: ClientsHere,
    msg_vpn: MsgVpnHere,
    name: ClientHere,
    written: Annotated[str, Path(alias="subscriptionTopic")],
    asked: AskedOne,
) -> Response:
    """One subscription of a client."""
    topic = unquote(written)
    for each in source.subscriptions(msg_vpn, name):
        if each.subscription_topic == topic:
            uri = _links(root_of(request), (msg_vpn, name))["subscriptionsUri"]
            links = {"uri": f"{uri}/{segment(topic)}"}
            return asked.reply(request, row_of(each), links, SubscriptionStatus)
    raise not_found(f"subscription {topic} of client {name}")


@ours.get(
    "",
    summary="List the clients of all message VPNs",
    responses=answers(ClientStatus, many=True),
    response_model=None,
)
async def all_clients(
    request: Request,
    source: ClientsHere,
    sources: SourcesHere,
    caller: CallerHere,
    asked: AskedMany,
) -> Response:
    """The clients of all message VPNs that the user sees."""
    # In order already: sorting a list that is sorted takes no time.
    keys = [
        (msg_vpn, name)
        for msg_vpn in sorted(sources.router.vpns)
        if caller.sees(msg_vpn)
        for name in source.client_names(msg_vpn)
    ]
    links = partial(_links, root_of(request))
    return await asked.reply(request, keys, partial(_row, source), links, ClientStatus)


def _row(source: Clients, key: Key) -> Row | None:
    status = source.client(*key)
    return None if status is None else row_of(status)


def _links(root: str, key: Key) -> Links:
    msg_vpn, name = key
    uri = f"{root}{MONITOR}/msgVpns/{segment(msg_vpn)}/clients/{segment(name)}"
    return {"uri": uri, "subscriptionsUri": f"{uri}/subscriptions"}


action_routes: Final = APIRouter(
    prefix=f"{ACTION}/msgVpns/{{msgVpnName}}/clients/{{clientName}}", tags=["client"]
)


@action_routes.put("/disconnect", summary="Disconnect a client", response_model=None)
async def disconnect(
    request: Request,
    caller: OperatorHere,
    source: ClientsHere,
    msg_vpn: MsgVpnHere,
    client: ClientHere,
) -> Response:
    """Disconnect a client. An MQTT 5 client is told so (0x98, administrative action); its will is published."""
    await body_of(request, {})
    if not source.disconnect(msg_vpn, client):
        raise not_allowed(f"client {client} is not connected")
    acted(request, caller, f"disconnected client {client}", msg_vpn)
    return object_reply(request, {}, {})


@action_routes.put("/clearStats", summary="Clear the counts of a client", response_model=None)
async def clear_stats(
    request: Request,
    caller: OperatorHere,
    source: ClientsHere,
    msg_vpn: MsgVpnHere,
    client: ClientHere,
) -> Response:
    """Begin the counts of a client anew; those of its message VPN go on."""
    await body_of(request, {})
    if not source.clear_stats(msg_vpn, client):
        raise not_found(f"client {client} in msgVpn {msg_vpn}")
    acted(request, caller, f"cleared the counts of client {client}", msg_vpn)
    return object_reply(request, {}, {})
