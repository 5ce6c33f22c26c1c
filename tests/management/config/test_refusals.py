"""Tests of how problems of a document are told in attributes."""

from vpnrouter.errors import ConfigError
from vpnrouter.management.config.editing import MOST_TOLD, semp_message
from vpnrouter.management.config.kinds import QUEUE, QUEUE_SUBSCRIPTION

PLACE = ("msg_vpns", "blue", "queues", "q")
AT = "/a dir/r.yaml:3:7: "


def test_the_place_goes_and_keys_become_attributes() -> None:
    """Of the object itself, of its key and of others."""
    error = ConfigError(
        [
            f"{AT}msg_vpns.blue.queues.q.redelivery.delay: initial_interval 9 is above max_interval 3",
            f"{AT}msg_vpns.blue.queues.q.max_ttl: must be from 0 to 9, not 10",
            f"{AT}msg_vpns.blue.queues: a queue name must not contain *",
            f"{AT}msg_vpns.blue.queues.q: something",
            f"{AT}msg_vpns.blue.queues.other.max_ttl: must be less",
        ]
    )
    assert semp_message(error, QUEUE, PLACE).split("; ") == [
        "redeliveryDelay: redeliveryDelayInitialInterval 9 is above redeliveryDelayMaxInterval 3",
        "maxTtl: must be from 0 to 9, not 10",
        "queueName: a queue name must not contain *",
        "queue: something",
        "msg_vpns.blue.queues.other.max_ttl: must be less",
    ]


def test_an_item_of_a_list_is_its_key() -> None:
    """It has no other attribute."""
    error = ConfigError([f"{AT}msg_vpns.blue.queues.q.subscriptions[2]: no filter"])
    place = (*PLACE, "subscriptions", 2)
    assert semp_message(error, QUEUE_SUBSCRIPTION, place) == "subscriptionTopic: no filter"


def test_what_is_elsewhere_is_counted_for_a_user_of_one_message_vpn() -> None:
    """Neither another message VPN nor what only begins alike is told."""
    error = ConfigError(
        [
            f"{AT}msg_vpns.red.queues.secret: wrong",
            f"{AT}msg_vpns.blue-too.queues.secret: wrong",
            f"{AT}msg_vpns.blue.queues.q.max_ttl: wrong",
        ]
    )
    assert semp_message(error, QUEUE, PLACE, "blue") == (
        "maxTtl: wrong; problems in other parts of the configuration: 2"
    )


def test_many_problems_are_counted() -> None:
    """An answer stays short."""
    error = ConfigError([f"{AT}msg_vpns.blue.queues.q{number}: wrong" for number in range(99)])
    parts = semp_message(error, QUEUE, PLACE).split("; ")
    assert len(parts) == MOST_TOLD + 1
    assert parts[-1] == "and 89 more"
