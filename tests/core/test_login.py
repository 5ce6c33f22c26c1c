"""vpnrouter.core.login: may this client in (what MQTT makes of it: mqtt/test_connect.py)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from vpnrouter.core.access import AclProfile
from vpnrouter.core.credentials import ClientCertRules, ClientUsername, PeerCertificate
from vpnrouter.core.login import BASIC, CLIENT_CERTIFICATE, admit, choose_vpn
from vpnrouter.errors import Refused

if TYPE_CHECKING:
    from vpnrouter.testing.memory import MemoryRouter


def test_choose_vpn(world: MemoryRouter) -> None:
    """The listener's VPN keeps the whole username; else the part after the last @ names the VPN."""
    blue = world.vpn()
    assert choose_vpn(world.router, "blue", "me@green") == (blue, "me@green")
    assert choose_vpn(world.router, "blue", None) == (blue, None)
    assert choose_vpn(world.router, "", "me@x@blue") == (blue, "me@x")
    assert choose_vpn(world.router, "", "@blue") == (blue, None)


PEER = "192.0.2.1"
SHOWN = PeerCertificate("app", (), "ab", 0, 1 << 62, 0, "CN=app")
USERS = (ClientUsername("app"), ClientUsername("u", "pw"))
FORBIDDEN = "403 Forbidden"
NO_BASIC = "403 Basic Authentication is Shutdown"
NO_CERTIFICATES = "403 Client Certificate Authentication is Shutdown"
NONE_GIVEN = "403 Untrusted Certificate: none was given"


@pytest.mark.parametrize(
    ("basic", "certificates", "scheme", "given", "shown", "outcome"),
    [
        # Both are on: whoever gives username and password means them.
        (True, True, "", ("u", b"pw"), True, "verify u"),
        (True, True, "", ("u", None), True, "app"),
        (True, True, "", ("u", b""), True, "app"),
        (True, True, "", (None, b"pw"), True, "app"),
        (True, True, "", (None, None), True, "app"),
        (True, True, "", (None, None), False, FORBIDDEN),
        (True, True, "", ("u", None), False, "verify u"),
        (True, True, BASIC, (None, None), True, FORBIDDEN),
        (True, True, BASIC, ("u", b"pw"), True, "verify u"),
        (True, True, CLIENT_CERTIFICATE, ("u", b"pw"), True, "app"),
        (True, True, CLIENT_CERTIFICATE, ("u", b"pw"), False, NONE_GIVEN),
        # Certificates alone.
        (False, True, "", ("u", b"pw"), True, "app"),
        (False, True, "", (None, None), False, NO_BASIC),
        (False, True, "", ("u", b"pw"), False, NO_BASIC),
        (False, True, BASIC, ("u", b"pw"), True, NO_BASIC),
        (False, True, CLIENT_CERTIFICATE, (None, None), True, "app"),
        (False, True, CLIENT_CERTIFICATE, (None, None), False, NONE_GIVEN),
        # No certificates: one that is shown all the same changes nothing.
        (True, False, "", ("u", None), True, "verify u"),
        (True, False, "", (None, None), True, FORBIDDEN),
        (True, False, CLIENT_CERTIFICATE, (None, None), True, NO_CERTIFICATES),
        (False, False, "", ("x", None), True, "x"),
        (False, False, BASIC, ("x", None), False, "x"),
        (False, False, CLIENT_CERTIFICATE, ("x", None), True, NO_CERTIFICATES),
    ],
)
def test_which_scheme_decides(
    world: MemoryRouter,
    basic: bool,
    certificates: bool,
    scheme: str,
    given: tuple[str | None, bytes | None],
    shown: bool,
    outcome: str,
) -> None:
    """By password, by certificate, freely, or refused, as the VPN, the protocol and the client say."""
    rules = ClientCertRules() if certificates else None
    vpn = world.add_vpn("blue", USERS, basic=basic, client_cert=rules)
    certificate = SHOWN if shown else None
    if outcome.startswith("403"):
        with pytest.raises(Refused) as caught:
            admit(vpn, *given, PEER, None, certificate, scheme)
        assert caught.value.reason == outcome
        return
    admission = admit(vpn, *given, PEER, None, certificate, scheme)
    assert admission.username.name == outcome.removeprefix("verify ")
    assert admission.needs_password == outcome.startswith("verify ")


def test_certificates_are_judged_by_the_clock_of_the_router(world: MemoryRouter) -> None:
    """What was good at the last login may have expired at the next."""
    vpn = world.add_vpn("blue", USERS, client_cert=ClientCertRules())
    soon = replace(SHOWN, not_after_ns=world.router.context.wall_ns + 5_000_000_000)
    world.advance(4)
    assert admit(vpn, None, None, PEER, None, soon).username.name == "app"
    world.advance(2)
    with pytest.raises(Refused, match="403 Certificate Expired"):
        admit(vpn, None, None, PEER, None, soon)


def test_certificates_are_not_above_the_rules(world: MemoryRouter) -> None:
    """A username that is shut down and an address that is forbidden stay so."""
    acl = AclProfile("default", False, ["192.0.2.0/24"])
    shut = ClientUsername("app", enabled=False)
    vpn = world.add_vpn("blue", (shut,), acl=acl, client_cert=ClientCertRules())
    with pytest.raises(Refused, match="403 Client Username Is Shutdown"):
        admit(vpn, None, None, PEER, None, SHOWN)
    vpn = world.add_vpn("blue", USERS, acl=acl, client_cert=ClientCertRules())
    with pytest.raises(Refused, match="403 Forbidden"):
        admit(vpn, None, None, "198.51.100.1", None, SHOWN)
