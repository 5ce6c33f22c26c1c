from collections.abc import Callable

import pytest

Warnings = Callable[[str], list[str]]


def test_no_listener(warnings_of: Warnings) -> None:
    """A router that nobody can connect to is doubtful."""
    assert "1:1 listeners: none, so nobody can connect to this router" in warnings_of("")
    assert any("so nobody can connect" in one for one in warnings_of("listeners: []"))


def test_message_vpn_with_an_at_sign(warnings_of: Warnings) -> None:
    """user@vpn cannot name a message VPN with @ in it, which is told where it matters."""
    vpns = "msg_vpns: {a@b: }\n"
    open_to_all = vpns + 'listeners: [{protocol: mqtt, bind: "h:1"}]'
    assert any("user@vpn cannot name" in one for one in warnings_of(open_to_all))
    of_one = vpns + 'listeners: [{protocol: mqtt, bind: "h:1", msg_vpn: a@b}]'
    assert not any("user@vpn" in one for one in warnings_of(of_one))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("127.0.0.1:1883", "127.0.0.2:1883"),
        ("127.0.0.1:1883", "127.0.0.1:1884"),
        ("127.0.0.1:0", "127.0.0.1:0"),
        ("0.0.0.0:1883", "[::]:1883"),
        ("[::1]:1883", "127.0.0.1:1883"),
    ],
)
def test_addresses_that_live_together(warnings_of: Warnings, first: str, second: str) -> None:
    """Different addresses, ports or families, and ports that the system chooses, do not collide."""
    text = f'listeners: [{{protocol: mqtt, bind: "{first}"}}, {{protocol: link, bind: "{second}"}}]'
    warnings_of(text)


def test_disabled_listener_binds_nothing(warnings_of: Warnings) -> None:
    """A disabled listener may have another's address."""
    warnings_of(
        "listeners:\n"
        '  - {protocol: mqtt, bind: "127.0.0.1:1883"}\n'
        '  - {protocol: mqtt, bind: "127.0.0.1:1883", enabled: false}'
    )


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "localhost", "[::1]"])
def test_management_on_loopback_needs_no_users(warnings_of: Warnings, host: str) -> None:
    """Without users the API may be served on this machine."""
    warnings_of(f'listeners: [{{protocol: http, bind: "{host}:8080"}}]')


def test_management_in_the_open_with_users(warnings_of: Warnings) -> None:
    """With users the API may be served anywhere."""
    warnings_of(
        'listeners: [{protocol: http, bind: "0.0.0.0:8080"}]\n'
        "management: {users: {ann: {password: pw, role: admin}}}"
    )
