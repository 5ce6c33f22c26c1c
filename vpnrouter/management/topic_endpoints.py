"""Topic endpoints: `/SEMP/v2/monitor/msgVpns/{…}/topicEndpoints`.

They are among the queues too, under a name with a prefix; here they stand under their own, as in the field.
"""

from dataclasses import dataclass, field, fields
from functools import partial
from typing import Annotated, Final
from urllib.parse import unquote

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from vpnrouter.management.asked import AskedMany, AskedOne
from vpnrouter.management.attributes import Row, row_of
from vpnrouter.management.client_source import ClientSource
from vpnrouter.management.clients import ClientsHere
from vpnrouter.management.context import MsgVpnHere, answers
from vpnrouter.management.envelope import Links, root_of, segment
from vpnrouter.management.faults import not_found
from vpnrouter.management.msg_vpns import MONITOR
from vpnrouter.management.paging import Key
from vpnrouter.management.queue_source import QueueSource
from vpnrouter.management.queues import QueuesHere

routes: Final = APIRouter(
    prefix=f"{MONITOR}/msgVpns/{{msgVpnName}}/topicEndpoints", tags=["topicEndpoint"]
)

PREFIX: Final = "#topic-endpoint/"
"""What the names of topic endpoints begin with among the queues."""


@dataclass(frozen=True, slots=True)
class TopicEndpointStatus:
    """One topic endpoint as monitoring shows it; attributes as a queue's."""

    msg_vpn_name: str
    topic_endpoint_name: str
    destination_topic: str = ""
    """What it attracts, "" while nobody has said."""
    durable: bool = True
    access_type: str = "exclusive"
    ingress_enabled: bool = True
    egress_enabled: bool = True
    owner: str = ""
    permission: str = "consume"
    dead_msg_queue: str = ""
    delivery_count_enabled: bool = False
    delivery_delay: int = 0
    max_bind_count: int = 0
    max_delivered_unacked_msgs_per_flow: int = 0
    max_msg_size: int = 0
    max_msg_spool_usage: int = 0
    max_spooled_msg_count: int = 0
    max_redelivery_count: int = 0
    max_ttl: int = 0
    redelivery_enabled: bool = True
    redelivery_delay_enabled: bool = False
    redelivery_delay_initial_interval: int = 0
    redelivery_delay_max_interval: int = 0
    redelivery_delay_multiplier: int = 0
    reject_low_priority_msg_enabled: bool = False
    reject_low_priority_msg_limit: int = 0
    reject_msg_to_sender_on_discard_behavior: str = ""
    respect_dmq_eligible_enabled: bool = False
    respect_msg_priority_enabled: bool = False
    respect_ttl_enabled: bool = False
    msg_count: int = 0
    msg_spool_usage: int = 0
    msg_spool_peak_usage: int = 0
    tx_unacked_msg_count: int = 0
    oldest_msg_age_ms: int = -1
    lowest_msg_id: int = 0
    highest_msg_id: int = 0
    last_spooled_msg_id: int = 0
    bind_count: int = 0
    spooled_msg_count: int = 0
    spooled_byte_count: int = 0
    recovered_msg_count: int = 0
    acked_msg_count: int = 0
    deleted_msg_count: int = 0
    moved_msg_count: int = 0
    redelivered_msg_count: int = 0
    bind_request_count: int = 0
    bind_success_count: int = 0
    discarded: dict[str, int] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)
    imbalance: int = 0


_SHARED: Final = tuple(
    each.name
    for each in fields(TopicEndpointStatus)
    if each.name not in {"topic_endpoint_name", "destination_topic"}
)
"""Attributes that a queue has under the same name."""


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


def _row(queues: QueueSource, clients: ClientSource, key: Key) -> Row | None:
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
