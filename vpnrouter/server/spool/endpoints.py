"""Makes and changes the queues and topic endpoints of a running router as its configuration says."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from vpnrouter.config.configured_connector import links_of
from vpnrouter.connectors.connector_links import dead_letter_queue, own_queue, parking_queue
from vpnrouter.core.access import BoundRule
from vpnrouter.core.guaranteed.endpoint import Endpoint, endpoints_of
from vpnrouter.core.guaranteed.endpoint_definition import EndpointDefinition
from vpnrouter.core.guaranteed.endpoint_settings import (
    CONNECTOR_LINK,
    KIND_NAMES,
    QUEUE,
    REPLAY_LOG,
    TOPIC_ENDPOINT,
    EndpointSettings,
    endpoint_settings_of,
)
from vpnrouter.core.guaranteed.failure_policy import PARK
from vpnrouter.core.guaranteed.refusals import NOT_CONFIGURED
from vpnrouter.core.guaranteed.replay import ReplayLog
from vpnrouter.core.login import rights_of
from vpnrouter.core.mqtt.session import CONNECTOR_PREFIX, MqttSession
from vpnrouter.core.subscriber import Subscription
from vpnrouter.core.timers import Job
from vpnrouter.events.table import ORPHAN
from vpnrouter.server.events.event_context import raise_event_in
from vpnrouter.spool import keys
from vpnrouter.topics.grammar import MQTT, SMF, parse_filter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vpnrouter.config.msg_vpn import MsgVpn
    from vpnrouter.connectors.links import LinkSettings
    from vpnrouter.core.guaranteed.spool import Spool
    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.settings.endpoint import Queue


@final
class Endpoints:
    """Endpoints of the configuration by their numbers in the store; `definitions` are what the store knows."""

    def __init__(self, spool: Spool, definitions: list[EndpointDefinition]) -> None:
        self._spool = spool
        self._known = {(one.vpn, one.kind, one.name): one for one in definitions}
        self._orphans: list[Endpoint] = []
        self._absent: dict[str, MessageVpn] = {}
        self.by_number: dict[int, Endpoint] = {}

    def configure(self, vpn: MessageVpn, configured: MsgVpn, before: MsgVpn | None = None) -> None:
        """Let `vpn` have exactly the endpoints of its configuration.

        `before` is the one that holds: what is the same object in both is left alone.
        """
        self._welcome(vpn)
        queues = {} if before is None else before.queues
        for name, queue in configured.queues.items():
            if queues.get(name) is not queue:
                endpoint = self.have(vpn, QUEUE, name, endpoint_settings_of(queue))
                subscribe(endpoint, queue)
        topic_endpoints = {} if before is None else before.topic_endpoints
        for name, topic_endpoint in configured.topic_endpoints.items():
            if topic_endpoints.get(name) is not topic_endpoint:
                self.have(vpn, TOPIC_ENDPOINT, name, endpoint_settings_of(topic_endpoint))
        self._log(vpn, configured)
        wanted: dict[int, Mapping[str, object]] = {
            QUEUE: configured.queues,
            TOPIC_ENDPOINT: configured.topic_endpoints,
            CONNECTOR_LINK: self._have_links(vpn, configured),
        }
        for (kind, name), endpoint in list(endpoints_of(vpn).items()):
            # Those that do not last are made by clients.
            if kind in wanted and name not in wanted[kind] and endpoint.durable:
                self.let_go(endpoint)
        vpn.forget_all_routes()

    def _have_links(self, vpn: MessageVpn, configured: MsgVpn) -> dict[str, LinkSettings]:
        """Let `vpn` have the queues of its connectors' links, also while these are disabled.

        Returns the links by queue.
        """
        found: dict[str, LinkSettings] = {}
        for connector, each in configured.connectors.items():
            for link in links_of(each):
                if not link.inbound and link.failures.then == PARK:
                    name = parking_queue(connector, link.name)
                    found[name] = link
                    self._have_link_queue(vpn, connector, name, link)
                if link.inbound and link.qos and link.failures.dead_msg_queues:
                    name = dead_letter_queue(connector, link.name)
                    found[name] = link
                    self._have_link_queue(vpn, connector, name, link)
                if link.qos and not link.from_queue:
                    name = own_queue(connector, link.name)
                    found[name] = link
                    endpoint = self._have_link_queue(vpn, connector, name, link)
                    self._attract(endpoint, link)
        return found

    def _have_link_queue(
        self, vpn: MessageVpn, connector: str, name: str, link: LinkSettings
    ) -> Endpoint:
        terms = vpn.session_terms.copy()
        terms.exclusive = True
        if link.dead_letters:
            terms.redelivery_delay_enabled = True
            terms.redelivery_delay_initial_interval = link.retry_ms
            terms.redelivery_delay_max_interval = link.retry_ms
            terms.redelivery_delay_multiplier = 100
        elif name == dead_letter_queue(connector, link.name):
            # What is dead already does not die again before it is where it is to go.
            terms.respect_ttl_enabled = False
        endpoint = self.have(vpn, CONNECTOR_LINK, name, terms)
        endpoint.local_name = CONNECTOR_PREFIX + connector
        return endpoint

    def _attract(self, endpoint: Endpoint, link: LinkSettings) -> None:
        """Let the queue of a link have what the topics of the link bring; nothing where it brings messages in, or gets
        dead letters.
        """
        vpn = endpoint.vpn
        wanted = ""
        if not (link.inbound or link.dead_letters):
            subscription = Subscription(
                link.filter, endpoint, no_local=link.no_local, selector=link.selector
            )
            subscription.configured = True
            wanted = subscription.key
            vpn.subscribe(subscription)
        for key in list(endpoint.subscriptions):
            if key != wanted:
                vpn.unsubscribe(endpoint, key)

    def _log(self, vpn: MessageVpn, configured: MsgVpn) -> None:
        """Let `vpn` have the replay log of its configuration; what a log that goes has logged goes too."""
        logs = self._spool.replay_logs
        for name, replay_log in configured.replay_logs.items():
            endpoint = self.have(vpn, REPLAY_LOG, name, endpoint_settings_of(replay_log))
            chosen = replay_log.topic_filter
            dialect = MQTT if chosen.topic_syntax == "mqtt" else SMF
            texts = chosen.subscriptions if chosen.enabled else ()
            filters = [parse_filter(text, dialect, exceptions=True) for text in texts]
            log = logs.get(vpn.name)
            if log is None or log.endpoint is not endpoint:
                logs[vpn.name] = ReplayLog(endpoint, filters)
            else:
                log.take_filters(filters)
        for (kind, name), endpoint in list(endpoints_of(vpn).items()):
            if kind == REPLAY_LOG and name not in configured.replay_logs:
                self._end_log(endpoint)

    def _end_log(self, endpoint: Endpoint) -> None:
        logs = self._spool.replay_logs
        log = logs.get(endpoint.vpn.name)
        if log is not None and log.endpoint is endpoint:
            del logs[endpoint.vpn.name]
        self.delete(endpoint)

    def have(self, vpn: MessageVpn, kind: int, name: str, terms: EndpointSettings) -> Endpoint:
        """The endpoint of this name, under these terms; made if it is new, with what is in the spool for it."""
        endpoint = endpoints_of(vpn).get((kind, name))
        if endpoint is not None:
            endpoint.take_settings(terms)
            self._keep(endpoint)
            return endpoint
        known = self._known.get((vpn.name, kind, name))
        if known is None:
            known = EndpointDefinition(self._spool.number(), vpn.name, kind, name, True)
            self._known[vpn.name, kind, name] = known
            self._spool.ledger.put(keys.endpoint(known.number), known.encode())
        endpoint = Endpoint(self._spool, vpn, kind, name, known.number, terms)
        endpoint.bridges = known.bridges
        vpn.endpoints[kind, name] = endpoint
        self.by_number[known.number] = endpoint
        if known.subscription:
            endpoint.attracts_for = known.attracts_for
            judge_endpoint(endpoint)
            subscription = Subscription(parse_filter(known.subscription, MQTT), endpoint)
            # It was granted before: a bound that is used up or was lowered must not keep the router from starting.
            vpn.subscribe(subscription, bounded=False)
        return endpoint

    def knows(self, vpn: MessageVpn, kind: int, name: str) -> bool:
        """True when the store knows an endpoint of this name."""
        return (vpn.name, kind, name) in self._known

    def keep_orphan(self, vpn: MessageVpn, definition: EndpointDefinition) -> None:
        """Keep an endpoint that is not configured any more, shut down, with its messages."""
        self._detach(definition)
        endpoint = self.have(vpn, definition.kind, definition.name, _shut(EndpointSettings()))
        self._keep_until_empty(endpoint)

    def let_go(self, endpoint: Endpoint) -> None:
        """Delete an endpoint that is configured no more, or keep it, shut down, while it holds messages."""
        endpoint.vpn.drop(endpoint)
        if endpoint.spooled_count == 0:
            self.delete(endpoint)
        elif endpoint not in self._orphans:
            known = self._known.get((endpoint.vpn.name, endpoint.kind, endpoint.name))
            if known is not None:
                self._detach(known)
            endpoint.put_out(NOT_CONFIGURED)
            endpoint.take_settings(_shut(endpoint.settings.copy()))
            self._keep_until_empty(endpoint)
            self._tell(endpoint)

    def _keep_until_empty(self, endpoint: Endpoint) -> None:
        self._orphans.append(endpoint)
        endpoint.when_empty = Emptied(self, endpoint)

    def _keep(self, endpoint: Endpoint) -> None:
        """Keep an endpoint, which is configured, or is deleted already."""
        endpoint.when_empty = None
        if endpoint in self._orphans:
            self._orphans.remove(endpoint)

    def emptied(self, endpoint: Endpoint) -> None:
        """Delete an endpoint that is configured no more, if nothing is left in it."""
        if endpoint in self._orphans and not endpoint.spooled_count:
            self.delete(endpoint)

    def _detach(self, definition: EndpointDefinition) -> None:
        """Remove the subscription of a topic endpoint from the store, so that it attracts nothing any more."""
        if definition.kind == TOPIC_ENDPOINT:
            definition.subscription = ""
            self._spool.ledger.put(keys.endpoint(definition.number), definition.encode())

    # -- message VPNs that are not configured ----------------------------------------------------

    def remove(self, vpn: MessageVpn) -> None:
        """Let go of the endpoints of `vpn`, which is configured no more; what was retained stays."""
        for (kind, _), endpoint in list(endpoints_of(vpn).items()):
            if kind == REPLAY_LOG:
                self._end_log(endpoint)
            else:
                self.let_go(endpoint)
        self._absent[vpn.name] = vpn

    def keep_absent(self, vpn: MessageVpn) -> None:
        """Keep what the store has of a message VPN that is not configured, until it is again."""
        self._absent[vpn.name] = vpn

    def absent(self) -> list[MessageVpn]:
        """The message VPNs that are not configured, of which something is kept."""
        return list(self._absent.values())

    def _welcome(self, vpn: MessageVpn) -> None:
        """Give a message VPN that is configured again what was kept of it; its sessions begin anew."""
        absent = self._absent.pop(vpn.name, None)
        if absent is None:
            return
        for client in list(absent.clients.values()):
            if isinstance(client, MqttSession):
                client.end()
        for place, endpoint in endpoints_of(absent).items():
            endpoint.vpn = vpn
            vpn.endpoints[place] = endpoint
            vpn.spooled_bytes += endpoint.spooled_bytes
        absent.retained.most = vpn.retained.most
        absent.retained.most_bytes = vpn.retained.most_bytes
        if vpn.retained.account is None:
            absent.retained.keep_nowhere()
        vpn.retained = absent.retained

    # -- what goes -------------------------------------------------------------------------------

    def delete(self, endpoint: Endpoint) -> None:
        """Delete an endpoint and all that it holds."""
        endpoint.delete(NOT_CONFIGURED)
        self._keep(endpoint)
        vpn = endpoint.vpn
        vpn.endpoints.pop((endpoint.kind, endpoint.name), None)
        self._known.pop((vpn.name, endpoint.kind, endpoint.name), None)
        self.by_number.pop(endpoint.number, None)

    def forget(self, definition: EndpointDefinition) -> None:
        """Delete an endpoint that the store alone has; its messages are nobody's then."""
        self._known.pop((definition.vpn, definition.kind, definition.name), None)
        self._spool.ledger.delete(keys.endpoint(definition.number))
        self._spool.ledger.delete(keys.mark(definition.number))

    def tell_orphans(self) -> None:
        """Say which endpoints are kept only for their messages; those without any are deleted."""
        for endpoint in list(self._orphans):
            if endpoint.spooled_count == 0:
                self.delete(endpoint)
            else:
                self._tell(endpoint)

    def _tell(self, endpoint: Endpoint) -> None:
        raise_event_in(
            endpoint.vpn.context,
            ORPHAN,
            f"{KIND_NAMES[endpoint.kind]} {endpoint.name} of message VPN"
            f" {endpoint.vpn.name} is not configured any more; it is shut down and keeps its"
            f" {endpoint.spooled_count:,} messages until they are purged or moved",
            endpoint.vpn.name,
            endpoint.name,
        )


