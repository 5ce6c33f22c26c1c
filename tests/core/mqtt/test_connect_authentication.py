"""vpnrouter.core.mqtt.connect: what becomes of certificates and unknown usernames (rules: ../test_login.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from vpnrouter.core.credentials import ClientCertRules, ClientUsername, PeerCertificate
from vpnrouter.wire.mqtt.packets import Connack, Connect

if TYPE_CHECKING:
    from vpnrouter.testing.memory import MemoryRouter

SHOWN = PeerCertificate("app", (), "ab", 0, 1 << 62, 0, "CN=app")


@pytest.mark.parametrize("level", [4, 5])
def test_a_certificate_logs_in(world: MemoryRouter, level: int) -> None:
    """The certificate of the transport names the client username; without one nobody gets in."""
    world.add_vpn("blue", (ClientUsername("app"),), client_cert=ClientCertRules())
    client = world.open(level=level)
    client.connection.certificate = SHOWN
    client.send(Connect("c", protocol_level=level))
    (answer,) = client.received()
    assert isinstance(answer, Connack)
    assert answer.reason_code == 0
    admission = client.connection.admission
    assert admission is not None
    assert admission.username.name == "app"
    refused = world.refused("d", level=level)
    assert refused.reason_code == 0x87
    if level == 5:
        assert refused.properties.reason_string == "403 Basic Authentication is Shutdown"


def test_unknown_usernames_wait_like_wrong_passwords(world: MemoryRouter) -> None:
    """A name that is not known and a password that is wrong get one answer, by one way."""
    world.add_vpn("blue", (ClientUsername("u", "pw"),), basic=True)
    answers = []
    for name in ("nobody", "u"):
        client = world.hello("c", username=name, password=b"wrong")
        assert client.received() == []
        world.verify()
        (answer,) = client.received()
        assert isinstance(answer, Connack)
        assert client.closed
        answers.append((answer.reason_code, answer.properties.reason_string))
    assert answers == [(0x86, "403 Forbidden")] * 2
    assert world.router.logins_refused == 2
