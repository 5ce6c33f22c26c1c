"""Topic endpoints: `/SEMP/v2/monitor/msgVpns/{…}/topicEndpoints`.

The API lists them among the queues too, with a prefix. Here they have their own names, as in the field.
"""

from dataclasses import dataclass, fields
from functools import partial
from typing import Final

from fastapi import APIRouter

from vpnrouter.management.answers.rows import segment
from vpnrouter.management.api_context import ApiContext
from vpnrouter.management.collections import (
    Collection,
    Found,
    name_in_path,
    serve,
)
from vpnrouter.management.status.queues import EndpointStatus

routes: Final = APIRouter()

PREFIX: Final = "#topic-endpoint/"
"""What the names of topic endpoints begin with among the queues."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicEndpointStatus(EndpointStatus):
    """One topic endpoint as monitoring shows it."""

    topic_endpoint_name: str
    destination_topic: str = ""
    """What it attracts, "" while nobody has said."""


_SHARED: Final = tuple(field.name for field in fields(EndpointStatus))
"""Attributes that a queue has too."""


def _topic_endpoints(context: ApiContext, msg_vpn: str) -> Found:
    def names() -> list[str]:
        queues = context.queues.queue_names(msg_vpn)
        return [name.removeprefix(PREFIX) for name in queues if name.startswith(PREFIX)]

    return Found(names, partial(_status, context, msg_vpn))


def _status(context: ApiContext, msg_vpn: str, name: str) -> TopicEndpointStatus | None:
    status = context.queues.queue(msg_vpn, PREFIX + name)
    if status is None:
        return None
    durable = context.clients.held(msg_vpn, "topic-endpoint", name)
    return TopicEndpointStatus(
        topic_endpoint_name=name,
        destination_topic=durable[0].subscription_topic if durable else "",
        **{attribute: getattr(status, attribute) for attribute in _SHARED},
    )


def _links(msg_vpn_uri: str, name: str) -> dict[str, str]:
    queue = f"{msg_vpn_uri}/queues/{segment(PREFIX + name)}"
    return {"msgsUri": f"{queue}/msgs", "txFlowsUri": f"{queue}/txFlows"}


TOPIC_ENDPOINTS: Final = Collection(
    path="topicEndpoints",
    tag="topicEndpoint",
    key="topicEndpointName",
    kind=TopicEndpointStatus,
    one="topic endpoint",
    many="topic endpoints",
    description="The topic endpoints of a message VPN.",
    open=_topic_endpoints,
    links=_links,
)

serve(routes, TOPIC_ENDPOINTS, name_in_path(TOPIC_ENDPOINTS))


PAGES: Final = (routes,)
"""What the kind serves."""
