from vpnrouter.config.endpoint import Endpoint

FIELD = {
    "access_type": "exclusive",
    "dead_msg_queue": "#DEAD_MSG_QUEUE",
    "delivery_count_enabled": False,
    "delivery_delay": 0,
    "max_delivered_unacked_msgs_per_flow": 10_000,
    "max_msg_size": 10_000_000,
    "max_redelivery_count": 0,
    "max_spooled_msg_count": 0,
    "max_ttl": 0,
    "owner": None,
    "redelivery": {
        "enabled": True,
        "delay": {
            "enabled": False,
            "initial_interval": 1000,
            "max_interval": 64_000,
            "multiplier": 200,
        },
    },
    "reject_low_priority_msg": {"enabled": False, "limit": 0},
    "respect_dmq_eligible_enabled": False,
    "respect_msg_priority_enabled": False,
    "respect_ttl_enabled": False,
}
"""The field's defaults."""

ON = {"egress_enabled": True, "ingress_enabled": True, "permission": "consume"}
"""Off in the field, on here."""


def test_defaults() -> None:
    """Every default is the field's, but what is written down is on."""
    assert Endpoint().model_dump() == FIELD | ON
