"""vpnrouter.core.guaranteed.dead_letters."""

from vpnrouter.core.guaranteed.dead_letters import addressed, sources
from vpnrouter.wire.mqtt.properties import (
    Properties,
    encode_block,
    selector_properties,
    with_user_properties,
)


def test_properties() -> None:
    """The old reason goes, sources stay once each, everything else is as it was."""
    block = encode_block(
        Properties(
            content_type="text",
            response_topic="r",
            correlation_data=b"dead-letter-",
            payload_format_indicator=1,
            message_expiry_interval=7,
        )
    )
    block = with_user_properties(block, [("k", "v")])
    once = addressed(block, "rejected", "q")
    assert once.startswith(block)
    assert (sources(block), sources(once)) == ([], ["q"])
    again = addressed(once, "max-ttl-expired", "q")
    assert len(again) - len(once) == len("max-ttl-expired") - len("rejected")
    other = addressed(again, "rejected", "p")
    assert sources(other) == ["q", "p"]
    assert other.startswith(block)
    assert selector_properties(b"t", other)["dead-letter-reason"] == "rejected"
