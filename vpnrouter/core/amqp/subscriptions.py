"""Subscriptions of AMQP clients to topics: an endpoint for each, which keeps what its consumers have not settled.

Each belongs to the client username that made it (promise OWNER): what another one calls by the same names is another
subscription. A link's own ends with it. A durable one belongs to a container of the client username, and outlives
connections and the router; a shared one has several consumers, of one container or of all. Their endpoints have names:

    #amqp-durable/USERNAME/CONTAINER/NAME   durable, CONTAINER is empty where all of the client username share it
    #amqp-shared/USERNAME/CONTAINER/NAME    shared, not durable: it ends with its last consumer
    #amqp-link/USERNAME/CLIENT/NUMBER       a link's own

In USERNAME, CONTAINER and CLIENT `%` and `/` stand as `%25` and `%2F`, so that no two are the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter.core.amqp.client import AmqpClient, local_name
from vpnrouter.core.amqp.sending_link import AmqpFlow
from vpnrouter.core.credentials import NOT_AUTHORIZED
from vpnrouter.core.guaranteed import refusals
from vpnrouter.core.guaranteed.endpoint import Endpoint, endpoints_of
from vpnrouter.core.guaranteed.endpoint_settings import CONSUME, SUBSCRIPTION
from vpnrouter.core.login import rights_of
from vpnrouter.core.publisher import SUBSCRIBE_DENIED
from vpnrouter.core.subscriber import Subscription
from vpnrouter.errors import Refused, SelectorError, TopicError
from vpnrouter.events import table
from vpnrouter.selectors import parse_selector
from vpnrouter.topics.grammar import SMF, parse_filter
from vpnrouter.wire.mqtt.reason import QUOTA_EXCEEDED, TOPIC_FILTER_INVALID

if TYPE_CHECKING:
    from vpnrouter.core.amqp.sending_link import SendingLink
    from vpnrouter.core.amqp.termini import Wish
    from vpnrouter.core.guaranteed.endpoint_definition import EndpointDefinition
    from vpnrouter.core.guaranteed.spool import Spool
    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.selectors import Selector
    from vpnrouter.topics.grammar import Filter

DURABLE: Final = "#amqp-durable/"
SHARED: Final = "#amqp-shared/"
OWN: Final = "#amqp-link/"

WITHOUT_OWNER: Final = "#amqp/"
"""Durable ones of earlier versions, whose names were CONTAINER/NAME."""

PARSE_ERROR: Final = "400 Subscription Parse Error"
DENIED: Final = "403 Subscription ACL Denied"
TOO_MANY: Final = "400 Max Num Subscriptions Exceeded"

SHARING: Final = 1_000
"""Consumers of one shared subscription."""


class AmqpSubscription:
    """What a link that subscribes tells when it ends."""

    __slots__ = ()

    def permits(self, client: AmqpClient) -> bool:
        """Return whether a client may still consume from it."""
        raise AssertionError(client.client_name)

    def left(self, link: SendingLink, *, closed: bool) -> None:
        """A link has ended; `closed` says that the client wants the subscription ended too."""
        raise AssertionError(link.name)


@final
class EndpointSubscription(AmqpSubscription):
    """The subscription behind one endpoint; `lasts`: it is there without a consumer, until it is closed."""

    __slots__ = ("endpoint", "lasts")

    def __init__(self, endpoint: Endpoint, lasts: bool) -> None:
        self.endpoint = endpoint
        self.lasts = lasts

    def permits(self, client: AmqpClient) -> bool:
        """Return whether a client may still consume from it: one that is shared needs the right to share it."""
        return not _is_shared(self.endpoint) or client.may_share(_share_name(self.endpoint))

    def left(self, link: SendingLink, *, closed: bool) -> None:
        """End the subscription with its last consumer, a durable one where the client closes it."""
        link.client.subscriber_count -= 1
        if not self.endpoint.flows and (closed or not self.lasts):
            remove(self.endpoint)


def filter_of(client: AmqpClient, text: str) -> Filter:
    """Return the topic filter of an address, in SMF's dialect. Raises Refused where the client may not have it."""
    vpn = client.vpn
    try:
        found = parse_filter(
            text, SMF, max_levels=vpn.limits.max_topic_levels, max_bytes=vpn.limits.max_topic_bytes
        )
    except TopicError as error:
        raise Refused(PARSE_ERROR, TOPIC_FILTER_INVALID, str(error)) from error
    if found.share:
        # Shared subscriptions have capabilities of their own.
        raise Refused(PARSE_ERROR, TOPIC_FILTER_INVALID)
    rule = client.rule
    if rule is not None and not rule.allows_filter(found):
        publisher = client.connection.publisher
        if publisher is not None and not publisher.told & SUBSCRIBE_DENIED:
            publisher.report_once(SUBSCRIBE_DENIED, f"{DENIED}: {found.original}")
        raise Refused(DENIED, NOT_AUTHORIZED)
    most = client.profile.max_subscription_count
    if most and client.subscriber_count >= most:
        raise Refused(TOO_MANY, QUOTA_EXCEEDED)
    return found


