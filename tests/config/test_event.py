import pytest
from pydantic import ValidationError

from vpnrouter.config.event import (
    PercentThreshold,
    QueueEvent,
    RateThreshold,
    SpoolThreshold,
    VpnEvent,
)


def test_defaults_are_the_fields() -> None:
    """Percent and rates as the field has them; nothing is published until it is asked for."""
    event = VpnEvent()
    assert event.connection_count_threshold == PercentThreshold(set_percent=80, clear_percent=60)
    assert event.ingress_msg_rate_threshold == RateThreshold(
        set_value=4_000_000, clear_value=3_000_000
    )
    assert event.large_msg_threshold == 1024
    publish = event.publish
    assert (publish.client_enabled, publish.msg_vpn_enabled) == (False, False)
    assert publish.subscription_mode == "off"


def test_one_mark_keeps_the_other() -> None:
    """What is not written stays at the default of that threshold."""
    queue = QueueEvent.model_validate({"msg_spool_usage_threshold": {"set_percent": 90}})
    assert queue.msg_spool_usage_threshold == SpoolThreshold(set_percent=90, clear_percent=18)


@pytest.mark.parametrize(
    ("model", "written"),
    [
        (PercentThreshold, {"set_percent": 50}),
        (SpoolThreshold, {"set_percent": 10}),
        (RateThreshold, {"set_value": 1}),
    ],
)
def test_marks_in_the_wrong_order(
    model: type[PercentThreshold | RateThreshold], written: dict[str, int]
) -> None:
    """A value that clears above the one that sets would flap."""
    with pytest.raises(ValidationError, match="is above set_"):
        model.model_validate(written)
