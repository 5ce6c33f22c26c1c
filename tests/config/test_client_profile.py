from vpnrouter import limits
from vpnrouter.config.access import ClientProfile
from vpnrouter.config.shape import bounds_of


def test_what_a_written_profile_may() -> None:
    """A written profile may use guaranteed messages and shared subscriptions, not open bridges."""
    profile = ClientProfile()
    assert profile.allow_guaranteed_msg_send_enabled
    assert profile.allow_guaranteed_msg_receive_enabled
    assert profile.allow_guaranteed_endpoint_create_enabled
    assert profile.allow_shared_subscriptions_enabled
    assert not profile.allow_bridge_connections_enabled


def test_the_field_s_defaults() -> None:
    """Where the field has a default that is not "off", ours is the same."""
    profile = ClientProfile()
    assert profile.allow_guaranteed_endpoint_create_durability == "all"
    assert profile.compression_enabled
    assert not profile.reject_msg_to_sender_on_no_subscription_match_enabled
    assert (profile.eliding.enabled, profile.eliding.delay, profile.eliding.max_topic_count) == (
        False,
        0,
        256,
    )
    assert profile.max_egress_flow_count == 1000
    assert profile.max_endpoint_count_per_client_username == 1000
    assert profile.max_ingress_flow_count == 1000


def test_outbox() -> None:
    """The outbox of a slow client is bounded below and above."""
    assert ClientProfile().max_outbox_bytes == limits.OUTBOX_BYTES
    assert bounds_of(ClientProfile.model_fields["max_outbox_bytes"]) == (
        limits.OUTBOX_BYTES_LEAST,
        limits.OUTBOX_BYTES_MOST,
    )