def subscribe(link: SendingLink, wish: Wish) -> tuple[AmqpFlow, bool]:
    """Let a link consume from the subscription that it asks for; make that if it is not there.

    Returns the flow, which is bound, and whether what was made has to be synced before the client is told. Raises
    Refused.
    """
    client = link.client
    filter_ = filter_of(client, wish.node.name)
    if wish.shared and not client.may_share(wish.subscription):
        raise Refused(refusals.PERMISSION_DENIED, NOT_AUTHORIZED)
    vpn = client.vpn
    name = ""
    if wish.subscription:
        name = _name(
            client, DURABLE if wish.durable else SHARED, wish.subscription, wish.everywhere
        )
    endpoint = endpoints_of(vpn).get((SUBSCRIPTION, name))
    made = False
    if endpoint is not None and not _same(endpoint, filter_, wish, client.no_local(wish.no_local)):
        if any(isinstance(flow, AmqpFlow) for flow in endpoint.flows):
            raise Refused(refusals.SUBSCRIPTION_MISMATCH, NOT_AUTHORIZED)
        # As JMS wants it: another topic or selector is another subscription, and the old one ends.
        remove(endpoint)
        endpoint = None
    if endpoint is None:
        endpoint = _make(client, name, filter_, wish)
        made = wish.durable
    elif not wish.shared:
        for flow in list(endpoint.flows):
            if isinstance(flow, AmqpFlow):
                flow.link.stolen()
    subscription = EndpointSubscription(endpoint, wish.durable)
    flow = AmqpFlow(link, endpoint, subscription=subscription)
    client.subscriber_count += 1
    try:
        endpoint.bind(flow, CONSUME, CONSUME)
    except Refused:
        subscription.left(link, closed=made)
        raise
    return flow, made


def find_durable(client: AmqpClient, name: str, *, everywhere: bool) -> Endpoint | None:
    """Return the endpoint of a durable subscription of the client username, of the client's container or of all."""
    place = _name(client, DURABLE, name, everywhere)
    return endpoints_of(client.vpn).get((SUBSCRIPTION, place))


def _name(client: AmqpClient, kind: str, name: str, everywhere: bool) -> str:
    return _joined(kind, client.username, "" if everywhere else client.container, name)


def _joined(kind: str, username: str, container: str, name: str) -> str:
    return f"{kind}{_part(username)}/{_part(container)}/{name}"


def _part(text: str) -> str:
    """Return a part of a name without a slash, so that it ends where it ends."""
    return text.replace("%", "%25").replace("/", "%2F")


def _text_of(part: str) -> str:
    return part.replace("%2F", "/").replace("%25", "%")


def holder_in(name: str) -> tuple[str, str]:
    """Return the client username and the container (or client) that the name of a subscription's endpoint says.

    Two empty texts for what is no such name.
    """
    parts = name.split("/", 3)
    if len(parts) < 4:
        return "", ""
    return _text_of(parts[1]), _text_of(parts[2])


