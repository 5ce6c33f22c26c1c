"""Tests of what a kind tells of itself."""

from vpnrouter.management.config.kinds import (
    BRIDGE,
    MSG_VPN,
    REMOTE_MSG_VPN,
    TRUSTED_COMMON_NAME,
)

KEYS = (("blue",), ("b", "auto"), ("red", "h:1", ""))


def test_a_chain_of_objects() -> None:
    """Outermost first, in keys as in words."""
    assert REMOTE_MSG_VPN.chain == (MSG_VPN, BRIDGE, REMOTE_MSG_VPN)
    assert REMOTE_MSG_VPN.told(KEYS) == "remoteMsgVpn red,h:1, in bridge b,auto in msgVpn blue"
    assert REMOTE_MSG_VPN.known_by(KEYS) == {
        "msgVpnName": "blue",
        "bridgeName": "b",
        "bridgeVirtualRouter": "auto",
        "remoteMsgVpnName": "red",
        "remoteMsgVpnLocation": "h:1",
        "remoteMsgVpnInterface": "",
    }


def test_what_is_read_and_what_holds_it() -> None:
    """Secrets are not; a trusted common name is held by the message VPN."""
    assert "bridgeName" in REMOTE_MSG_VPN.readable
    assert "password" not in REMOTE_MSG_VPN.readable
    assert "password" in {each.name for each in REMOTE_MSG_VPN.values}
    assert REMOTE_MSG_VPN.holder is BRIDGE
    assert TRUSTED_COMMON_NAME.holder is MSG_VPN
    assert MSG_VPN.holder is None
