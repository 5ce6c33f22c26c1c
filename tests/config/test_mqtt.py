import pytest

from vpnrouter.config.endpoint import Mqtt, Queue, SessionQueue

OURS = {"respect_ttl_enabled"}
"""What the protocol wants and the field leaves off."""


@pytest.mark.parametrize("key", sorted(SessionQueue.model_fields.keys() - OURS))
def test_defaults_are_those_of_a_queue(key: str) -> None:
    """The field gives session queues the names and defaults of queues."""
    assert getattr(Mqtt().session_queue, key) == getattr(Queue(), key)


def test_messages_expire() -> None:
    """MQTT 5 forbids to send an expired message."""
    assert SessionQueue().respect_ttl_enabled