def _is_shared(endpoint: Endpoint) -> bool:
    return endpoint.settings.max_bind_count > 1


def _share_name(endpoint: Endpoint) -> str:
    """Return what clients call a shared subscription: the last part of its name."""
    return endpoint.name.split("/", 3)[-1]


def _same(endpoint: Endpoint, filter_: Filter, wish: Wish, no_local: bool) -> bool:
    for held in endpoint.subscriptions.values():
        return (
            held.filter.original == filter_.original
            and _text(held.selector) == _text(wish.selector)
            and held.no_local == no_local
            and _is_shared(endpoint) == wish.shared
        )
    return False


def _text(selector: Selector | None) -> str:
    return "" if selector is None else selector.text


def _make(client: AmqpClient, name: str, filter_: Filter, wish: Wish) -> Endpoint:
    """Make the endpoint of a subscription, a link's own without a `name`.

    Raises Refused where the client may not, or there is no room.
    """
    spool = client.spool
    if spool is None:
        raise Refused(refusals.SERVICE_UNAVAILABLE, QUOTA_EXCEEDED)
    vpn = client.vpn
    owner = client.username
    profile = client.profile
    if not profile.may_create(wish.durable):
        raise Refused(refusals.PERMISSION_DENIED, NOT_AUTHORIZED)
    vpn.check_endpoint_count(owner, profile.max_endpoint_count_per_client_username)
    number = spool.number()
    # Nobody finds a link's own by its name: that is never given again.
    name = name or _joined(OWN, owner, client.client_name, str(number))
    holder = (owner, client.container)
    endpoint = add_endpoint(spool, vpn, name, number, wish.durable, wish.shared, holder)
    no_local = client.no_local(wish.no_local)
    subscription = Subscription(filter_, endpoint, no_local=no_local, selector=wish.selector)
    try:
        vpn.subscribe(subscription)
        # By what is configured now: the client itself may not have been judged by it yet.
        judge(endpoint)
        if wish.durable and not endpoint.deleted:
            endpoint.define(filter_.original)
    except Exception:
        remove(endpoint)
        raise
    if endpoint.deleted:
        raise Refused(refusals.PERMISSION_DENIED, NOT_AUTHORIZED)
    return endpoint


def add_endpoint(
    spool: Spool,
    vpn: MessageVpn,
    name: str,
    number: int,
    durable: bool,
    shared: bool,
    holder: tuple[str, str],
) -> Endpoint:
    """Add the endpoint of a subscription, which attracts nothing yet, to a message VPN.

    `holder` is the client username that it belongs to, and the container that made it.
    """
    settings = vpn.session_terms.copy()
    settings.respect_msg_priority_enabled = vpn.queue_terms.respect_msg_priority_enabled
    settings.respect_dmq_eligible_enabled = vpn.queue_terms.respect_dmq_eligible_enabled
    settings.respect_ttl_enabled = vpn.queue_terms.respect_ttl_enabled
    settings.owner = holder[0]
    settings.exclusive = not shared
    settings.max_bind_count = SHARING if shared else 1
    endpoint = Endpoint(spool, vpn, SUBSCRIPTION, name, number, settings, durable)
    endpoint.attracts_for = holder
    endpoint.local_name = local_name(vpn, holder[0], holder[1])
    vpn.endpoints[SUBSCRIPTION, name] = endpoint
    vpn.count_endpoint(holder[0], 1)
    return endpoint


def remove(endpoint: Endpoint) -> None:
    """End a subscription with all that it holds. A second call does nothing."""
    if not endpoint.deleted:
        endpoint.vpn.count_endpoint(endpoint.attracts_for[0], -1)
        endpoint.delete(refusals.SUBSCRIPTION_ENDED)


