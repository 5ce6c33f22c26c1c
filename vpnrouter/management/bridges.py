"""Bridges: `/SEMP/v2/monitor/msgVpns/{…}/bridges`, those of all message VPNs, and what an operator does to one."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import unquote

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from vpnrouter.bridges.status import (
    VIRTUAL_ROUTER,
    BridgeStatus,
    LocalSubscriptionStatus,
    RemoteStatus,
    RemoteSubscriptionStatus,
)
from vpnrouter.management.body import body_of, invalid, not_allowed, not_found
from vpnrouter.management.context import CallerHere, MsgVpnHere, SourcesHere, acted, answers
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
from vpnrouter.management.sources import Sources, names_of_bridges

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


routes: Final = APIRouter(prefix=f"{MONITOR}/msgVpns/{{msgVpnName}}/bridges", tags=["bridge"])

ours: Final = APIRouter(prefix="/vpnrouter/v1/bridges", tags=["vpnrouter"])
"""What the field's API has no path for."""

BridgeKey = Annotated[str, Path(alias="bridgeKey", description="bridgeName,bridgeVirtualRouter")]

RemoteKey = Annotated[
    str,
    Path(
        alias="remoteKey",
        description="remoteMsgVpnName,remoteMsgVpnLocation,remoteMsgVpnInterface",
    ),
]


@routes.get(
    "", summary="List bridges", responses=answers(BridgeStatus, many=True), response_model=None
)
async def bridges(
    request: Request, sources: SourcesHere, msg_vpn: MsgVpnHere, asked: AskedMany
) -> Response:
    """The bridges of a message VPN."""
    keys = [(msg_vpn, name) for name in names_of_bridges(sources, msg_vpn)]
    links = partial(_links, root_of(request))
    return await asked.reply(request, keys, partial(_row, sources), links, BridgeStatus)


@routes.get(
    "/{bridgeKey}",
    summary="Get a bridge",
    responses=answers(BridgeStatus, many=False),
    response_model=None,
)
async def bridge(
    request: Request, sources: SourcesHere, msg_vpn: MsgVpnHere, key: BridgeKey, asked: AskedOne
) -> Response:
    """One bridge."""
    status = bridge_of(sources, msg_vpn, key)
    links = _links(root_of(request), (msg_vpn, status.bridge_name))
    return asked.reply(request, row_of(status), links, BridgeStatus)


@routes.get(
    "/{bridgeKey}/remoteMsgVpns",
    summary="List remote message VPNs",
    responses=answers(RemoteStatus, many=True),
    response_model=None,
)
async def remote_msg_vpns(
    request: Request, sources: SourcesHere, msg_vpn: MsgVpnHere, key: BridgeKey, asked: AskedMany
) -> Response:
    """The remote message VPNs of a bridge."""
    status = bridge_of(sources, msg_vpn, key)
    remotes = {_remote_key(remote): remote for remote in status.remotes}
    links = partial(_remote_links, root_of(request), (msg_vpn, status.bridge_name))
    return await asked.reply(
        request, list(remotes), lambda key: row_of(remotes[key]), links, RemoteStatus
    )


@routes.get(
    "/{bridgeKey}/remoteMsgVpns/{remoteKey}",
    summary="Get a remote message VPN",
    responses=answers(RemoteStatus, many=False),
    response_model=None,
)
async def remote_msg_vpn(
    request: Request,
    sources: SourcesHere,
    msg_vpn: MsgVpnHere,
    key: BridgeKey,
    written: RemoteKey,
    asked: AskedOne,
) -> Response:
    """One remote message VPN of a bridge."""
    status = bridge_of(sources, msg_vpn, key)
    wanted = _parts(written, 3)
    for remote in status.remotes:
        if _remote_key(remote) == wanted:
            links = _remote_links(root_of(request), (msg_vpn, status.bridge_name), wanted)
            return asked.reply(request, row_of(remote), links, RemoteStatus)
    raise not_found(f"remoteMsgVpn {unquote(written)}")


async def _children(
    request: Request,
    asked: AskedMany,
    kind: type[DataclassInstance],
    found: Sequence[DataclassInstance],
    key: Key,
) -> Response:
    """The subscriptions of a bridge, by topic; `kind` is named after its path."""
    child = "remoteSubscriptions" if kind is RemoteSubscriptionStatus else "localSubscriptions"
    rows: dict[Key, Row] = {(str(row[f"{child[:-1]}Topic"]),): row for row in map(row_of, found)}
    parent = _links(root_of(request), key)["uri"]
    return await asked.reply(
        request,
        list(rows),
        rows.get,
        lambda topic: {"uri": f"{parent}/{child}/{segment(*topic)}"},
        kind,
    )


@routes.get(
    "/{bridgeKey}/remoteSubscriptions",
    summary="List remote subscriptions",
    responses=answers(RemoteSubscriptionStatus, many=True),
    response_model=None,
)
async def remote_subscriptions(
    request: Request, sources: SourcesHere, msg_vpn: MsgVpnHere, key: BridgeKey, asked: AskedMany
) -> Response:
    """The topics that a bridge asks its remote for, and whether it has been granted them."""
    name = bridge_of(sources, msg_vpn, key).bridge_name
    found = sources.bridges[msg_vpn, name].remote_subscriptions()
    return await _children(request, asked, RemoteSubscriptionStatus, found, (msg_vpn, name))


@routes.get(
    "/{bridgeKey}/localSubscriptions",
    summary="List local subscriptions",
    responses=answers(LocalSubscriptionStatus, many=True),
    response_model=None,
)
async def local_subscriptions(
    request: Request, sources: SourcesHere, msg_vpn: MsgVpnHere, key: BridgeKey, asked: AskedMany
) -> Response:
    """The topics that the bridge of the remote asks for here, over the same connection."""
    name = bridge_of(sources, msg_vpn, key).bridge_name
    found = sources.bridges[msg_vpn, name].local_subscriptions()
    return await _children(request, asked, LocalSubscriptionStatus, found, (msg_vpn, name))


