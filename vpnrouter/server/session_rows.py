"""One MQTT session as monitoring shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vpnrouter.management.session_status import MqttSessionStatus

if TYPE_CHECKING:
    from vpnrouter.core.mqtt.session import MqttSession
    from vpnrouter.server.cleared import ClearedEndpoints


def session_status(
    msg_vpn: str, session: MqttSession, cleared: ClearedEndpoints
) -> MqttSessionStatus:
    """A session, and the queue behind its subscriptions."""
    endpoint = session.endpoint
    counters = None if endpoint is None else cleared.counters(endpoint)
    will = session.will
    return MqttSessionStatus(
        msg_vpn_name=msg_vpn,
        mqtt_session_client_id=session.client_name,
        client_name=session.client_name,
        connected=session.connected,
        clean=session.expiry_s == 0,
        durable=session.durable,
        session_expiry_interval=session.expiry_s,
        owner=session.owner,
        queue_name="" if endpoint is None else endpoint.name,
        will=will is not None,
        will_topic="" if will is None else will.message.topic.decode(),
        subscription_count=len(session.subscriptions),
        msg_count=0 if endpoint is None else endpoint.spooled_count,
        tx_unacked_msg_count=0
        if endpoint is None
        else sum(len(flow.unacked) for flow in endpoint.flows),
        spooled_msg_count=0 if counters is None else counters.spooled,
        acked_msg_count=0 if counters is None else counters.acked,
        redelivered_msg_count=0 if counters is None else counters.redelivered,
        discarded_msg_count=0
        if counters is None
        else counters.discarded.total() + counters.refused.total(),
    )
