from collections.abc import Callable

import pytest

Warnings = Callable[[str], list[str]]

BRIDGE = """
msg_vpns:
  blue:
    bridges:
      b:
        remote_authentication: {basic: {client_username: u}}
"""
REMOTE = "remote_msg_vpns: [{name: red, location: h}]"
PARKS_NOTHING = f"""remote_subscriptions: [a]
        on_reject: park
        max_parked_msg_spool_usage: 0
        {REMOTE}"""


@pytest.mark.parametrize(
    ("rest", "part"),
    [
        (
            "remote_msg_vpns: [{name: red, location: h}]",
            "attracts nothing: it has neither remote_subscriptions nor a queue_binding",
        ),
        (
            f"remote_subscriptions: [a]\n        {REMOTE[:-2]}, enabled: false}}]",
            "remote_msg_vpns: none is enabled, so the bridge stays down",
        ),
        (
            f"remote_subscriptions: [a]\n        max_parked_msg_spool_usage: 7\n        {REMOTE}",
            "max_parked_msg_spool_usage: has no effect without on_reject: park",
        ),
        (
            PARKS_NOTHING,
            "max_parked_msg_spool_usage: leaves no room to set anything aside",
        ),
        (
            "remote_subscriptions: [a, {topic: a}]\n        " + REMOTE,
            "remote_subscriptions[1].topic: the same filter stands at",
        ),
        (
            "remote_subscriptions: [a/>, a/b]\n        " + REMOTE,
            "remote_subscriptions[1]: adds nothing: a/> at",
        ),
    ],
)
def test_doubtful(warnings_of: Warnings, rest: str, part: str) -> None:
    """What can hardly be meant is told and accepted."""
    assert [one for one in warnings_of(f"{BRIDGE}        {rest}") if part in one]


def test_two_bridges_from_one_place(warnings_of: Warnings) -> None:
    """Two bridges from one remote message VPN would each bring the same messages."""
    bridge = (
        "{remote_authentication: {basic: {client_username: u}}, remote_subscriptions: [a],"
        " remote_msg_vpns: [{name: red, location: h}]}"
    )
    text = f"msg_vpns:\n  blue:\n    bridges:\n      b: {bridge}\n      c: {bridge}"
    assert [one for one in warnings_of(text) if "takes from message VPN red there as well" in one]


def test_covering_needs_the_same_delivery(warnings_of: Warnings) -> None:
    """A filter for one receiver does not make one for all receivers needless."""
    rest = (
        "remote_subscriptions: [a/>, {topic: a/b, deliver_always_enabled: true}]\n"
        "        remote_msg_vpns: [{name: red, location: h}]"
    )
    assert not [one for one in warnings_of(f"{BRIDGE}        {rest}") if "adds nothing" in one]


@pytest.mark.parametrize(
    "remote",
    [
        "{name: blue, router: other, location: h}",
        "{name: blue, location: h}",
        "{name: red, router: here, location: h}",
    ],
)
def test_not_itself(warnings_of: Warnings, remote: str) -> None:
    """Another message VPN, or one of the same name on another router, is a good source."""
    warnings_of(f"{BRIDGE}        remote_subscriptions: [a]\n        remote_msg_vpns: [{remote}]")


def test_client_username_of_the_remote_is_enough(warnings_of: Warnings) -> None:
    """A bridge whose every remote names its client username needs none of its own."""
    warnings_of(
        "msg_vpns: {blue: {bridges: {b: {remote_subscriptions: [a],"
        " remote_msg_vpns: [{name: red, location: h, client_username: u}]}}}}"
    )
