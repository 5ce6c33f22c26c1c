"""Bridges: `/SEMP/v2/monitor/msgVpns/{…}/bridges`, those of all message VPNs, and what an operator does to one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import unquote

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from vpnrouter.bridges.status import (
    VIRTUAL_ROUTER,
    BridgeStatus,
    LocalSubscriptionStatus,
    RemoteStatus,
    RemoteSubscriptionStatus,
)
from vpnrouter.management.answers.pages import Key
from vpnrouter.management.answers.replies import object_reply
from vpnrouter.management.answers.rows import Row, row_of
from vpnrouter.management.api_context import ApiContext, names_of_bridges
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
from vpnrouter.management.dependencies import ContextDep, MsgVpnDep, audit_action, body_of
from vpnrouter.management.errors import invalid, not_allowed

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


routes: Final = APIRouter()


def _bridges(context: ApiContext, msg_vpn: str) -> Found:
    def status(name: str) -> BridgeStatus | None:
        bridge = context.bridges.get((msg_vpn, name))
        return None if bridge is None else bridge.status(context.clock_ns())

    return Found(partial(names_of_bridges, context, msg_vpn), status)


def _parts(key: str, count: int) -> Key:
    """Return the names of a compound key. A name may hold a comma: encoded, or not in the last names."""
    parts = tuple(unquote(part) for part in key.rsplit(",", count - 1))
    if len(parts) != count:
        raise invalid(f"{unquote(key)} is no key of {count} names joined by commas")
    return parts


def _bridge_name(key: str) -> str | None:
    name, virtual_router = _parts(key, 2)
    return name if virtual_router == VIRTUAL_ROUTER else None


BRIDGES: Final = Collection(
    path="bridges",
    tag="bridge",
    key="bridgeKey",
    key_description="bridgeName,bridgeVirtualRouter",
    kind=BridgeStatus,
    one="bridge",
    many="bridges",
    description="The bridges of a message VPN.",
    open=_bridges,
    parse=_bridge_name,
    suffix=(VIRTUAL_ROUTER,),
    children=("localSubscriptions", "remoteMsgVpns", "remoteSubscriptions"),
)

REMOTES: Final = Children(
    path="remoteMsgVpns",
    kind=RemoteStatus,
    many="remote message VPNs",
    name="remote_msg_vpns",
    description="The remote message VPNs of a bridge.",
    found=lambda context, msg_vpn, name: _remotes(_bridges(context, msg_vpn).status(name)),
    key=lambda remote: (
        remote.remote_msg_vpn_name,
        remote.remote_msg_vpn_location,
        remote.remote_msg_vpn_interface,
    ),
)

REMOTE_SUBSCRIPTIONS: Final = Children(
    path="remoteSubscriptions",
    kind=RemoteSubscriptionStatus,
    many="remote subscriptions",
    name="remote_subscriptions",
    description="The topics that a bridge asks its remote for, and whether it has been granted them.",
    found=lambda context, *key: context.bridges[key].remote_subscriptions(),
    key=lambda each: (each.remote_subscription_topic,),
)

LOCAL_SUBSCRIPTIONS: Final = Children(
    path="localSubscriptions",
    kind=LocalSubscriptionStatus,
    many="local subscriptions",
    name="local_subscriptions",
    description="The topics that the bridge of the remote asks for here, over the same connection.",
    found=lambda context, *key: context.bridges[key].local_subscriptions(),
    key=lambda each: (each.local_subscription_topic,),
)


def _remotes(status: DataclassInstance | None) -> Sequence[RemoteStatus]:
    return status.remotes if isinstance(status, BridgeStatus) else ()


def _with_remotes(status: DataclassInstance) -> Row:
    return row_of(status) | {"remotes": [row_of(remote) for remote in _remotes(status)]}


def _clear_stats(context: ApiContext, msg_vpn: str, name: str) -> bool:
    context.bridges[msg_vpn, name].clear_stats()
    return True


_name = name_in_path(BRIDGES)

BridgeDep = Annotated[str, Depends(_name)]
"""The name of the bridge of the path, which exists."""

serve(routes, BRIDGES, _name)
for _each in (REMOTES, REMOTE_SUBSCRIPTIONS, LOCAL_SUBSCRIPTIONS):
    serve_children(routes, BRIDGES, _name, _each)
serve_child(
    routes,
    BRIDGES,
    _name,
    REMOTES,
    name="remote_msg_vpn",
    one="remote message VPN of a bridge",
    param="remoteKey",
    param_description="remoteMsgVpnName,remoteMsgVpnLocation,remoteMsgVpnInterface",
    parse=lambda key: _parts(key, 3),
    missing=lambda key, _bridge: f"remoteMsgVpn {key}",
)
serve_all(
    routes,
    BRIDGES,
    "The bridges of all message VPNs that the user sees, each with its remote message VPNs.",
    _with_remotes,
)
serve_clear_stats(
    routes,
    BRIDGES,
    _name,
    _clear_stats,
    "Begin the counts anew; what is in flight counts as received, or offered, afterwards.",
)

action_routes: Final = APIRouter(
    prefix=f"{ACTION}{OF_MSG_VPN}/bridges/{{bridgeKey}}", tags=["bridge"]
)

EVENTS: Final = ("ttl-exceeded",)
"""Events of a bridge that stay raised until they are cleared."""


@action_routes.put("/disconnect", summary="Drop the connection of a bridge", response_model=None)
async def disconnect(
    request: Request,
    caller: OperatorDep,
    context: ContextDep,
    msg_vpn: MsgVpnDep,
    name: BridgeDep,
) -> Response:
    """Drop the connection, with both bridges that may use it. They connect again; to keep one down, disable it."""
    await body_of(request, {})
    if not context.bridges[msg_vpn, name].disconnect():
        raise not_allowed(f"bridge {name} is not connected")
    audit_action(request, caller, f"dropped the connection of bridge {name}", msg_vpn)
    return object_reply(request, {}, {})


@action_routes.put("/clearEvent", summary="Clear an event of a bridge", response_model=None)
async def clear_event(
    request: Request,
    caller: OperatorDep,
    context: ContextDep,
    msg_vpn: MsgVpnDep,
    name: BridgeDep,
) -> Response:
    """Take the event `eventName` (`ttl-exceeded`) for seen: it is raised when it happens again."""
    event = (await body_of(request, {"eventName": str})).get("eventName", "")
    if event not in EVENTS:
        raise invalid(f"eventName: one of {', '.join(EVENTS)} is needed")
    context.bridges[msg_vpn, name].clear_event(event)
    audit_action(request, caller, f"cleared event {event} of bridge {name}", msg_vpn)
    return object_reply(request, {}, {})


PAGES: Final = (routes, action_routes)
"""What the kind serves."""
