"""The metrics of message VPNs, bridges and queues."""

from typing import Final

from vpnrouter.management.metrics.family import Family

MSG_VPN_LABELS: Final = ("msg_vpn",)

MSG_VPN: Final[dict[str, Family]] = {
    "enabled": Family("vpnrouter_msg_vpn_enabled", "gauge", "1 while the message VPN is enabled."),
    "connections": Family(
        "vpnrouter_msg_vpn_connections", "gauge", "Clients connected, bridges of others included."
    ),
    "max_connections": Family(
        "vpnrouter_msg_vpn_max_connections", "gauge", "Connections that it may have."
    ),
    "subscriptions": Family("vpnrouter_msg_vpn_subscriptions", "gauge", "Subscriptions."),
    "max_subscriptions": Family(
        "vpnrouter_msg_vpn_max_subscriptions", "gauge", "Subscriptions that it may have."
    ),
    "messages": Family(
        "vpnrouter_msg_vpn_messages_total",
        "counter",
        "Messages from clients and bridges (rx), and to them (tx).",
        "direction",
    ),
    "size": Family("vpnrouter_msg_vpn_bytes_total", "counter", "Bytes of these.", "direction"),
    "discarded": Family(
        "vpnrouter_msg_vpn_discarded_messages_total",
        "counter",
        "Messages discarded, by reason.",
        "reason",
    ),
    "tx_discarded": Family(
        "vpnrouter_msg_vpn_tx_discarded_messages_total",
        "counter",
        "Those among them that were on their way to a client, by reason.",
        "reason",
    ),
    "rejected": Family(
        "vpnrouter_msg_vpn_rejected_messages_total",
        "counter",
        "Guaranteed messages that were refused, which their publishers were told.",
    ),
    "nack_disconnects": Family(
        "vpnrouter_msg_vpn_nack_disconnects_total",
        "counter",
        "MQTT 3.1.1 publishers disconnected because there is no other way to refuse a message.",
    ),
    "retained": Family(
        "vpnrouter_msg_vpn_retained_messages", "gauge", "Topics with a retained message."
    ),
    "retained_size": Family(
        "vpnrouter_msg_vpn_retained_bytes",
        "gauge",
        "Topics, properties and payloads that are retained.",
    ),
    "max_retained_size": Family(
        "vpnrouter_msg_vpn_max_retained_bytes", "gauge", "What these may come to, -1 for no bound."
    ),
    "retained_refused": Family(
        "vpnrouter_msg_vpn_retained_refused_messages_total",
        "counter",
        "Messages not retained for want of room.",
    ),
    "spool_size": Family(
        "vpnrouter_msg_vpn_spool_usage_bytes",
        "gauge",
        "Messages of its endpoints, and what it retains, in the spool.",
    ),
    "max_spool_size": Family(
        "vpnrouter_msg_vpn_max_spool_usage_bytes", "gauge", "What these may come to."
    ),
    "egress_flows": Family(
        "vpnrouter_msg_vpn_egress_flows", "gauge", "Consumers bound to its endpoints."
    ),
    "sessions": Family(
        "vpnrouter_msg_vpn_session_endpoints", "gauge", "Endpoints that belong to MQTT sessions."
    ),
    "session_messages": Family(
        "vpnrouter_msg_vpn_session_messages", "gauge", "Messages in these, all together."
    ),
    "session_size": Family("vpnrouter_msg_vpn_session_bytes", "gauge", "Bytes of these."),
    "replay_log_messages": Family(
        "vpnrouter_msg_vpn_replay_log_messages", "gauge", "Messages in the replay log."
    ),
    "replay_log_size": Family("vpnrouter_msg_vpn_replay_log_bytes", "gauge", "Bytes of these."),
}

BRIDGE_LABELS: Final = ("msg_vpn", "bridge")

