"""Topic endpoints: `/SEMP/v2/monitor/msgVpns/{…}/topicEndpoints`.

The API lists them among the queues too, with a prefix. Here they have their own names, as in the field.
"""

from dataclasses import dataclass, fields
from functools import partial
from typing import Annotated, Final
from urllib.parse import unquote

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from vpnrouter.management.body import not_found
from vpnrouter.management.clients import ClientsHere
from vpnrouter.management.context import MsgVpnHere, answers
from vpnrouter.management.msg_vpns import MONITOR
from vpnrouter.management.queues import QueuesHere
from vpnrouter.management.rows import AskedMany, AskedOne, Key, Links, Row, root_of, row_of, segment
from vpnrouter.management.status.clients import Clients
from vpnrouter.management.status.queues import EndpointStatus, Queues

routes: Final = APIRouter(
    prefix=f"{MONITOR}/msgVpns/{{msgVpnName}}/topicEndpoints", tags=["topicEndpoint"]
)

PREFIX: Final = "#topic-endpoint/"
"""What the names of topic endpoints begin with among the queues."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicEndpointStatus(EndpointStatus):
    """One topic endpoint as monitoring shows it."""

    topic_endpoint_name: str
    destination_topic: str = ""
    """What it attracts, "" while nobody has said."""


_SHARED: Final = tuple(each.name for each in fields(EndpointStatus))
"""Attributes that a queue has too."""


@routes.get(
    "",
    summary="List topic endpoints",
    responses=answers(TopicEndpointStatus, many=True),
    response_model=None,
)
async def topic_endpoints(
    request: Request,
    queues: QueuesHere,
    clients: ClientsHere,
    msg_vpn: MsgVpnHere,
    asked: AskedMany,
) -> Response:
    """The topic endpoints of a message VPN."""
    keys = [
        (msg_vpn, name.removeprefix(PREFIX))
        for name in queues.queue_names(msg_vpn)
        if name.startswith(PREFIX)
    ]
    row = partial(_row, queues, clients)
    links = partial(_links, root_of(request))
    return await asked.reply(request, keys, row, links, TopicEndpointStatus)


@routes.get(
    "/{topicEndpointName}",
    summary="Get a topic endpoint",
    responses=answers(TopicEndpointStatus, many=False),
    response_model=None,
)
async def topic_endpoint(
    request: Request,
    queues: QueuesHere,
    clients: ClientsHere,
    msg_vpn: MsgVpnHere,
    written: Annotated[str, Path(alias="topicEndpointName")],
    asked: AskedOne,
) -> Response:
    """One topic endpoint."""
    key = (msg_vpn, unquote(written))
    row = _row(queues, clients, key)
    if row is None:
        raise not_found(f"topicEndpoint {key[1]} in msgVpn {msg_vpn}")
    return asked.reply(request, row, _links(root_of(request), key), TopicEndpointStatus)


def _row(queues: Queues, clients: Clients, key: Key) -> Row | None:
    msg_vpn, name = key
    status = queues.queue(msg_vpn, PREFIX + name)
    if status is None:
        return None
    held = clients.held(msg_vpn, "topic-endpoint", name)
    return row_of(
        TopicEndpointStatus(
            topic_endpoint_name=name,
            destination_topic=held[0].subscription_topic if held else "",
            **{attribute: getattr(status, attribute) for attribute in _SHARED},
        )
    )


def _links(root: str, key: Key) -> Links:
    msg_vpn, name = key
    vpn = f"{root}{MONITOR}/msgVpns/{segment(msg_vpn)}"
    queue = f"{vpn}/queues/{segment(PREFIX + name)}"
    return {
        "uri": f"{vpn}/topicEndpoints/{segment(name)}",
        "msgsUri": f"{queue}/msgs",
        "txFlowsUri": f"{queue}/txFlows",
    }
