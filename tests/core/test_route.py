"""vpnrouter.core.route: receivers of one topic by the form in which they take a frame."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from vpnrouter.core.discard_reasons import (
    CLIENT_NOT_CONNECTED,
    NO_SUBSCRIPTION_MATCH,
    TRANSMIT_CONGESTION,
)
from vpnrouter.core.message import Message
from vpnrouter.core.profile import ClientProfile
from vpnrouter.selectors import parse_selector
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.packets import Publish
from vpnrouter.wire.mqtt.properties import Properties, encode_block

if TYPE_CHECKING:
    from types import ModuleType

    from vpnrouter.testing.memory import Client, MemoryRouter


LASTING = Properties(session_expiry_interval=1_000)


def members(world: MemoryRouter, count: int, text: str = "$share/g/a/#") -> list[Client]:
    """Clients of one group."""
    found = []
    for number in range(count):
        client = world.connect(
            f"m{number}", level=4 + number % 2, clean_start=False, properties=LASTING
        )
        client.subscribe(text)
        found.append(client)
    return found


def burst(world: MemoryRouter, count: int) -> None:
    """Publish `count` messages in one chunk."""
    frames = [encode(Publish(b"a/b", b"%04d" % number), 5) for number in range(count)]
    world.connect("p").raw(b"".join(frames))


def test_members_take_turns(world: MemoryRouter) -> None:
    """Each message goes to one member; all get the same share, in order."""
    clients = members(world, 3)
    burst(world, 30)
    taken = [client.payloads() for client in clients]
    assert [len(payloads) for payloads in taken] == [10, 10, 10]
    assert all(payloads == sorted(payloads) for payloads in taken)
    assert len({payload for payloads in taken for payload in payloads}) == 30


def test_members_without_connection_are_passed_over(world: MemoryRouter) -> None:
    """The others take their messages; with nobody there they are counted, and the group lives on."""
    first, second = members(world, 2)
    first.lose()
    burst(world, 4)
    assert len(second.payloads()) == 4
    second.lose()
    burst(world, 5)
    assert world.vpn().totals().discards == {CLIENT_NOT_CONNECTED: 5}
    back = world.connect("m0", clean_start=False, properties=LASTING)
    burst(world, 3)
    assert len(back.payloads()) == 3


def test_a_full_member_is_passed_over(world: MemoryRouter) -> None:
    """A member that does not read costs the group nothing beyond what fills its outbox."""
    world.add_vpn("blue", profile=ClientProfile("default", max_outbox_bytes=22))
    _slow, fast = members(world, 2)
    got: Counter[bytes] = Counter()
    for _ in range(20):
        burst(world, 1)
        got.update(fast.payloads())
    # Frames of 11 bytes: two fill the outbox of the slow one.
    assert sum(got.values()) == 18
    assert world.vpn().totals().discards == {}


def test_when_all_members_are_full_it_is_congestion(world: MemoryRouter) -> None:
    """A message that no connected member can take is counted as congestion, whoever is away."""
    world.add_vpn("blue", profile=ClientProfile("default", max_outbox_bytes=22))
    full, away = members(world, 2)
    away.lose()
    burst(world, 5)
    assert len(full.payloads()) == 2
    assert world.vpn().totals().discards == {TRANSMIT_CONGESTION: 3}


def test_the_last_member_takes_the_group_along(world: MemoryRouter) -> None:
    """An empty group is forgotten; a new member begins a new one."""
    first, second = members(world, 2)
    first.unsubscribe("$share/g/a/#")
    second.unsubscribe("$share/g/a/#")
    assert world.vpn().groups == {}
    burst(world, 2)
    assert first.drain() == second.drain() == b""
    first.subscribe("$share/g/a/#")
    burst(world, 2)
    assert len(first.payloads()) == 2


def test_a_member_counts_once(world: MemoryRouter) -> None:
    """Subscribing again does not double a member's share."""
    first, second = members(world, 2)
    first.subscribe("$share/g/a/#")
    burst(world, 10)
    assert [len(client.payloads()) for client in (first, second)] == [5, 5]


def test_a_selector_passes_its_member_over(world: MemoryRouter) -> None:
    """The others take its turns; where all refuse nobody matched, where only one who is away would, it counts."""
    first, second, away = members(world, 3)
    for name, text in (("m0", "n < '5'"), ("m2", "n = '9'")):
        subscription = world.vpn().clients[name].subscriptions["$share/g/a/#"]
        subscription.selector = parse_selector(text.replace("<", "<>"))
    away.lose()
    five = encode_block(Properties(user_properties=[("n", "5")]))
    nine = encode_block(Properties(user_properties=[("n", "9")]))
    for _ in range(4):
        world.vpn().publish(Message(b"a/b", b"five", five))
    assert (first.payloads(), second.payloads()) == ([], [b"five"] * 4)
    second.unsubscribe("$share/g/a/#")
    assert world.vpn().publish(Message(b"a/b", b"five", five)) == NO_SUBSCRIPTION_MATCH
    assert world.vpn().publish(Message(b"a/b", b"nine", nine)) == ""
    assert first.payloads() == [b"nine"]
    first.lose()
    assert world.vpn().publish(Message(b"a/b", b"nine", nine)) == CLIENT_NOT_CONNECTED


def test_a_link_is_passed_over_where_the_message_has_been(
    kit: ModuleType, world: MemoryRouter
) -> None:
    """Neither back over the link it came by, nor by another to a VPN that it has visited."""
    one, other = kit.FakeLink(world.vpn(), "one/blue"), kit.FakeLink(world.vpn(), "other/blue")
    for link in (one, other):
        link.subscribe("#share/g/a/>")
    for _ in range(3):
        message = Message(b"a/b", b"x", source=one)
        assert world.vpn().publish(message) == ""
    assert (one.taken(), other.taken()) == ([], [b"x"] * 3)
    message = Message(b"a/b", b"x", source=one)
    message.path = ["other/blue", "one/blue"]
    assert world.vpn().publish(message) == NO_SUBSCRIPTION_MATCH
