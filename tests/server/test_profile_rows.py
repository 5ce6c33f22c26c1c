"""vpnrouter.management.status.profiles: who clients may be, and how many are."""

from typing import Any

import pytest

from vpnrouter.core.router import Router
from vpnrouter.core.vpn import MessageVpn
from vpnrouter.management.status.profiles import Profiles
from vpnrouter.server.apply.assemble import build_router

WRITTEN = """
msg_vpns:
  red: {}
  blue:
    authentication: {basic: {enabled: false}}
    client_profiles:
      apps: {max_subscription_count: 7, allow_bridge_connections_enabled: true}
    acl_profiles:
      strict: {publish_topic: {default_action: disallow}, client_connect: {default_action: allow}}
    client_usernames:
      ann: {password: a, client_profile: apps, acl_profile: strict}
      bob: {password: b, client_profile: apps, enabled: false}
      default: {acl_profile: strict}
"""


@pytest.fixture
def router(configured: Any) -> Router:
    """A router whose message VPN blue has profiles; a client is connected as ann, two as somebody else."""
    router = build_router(configured(WRITTEN), 7, bytes(16))
    vpn = router.vpns["blue"]
    for name in ("ann", "carl", "carl"):
        vpn.occupy(name)
    vpn.endpoints_of["carl"] = 4
    return router


@pytest.fixture
def clients(router: Router) -> Profiles:
    """What management asks."""
    return Profiles(router)


def test_usernames(router: Router, clients: Profiles) -> None:
    """Those that are configured and those that came without; these have what `default` has."""
    assert clients.username_names("blue") == ["ann", "bob", "carl", "default"]
    assert clients.username_names("none") == ()
    rows = [clients.username("blue", name) for name in clients.username_names("blue")]
    assert [
        (row.enabled, row.dynamic, row.client_profile_name, row.acl_profile_name)
        for row in rows
        if row is not None
    ] == [
        (True, False, "apps", "strict"),
        (False, False, "apps", "default"),
        (True, True, "default", "strict"),
        (True, False, "default", "strict"),
    ]
    assert [(row.connection_count, row.endpoint_count) for row in rows if row is not None] == [
        (1, 0),
        (0, 0),
        (2, 4),
        (0, 0),
    ]
    vpn: MessageVpn = router.vpns["blue"]
    vpn.release("carl")
    vpn.release("carl")
    assert clients.username("blue", "carl") is None
    assert clients.username("none", "ann") is None


def test_profiles(clients: Profiles) -> None:
    """What they allow, and how many client usernames and connections have them."""
    rows = {row.client_profile_name: row for row in clients.client_profiles("blue")}
    assert set(rows) == {"apps", "default"}
    apps = rows["apps"]
    assert (apps.max_subscription_count, apps.allow_bridge_connections_enabled) == (7, True)
    assert (apps.client_username_count, apps.connection_count) == (2, 1)
    assert (rows["default"].client_username_count, rows["default"].connection_count) == (1, 2)
    assert clients.client_profiles("none") == ()


def test_acl_profiles(clients: Profiles) -> None:
    """The same of ACL profiles; none where nobody is connected."""
    rows = {row.acl_profile_name: row for row in clients.acl_profiles("blue")}
    strict = rows["strict"]
    assert (strict.publish_topic_default_action, strict.client_connect_default_action) == (
        "disallow",
        "allow",
    )
    assert (strict.client_username_count, strict.connection_count) == (2, 3)
    assert rows["default"].connection_count == 0
    assert [row.connection_count for row in clients.acl_profiles("red")] == [0]
    assert clients.acl_profiles("none") == ()
