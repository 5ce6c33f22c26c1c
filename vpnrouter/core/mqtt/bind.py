"""Filters that bind a consumer to an endpoint instead of subscribing to topics.

    $queue/NAME                    consume from the queue NAME
    $browse/NAME                   look at what waits in the queue NAME, and leave it there
    $topic-endpoint/NAME/FILTER    consume from the topic endpoint NAME, whose one subscription is FILTER

User properties of the SUBSCRIBE hold for all of these in it: `selector` lets only messages through that it
matches, `browse` (`true`) makes a browser of a consumer, `replay-from` (`beginning`, an RFC 3339 date, or `id:N`
for what came behind message N) starts a replay to the queue. Every delivery has QoS 1 at least. A browser sees
what consumers hold as well, and is shown what is new some ten times a second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter.core import client_events
from vpnrouter.core.guaranteed import reasons
from vpnrouter.core.guaranteed.binding import not_there, permit
from vpnrouter.core.guaranteed.kinds import QUEUE, TOPIC_ENDPOINT
from vpnrouter.core.guaranteed.permissions import permission_of
from vpnrouter.core.guaranteed.recover import Definition
from vpnrouter.core.guaranteed.replay_start import parse_start, replay_to
from vpnrouter.core.guaranteed.terms import CONSUME, MODIFY_TOPIC, READ_ONLY
from vpnrouter.core.mqtt.flow import MqttFlow
from vpnrouter.core.mqtt.outbound import Outbound
from vpnrouter.core.mqtt.rights import may_share
from vpnrouter.core.mqtt.session_store import number_of
from vpnrouter.core.subscriber import Subscription
from vpnrouter.errors import Refused, SelectorError, TopicError
from vpnrouter.selectors import parse_selector
from vpnrouter.spool import keys
from vpnrouter.topics.grammar import MQTT, parse_filter
from vpnrouter.wire.mqtt import reason

if TYPE_CHECKING:
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.mqtt.connection import MqttConnection
    from vpnrouter.core.mqtt.session import MqttSession
    from vpnrouter.core.plane import Plane
    from vpnrouter.selectors import Selector
    from vpnrouter.topics.grammar import Filter
    from vpnrouter.wire.mqtt.properties import Properties

QUEUE_PREFIX: Final = "$queue/"
BROWSE_PREFIX: Final = "$browse/"
TOPIC_ENDPOINT_PREFIX: Final = "$topic-endpoint/"

SELECTOR: Final = "selector"
BROWSE: Final = "browse"
REPLAY_FROM: Final = "replay-from"
"""User properties of SUBSCRIBE."""

BAD_SELECTOR: Final = "400 Bad Selector"
BAD_REPLAY_START: Final = "400 Bad Replay Start"


def binds(text: str) -> bool:
    """Does this filter bind a consumer?"""
    return text.startswith((QUEUE_PREFIX, BROWSE_PREFIX, TOPIC_ENDPOINT_PREFIX))


@final
class Wishes:
    """What the user properties of one SUBSCRIBE say about the consumers that it binds.

    Each is read when a filter first asks for it, and once, however many filters there are.
    """

    __slots__ = ("_read", "_refused", "_replay", "_selector", "_selector_text", "browse")

    def __init__(self, properties: Properties) -> None:
        self._selector_text = ""
        self._replay = ""
        self.browse = False
        for name, text in properties.user_properties:
            if name == SELECTOR:
                self._selector_text = text or self._selector_text
            elif name == BROWSE:
                self.browse = text.lower() in ("true", "1")
            elif name == REPLAY_FROM:
                self._replay = self._replay or text
        self._read = False
        self._selector: Selector | None = None
        self._refused = ""

    def selector(self, plane: Plane) -> Selector | None:
        """The selector that is wanted, None for none. Raises Refused for a bad one."""
        if not self._read and self._selector_text:
            self._read = True
            # Half a microsecond for each character.
            plane.work += len(self._selector_text) >> 1
            try:
                self._selector = parse_selector(self._selector_text)
            except SelectorError as error:
                self._refused = f"{BAD_SELECTOR}: {error}"
        if self._refused:
            raise Refused(self._refused, reason.IMPLEMENTATION_SPECIFIC_ERROR)
        return self._selector

    def replay_from(self) -> tuple[int, int] | None:
        """From when and behind which message a replay is wanted, None for none. Raises Refused for a bad one."""
        if not self._replay:
            return None
        try:
            return parse_start(self._replay)
        except ValueError as error:
            raise Refused(
                f"{BAD_REPLAY_START}: {error}", reason.IMPLEMENTATION_SPECIFIC_ERROR
            ) from error


def bind(
    connection: MqttConnection,
    session: MqttSession,
    text: str,
    qos: int,
    identifier: int,
    wishes: Wishes,
) -> int:
    """Bind a consumer as the filter `text` says; the QoS granted. Raises Refused with the field's reason."""
    vpn = session.vpn
    admission = connection.admission
    if vpn.plane.spool is None or admission is None:
        raise Refused(reasons.SERVICE_UNAVAILABLE, reason.IMPLEMENTATION_SPECIFIC_ERROR)
    if not admission.profile.allow_guaranteed_msg_receive_enabled:
        raise Refused(reasons.PERMISSION_DENIED, reason.NOT_AUTHORIZED)
    browsing = wishes.browse
    topics = ""
    if text.startswith(TOPIC_ENDPOINT_PREFIX):
        name, _, topics = text[len(TOPIC_ENDPOINT_PREFIX) :].partition("/")
        endpoint = vpn.endpoints.get((TOPIC_ENDPOINT, name))
        if endpoint is None:
            raise not_there(TOPIC_ENDPOINT, admission.username)
    else:
        if text.startswith(BROWSE_PREFIX):
            browsing = True
            name = text[len(BROWSE_PREFIX) :]
        else:
            name = text[len(QUEUE_PREFIX) :]
        endpoint = vpn.endpoints.get((QUEUE, name))
        if endpoint is None:
            raise not_there(QUEUE, admission.username)
    permission = _permission(connection, endpoint)
    # Before anything that differs from what is said of one that is not there, or that may cost time.
    permit(endpoint, permission, READ_ONLY if browsing else CONSUME)
    selector = wishes.selector(vpn.plane)
    replay_from = wishes.replay_from()
    if endpoint.kind == TOPIC_ENDPOINT and permission >= CONSUME:
        _let_attract(connection, session, endpoint, topics, permission)
    if session.durable:
        number_of(session, vpn.plane.spool)
    if session.outbound is None:
        session.outbound = Outbound(session)
        session.outbound.plug(session.receive_maximum)
    outbound = session.outbound
    granted = max(1, qos)
    # A filter that is there already is replaced, as a subscription is (MQTT-3.8.4-3).
    if not outbound.leave(text):
        have_flow(connection, session)
    flow = MqttFlow(outbound, endpoint, text, granted, selector, browsing)
    flow.identifier = identifier
    if browsing:
        if replay_from is not None:
            raise Refused(reasons.REPLAY_BROWSER, reason.NOT_AUTHORIZED)
        outbound.flows[text] = flow
    else:
        # Before it is bound: whatever raises, it is let go of with the connection.
        outbound.flows[text] = flow
        try:
            endpoint.bind(flow, permission, CONSUME)
            if replay_from is not None:
                _start_replay(endpoint, flow, replay_from)
        except Refused:
            outbound.flows.pop(text, None)
            raise
        connection.guaranteed = True
    flow.wake()
    return granted


