"""Tests of how problems of a document are told in attributes."""

from vpnrouter.errors import ConfigError
from vpnrouter.management.config.editing import MOST_TOLD, semp_message
from vpnrouter.management.config.kinds import TYPES
from vpnrouter.settings import kinds

PLACE = ("msg_vpns", "blue", "queues", "q")
AT = "/a dir/r.yaml:3:7: "


def test_what_is_elsewhere_is_counted_for_a_user_of_one_message_vpn() -> None:
    """Neither another message VPN nor what only begins alike is told."""
    error = ConfigError(
        [
            f"{AT}msg_vpns.red.queues.secret: wrong",
            f"{AT}msg_vpns.blue-too.queues.secret: wrong",
            f"{AT}msg_vpns.blue.queues.q.max_ttl: wrong",
        ]
    )
    assert semp_message(error, TYPES[kinds.QUEUE], PLACE, "blue") == (
        "maxTtl: wrong; problems in other parts of the configuration: 2"
    )


def test_many_problems_are_counted() -> None:
    """An answer stays short."""
    error = ConfigError([f"{AT}msg_vpns.blue.queues.q{number}: wrong" for number in range(99)])
    parts = semp_message(error, TYPES[kinds.QUEUE], PLACE).split("; ")
    assert len(parts) == MOST_TOLD + 1
    assert parts[-1] == "and 89 more"
