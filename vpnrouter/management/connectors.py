"""Connectors: `/SEMP/v2/monitor/msgVpns/{…}/connectors`, and what an operator does to them."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from vpnrouter.connectors.status import ConnectorLinkStatus, ConnectorStatus
from vpnrouter.management.answers.replies import object_reply
from vpnrouter.management.answers.rows import Row, row_of
from vpnrouter.management.api_context import ApiContext
from vpnrouter.management.collections import (
    OF_MSG_VPN,
    OURS,
    Children,
    Collection,
    Found,
    OperatorDep,
    name_in_path,
    serve,
    serve_all,
    serve_children,
)
from vpnrouter.management.dependencies import ContextDep, MsgVpnDep, audit_action, body_of
from vpnrouter.settings.shown import fill

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

routes: Final = APIRouter()


def _status(context: ApiContext, msg_vpn: str, name: str) -> ConnectorStatus | None:
    for connector in context.edge.connectors:
        if (connector.vpn.name, connector.name) == (msg_vpn, name):
            return fill(ConnectorStatus, connector.look())
    return None


def _connectors(context: ApiContext, msg_vpn: str) -> Found:
    names = [each.name for each in context.edge.connectors if each.vpn.name == msg_vpn]
    return Found(lambda: names, partial(_status, context, msg_vpn))


CONNECTORS: Final = Collection(
    path="connectors",
    tag="connector",
    key="connectorName",
    kind=ConnectorStatus,
    one="connector",
    many="connectors",
    description="The connectors of a message VPN to foreign brokers.",
    open=_connectors,
    children=("links",),
)

_named = name_in_path(CONNECTORS)

serve(routes, CONNECTORS, _named)


def _links_of(context: ApiContext, msg_vpn: str, name: str) -> Sequence[ConnectorLinkStatus]:
    status = _status(context, msg_vpn, name)
    return () if status is None else status.links


LINKS: Final = Children(
    path="links",
    kind=ConnectorLinkStatus,
    many="the links of a connector",
    name="connector_links",
    description="The links of a connector, in the order of the configuration.",
    found=_links_of,
    key=lambda link: (link.link_name,),
)

serve_children(routes, CONNECTORS, _named, LINKS)


def _with_links(status: "DataclassInstance") -> Row:
    links = status.links if isinstance(status, ConnectorStatus) else ()
    return row_of(status) | {"links": [row_of(link) for link in links]}


serve_all(
    routes,
    CONNECTORS,
    "The connectors of all message VPNs that the user sees, each with its `links`.",
    _with_links,
)


@routes.put(
    f"{OURS}{OF_MSG_VPN}/connectors/{{connectorName}}/reconnect",
    summary="Reconnect a connector",
    tags=["vpnrouter"],
    response_model=None,
)
async def reconnect(
    request: Request,
    caller: OperatorDep,
    context: ContextDep,
    msg_vpn: MsgVpnDep,
    name: Annotated[str, Depends(_named)],
) -> Response:
    """Connect anew, beginning with the first address; also a connector that has stopped."""
    await body_of(request, {})
    for connector in context.edge.connectors:
        if (connector.vpn.name, connector.name) == (msg_vpn, name):
            connector.reconnect()
    audit_action(request, caller, f"reconnected connector {name}", msg_vpn)
    return object_reply(request, {}, {})


PAGES: Final = (routes,)
"""What the kind serves."""