def have_flow(connection: MqttConnection, session: MqttSession) -> None:
    """May the client have one more flow? Raises Refused at the bound of its profile.

    That of the message VPN is for the flows of queues and topic endpoints (Endpoint.bind).
    """
    admission = connection.admission
    outbound = session.outbound
    if admission is None or outbound is None:
        return
    most = admission.profile.max_egress_flow_count
    count = len(outbound.flows) + (0 if outbound.own is None else 1)
    if most and count >= most:
        raise Refused(reasons.TOO_MANY_FLOWS, reason.QUOTA_EXCEEDED)


def _start_replay(endpoint: Endpoint, flow: MqttFlow, replay_from: tuple[int, int]) -> None:
    """Start a replay for a consumer that has just been bound; without it, it is not bound."""
    from_ns, after_id = replay_from
    if not flow.active:
        endpoint.unbind(flow, counts=False)
        raise Refused(reasons.REPLAY_INACTIVE, reason.NOT_AUTHORIZED)
    try:
        replay_to(endpoint, from_ns, after_id)
    except Refused:
        endpoint.unbind(flow, counts=False)
        raise


def _permission(connection: MqttConnection, endpoint: Endpoint) -> int:
    """What the client's username may do with an endpoint: everything with its own."""
    admission = connection.admission
    if admission is None:
        return endpoint.terms.permission
    username = admission.username
    return permission_of(
        endpoint.terms,
        username.name,
        override=username.guaranteed_endpoint_permission_override_enabled,
    )


