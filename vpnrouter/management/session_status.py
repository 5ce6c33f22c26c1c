"""An MQTT session as monitoring shows it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MqttSessionStatus:
    """One MQTT session; names of the field's sessions in snake_case. Counts are those of the queue behind its
    subscriptions of QoS 1 and 2, 0 while it has none, since the router started or they were cleared.
    """

    msg_vpn_name: str
    mqtt_session_client_id: str
    mqtt_session_virtual_router: str = "auto"
    """The field's sessions belong to one router of a redundant pair; ours to the router they are on."""
    enabled: bool = True
    client_name: str = ""
    connected: bool = True
    clean: bool = True
    """It ends with its connection."""
    durable: bool = False
    """It outlives the router."""
    session_expiry_interval: int = 0
    """Seconds that it waits for its client; 4294967295 for ever."""
    owner: str = ""
    """The client username that it belongs to, "" where that is not known any more."""
    queue_name: str = ""
    """The queue of its subscriptions of QoS 1 and 2, "" while it has none."""
    will: bool = False
    will_topic: str = ""
    subscription_count: int = 0
    msg_count: int = 0
    """Messages that are kept for the client now."""
    tx_unacked_msg_count: int = 0
    """Those among them that were sent and not acknowledged."""
    spooled_msg_count: int = 0
    acked_msg_count: int = 0
    redelivered_msg_count: int = 0
    discarded_msg_count: int = 0