BRIDGE: Final[dict[str, Family]] = {
    "info": Family(
        "vpnrouter_bridge_info",
        "gauge",
        "The other end of a bridge, always 1.",
        "info",
        ("remote_router", "remote_msg_vpn", "remote_address", "establisher", "encrypted", "queue"),
    ),
    "up": Family(
        "vpnrouter_bridge_up", "gauge", "1 while the bridge is logged in, stalled or not."
    ),
    "health": Family(
        "vpnrouter_bridge_health",
        "gauge",
        "How the bridge fares, 1: up, incomplete, unbound, stalled, down, msg-vpn-disabled, disabled.",
        "state",
    ),
    "enabled": Family(
        "vpnrouter_bridge_enabled",
        "gauge",
        "1 while the bridge is enabled, whatever its message VPN is.",
    ),
    "inbound_state": Family(
        "vpnrouter_bridge_inbound_state", "gauge", "The state of the inbound half, 1.", "state"
    ),
    "outbound_state": Family(
        "vpnrouter_bridge_outbound_state", "gauge", "The state of the outbound half, 1.", "state"
    ),
    "state_age": Family(
        "vpnrouter_bridge_state_age_seconds", "gauge", "Time in the inbound half's state."
    ),
    "uptime": Family("vpnrouter_bridge_uptime_seconds", "gauge", "Time that it has been up."),
    "failures": Family(
        "vpnrouter_bridge_failures_total", "counter", "How often the inbound half has failed."
    ),
    "messages": Family(
        "vpnrouter_bridge_messages_total", "counter", "Messages that crossed.", "direction"
    ),
    "size": Family("vpnrouter_bridge_bytes_total", "counter", "Bytes of these.", "direction"),
    "control_messages": Family(
        "vpnrouter_bridge_control_messages_total", "counter", "All other frames.", "direction"
    ),
    "control_size": Family(
        "vpnrouter_bridge_control_bytes_total", "counter", "Bytes of these.", "direction"
    ),
    "delivered": Family(
        "vpnrouter_bridge_delivered_messages_total",
        "counter",
        "Messages that came and were handed to the message VPN.",
    ),
    "offered": Family(
        "vpnrouter_bridge_offered_messages_total",
        "counter",
        "Messages that the message VPN had for the other end.",
    ),
    "discarded_rx": Family(
        "vpnrouter_bridge_rx_discarded_messages_total",
        "counter",
        "Messages that came and were discarded, by reason.",
        "reason",
    ),
    "discarded_tx": Family(
        "vpnrouter_bridge_tx_discarded_messages_total",
        "counter",
        "Messages offered and discarded, by reason.",
        "reason",
    ),
    "in_flight": Family(
        "vpnrouter_bridge_in_flight_messages",
        "gauge",
        "Depth: messages that wait here to be delivered (rx) or sent (tx).",
        "direction",
    ),
    "backlog": Family(
        "vpnrouter_bridge_backlog_messages",
        "gauge",
        "All messages known here to wait for the bridge: in flight, parked, in queues here.",
    ),
    "backlog_age": Family(
        "vpnrouter_bridge_backlog_oldest_message_age_seconds",
        "gauge",
        "How long the oldest of those in queues here has been waiting; no sample for none.",
    ),
    "imbalance": Family(
        "vpnrouter_bridge_imbalance_messages",
        "gauge",
        "Messages not accounted for; anything but 0 is a fault of the router.",
        "direction",
    ),
    "last_message_age": Family(
        "vpnrouter_bridge_last_message_age_seconds",
        "gauge",
        "Time since a message last crossed; no sample when none has.",
        "direction",
    ),
    "guaranteed": Family(
        "vpnrouter_bridge_guaranteed_messages_total",
        "counter",
        "Guaranteed messages that came, repeated ones among them.",
        sparse=True,
    ),
    "guaranteed_taken": Family(
        "vpnrouter_bridge_guaranteed_taken_messages_total",
        "counter",
        "Guaranteed messages that were accepted.",
        sparse=True,
    ),
    "guaranteed_refused": Family(
        "vpnrouter_bridge_guaranteed_refused_messages_total",
        "counter",
        "How often the message VPN refused one, each try counted.",
        sparse=True,
    ),
    "guaranteed_duplicates": Family(
        "vpnrouter_bridge_guaranteed_duplicate_messages_total",
        "counter",
        "Guaranteed messages that had been accepted before.",
        sparse=True,
    ),
    "parked": Family(
        "vpnrouter_bridge_parked_messages",
        "gauge",
        "Messages set aside in the parking lot.",
        sparse=True,
    ),
    "remote_queue": Family(
        "vpnrouter_bridge_remote_queue_messages",
        "gauge",
        "Messages in the remote queue that the bridge takes from, as the remote told last.",
    ),
    "remote_queue_standby": Family(
        "vpnrouter_bridge_remote_queue_standby",
        "gauge",
        "1 while another consumer gets what is in the remote queue.",
        sparse=True,
    ),
    "remotes": Family("vpnrouter_bridge_remotes", "gauge", "Remote message VPNs configured."),
    "remotes_up": Family(
        "vpnrouter_bridge_remotes_up", "gauge", "Remote message VPNs that it is logged in to."
    ),
}

