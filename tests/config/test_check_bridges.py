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


def test_one_enabled_remote_is_enough(warnings_of: Warnings) -> None:
    """The others may wait for their day."""
    remotes = (
        "[{name: red, location: h, client_username: u},"
        " {name: red, location: i, client_username: u, enabled: false}]"
    )
    rest = f"remote_subscriptions: [a]\n        remote_msg_vpns: {remotes}"
    assert not [one for one in warnings_of(f"{BRIDGE}        {rest}") if "none is enabled" in one]


def test_client_username_of_the_remote_is_enough(warnings_of: Warnings) -> None:
    """A bridge whose every remote names its client username needs none of its own."""
    warnings_of(
        "msg_vpns: {blue: {bridges: {b: {remote_subscriptions: [a],"
        " remote_msg_vpns: [{name: red, location: h, client_username: u}]}}}}"
    )


@pytest.mark.parametrize(
    ("bridge", "told"),
    [
        ("enabled: false", []),
        ("enabled: false, remote_msg_vpns: []", []),
        ("{}", ["No remote message-vpns configured (remote_msg_vpns), so the bridge stays down"]),
        (
            "remote_msg_vpns: []",
            ["No remote message-vpns configured (remote_msg_vpns), so the bridge stays down"],
        ),
    ],
)
def test_a_bridge_is_made_before_its_remotes(
    warnings_of: Warnings, bridge: str, told: list[str]
) -> None:
    """Without a remote message VPN it is accepted, and where it is enabled that is told."""
    written = bridge if bridge == "{}" else f"{{{bridge}}}"
    found = warnings_of(f"msg_vpns: {{blue: {{bridges: {{b: {written}}}}}}}\n")
    assert [line for line in found if "No remote" in line] == [
        f"2:29 msg_vpns.blue.bridges.b: {line}" for line in told
    ]


@pytest.mark.parametrize(
    "bridge",
    [
        "enabled: false, remote_msg_vpns: [{name: red, location: h}]",
        "remote_msg_vpns: [{name: red, location: h, enabled: false}]",
    ],
)
def test_a_client_username_is_needed_where_the_bridge_would_log_in(
    warnings_of: Warnings, bridge: str
) -> None:
    """A bridge or remote message VPN that is not enabled may be without one yet."""
    found = warnings_of(f"msg_vpns: {{blue: {{bridges: {{b: {{{bridge}}}}}}}}}\n")
    assert not [line for line in found if "Client Username" in line]