def _let_attract(
    connection: MqttConnection,
    session: MqttSession,
    endpoint: Endpoint,
    text: str,
    permission: int,
) -> None:
    """Let a topic endpoint have the one subscription that a consumer wants of it."""
    vpn = session.vpn
    try:
        filter_ = parse_filter(
            text,
            MQTT,
            max_levels=vpn.limits.max_topic_levels,
            max_bytes=vpn.limits.max_topic_bytes,
        )
    except TopicError as error:
        raise Refused("400 Subscription Parse Error", reason.TOPIC_FILTER_INVALID) from error
    if filter_.share or binds(filter_.text):
        raise Refused("400 Subscription Parse Error", reason.TOPIC_FILTER_INVALID)
    allowed_filter(connection, session, filter_)
    same = filter_.original in endpoint.subscriptions
    if same and endpoint.flows:
        return
    if endpoint.subscriptions and not same:
        if endpoint.flows:
            raise Refused(reasons.SUBSCRIPTION_MISMATCH, reason.NOT_AUTHORIZED)
        if permission < MODIFY_TOPIC:
            raise Refused(reasons.PERMISSION_DENIED, reason.NOT_AUTHORIZED)
        vpn.drop(endpoint)
    if not same:
        vpn.subscribe(Subscription(filter_, endpoint))
    endpoint.attracts_for = (session.owner, session.client_name)
    endpoint.rule = session.rule
    vpn.forget_routes(endpoint)
    definition = Definition(
        endpoint.number,
        vpn.name,
        endpoint.kind,
        endpoint.name,
        True,
        filter_.original,
        endpoint.attracts_for,
    )
    endpoint.spool.ledger.put(keys.endpoint(endpoint.number), definition.encode())


def allowed_filter(connection: MqttConnection, session: MqttSession, filter_: Filter) -> None:
    """Does the client's ACL profile let it subscribe? Raises Refused where it does not."""
    admission = connection.admission
    if admission is None:
        return
    rule = session.rule
    if (rule is not None and not rule.allows_filter(filter_)) or (
        filter_.share and not may_share(session, admission, filter_.share)
    ):
        _denied(connection, filter_)
        raise Refused("403 Subscription ACL Denied", reason.NOT_AUTHORIZED)


def _denied(connection: MqttConnection, filter_: Filter) -> None:
    publisher = connection.publisher
    if publisher is not None and not publisher.told & client_events.SUBSCRIBE_DENIED:
        text = f"403 Subscription ACL Denied: {filter_.original}"
        client_events.once(publisher, client_events.SUBSCRIBE_DENIED, text)
