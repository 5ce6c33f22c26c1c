import pytest

from vpnrouter.config.msg_vpn import MsgVpn


@pytest.mark.parametrize(
    "written",
    [None, {}, {"client_profiles": None, "acl_profiles": None, "client_usernames": None}],
)
def test_built_in_objects(written: object) -> None:
    """Client profile, ACL profile and client username `default` exist without being written."""
    vpn = MsgVpn.model_validate(written)
    assert list(vpn.client_profiles) == ["default"]
    assert list(vpn.acl_profiles) == ["default"]
    assert list(vpn.client_usernames) == ["default"]
    assert vpn.acl_profiles["default"].publish_topic.default_action == "allow"
    assert not vpn.client_profiles["default"].allow_bridge_connections_enabled
    assert vpn.client_usernames["default"].password is None


def test_built_in_objects_beside_written_ones() -> None:
    """Writing another profile leaves the built-in one; writing `default` changes it."""
    vpn = MsgVpn.model_validate(
        {
            "acl_profiles": {"closed": {}},
            "client_profiles": {"default": {"max_outbox_bytes": 65_536}},
            "client_usernames": {"default": {"enabled": False}},
        }
    )
    assert vpn.acl_profiles["closed"].subscribe_topic.default_action == "disallow"
    assert vpn.acl_profiles["default"].subscribe_topic.default_action == "allow"
    assert vpn.client_profiles["default"].max_outbox_bytes == 65_536
    assert not vpn.client_usernames["default"].enabled