QUEUE_LABELS: Final = ("msg_vpn", "queue")

QUEUE: Final[dict[str, Family]] = {
    "messages": Family(
        "vpnrouter_queue_messages", "gauge", "Messages in the queue, unacknowledged ones included."
    ),
    "size": Family("vpnrouter_queue_bytes", "gauge", "Bytes of these."),
    "max_size": Family("vpnrouter_queue_max_bytes", "gauge", "What these may come to."),
    "unacked": Family(
        "vpnrouter_queue_unacked_messages", "gauge", "Messages that consumers hold unacknowledged."
    ),
    "consumers": Family("vpnrouter_queue_consumers", "gauge", "Consumers that are bound."),
    "oldest_age": Family(
        "vpnrouter_queue_oldest_message_age_seconds",
        "gauge",
        "How long the oldest message has been waiting; 0 when there is none.",
    ),
    "ingress_disabled": Family(
        "vpnrouter_queue_ingress_disabled",
        "gauge",
        "1 while the queue takes no messages.",
        sparse=True,
    ),
    "egress_disabled": Family(
        "vpnrouter_queue_egress_disabled",
        "gauge",
        "1 while consumers get no messages.",
        sparse=True,
    ),
    "spooled": Family(
        "vpnrouter_queue_spooled_messages_total", "counter", "Messages that the queue has taken."
    ),
    "spooled_size": Family("vpnrouter_queue_spooled_bytes_total", "counter", "Bytes of these."),
    "acked": Family(
        "vpnrouter_queue_acked_messages_total", "counter", "Messages that were consumed."
    ),
    "redelivered": Family(
        "vpnrouter_queue_redelivered_messages_total",
        "counter",
        "Deliveries of a message anew.",
        sparse=True,
    ),
    "moved": Family(
        "vpnrouter_queue_moved_messages_total",
        "counter",
        "Messages that went to the dead message queue, or were moved by an operator.",
        sparse=True,
    ),
    "deleted": Family(
        "vpnrouter_queue_deleted_messages_total",
        "counter",
        "Messages deleted by an operator.",
        sparse=True,
    ),
    "discarded": Family(
        "vpnrouter_queue_discarded_messages_total",
        "counter",
        "Messages that were in the queue and are lost, by reason.",
        "reason",
    ),
    "refused": Family(
        "vpnrouter_queue_refused_messages_total",
        "counter",
        "Messages that the queue did not take, by reason.",
        "reason",
    ),
    "imbalance": Family(
        "vpnrouter_queue_imbalance_messages",
        "gauge",
        "Messages not accounted for; anything but 0 is a fault of the router.",
        sparse=True,
    ),
}
