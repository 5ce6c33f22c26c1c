from vpnrouter.config.endpoint import Endpoint, Queue

FIELD = {
    "event": {
        "bind_count_threshold": {"set_percent": 80, "clear_percent": 60},
        "reject_low_priority_msg_limit_threshold": {"set_percent": 80, "clear_percent": 60},
        "msg_spool_usage_threshold": {"set_percent": 25, "clear_percent": 18},
    },
    "max_bind_count": 1000,
    "max_msg_spool_usage": 5000,
    "partition": {"count": 0, "rebalance_delay": 5, "rebalance_max_handoff_time": 3},
    "reject_msg_to_sender_on_discard_behavior": "when-queue-enabled",
    "subscriptions": (),
    "topic_syntax": "smf",
}
"""What a queue has beyond an endpoint, with the field's defaults."""


def test_defaults() -> None:
    """A queue is an endpoint with the field's defaults for a queue."""
    assert Queue().model_dump() == Endpoint().model_dump() | FIELD
