"""Client usernames and profiles as monitoring shows them: what they allow, and how many use them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClientUsernameStatus:
    """One client username; names of the field's in snake_case, `connection_count` is ours."""

    msg_vpn_name: str
    client_username: str
    enabled: bool = True
    dynamic: bool = False
    """It is not configured: `default` stands for it."""
    client_profile_name: str = ""
    acl_profile_name: str = ""
    guaranteed_endpoint_permission_override_enabled: bool = False
    connection_count: int = 0
    """Connections that are logged in with it, bridges of other routers included."""
    endpoint_count: int = 0
    """Endpoints that its clients made, such as those behind MQTT sessions."""


@dataclass(frozen=True, slots=True)
class ClientProfileStatus:
    """One client profile; names of the field's in snake_case. Sizes in bytes, times in seconds; 0 = no bound."""

    msg_vpn_name: str
    client_profile_name: str
    allow_bridge_connections_enabled: bool = False
    allow_guaranteed_endpoint_create_durability: str = "all"
    allow_guaranteed_endpoint_create_enabled: bool = True
    allow_guaranteed_msg_receive_enabled: bool = True
    allow_guaranteed_msg_send_enabled: bool = True
    allow_shared_subscriptions_enabled: bool = True
    compression_enabled: bool = True
    end_to_end_bridge: str = ""
    max_connection_count_per_client_username: int = 0
    max_egress_flow_count: int = 0
    max_endpoint_count_per_client_username: int = 0
    max_keepalive_timeout: int = 0
    max_mqtt_session_count_per_client_username: int = 0
    max_mqtt_session_expiry_interval: int = 0
    max_outbox_bytes: int = 0
    max_subscription_count: int = 0
    reject_msg_to_sender_on_no_subscription_match_enabled: bool = False
    client_username_count: int = 0
    """Client usernames that have it."""
    connection_count: int = 0
    """Connections of client usernames that have it now; each keeps the profile that it logged in with."""


@dataclass(frozen=True, slots=True)
class AclProfileStatus:
    """One ACL profile; names of the field's in snake_case, actions are `allow` or `disallow`."""

    msg_vpn_name: str
    acl_profile_name: str
    client_connect_default_action: str = "allow"
    publish_topic_default_action: str = "allow"
    subscribe_topic_default_action: str = "allow"
    subscribe_share_name_default_action: str = "allow"
    client_username_count: int = 0
    """Client usernames that have it."""
    connection_count: int = 0
    """Connections of client usernames that have it now."""
