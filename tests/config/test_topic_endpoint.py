from vpnrouter.config.endpoint import Endpoint, TopicEndpoint

FIELD = {
    "event": {
        "bind_count_threshold": {"set_percent": 80, "clear_percent": 60},
        "reject_low_priority_msg_limit_threshold": {"set_percent": 80, "clear_percent": 60},
        "spool_usage_threshold": {"set_percent": 25, "clear_percent": 18},
    },
    "max_bind_count": 1,
    "max_spool_usage": 5000,
    "reject_msg_to_sender_on_discard_behavior": "never",
}
"""What a topic endpoint has beyond an endpoint, with the field's defaults."""


def test_defaults() -> None:
    """A topic endpoint is an endpoint for one consumer that rejects nothing to the sender."""
    assert TopicEndpoint().model_dump() == Endpoint().model_dump() | FIELD