@final
class Emptied(Job):
    """Deletes an endpoint that is configured no more, when its last message has left."""

    def __init__(self, endpoints: Endpoints, endpoint: Endpoint) -> None:
        super().__init__()
        self._endpoints = endpoints
        self._endpoint = endpoint

    def step(self) -> bool:
        """Delete it, unless it is configured again, or has messages."""
        self._endpoints.emptied(self._endpoint)
        return True


def subscribe(endpoint: Endpoint, configured: Queue) -> None:
    """Let a queue have exactly the subscriptions of its configuration."""
    vpn = endpoint.vpn
    dialect = MQTT if configured.topic_syntax == "mqtt" else SMF
    wanted = [
        Subscription(parse_filter(text, dialect, exceptions=True), endpoint)
        for text in configured.subscriptions
    ]
    for subscription in wanted:
        subscription.configured = True
    names = {subscription.key for subscription in wanted}
    for key in list(endpoint.subscriptions):
        if key not in names:
            vpn.unsubscribe(endpoint, key)
    for subscription in wanted:
        if subscription.key not in endpoint.subscriptions:
            vpn.subscribe(subscription)


def judge_endpoint(endpoint: Endpoint) -> None:
    """Let a topic endpoint attract what the client username that made its subscription may be sent now.

    It attracts nothing where that client username was removed. The caller has to forget the routes that it is in.
    """
    username, client_id = endpoint.attracts_for
    if not username:
        return
    rights = rights_of(endpoint.vpn, username)
    if rights is None:
        endpoint.rule = BoundRule(False, [])
    else:
        endpoint.rule = rights.acl.subscribe.bound(username, client_id)


def _shut(terms: EndpointSettings) -> EndpointSettings:
    terms.ingress_enabled = False
    terms.egress_enabled = False
    return terms
