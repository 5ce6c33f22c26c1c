"""vpnrouter.core.verifications: logins whose passwords wait to be verified."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vpnrouter import limits
from vpnrouter.core.credentials import ClientUsername
from vpnrouter.wire.mqtt.packets import Connack

if TYPE_CHECKING:
    from vpnrouter.testing.memory import MemoryRouter


def hashed(world: MemoryRouter) -> None:
    """A message VPN whose passwords take long to verify."""
    world.add_vpn("blue", (ClientUsername("u", "scrypt$x"),), basic=True)


def test_logins_by_one_name_and_password_share_a_verification(world: MemoryRouter) -> None:
    """A fleet that comes back at once is verified once and let in together."""
    hashed(world)
    fleet = [world.hello(f"c{number}", username="u", password=b"pw") for number in range(50)]
    (login,) = world.router.verifications.take_all()
    fleet[0].lose()
    login.settle(good=True)
    for client in fleet[1:]:
        first = client.received()[0]
        assert isinstance(first, Connack)
        assert first.reason_code == 0
    assert (
        world.router.pre_login_limits.throttle.begin("192.0.2.1", "blue", "u", known=True, now_ns=0)
        == 0
    )


def test_turns_go_by_address(world: MemoryRouter) -> None:
    """Logins are verified in turn by address, of each address the newest first."""
    hashed(world)
    for origin, names in (("a", "123"), ("b", "4"), ("c", "56")):
        for name in names:
            world.hello(name, username=f"x{name}", password=b"pw", peer=origin)
    order = [login.name for login in world.router.verifications.take_all()]
    assert order == ["x3", "x4", "x6", "x2", "x5", "x1"]


def test_too_many_logins_of_an_address(world: MemoryRouter) -> None:
    """Beyond the bound of an address its oldest waiting login is told that the router is busy (0x89)."""
    hashed(world)
    most = limits.LOGINS_WAITING_OF_ADDRESS
    usernames = [ClientUsername(f"u{number}", "scrypt$x") for number in range(most + 1)]
    world.add_vpn("blue", tuple(usernames), basic=True)
    other = world.hello("o", username="u0", password=b"other", peer="198.51.100.7")
    clients = [
        world.hello(f"c{number}", username=f"u{number}", password=b"pw")
        for number in range(most + 1)
    ]
    (answer,) = clients[0].received()
    assert isinstance(answer, Connack)
    assert answer.reason_code == 0x89
    assert clients[0].closed
    assert not other.closed
    assert not any(client.closed for client in clients[1:])
    assert len(world.router.verifications) == most + 1


def test_guessing_is_braked_before_hashing(world: MemoryRouter) -> None:
    """After its failures a username is refused (0x9F) at that address, and let in from another one."""
    hashed(world)
    for number in range(limits.LOGIN_FAILURES):
        client = world.hello("c", username="u", password=b"%d" % number)
        for login in world.router.verifications.take_all():
            login.settle(good=False)
        (answer,) = client.received()
        assert isinstance(answer, Connack)
        assert answer.reason_code == 0x86
    assert world.refused("c", username="u", password=b"more").reason_code == 0x9F
    assert len(world.router.verifications) == 0
    home = world.hello("c", username="u", password=b"right", peer="198.51.100.7")
    world.router.verifications.take_all()[0].settle(good=True)
    first = home.received()[0]
    assert isinstance(first, Connack)
    assert first.reason_code == 0
    # What was verified before comes in from the braked address as well.
    world.connect("d", username="u", password=b"right")
    world.advance(60)
    world.hello("e", username="u", password=b"again")
    assert len(world.router.verifications) == 1


def test_unknown_names_beyond_the_bound_cost_nothing(world: MemoryRouter) -> None:
    """Their answer comes after the time of a verification, without one."""
    hashed(world)
    for number in range(limits.LOGIN_FAILURES_OF_ADDRESS):
        world.hello("c", username=f"x{number}", password=b"no")
    for login in world.router.verifications.take_all():
        login.settle(good=False)
    client = world.hello("c", username="more", password=b"no")
    assert len(world.router.verifications) == 0
    assert client.received() == []
    world.advance(world.router.verifications.took_ns / 1e9)
    (answer,) = client.received()
    assert isinstance(answer, Connack)
    assert answer.reason_code == 0x86
