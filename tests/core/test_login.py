"""vpnrouter.core.login: may this client in (what MQTT makes of it: mqtt/test_connect.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from vpnrouter.core.access import AclProfile
from vpnrouter.core.credentials import ClientUsername
from vpnrouter.core.login import admit, choose_vpn
from vpnrouter.errors import Refused

if TYPE_CHECKING:
    from tests.core.world import World


def test_choose_vpn(world: World) -> None:
    """The listener's VPN keeps the whole username; else the part after the last @ names the VPN."""
    blue = world.vpn()
    assert choose_vpn(world.router, "blue", "me@green") == (blue, "me@green")
    assert choose_vpn(world.router, "blue", None) == (blue, None)
    assert choose_vpn(world.router, "", "me@x@blue") == (blue, "me@x")
    assert choose_vpn(world.router, "", "@blue") == (blue, None)


@pytest.mark.parametrize(
    ("listener", "username"), [("", None), ("", "me"), ("", "me@"), ("green", "me")]
)
def test_no_such_vpn(world: World, listener: str, username: str | None) -> None:
    """The answer does not tell which VPNs exist."""
    with pytest.raises(Refused, match="403 Message VPN Not Allowed"):
        choose_vpn(world.router, listener, username)


def test_a_vpn_that_is_down(world: World) -> None:
    """Known but disabled."""
    world.vpn().enabled = False
    with pytest.raises(Refused, match="503 Message VPN Unavailable"):
        choose_vpn(world.router, "blue", None)


def test_connect_exceptions_are_asked(world: World) -> None:
    """The ACL of the client username decides by address."""
    acl = AclProfile("default", False, ["192.0.2.0/24"])
    vpn = world.add_vpn("blue", acl=acl)
    assert admit(vpn, "u", None, "192.0.2.9").acl is acl
    with pytest.raises(Refused, match="403 Forbidden"):
        admit(vpn, "u", None, "198.51.100.1")


def test_a_remembered_password_needs_no_verification(world: World) -> None:
    """The same login again goes straight in."""
    user = ClientUsername("u", "pw")
    vpn = world.add_vpn("blue", (user,), basic=True)
    assert admit(vpn, "u", b"pw", "192.0.2.1").needs_password
    vpn.credentials.remember(user, b"pw")
    assert not admit(vpn, "u", b"pw", "192.0.2.1").needs_password
    assert admit(vpn, "u", None, "192.0.2.1").needs_password
