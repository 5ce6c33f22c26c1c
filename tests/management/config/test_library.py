"""A client library that others made for SEMP v2, against a real HTTP server."""

import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import solace_semp_config as semp
from management_routers import serving
from solace_semp_config.rest import ApiException

VPN = "made/here"


@pytest.fixture
def apis(desk: Any) -> Iterator[dict[str, Any]]:
    """Its APIs by name, over a router without users."""
    with serving(desk.application()) as url, warnings.catch_warnings():
        # It is generated code, and its connections are closed when they are collected.
        warnings.simplefilter("ignore")
        settings = semp.Configuration()
        settings.host = f"{url}/SEMP/v2/config"
        client = semp.ApiClient(settings)
        names = ("MsgVpn", "Queue", "Bridge", "AclProfile", "ClientUsername", "ClientProfile")
        yield {name: getattr(semp, f"{name}Api")(client) for name in (*names, "All")}


def test_a_message_vpn(apis: dict[str, Any]) -> None:
    """Create, read, patch, replace, list with paging, delete."""
    api = apis["MsgVpn"]
    made = api.create_msg_vpn(semp.MsgVpn(msg_vpn_name=VPN, enabled=True, max_msg_spool_usage=100))
    assert (made.data.msg_vpn_name, made.data.enabled) == (VPN, True)
    assert api.get_msg_vpn(VPN).data.max_msg_spool_usage == 100
    changed = api.update_msg_vpn(VPN, semp.MsgVpn(max_connection_count=7))
    assert (changed.data.max_connection_count, changed.data.max_msg_spool_usage) == (7, 100)
    replaced = api.replace_msg_vpn(VPN, semp.MsgVpn(enabled=True))
    assert replaced.data.max_msg_spool_usage == 0
    for number in range(5):
        api.create_msg_vpn(semp.MsgVpn(msg_vpn_name=f"more-{number}"))
    names: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = api.get_msg_vpns(count=3, **cursor)
        names += [row.msg_vpn_name for row in page.data]
        if page.meta.paging is None:
            break
        # What it gets is encoded, and it encodes what it sends.
        following = page.meta.paging.next_page_uri
        cursor = {"cursor": dict(semp_query(following))["cursor"]}
    assert names == sorted(["blue", "green", VPN, *(f"more-{number}" for number in range(5))])
    only = api.get_msg_vpns(where=["enabled==true", "msgVpnName==made*"], select=["msgVpnName"])
    assert [row.msg_vpn_name for row in only.data] == [VPN]
    api.delete_msg_vpn(VPN)
    with pytest.raises(ApiException) as caught:
        api.get_msg_vpn(VPN)
    assert caught.value.status == 400
    assert '"NOT_FOUND"' in caught.value.body


def semp_query(uri: str) -> list[tuple[str, str]]:
    """The query of a URI, decoded."""
    from urllib.parse import parse_qsl, urlsplit

    return parse_qsl(urlsplit(uri).query)


def test_a_queue_and_its_subscriptions(apis: dict[str, Any]) -> None:
    """Names and topics with slashes go through its encoding and ours."""
    api = apis["Queue"]
    queue = semp.MsgVpnQueue(queue_name="q/1,2", permission="consume", ingress_enabled=True)
    assert api.create_msg_vpn_queue("blue", queue).data.egress_enabled is False
    changed = api.update_msg_vpn_queue("blue", "q/1,2", semp.MsgVpnQueue(egress_enabled=True))
    assert (changed.data.egress_enabled, changed.data.permission) == (True, "consume")
    topics = [f"level/{number}/>" for number in range(4)]
    for topic in topics:
        body = semp.MsgVpnQueueSubscription(subscription_topic=topic)
        made = api.create_msg_vpn_queue_subscription("blue", "q/1,2", body)
        assert made.data.subscription_topic == topic
    page = api.get_msg_vpn_queue_subscriptions("blue", "q/1,2", count=3)
    assert (len(page.data), page.meta.count) == (3, 4)
    one = api.get_msg_vpn_queue_subscription("blue", "q/1,2", topics[1])
    assert one.data.queue_name == "q/1,2"
    api.delete_msg_vpn_queue_subscription("blue", "q/1,2", topics[1])
    rest = api.get_msg_vpn_queue_subscriptions("blue", "q/1,2").data
    assert [row.subscription_topic for row in rest] == [topics[0], *topics[2:]]
    api.delete_msg_vpn_queue("blue", "q/1,2")
    with pytest.raises(ApiException):
        api.get_msg_vpn_queue("blue", "q/1,2")


