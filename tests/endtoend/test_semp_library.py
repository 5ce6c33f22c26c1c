"""A client library that others made for SEMP v2 sets up a bridge between two routers that run."""

import warnings
from typing import Any

import solace_semp_config as semp

EDGE = """
listeners:
  - {protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}
  - {protocol: link, bind: "127.0.0.1:0"}
  - {protocol: http, bind: "127.0.0.1:0"}
msg_vpns:
  blue: {authentication: {basic: {enabled: false}}}
"""

CORE = """
listeners:
  - {protocol: mqtt, bind: "127.0.0.1:0"}
  - {protocol: http, bind: "127.0.0.1:0"}
"""


def client_of(router: Any) -> Any:
    """All its APIs of a running router."""
    settings = semp.Configuration()
    settings.host = f"http://127.0.0.1:{router.port('http')}/SEMP/v2/config"
    return semp.AllApi(semp.ApiClient(settings))


def test_a_bridge_that_a_client_library_made(start: Any, paho: Any) -> None:
    """In everyone's order of creation; messages cross, and all is there after a restart."""
    edge, core = start(EDGE, "edge"), start(CORE, "core")
    with warnings.catch_warnings():
        # It is generated code, and its connections are closed when they are collected.
        warnings.simplefilter("ignore")
        set_up(client_of(edge), client_of(core), f"127.0.0.1:{edge.port('link')}")
    core.bridges_up()
    subscriber = paho(core.port("mqtt"), "s", login=("ann@yellow", "pass-of-ann"))
    publisher = paho(edge.port("mqtt"), "p")
    subscriber.subscribe("#")
    publisher.publish("direct/1", b"1")
    assert subscriber.next() == ("direct/1", b"1")
    assert core.stop() == 0
    assert "pass-of" not in "".join(core.err + core.out)
    core = start(CORE, "core")
    core.bridges_up()
    assert core.stop() == 0
    assert edge.stop() == 0


def set_up(edge: Any, core: Any, link: str) -> None:
    """The remote router's part first, then the bridge, disabled until all of it is there."""
    profile = semp.MsgVpnClientProfile(
        client_profile_name="bridging",
        allow_bridge_connections_enabled=True,
        allow_guaranteed_msg_receive_enabled=True,
    )
    edge.create_msg_vpn_client_profile("blue", profile)
    login = semp.MsgVpnClientUsername(
        client_username="core",
        password="pass-of-core",
        client_profile_name="bridging",
        enabled=True,
    )
    edge.create_msg_vpn_client_username("blue", login)
    core.create_msg_vpn(semp.MsgVpn(msg_vpn_name="yellow", enabled=True))
    ann = semp.MsgVpnClientUsername(
        client_username="ann",
        password="pass-of-ann",
        enabled=True,
    )
    core.create_msg_vpn_client_username("yellow", ann)
    bridge = semp.MsgVpnBridge(
        bridge_name="b",
        bridge_virtual_router="auto",
        remote_authentication_basic_client_username="core",
        remote_authentication_basic_password="pass-of-core",
    )
    core.create_msg_vpn_bridge("yellow", bridge)
    remote = semp.MsgVpnBridgeRemoteMsgVpn(
        remote_msg_vpn_name="blue", remote_msg_vpn_location=link, remote_msg_vpn_interface=""
    )
    place = ("yellow", "b", "auto")
    core.create_msg_vpn_bridge_remote_msg_vpn(*place, remote)
    topic = semp.MsgVpnBridgeRemoteSubscription(
        remote_subscription_topic="direct/>", deliver_always_enabled=False
    )
    core.create_msg_vpn_bridge_remote_subscription(*place, topic)
    on = semp.MsgVpnBridgeRemoteMsgVpn(enabled=True)
    core.update_msg_vpn_bridge_remote_msg_vpn(*place, "blue", link, "", on)
    core.update_msg_vpn_bridge(*place, semp.MsgVpnBridge(enabled=True))
