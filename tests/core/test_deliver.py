"""vpnrouter.core.deliver: links one by one or in batches, selectors, exceptions, and what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from vpnrouter.core.discard_reasons import CLIENT_NOT_CONNECTED, NO_SUBSCRIPTION_MATCH
from vpnrouter.core.message import Message
from vpnrouter.selectors import parse_selector
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.packets import Publish
from vpnrouter.wire.mqtt.properties import Properties, encode_block

if TYPE_CHECKING:
    from types import ModuleType

    from vpnrouter.testing.memory import FakeLink, MemoryRouter

RUN = b"".join([encode(Publish(b"some/topic", b"%d" % number), 5) for number in range(9)])
PAYLOADS = [b"%d" % number for number in range(9)]


def of_kind(kind: str) -> bytes:
    """The properties of a message of that kind."""
    return encode_block(Properties(user_properties=[("kind", kind)]))


def links(kit: ModuleType, world: MemoryRouter, count: int) -> list[FakeLink]:
    """Links that attract everything."""
    found = []
    for number in range(count):
        link = kit.FakeLink(world.vpn(), f"far{number}/blue")
        link.subscribe(">")
        found.append(link)
    return found


def test_one_link_takes_a_batch(kit: ModuleType, world: MemoryRouter) -> None:
    """A run crosses as one slice, without ids; the link counts what it was offered."""
    (link,) = links(kit, world, 1)
    world.connect("p").raw(RUN)
    assert link.outbox.chunks == [RUN]
    assert link.singles == []
    assert link.offered == 9


def test_over_two_links_messages_have_ids(kit: ModuleType, world: MemoryRouter) -> None:
    """Each message goes over both singly under one id of its own."""
    one, other = links(kit, world, 2)
    world.connect("p").raw(RUN)
    ids = [message.message_id for message in one.singles]
    assert ids == [message.message_id for message in other.singles]
    assert len(set(ids)) == 9
    assert 0 not in ids
    assert one.taken() == other.taken() == PAYLOADS
    assert one.offered == other.offered == 9


def test_a_message_keeps_its_id(kit: ModuleType, world: MemoryRouter) -> None:
    """An id given elsewhere is not changed, one that is missing is given."""
    one, other = links(kit, world, 2)
    message = Message(b"some/topic", b"x")
    message.message_id = 77
    assert world.vpn().publish(message) == ""
    assert world.vpn().publish(Message(b"some/topic", b"x", of_kind("a"), True)) == ""
    first, second = (message.message_id for message in one.singles)
    assert first == 77
    assert second not in (0, 77)
    assert [message.message_id for message in other.singles] == [first, second]


def test_over_a_link_and_a_group_with_a_link_messages_have_ids(
    kit: ModuleType, world: MemoryRouter
) -> None:
    """A message parts ways there as well, and again takes one way when the member is gone."""
    one, other = links(kit, world, 2)
    other.subscribe("#share/g/some/>")
    world.vpn().unsubscribe(other, ">")
    world.connect("p").raw(RUN)
    ids = [message.message_id for message in one.singles]
    assert ids == [message.message_id for message in other.singles]
    assert 0 not in ids
    world.vpn().drop(other)
    one.singles.clear()
    world.connect("p").raw(RUN)
    assert one.singles == []
    assert one.outbox.chunks[-1] == RUN


def test_a_link_never_gets_back_what_it_brought(kit: ModuleType, world: MemoryRouter) -> None:
    """Where it alone attracts the topic, nobody matched."""
    one, other = links(kit, world, 2)
    assert world.vpn().publish(Message(b"some/topic", b"x", source=one)) == ""
    assert (one.taken(), other.taken()) == ([], [b"x"])
    world.vpn().drop(other)
    assert world.vpn().publish(Message(b"some/topic", b"x", source=one)) == NO_SUBSCRIPTION_MATCH
    assert one.taken() == []
    assert world.vpn().totals().discards == {NO_SUBSCRIPTION_MATCH: 1}


def test_a_shorter_copy_goes_to_links_only(kit: ModuleType, world: MemoryRouter) -> None:
    """`relay` leaves clients and groups alone and says whether a link was there."""
    client = world.connect("c")
    client.subscribe("#")
    sharing = world.connect("g")
    sharing.subscribe("$share/g/#")
    one, other = links(kit, world, 2)
    assert world.vpn().relay(Message(b"some/topic", b"x", source=one))
    assert other.taken() == [b"x"]
    assert one.taken() == client.payloads() == sharing.payloads() == []
    world.vpn().drop(other)
    assert not world.vpn().relay(Message(b"some/topic", b"x", source=one))


def test_a_selector_lets_its_messages_through(kit: ModuleType, world: MemoryRouter) -> None:
    """To a link and to a special receiver; the rest did not match, and is no discard while another did."""
    (link,) = links(kit, world, 1)
    vpn = world.vpn()
    vpn.unsubscribe(link, ">")
    link.subscribe(">", selector=parse_selector("kind = 'a'"))
    for kind in ("a", "b", "a"):
        vpn.publish(Message(b"some/topic", kind.encode(), of_kind(kind)))
    assert link.taken() == [b"a", b"a"]
    assert vpn.totals().discards == {NO_SUBSCRIPTION_MATCH: 1}
    world.connect("c").subscribe("#")
    assert vpn.publish(Message(b"some/topic", b"b", of_kind("b"))) == ""
    assert link.taken() == []
    assert vpn.totals().discards == {NO_SUBSCRIPTION_MATCH: 1}


def test_plain_messages_are_selected_too(kit: ModuleType, world: MemoryRouter) -> None:
    """A batch is taken apart for a selector, which sees the topic; another subscription needs no look."""
    (link,) = links(kit, world, 1)
    vpn = world.vpn()
    vpn.unsubscribe(link, ">")
    link.subscribe("some/>", selector=parse_selector("JMSDestination = 'some/other'"))
    publisher = world.connect("p")
    publisher.raw(RUN)
    publisher.publish("some/other", b"x")
    assert link.taken() == [b"x"]
    link.subscribe("some/topic")
    publisher.raw(RUN)
    assert link.singles == []
    assert link.outbox.chunks[-1] == RUN


def test_a_client_with_a_selector(kit: ModuleType, world: MemoryRouter) -> None:
    """Its protocol level gives it no batch; it gets what one of its selectors matches."""
    client = world.connect("c")
    client.subscribe("#")
    session = world.vpn().clients["c"]
    subscription = session.subscriptions["#"]
    # No protocol asks for one yet.
    subscription.selector = parse_selector("kind = 'a'")
    world.vpn().forget_routes(session)
    for kind in ("a", "b"):
        world.vpn().publish(Message(b"t", kind.encode(), of_kind(kind)))
    assert client.payloads() == [b"a"]


def test_an_exception_takes_topics_away(kit: ModuleType, world: MemoryRouter) -> None:
    """From its own subscriber only, by batch and singly, whatever comes first, and until it goes."""
    one, other = links(kit, world, 2)
    vpn = world.vpn()
    one.subscribe("#share/g/some/>")
    publisher = world.connect("p")
    for step in range(2):
        one.subscribe("!some/*")
        publisher.raw(RUN)
        publisher.publish("some/topic", b"r", retain=True)
        publisher.publish("else", b"e")
        assert one.taken() == [b"e"]
        assert len(other.taken()) + len(other.outbox.chunks) > 1
        assert vpn.unsubscribe(one, "!some/*")
        publisher.publish("some/topic", b"again")
        assert one.taken() == [b"again", b"again"], step
        other.taken()
    assert not vpn.unsubscribe(one, "!some/*")


def test_a_subscriber_of_exceptions_alone_gets_nothing(
    kit: ModuleType, world: MemoryRouter
) -> None:
    """It is no target, and the message matched nobody; the filter without `!` stands beside it."""
    link = kit.FakeLink(world.vpn(), "far/blue")
    link.subscribe("!a")
    assert world.vpn().publish(Message(b"a", b"x")) == NO_SUBSCRIPTION_MATCH
    assert world.vpn().route(b"a").empty
    link.subscribe("a")
    assert sorted(link.subscriptions) == ["!a", "a"]
    assert world.vpn().publish(Message(b"a", b"x")) == NO_SUBSCRIPTION_MATCH
    world.vpn().unsubscribe(link, "!a")
    assert world.vpn().publish(Message(b"a", b"x")) == ""


@pytest.mark.parametrize("others", [False, True])
def test_a_group_whose_members_are_away(world: MemoryRouter, others: bool) -> None:
    """The message is counted, and delivered where others took it."""
    lasting = Properties(session_expiry_interval=60)
    member = world.connect("m", properties=lasting)
    member.subscribe("$share/g/#")
    member.lose()
    if others:
        world.connect("c").subscribe("#", no_local=True)
    reason = world.vpn().publish(Message(b"t", b"x"))
    assert reason == ("" if others else CLIENT_NOT_CONNECTED)
    assert world.vpn().totals().discards == {CLIENT_NOT_CONNECTED: 1}