def test_a_bridge_in_everyones_order(apis: dict[str, Any], editor: Any) -> None:
    """Bridge, remote message VPN, remote subscription; then both are enabled, and all is deleted."""
    api = apis["Bridge"]
    bridge = semp.MsgVpnBridge(
        bridge_name="b",
        bridge_virtual_router="auto",
        enabled=False,
        max_ttl=8,
        remote_authentication_basic_client_username="u",
        remote_authentication_basic_password="pass-of-u",
        remote_authentication_scheme="basic",
        remote_connection_retry_count=0,
        remote_deliver_to_one_priority="p1",
        tls_cipher_suite_list="default",
    )
    made = api.create_msg_vpn_bridge("blue", bridge)
    assert made.data.remote_authentication_basic_password is None
    remote = semp.MsgVpnBridgeRemoteMsgVpn(
        remote_msg_vpn_name="red",
        remote_msg_vpn_location="127.0.0.1:55556",
        remote_msg_vpn_interface="",
        enabled=False,
        queue_binding="q",
        unidirectional_client_profile="#client-profile",
    )
    place = ("blue", "b", "auto")
    key = ("red", "127.0.0.1:55556", "")
    made = api.create_msg_vpn_bridge_remote_msg_vpn(*place, remote)
    assert made.data.remote_msg_vpn_interface == ""
    body = semp.MsgVpnBridgeRemoteSubscription(
        remote_subscription_topic="a/b/>", deliver_always_enabled=True
    )
    api.create_msg_vpn_bridge_remote_subscription(*place, body)
    on = semp.MsgVpnBridgeRemoteMsgVpn(enabled=True)
    assert api.update_msg_vpn_bridge_remote_msg_vpn(*place, *key, on).data.enabled
    assert api.update_msg_vpn_bridge(*place, semp.MsgVpnBridge(enabled=True)).data.enabled
    assert api.get_msg_vpn_bridge_remote_msg_vpn(*place, *key).data.queue_binding == "q"
    subscription = api.get_msg_vpn_bridge_remote_subscription(*place, "a/b/>")
    assert subscription.data.deliver_always_enabled is True
    assert len(api.get_msg_vpn_bridges("blue", where=["enabled==true"]).data) == 2
    written = editor.config().msg_vpns["blue"].bridges["b"]
    assert written.remote_authentication.basic.password.reveal() == "pass-of-u"
    name = semp.MsgVpnBridgeTlsTrustedCommonName(tls_trusted_common_name="far")
    api.create_msg_vpn_bridge_tls_trusted_common_name(*place, name)
    server_cert = editor.config().msg_vpns["blue"].bridging.tls_server_cert
    assert server_cert.trusted_common_names == ("far",)
    api.delete_msg_vpn_bridge_tls_trusted_common_name(*place, "far")
    api.delete_msg_vpn_bridge_remote_subscription(*place, "a/b/>")
    api.delete_msg_vpn_bridge_remote_msg_vpn(*place, *key)
    api.delete_msg_vpn_bridge(*place)
    assert "b" not in editor.config().msg_vpns["blue"].bridges


def test_who_may_do_what(apis: dict[str, Any], editor: Any) -> None:
    """Client profile, ACL profile with exceptions of each list, client username."""
    profile = semp.MsgVpnClientProfile(
        client_profile_name="p", allow_guaranteed_msg_send_enabled=True
    )
    made = apis["ClientProfile"].create_msg_vpn_client_profile("blue", profile)
    assert made.data.allow_guaranteed_msg_receive_enabled is False
    api = apis["AclProfile"]
    made = api.create_msg_vpn_acl_profile(
        "blue", semp.MsgVpnAclProfile(acl_profile_name="acl", client_connect_default_action="allow")
    )
    assert made.data.publish_topic_default_action == "disallow"
    api.create_msg_vpn_acl_profile_client_connect_exception(
        "blue",
        "acl",
        semp.MsgVpnAclProfileClientConnectException(
            client_connect_exception_address="192.0.2.0/24"
        ),
    )
    api.create_msg_vpn_acl_profile_publish_topic_exception(
        "blue",
        "acl",
        semp.MsgVpnAclProfilePublishTopicException(
            publish_topic_exception="a,b/>", publish_topic_exception_syntax="smf"
        ),
    )
    api.create_msg_vpn_acl_profile_subscribe_topic_exception(
        "blue",
        "acl",
        semp.MsgVpnAclProfileSubscribeTopicException(
            subscribe_topic_exception="a/#", subscribe_topic_exception_syntax="mqtt"
        ),
    )
    found = api.get_msg_vpn_acl_profile_publish_topic_exception("blue", "acl", "smf", "a,b/>")
    assert found.data.publish_topic_exception == "a,b/>"
    older = api.get_msg_vpn_acl_profile_publish_exceptions("blue", "acl")
    assert older.data[0].publish_exception_topic == "a,b/>"
    with pytest.raises(ApiException) as caught:
        api.create_msg_vpn_acl_profile_subscribe_topic_exception(
            "blue",
            "acl",
            semp.MsgVpnAclProfileSubscribeTopicException(
                subscribe_topic_exception="b/>", subscribe_topic_exception_syntax="smf"
            ),
        )
    assert "syntax mqtt" in caught.value.body
    user = semp.MsgVpnClientUsername(
        client_username="u",
        enabled=True,
        password="pass-of-u",
        acl_profile_name="acl",
        client_profile_name="p",
    )
    made = apis["ClientUsername"].create_msg_vpn_client_username("blue", user)
    assert (made.data.acl_profile_name, made.data.password) == ("acl", None)
    written = editor.config().msg_vpns["blue"]
    assert written.client_usernames["u"].password.verify(b"pass-of-u")
    acl = written.acl_profiles["acl"]
    assert acl.client_connect.exceptions == ("192.0.2.0/24",)
    assert acl.publish_topic.exceptions == ("a,b/>",)
    assert (acl.subscribe_topic.exceptions, acl.subscribe_topic.topic_syntax) == (("a/#",), "mqtt")
    with pytest.raises(ApiException) as caught:
        api.delete_msg_vpn_acl_profile("blue", "acl")
    assert "CONFIGDB_OBJECT_DEPENDENCY" in caught.value.body


def test_what_it_asks_first(apis: dict[str, Any]) -> None:
    """The versions and the user."""
    assert apis["All"].get_about_api().data.platform == "vpnrouter"
    assert apis["All"].get_about_user().data.global_access_level == "admin"
    assert apis["All"].get_broker().data.guaranteed_msging_enabled is True