def belong_to_providers(vpn: MessageVpn, containers: set[str]) -> None:
    """Let what is of containers that belong to providers of connectors, or did, have the name by which no-local knows
    them now. They have to log in again.
    """
    for endpoint in list(endpoints_of(vpn).values()):
        owner, container = endpoint.attracts_for
        if endpoint.kind != SUBSCRIPTION or container not in containers:
            continue
        endpoint.local_name = local_name(vpn, owner, container)
        if container in vpn.provider_clients:
            for subscription in endpoint.subscriptions.values():
                subscription.no_local = True
        judge(endpoint)
        vpn.forget_routes(endpoint)
    for (_, container), clients in list(vpn.containers.items()):
        if container in containers:
            for client in list(clients):
                if isinstance(client, AmqpClient):
                    client.connection.put_out("the connector to its broker was changed")


def judge(endpoint: Endpoint) -> None:
    """Apply what the client username of a subscription may do now (promise OWNER); it ends with that.

    It attracts what its ACL profile allows, and nothing while the client may not consume from it at all. The caller has
    to forget all routes.
    """
    owner, container = endpoint.attracts_for
    vpn = endpoint.vpn
    rights = rights_of(vpn, owner)
    if rights is None:
        _report_end(endpoint)
        remove(endpoint)
        return
    endpoint.rule = vpn.subscribe_rule(rights.acl, owner, container)
    permitted = rights.profile.allow_guaranteed_msg_receive_enabled
    if permitted and _is_shared(endpoint):
        permitted = rights.may_share(_share_name(endpoint), container)
    for subscription in endpoint.subscriptions.values():
        vpn.suspend(subscription, not permitted)


def _report_end(endpoint: Endpoint) -> None:
    vpn = endpoint.vpn
    owner, container = endpoint.attracts_for
    events = vpn.context.events
    if events is not None:
        text = (
            f"VPN {vpn.name} client {container} username {owner}: subscription {endpoint.name} ended:"
            f" client username {owner} is gone; {endpoint.spooled_count:,} messages discarded"
        )
        events.raise_event(table.SESSION_END, vpn.name, container, text)


def restore_subscriptions(
    vpn: MessageVpn, spool: Spool, definitions: list[EndpointDefinition]
) -> list[Endpoint]:
    """Restore the durable subscriptions of a message VPN; return their endpoints.

    Those of client usernames that were removed (promise OWNER), or whose topic or selector is not valid any more, are
    left out.
    """
    found: list[Endpoint] = []
    for definition in definitions:
        if definition.vpn != vpn.name or definition.kind != SUBSCRIPTION:
            continue
        owner = definition.attracts_for[0]
        if vpn.acl_profiles and rights_of(vpn, owner) is None:
            continue
        try:
            filter_ = parse_filter(definition.subscription, SMF)
            selector = parse_selector(definition.selector) if definition.selector else None
        except (TopicError, SelectorError):
            continue
        endpoint = add_endpoint(
            spool,
            vpn,
            _owned_name(definition),
            definition.number,
            True,
            definition.shared,
            definition.attracts_for,
        )
        no_local = definition.no_local or definition.attracts_for[1] in vpn.provider_clients
        subscription = Subscription(filter_, endpoint, no_local=no_local, selector=selector)
        # It was granted before: a bound that was lowered must not end it.
        vpn.subscribe(subscription, bounded=False)
        if endpoint.name != definition.name:
            endpoint.define(definition.subscription)
        if vpn.acl_profiles:
            judge(endpoint)
        found.append(endpoint)
    return found


def _owned_name(definition: EndpointDefinition) -> str:
    """Return the name of a durable subscription; one of an earlier version gets its owner, who made it."""
    if not definition.name.startswith(WITHOUT_OWNER):
        return definition.name
    owner, container = definition.attracts_for
    rest = definition.name[len(WITHOUT_OWNER) :]
    begin = f"{container}/"
    if rest.startswith(begin):
        return _joined(DURABLE, owner, container, rest[len(begin) :])
    # All containers shared it.
    return _joined(DURABLE, owner, "", rest[1:])
