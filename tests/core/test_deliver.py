"""vpnrouter.core.deliver: links one by one or in batches, selectors, exceptions, and what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from vpnrouter.core.discard_reasons import (
    CLIENT_NOT_CONNECTED,
    NO_SUBSCRIPTION_MATCH,
    TRANSMIT_CONGESTION,
)
from vpnrouter.core.message import Message, wants_deliver_to_one
from vpnrouter.selectors import parse_selector
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.packets import Publish
from vpnrouter.wire.mqtt.properties import Properties, encode_block

if TYPE_CHECKING:
    from types import ModuleType

    from vpnrouter.core.subscriber import Subscriber
    from vpnrouter.testing.memory import Client, FakeLink, MemoryRouter

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


ONE = encode_block(Properties(user_properties=[("deliver-to-one", "true")]))
LASTING = Properties(session_expiry_interval=1_000)


def one(payload: bytes = b"x", source: Subscriber | None = None, block: bytes = ONE) -> Message:
    """A deliver-to-one message."""
    return Message(b"t", payload, block, source=source)


def publish(world: MemoryRouter, count: int) -> None:
    """Publish `count` of them."""
    for number in range(count):
        assert world.vpn().publish(one(b"%d" % number)) == ""


def link(
    kit: ModuleType, world: MemoryRouter, peer: str, priority: int = 1, room: int = 1_000
) -> FakeLink:
    """A link that attracts everything."""
    made: FakeLink = kit.FakeLink(world.vpn(), peer, room)
    made.subscribe(">", priority)
    return made


def fill(outbox_of: Client) -> None:
    """Leave no room."""
    outbox = outbox_of.connection.outbox
    outbox.set_limit(outbox.size)


@pytest.mark.parametrize(
    ("pairs", "wanted"),
    [
        ([("deliver-to-one", "true")], True),
        ([("deliver-to-one", "1")], True),
        ([("a", "b"), ("deliver-to-one", "false"), ("deliver-to-one", "true")], True),
        ([("deliver-to-one", "false")], False),
        ([("deliver-to-one", "True")], False),
        ([("deliver-to-one", "11")], False),
        ([("x-deliver-to-one", "true")], False),
        ([("note", "deliver-to-one")], False),
        ([("true", "deliver-to-one")], False),
        ([], False),
    ],
)
def test_who_asks_for_it(pairs: list[tuple[str, str]], wanted: bool) -> None:
    """Exactly this name with one of exactly two values, anywhere among the properties."""
    block = encode_block(Properties(content_type="t", user_properties=pairs))
    assert wants_deliver_to_one(block) == wanted
    assert Message(b"t", b"x", block).deliver_to_one == wanted


def test_bytes_that_look_like_it_are_not_it() -> None:
    """In correlation data it says nothing, nor in a block that is no good."""
    assert not wants_deliver_to_one(encode_block(Properties(correlation_data=ONE)))
    assert not wants_deliver_to_one(b"\x7f" + ONE)
    assert not wants_deliver_to_one(ONE[:-1])


def test_clients_take_turns(world: MemoryRouter) -> None:
    """Of both levels, special or not, and a group as one of them; each message arrives once."""
    clients = [
        world.connect("4", level=4),
        world.connect("5"),
        world.connect("alias", properties=Properties(topic_alias_maximum=3)),
    ]
    for client in clients:
        client.subscribe("#")
    members = [world.connect("m0"), world.connect("m1")]
    for member in members:
        member.subscribe("$share/g/t")
    publish(world, 24)
    got = [client.payloads() for client in clients + members]
    assert [len(payloads) for payloads in got] == [6, 6, 6, 3, 3]
    assert len({payload for payloads in got for payload in payloads}) == 24


def test_a_client_without_room_is_passed_over(kit: ModuleType, world: MemoryRouter) -> None:
    """Another takes its turn, then a link; where all are full one counts the loss."""
    slow, fast = world.connect("slow"), world.connect("fast", level=4)
    slow.subscribe("t")
    fast.subscribe("t")
    fill(slow)
    publish(world, 4)
    assert len(fast.payloads()) == 4
    fill(fast)
    far = link(kit, world, "far/blue")
    publish(world, 4)
    assert len(far.taken()) == 4
    far.outbox.set_limit(0)
    publish(world, 4)
    assert far.taken() == []
    assert world.vpn().totals().discards == {TRANSMIT_CONGESTION: 4}


def test_a_full_link_counts_the_loss(kit: ModuleType, world: MemoryRouter) -> None:
    """When no client is there at all."""
    far = link(kit, world, "far/blue", room=0)
    publish(world, 3)
    assert far.outbox.discarded == 3


def test_links_come_after_clients(kit: ModuleType, world: MemoryRouter) -> None:
    """A link gets nothing while a client can take it, and everything afterwards."""
    client = world.connect("c")
    client.subscribe("t")
    far = link(kit, world, "far/blue")
    publish(world, 3)
    assert (len(client.payloads()), far.taken()) == (3, [])
    client.lose()
    publish(world, 3)
    assert len(far.taken()) == 3


def test_links_by_priority(kit: ModuleType, world: MemoryRouter) -> None:
    """The lowest number first, equals in turn; a full one, the source and a visited VPN are passed over."""
    low = link(kit, world, "low/blue", 4)
    equal = [link(kit, world, f"equal{number}/blue", 2) for number in range(3)]
    publish(world, 9)
    assert [len(far.taken()) for far in equal] == [3, 3, 3]
    equal[0].outbox.set_limit(0)
    message = one(source=equal[1])
    message.path = ["equal2/blue"]
    assert world.vpn().publish(message) == ""
    assert [far.taken() for far in (*equal, low)] == [[], [], [], [b"x"]]
    message = one(source=equal[1])
    message.path = ["equal2/blue", "equal0/blue", "low/blue"]
    assert world.vpn().publish(message) == NO_SUBSCRIPTION_MATCH


def test_the_best_priority_of_a_link_counts(kit: ModuleType, world: MemoryRouter) -> None:
    """Of several subscriptions that match."""
    far, near = link(kit, world, "far/blue", 3), link(kit, world, "near/blue", 2)
    publish(world, 1)
    far.subscribe("t", 1)
    publish(world, 2)
    assert (len(far.taken()), len(near.taken())) == (2, 1)


def test_who_wants_everything(kit: ModuleType, world: MemoryRouter) -> None:
    """A link with priority 0 and one with a deliver-always subscription get a copy besides the one."""
    client = world.connect("c")
    client.subscribe("t")
    everything = link(kit, world, "everything/blue", 0)
    always: FakeLink = kit.FakeLink(world.vpn(), "always/blue")
    always.subscribe("t", 3, deliver_always=True)
    far = link(kit, world, "far/blue", 2)
    publish(world, 2)
    assert len(client.payloads()) == 2
    assert len(everything.taken()) == len(always.taken()) == 2
    assert far.taken() == []
    client.lose()
    publish(world, 2)
    assert len(everything.taken()) == len(always.taken()) == len(far.taken()) == 2
    message = one(source=everything)
    assert world.vpn().publish(message) == ""
    assert everything.taken() == []
    assert message.message_id


def test_a_client_that_wants_everything(world: MemoryRouter) -> None:
    """Gets each message and takes no turn of the others, also without priorities of links."""
    greedy, other = world.connect("greedy"), world.connect("other")
    greedy.subscribe("t")
    other.subscribe("t")
    session = world.vpn().clients["greedy"]
    # No protocol of clients asks for it yet.
    session.subscriptions["t"].deliver_always = True
    world.vpn().forget_routes(session)
    other.connection.outbox.set_limit(1_000)
    publish(world, 4)
    assert (len(greedy.payloads()), len(other.payloads())) == (4, 4)


def test_nobody_can_take_it(world: MemoryRouter) -> None:
    """Nobody there is no match; a group whose members are away is counted as such, but not beside a taker."""
    assert world.vpn().publish(one()) == NO_SUBSCRIPTION_MATCH
    member = world.connect("m", properties=LASTING)
    member.subscribe("$share/g/t")
    member.lose()
    assert world.vpn().publish(one()) == CLIENT_NOT_CONNECTED
    assert world.vpn().totals().discards == {CLIENT_NOT_CONNECTED: 1, NO_SUBSCRIPTION_MATCH: 1}
    client = world.connect("c")
    client.subscribe("t")
    publish(world, 2)
    assert len(client.payloads()) == 2
    assert world.vpn().totals().discards[CLIENT_NOT_CONNECTED] == 1


def test_no_local_is_passed_over(world: MemoryRouter) -> None:
    """The publisher that does not want its own is no consumer of it."""
    own, other = world.connect("own"), world.connect("other")
    own.subscribe("t", no_local=True)
    other.subscribe("t")
    for _ in range(4):
        own.publish("t", properties=Properties(user_properties=[("deliver-to-one", "1")]))
    assert len(other.payloads()) == 4
    other.publish("t")
    assert own.drain()
    assert other.drain()
    other.unsubscribe("t")
    own.publish("t", properties=Properties(user_properties=[("deliver-to-one", "1")]))
    assert own.drain() == b""
    assert world.vpn().totals().discards == {NO_SUBSCRIPTION_MATCH: 1}


def test_selectors_choose_first(kit: ModuleType, world: MemoryRouter) -> None:
    """Whoever's selector refuses the message is no consumer, and no link for it."""
    refusing = parse_selector("kind = 'a'")
    near, far = link(kit, world, "near/blue"), link(kit, world, "far/blue", 4)
    world.vpn().unsubscribe(near, ">")
    near.subscribe(">", 1, selector=refusing)
    client = world.connect("c")
    client.subscribe("t")
    session = world.vpn().clients["c"]
    session.subscriptions["t"].selector = refusing
    world.vpn().forget_routes(session)
    publish(world, 2)
    assert (near.taken(), client.drain(), len(far.taken())) == ([], b"", 2)


def test_a_shorter_copy_goes_to_those_alone_who_want_everything(
    kit: ModuleType, world: MemoryRouter
) -> None:
    """Its one consumer was chosen when it first came."""
    everything, far = link(kit, world, "everything/blue", 0), link(kit, world, "far/blue")
    assert world.vpn().relay(one())
    assert (everything.taken(), far.taken()) == ([b"x"], [])
    world.vpn().drop(everything)
    assert not world.vpn().relay(one())


def test_a_group_without_room_is_passed_over(world: MemoryRouter) -> None:
    """Its members are full: a client takes all turns; alone, the group counts the loss."""
    member, client = world.connect("m"), world.connect("c")
    member.subscribe("$share/g/t")
    client.subscribe("t")
    fill(member)
    publish(world, 4)
    assert len(client.payloads()) == 4
    client.lose()
    publish(world, 2)
    assert world.vpn().totals().discards == {TRANSMIT_CONGESTION: 2}
