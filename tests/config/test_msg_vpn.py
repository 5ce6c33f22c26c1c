import pytest
from pydantic import ValidationError

from vpnrouter import limits
from vpnrouter.config.msg_vpn import ClientCertAuthentication, MsgVpn, TlsServerCert


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


def test_defaults() -> None:
    """A message VPN is on and asks for passwords; its bounds are the field's or the router's."""
    vpn = MsgVpn()
    assert vpn.enabled
    assert vpn.authentication.basic.enabled
    assert not vpn.authentication.client_cert.enabled
    assert vpn.max_subscription_count == 500_000
    assert vpn.max_connection_count == 200_000
    assert (vpn.max_endpoint_count, vpn.max_egress_flow_count, vpn.max_ingress_flow_count) == (
        1000,
        1000,
        1000,
    )
    assert (vpn.max_topic_bytes, vpn.max_topic_levels) == (limits.TOPIC_BYTES, limits.TOPIC_LEVELS)
    certificate = vpn.bridging.tls_server_cert
    assert certificate.validate_name_enabled
    assert certificate.validate_date_enabled
    assert certificate.max_chain_depth == 3
    assert (certificate.ca, certificate.crl, certificate.trusted_common_names) == (None, None, ())


@pytest.mark.parametrize("length", [0, 1, limits.COMMON_NAME_LENGTH, limits.COMMON_NAME_LENGTH + 1])
def test_trusted_common_names(length: int) -> None:
    """A trusted common name has 1 to COMMON_NAME_LENGTH characters."""
    written = {"trusted_common_names": ["x" * length]}
    if 1 <= length <= limits.COMMON_NAME_LENGTH:
        assert TlsServerCert.model_validate(written).trusted_common_names == ("x" * length,)
        return
    with pytest.raises(ValidationError):
        TlsServerCert.model_validate(written)


@pytest.mark.parametrize("source", ["common-name", "certificate-thumbprint", "common-name-last"])
def test_username_sources(source: str) -> None:
    """What of a certificate names the client username is one of three."""
    written = {"username_source": source}
    if source == "common-name-last":
        with pytest.raises(ValidationError):
            ClientCertAuthentication.model_validate(written)
        return
    assert ClientCertAuthentication.model_validate(written).username_source == source


@pytest.mark.parametrize(
    ("key", "most"),
    [
        ("max_connection_count", limits.VPN_CONNECTIONS),
        ("max_msg_size", limits.MQTT_PACKET_BYTES),
        ("max_retained_msg_count", limits.RETAINED_MESSAGES),
        ("max_topic_bytes", limits.TOPIC_BYTES),
        ("max_topic_levels", limits.TOPIC_LEVELS),
    ],
)
def test_bounds(key: str, most: int) -> None:
    """A message VPN may have as much as the router can, and not one more."""
    assert getattr(MsgVpn.model_validate({key: most}), key) == most
    with pytest.raises(ValidationError, match="less than or equal"):
        MsgVpn.model_validate({key: most + 1})