@ours.get(
    "",
    summary="List the bridges of all message VPNs",
    responses=answers(BridgeStatus, many=True),
    response_model=None,
)
async def all_bridges(
    request: Request, sources: SourcesHere, caller: CallerHere, asked: AskedMany
) -> Response:
    """The bridges of all message VPNs that the user sees, each with its remote message VPNs."""
    keys = [
        (msg_vpn, name)
        for msg_vpn in sources.router.vpns
        if caller.sees(msg_vpn)
        for name in names_of_bridges(sources, msg_vpn)
    ]
    links = partial(_links, root_of(request))
    return await asked.reply(request, keys, partial(_whole_row, sources), links, BridgeStatus)


def bridge_of(sources: Sources, msg_vpn: str, key: str) -> BridgeStatus:
    """The bridge of a compound key in a path; raises RequestError where there is none."""
    name, virtual_router = _parts(key, 2)
    status = _status(sources, (msg_vpn, name)) if virtual_router == VIRTUAL_ROUTER else None
    if status is None:
        raise not_found(f"bridge {name},{virtual_router} in msgVpn {msg_vpn}")
    return status


def _parts(key: str, count: int) -> Key:
    """The names of a compound key. A name may hold a comma: encoded, or not in the last names."""
    parts = tuple(unquote(part) for part in key.rsplit(",", count - 1))
    if len(parts) != count:
        raise invalid(f"{unquote(key)} is no key of {count} names joined by commas")
    return parts


def _status(sources: Sources, key: Key) -> BridgeStatus | None:
    msg_vpn, name = key
    found = sources.bridges.get((msg_vpn, name))
    return None if found is None else found.status(time.monotonic_ns())


def _row(sources: Sources, key: Key) -> Row | None:
    status = _status(sources, key)
    return None if status is None else row_of(status)


def _whole_row(sources: Sources, key: Key) -> Row | None:
    status = _status(sources, key)
    if status is None:
        return None
    return row_of(status) | {"remotes": [row_of(remote) for remote in status.remotes]}


def _remote_key(remote: RemoteStatus) -> Key:
    return (
        remote.remote_msg_vpn_name,
        remote.remote_msg_vpn_location,
        remote.remote_msg_vpn_interface,
    )


def _links(root: str, key: Key) -> Links:
    msg_vpn, name = key
    uri = f"{root}{MONITOR}/msgVpns/{segment(msg_vpn)}/bridges/{segment(name, VIRTUAL_ROUTER)}"
    return {
        "uri": uri,
        "localSubscriptionsUri": f"{uri}/localSubscriptions",
        "remoteMsgVpnsUri": f"{uri}/remoteMsgVpns",
        "remoteSubscriptionsUri": f"{uri}/remoteSubscriptions",
    }


def _remote_links(root: str, bridge_key: Key, key: Key) -> Links:
    return {"uri": f"{_links(root, bridge_key)['remoteMsgVpnsUri']}/{segment(*key)}"}


action_routes: Final = APIRouter(
    prefix=f"{ACTION}/msgVpns/{{msgVpnName}}/bridges/{{bridgeKey}}", tags=["bridge"]
)

EVENTS: Final = ("ttl-exceeded",)
"""Events of a bridge that stay raised until they are cleared."""


@action_routes.put("/disconnect", summary="Drop the connection of a bridge", response_model=None)
async def disconnect(
    request: Request,
    caller: OperatorHere,
    sources: SourcesHere,
    msg_vpn: MsgVpnHere,
    key: BridgeKey,
) -> Response:
    """Drop the connection, with both bridges that may use it. They connect again; to keep one down, disable it."""
    await body_of(request, {})
    name = bridge_of(sources, msg_vpn, key).bridge_name
    if not sources.bridges[msg_vpn, name].disconnect():
        raise not_allowed(f"bridge {name} is not connected")
    acted(request, caller, f"dropped the connection of bridge {name}", msg_vpn)
    return object_reply(request, {}, {})


@action_routes.put("/clearStats", summary="Clear the counts of a bridge", response_model=None)
async def clear_stats(
    request: Request,
    caller: OperatorHere,
    sources: SourcesHere,
    msg_vpn: MsgVpnHere,
    key: BridgeKey,
) -> Response:
    """Begin the counts anew; what is in flight counts as received, or offered, afterwards."""
    await body_of(request, {})
    name = bridge_of(sources, msg_vpn, key).bridge_name
    sources.bridges[msg_vpn, name].clear_stats()
    acted(request, caller, f"cleared the counts of bridge {name}", msg_vpn)
    return object_reply(request, {}, {})


@action_routes.put("/clearEvent", summary="Clear an event of a bridge", response_model=None)
async def clear_event(
    request: Request,
    caller: OperatorHere,
    sources: SourcesHere,
    msg_vpn: MsgVpnHere,
    key: BridgeKey,
) -> Response:
    """Take the event `eventName` (`ttl-exceeded`) for seen: it is raised when it happens again."""
    event = (await body_of(request, {"eventName": str})).get("eventName", "")
    if event not in EVENTS:
        raise invalid(f"eventName: one of {', '.join(EVENTS)} is needed")
    name = bridge_of(sources, msg_vpn, key).bridge_name
    sources.bridges[msg_vpn, name].clear_event(event)
    acted(request, caller, f"cleared event {event} of bridge {name}", msg_vpn)
    return object_reply(request, {}, {})
