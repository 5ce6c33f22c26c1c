"""What the client of a session may do. It is applied at the login, and again whenever it changes (promise OWNER).

A session keeps everything it asked for: a right that is taken away and given back later restores it.
A subscription of which the ACL profile denies everything stays, but nothing is sent for it. One of QoS 1 or 2
counts as QoS 0 while the client may not receive guaranteed messages, and its messages go on waiting.
Consumers of queues are unbound, and their clients have to bind them again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vpnrouter.core import client_events
from vpnrouter.core.guaranteed.binding import unbind_forbidden

if TYPE_CHECKING:
    from vpnrouter.core.access import BoundRule, TopicRule
    from vpnrouter.core.login import Admission
    from vpnrouter.core.mqtt.session import MqttSession


def judge(session: MqttSession, rights: Admission) -> list[str]:
    """Apply `rights`, those of its client username, to a session. Returns the names of what has changed.

    The caller has to forget the routes that the session is in.
    """
    changed: list[str] = []
    session.username = rights.username
    rule = _bound(rights.acl.subscribe, rights, session)
    if not _alike(rule, session.rule):
        changed.append("subscribe_topic")
    session.rule = rule
    rule = _bound(rights.acl.publish, rights, session)
    if not _alike(rule, session.publish_rule):
        changed.append("publish_topic")
    session.publish_rule = rule
    profile = rights.profile
    if session.sends != profile.allow_guaranteed_msg_send_enabled:
        session.sends = profile.allow_guaranteed_msg_send_enabled
        changed.append("allow_guaranteed_msg_send_enabled")
    if session.receives != profile.allow_guaranteed_msg_receive_enabled:
        _receive(session, profile.allow_guaranteed_msg_receive_enabled)
        changed.append("allow_guaranteed_msg_receive_enabled")
    if _share(session, rights):
        changed.append("shared subscriptions")
    if session.outbound is not None:
        session.outbound.deliveries.clear()
    return changed


def judge_again(session: MqttSession, rights: Admission, told: bool = True) -> bool:
    """Apply changed `rights` to a session, connected or not, and to its publisher and its flows.

    True when something has changed; this raises an event where `told`.
    """
    changed = judge(session, rights)
    connection = session.connection
    publisher = None if connection is None else connection.publisher
    if publisher is not None:
        publisher.rule = session.publish_rule
        publisher.username = rights.username
        publisher.permitted.clear()
    outbound = session.outbound
    if outbound is not None:
        for flow in list(outbound.flows.values()):
            if flow.browsing:
                flow.browse()
            else:
                unbind_forbidden(flow.endpoint)
    if changed and told:
        client_events.rights_changed(session, rights, changed)
    return bool(changed)


def may_share(session: MqttSession, rights: Admission, share: str) -> bool:
    """True when the ACL profile lets the session be a member of the groups of this share name."""
    rule = rights.acl.share_name
    if rule.unrestricted:
        return True
    return rule.bind(rights.username.name, session.client_name).allows_topic(share)


def _bound(rule: TopicRule, rights: Admission, session: MqttSession) -> BoundRule | None:
    return None if rule.unrestricted else rule.bind(rights.username.name, session.client_name)


def _alike(a: BoundRule | None, b: BoundRule | None) -> bool:
    if a is None or b is None:
        return a is b
    # An ACL profile that did not change keeps its rule objects (apply_message_vpns.py).
    return a is b or (a.source is b.source and a.source is not None)


def _receive(session: MqttSession, receives: bool) -> None:
    session.receives = receives
    for subscription in session.subscriptions.values():
        subscription.qos = subscription.granted if receives else 0
    if session.outbound is not None:
        session.outbound.open_own()


def _share(session: MqttSession, rights: Admission) -> bool:
    """Suspend shared subscriptions that are not allowed, and bring back those that are. True when one has changed."""
    changed = False
    for subscription in session.subscriptions.values():
        share = subscription.filter.share
        if not share:
            continue
        allowed = rights.profile.allow_shared_subscriptions_enabled
        suspended = not (allowed and may_share(session, rights, share))
        if suspended != subscription.suspended:
            session.vpn.suspend(subscription, suspended)
            changed = True
    return changed
