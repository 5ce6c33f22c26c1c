"""Lists the subscriptions of one or all message VPNs, and who gets a topic now."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Final

import trio
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from vpnrouter import limits
from vpnrouter.errors import TopicError
from vpnrouter.limits import MANAGEMENT_PAGE_ROWS
from vpnrouter.management.answers.pages import Key
from vpnrouter.management.answers.query import ListQuery, ListQueryDep
from vpnrouter.management.answers.replies import root_of
from vpnrouter.management.answers.rows import Links, Row, row_of, segment
from vpnrouter.management.clients import ClientsDep
from vpnrouter.management.collections import MONITOR
from vpnrouter.management.dependencies import CallerDep, ContextDep, MsgVpnDep, answers
from vpnrouter.management.errors import invalid
from vpnrouter.management.status.clients import Clients, SubscriptionStatus

ours: Final = APIRouter(prefix="/vpnrouter/v1", tags=["vpnrouter"])
"""The field's API has no path for what is not one client's or one queue's."""

_COLLECTIONS: Final = {"client": "clients", "bridge": "clients", "queue": "queues"}
"""Where the holder of a subscription is, by its kind; a topic endpoint is where its own collection is."""

_QUERY: Final = frozenset({"topic", "count", "cursor", "where", "select"})


@ours.get(
    "/subscriptions",
    summary="List the subscriptions of all message VPNs",
    responses=answers(SubscriptionStatus, many=True),
    response_model=None,
)
async def all_subscriptions(
    request: Request,
    source: ClientsDep,
    context: ContextDep,
    caller: CallerDep,
    query: ListQueryDep,
) -> Response:
    """The subscriptions of clients, bridges of other routers, queues and topic endpoints that the user sees."""
    msg_vpns = [name for name in sorted(context.router.vpns) if caller.sees(name)]
    return await _page(request, source, msg_vpns, query)


@ours.get(
    "/msgVpns/{msgVpnName}/subscriptions",
    summary="List the subscriptions of a message VPN",
    responses=answers(SubscriptionStatus, many=True),
    response_model=None,
)
async def msg_vpn_subscriptions(
    request: Request, source: ClientsDep, msg_vpn: MsgVpnDep, query: ListQueryDep
) -> Response:
    """The subscriptions in one message VPN: of clients, bridges, queues and topic endpoints."""
    return await _page(request, source, [msg_vpn], query)


@ours.get(
    "/msgVpns/{msgVpnName}/matches",
    summary="List who gets a topic now",
    responses=answers(SubscriptionStatus, many=True),
    response_model=None,
)
async def matches(
    request: Request,
    source: ClientsDep,
    msg_vpn: MsgVpnDep,
    topic: Annotated[str, Query(description="A topic that a message could be published to")] = "",
    count: Annotated[
        int, Query(ge=1, le=MANAGEMENT_PAGE_ROWS, description="Objects in the answer")
    ] = MANAGEMENT_PAGE_ROWS,
    cursor: Annotated[str, Query(description="From `meta.paging` of the page before")] = "",
    where: Annotated[str, Query(description="Conditions separated by commas")] = "",
    select: Annotated[str, Query(description="Names of the attributes to give")] = "",
) -> Response:
    """The subscriptions by which somebody is sent, or keeps, a message that is published to `topic` now.

    Of a shared subscription all members that may be chosen; at most 1,000 by holder and name. Selectors, no-local
    and the way that a message has come decide for each message.
    """
    for name in request.query_params:
        if name not in _QUERY:
            raise invalid(f"there is no query parameter {name}")
    if not topic:
        raise invalid("topic is missing")
    try:
        matching = await source.matches(msg_vpn, topic, limits.MATCHES)
    except TopicError as error:
        raise invalid(f"topic: {error}") from error
    rows = {_key(each): each for each in matching}
    return await ListQuery(count, cursor, where, select).reply(
        request,
        list(rows),
        lambda key: row_of(rows[key]),
        partial(_links, root_of(request)),
        SubscriptionStatus,
    )


async def _page(
    request: Request, source: Clients, msg_vpns: Sequence[str], query: ListQuery
) -> Response:
    groups: list[Key] = []
    for name in msg_vpns:
        holders = source.holders(name)
        # There may be ten thousand of them, in each of a thousand message VPNs.
        await trio.lowlevel.checkpoint()
        groups += [(name, *holder) for holder in holders]
    total = sum(source.subscription_count(name) for name in msg_vpns)
    links = partial(_links, root_of(request))
    return await query.nested(
        request, groups, partial(_opened, source), total, links, SubscriptionStatus
    )


def _opened(source: Clients, group: Key) -> list[tuple[Key, Row]]:
    msg_vpn, holder, name = group
    return [(_key(each), row_of(each)) for each in source.held(msg_vpn, holder, name)]


def _key(status: SubscriptionStatus) -> Key:
    return (status.msg_vpn_name, status.holder, status.name, status.subscription_topic)


def _links(root: str, key: Key) -> Links:
    """Return the links of a subscription: its own path if a client holds it, else the path of its holder."""
    msg_vpn, holder, name, topic = key
    collection = _COLLECTIONS.get(holder, "topicEndpoints")
    uri = f"{root}{MONITOR}/msgVpns/{segment(msg_vpn)}/{collection}/{segment(name)}"
    if collection == "clients":
        return {"uri": f"{uri}/subscriptions/{segment(topic)}", "holderUri": uri}
    return {"holderUri": uri}
