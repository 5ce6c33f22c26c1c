"""Deliveries that a client had not settled when its link went, and asks for when it attaches it again (2.6.13)."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from vpnrouter import limits
from vpnrouter.wire.amqp import frames, types
from vpnrouter.wire.amqp.performatives import (
    Accepted,
    Attach,
    Detach,
    Disposition,
    Flow,
    Modified,
    Rejected,
    Source,
    Target,
    Transfer,
    composite,
    described,
)

if TYPE_CHECKING:
    from tests.core.amqp.amqp_peer import Peer
    from tests.core.mqtt.spooled import SpooledWorld
    from vpnrouter.wire.amqp.types import RawMap

SECOND = 1
NEVER = "never"


def entries(raw: RawMap) -> Any:
    """What a map holds."""
    return types.read(raw.data, 0, len(raw.data))[0]


def known(attached: Any) -> Any:
    """What an attach says of deliveries: states by tag."""
    if attached.unsettled is None:
        return None
    return {tag: composite(state) for tag, state in entries(attached.unsettled).items()}


def attach_sender(peer: Peer, unsettled: Any = None, **target: Any) -> list[Any]:
    """Attach a link that sends to queue q and settles second; what is answered."""
    return peer.attach(
        Attach(
            "sender",
            0,
            False,
            rcv_settle_mode=SECOND,
            source=Source("here"),
            target=Target("queue://q", **target),
            unsettled=unsettled,
            initial_delivery_count=0,
        )
    )


def sends(peer: Peer, tag: bytes, payload: bytes, number: int = 0, **more: Any) -> None:
    """Send one message with a tag."""
    peer.raw(frames.encode(Transfer(0, number, tag, 0, **more), 0, payload=payload))


def states(peer: Peer) -> list[Any]:
    """What the router says of deliveries."""
    return [one.state for one in peer.answers() if isinstance(one, Disposition)]


def test_sender_learns_what_became_of_its_messages(
    router: SpooledWorld, join: Any, amqp: ModuleType
) -> None:
    """One that was accepted is not sent again, one that is sent again is not published again."""
    queue = router.queue("q")
    peer = join()
    attach_sender(peer)
    for number in range(3):
        sends(peer, b"%d" % number, amqp.message(), number)
    assert states(peer) == [Accepted()] * 3
    # The first one is settled, so that nothing is kept of it.
    peer.say(Disposition(False, 0, 0, True, Accepted()))
    peer.connection.lost("gone")
    peer = join()
    answer = attach_sender(peer, {b"1": None, b"2": None, b"other": None})[0]
    assert known(answer) == {b"1": Accepted(), b"2": Accepted()}
    # The client settles one, and sends the other again all the same.
    sends(peer, b"1", b"", 0, settled=True, resume=True, state=Accepted())
    sends(peer, b"2", amqp.message(), 1, resume=True)
    assert states(peer) == [Accepted()]
    sends(peer, b"other", amqp.message(), 2, resume=True)
    assert states(peer) == [Accepted()]
    assert queue.spooled_count == 4


def test_connection_is_lost_before_the_answer(
    router: SpooledWorld, join: Any, amqp: ModuleType
) -> None:
    """A message that waits for its sync is resumed, and answered once it is synced."""
    queue = router.queue("q")
    first, second = join(), join("other")
    second.connection.client.container = "me"
    attach_sender(first)
    sends(first, b"t", amqp.message())
    first.connection.lost("gone")
    second.say(
        Attach(
            "sender",
            0,
            False,
            rcv_settle_mode=SECOND,
            source=Source("here"),
            target=Target("queue://q"),
            unsettled={b"t": None},
            initial_delivery_count=0,
        )
    )
    sends(second, b"t", amqp.message(), resume=True)
    answers = second.answers()
    assert known(answers[0]) == {b"t": None}
    assert [one.state for one in answers if isinstance(one, Disposition)] == [Accepted()]
    assert queue.spooled_count == 1


def test_refusal_is_remembered(router: SpooledWorld, join: Any, amqp: ModuleType) -> None:
    """A message that was rejected stays rejected."""
    queue = router.queue("q", max_spooled_msg_count=1)
    peer = join()
    attach_sender(peer)
    for number in range(2):
        sends(peer, b"%d" % number, amqp.message(), number)
    refused = states(peer)[1]
    assert isinstance(refused, Rejected)
    peer.connection.lost("gone")
    peer = join()
    assert known(attach_sender(peer, {b"1": None})[0]) == {b"1": refused}
    assert queue.spooled_count == 1


@pytest.mark.parametrize(
    ("container", "seconds", "target", "found"),
    [
        ("me", limits.AMQP_AWAY_S - 1, {}, True),
        ("me", limits.AMQP_AWAY_S + 1, {}, False),
        ("me", limits.AMQP_AWAY_S + 1, {"timeout": limits.AMQP_AWAY_S + 2}, True),
        ("me", 1_000_000, {"expiry_policy": NEVER}, True),
        ("you", 0, {}, False),
    ],
)
def test_how_long_it_is_kept(
    router: SpooledWorld,
    join: Any,
    amqp: ModuleType,
    container: str,
    seconds: int,
    target: dict[str, Any],
    found: bool,
) -> None:
    """As long as the terminus lasts, for the container that attached it."""
    router.queue("q")
    peer = join()
    attach_sender(peer, **target)
    sends(peer, b"t", amqp.message())
    assert states(peer) == [Accepted()]
    peer.connection.lost("gone")
    router.advance(seconds)
    answer = attach_sender(join(container), {b"t": None}, **target)[0]
    assert known(answer) == ({b"t": Accepted()} if found else None)


def test_nothing_is_kept_of_a_closed_link(
    router: SpooledWorld, join: Any, amqp: ModuleType
) -> None:
    """A link that was closed, or whose client does not ask, begins anew."""
    router.queue("q")
    away = router.vpn().links_away
    peer = join()
    attach_sender(peer)
    sends(peer, b"t", amqp.message())
    assert states(peer) == [Accepted()]
    peer.say(Detach(0, closed=False))
    peer.answers()
    assert len(away) == 1
    assert attach_sender(peer)[0].unsettled is None
    assert len(away) == 0
    sends(peer, b"u", amqp.message(), 1)
    assert states(peer) == [Accepted()]
    peer.say(Detach(0, closed=True))
    peer.answers()
    assert len(away) == 0


def test_client_that_never_settles(router: SpooledWorld, join: Any, amqp: ModuleType) -> None:
    """Its link ends where it has too much open; what all clients leave behind is bounded."""
    router.queue("q")
    peer = join()
    attach_sender(peer)
    sends(peer, b"t", amqp.message())
    link = peer.connection.sessions[0].links[0]
    for number in range(limits.AMQP_UNSETTLED - 1):
        link.unsettled.came(b"%d" % number)
    peer.answers()
    sends(peer, b"u", amqp.message(), 1)
    assert peer.answer(Detach).error.condition == "amqp:resource-limit-exceeded"
    away = router.vpn().links_away
    assert len(away) == 1
    for number in range(20):
        away.keep(("greedy", "", str(number)), link.unsettled)
    assert len(away) == 1 + limits.AMQP_DELIVERIES_AWAY_OF_USERNAME // (limits.AMQP_UNSETTLED + 10)
    for number in range(20):
        away.keep((f"greedy {number}", "", ""), link.unsettled)
    assert len(away) == limits.AMQP_DELIVERIES_AWAY // (limits.AMQP_UNSETTLED + 10)
    peer = join("another")
    attach_sender(peer)
    sends(peer, bytes(limits.AMQP_TAG_BYTES + 1), amqp.message())
    assert peer.answer(Detach).error.condition == "amqp:invalid-field"


def attach_receiver(peer: Peer, unsettled: Any = None) -> list[Any]:
    """Attach a link that receives from queue q; what is answered."""
    return peer.attach(
        Attach(
            "receiver",
            1,
            True,
            source=Source("queue://q"),
            target=Target("here"),
            unsettled=unsettled,
        )
    )


def test_receiver_settles_after_it_came_back(
    router: SpooledWorld, join: Any, amqp: ModuleType
) -> None:
    """What it knows an outcome of is settled with it, and not delivered again; the rest is delivered again."""
    queue = router.queue("q")
    peer = join()
    peer.sender("queue://q", 0)
    for number in range(4):
        assert isinstance(peer.sent(amqp.message(b"%d" % number)), Accepted)
    attach_receiver(peer)
    peer.credit(1, 10)
    tags = [got.transfer.delivery_tag for got in peer.messages()]
    assert len(set(tags)) == 4
    peer.connection.lost("gone")
    peer = join()
    failed = Modified(delivery_failed=True)
    accepted = described(Accepted())
    told = {tags[0]: accepted, tags[1]: described(failed), tags[2]: None, b"\xff" * 8: accepted}
    answers = attach_receiver(peer, told)
    assert known(answers[0]) == {tags[0]: Accepted(), tags[1]: failed}
    resumed = [one for one in answers if isinstance(one, Transfer)]
    assert [(one.delivery_tag, one.state, one.settled, one.resume) for one in resumed] == [
        (tags[0], Accepted(), True, True),
        (tags[1], failed, True, True),
    ]
    peer.say(Flow(0, 5_000, 0, 5_000, 1, 2, 10))
    again = peer.messages()
    assert [one.body for one in again] == [b"1", b"2", b"3"]
    assert [one.transfer.delivery_tag for one in again] == tags[1:]
    assert queue.spooled_count == 3
    # The outcome was in the spool before the client was told.
    assert len(router.restart().spool.ledger) == 3


def test_stand_by_settles_nothing(router: SpooledWorld, join: Any, amqp: ModuleType) -> None:
    """Of an exclusive queue only the consumer that has its turn may settle what waits."""
    queue = router.queue("q")
    first = join()
    attach_receiver(first)
    first.credit(1, 0)
    first.sender("queue://q", 0)
    assert isinstance(first.sent(amqp.message()), Accepted)
    (row,) = queue.browse(0, 10)
    second = join("second")
    (link,) = [one for one in first.connection.sessions[0].links.values() if one.handle == 1]
    tag = link.consumer.tags.tag(row.msg_id)
    assert attach_receiver(second, {tag: described(Accepted())})[0].unsettled is None
    assert queue.spooled_count == 1


def as_user(router: SpooledWorld, amqp: ModuleType, username: str, container: str) -> Peer:
    """A client of a client username, with a session."""
    peer: Peer = amqp.Peer(router)
    peer.plain(username, "")
    peer.open(container)
    peer.begin()
    return peer


CLAIMS: dict[str, Callable[[list[bytes], list[bytes]], list[bytes]]] = {
    "the ids": lambda ids, own: ids,
    "the ids, filled up": lambda ids, own: [one + bytes(8) for one in ids],
    "its own proof": lambda ids, own: [one + own[0][8:] for one in ids],
    "its own tags of another queue": lambda ids, own: [one + own[1][8:] for one in ids],
}
"""What a client that was given nothing knows, or makes up → the tags that it names."""


@pytest.mark.parametrize("state", ["never given", "held", "cut"])
@pytest.mark.parametrize("claim", CLAIMS)
def test_nobody_settles_what_it_was_not_given(
    router: SpooledWorld, amqp: ModuleType, claim: str, state: str
) -> None:
    """A tag is worth something for the client username alone that was given the message."""
    queue = router.queue("q", exclusive=False)
    router.queue("own")
    ben = as_user(router, amqp, "ben", "c")
    for name in ("q", "own"):
        ben.sender(f"queue://{name}", 5)
        ben.sent(amqp.message(b"mine"), 5)
        ben.say(Detach(5, True))
        ben.answers()
    own = []
    for handle, name in ((1, "q"), (2, "own")):
        ben.receiver(f"queue://{name}", handle)
        (got,) = ben.messages()
        own.append(got.transfer.delivery_tag)
        ben.settle(got, Accepted())
    ben.connection.lost("gone")
    router.settle()
    ann = as_user(router, amqp, "ann", "c")
    ann.sender("queue://q", 0)
    for number in range(5):
        assert isinstance(ann.sent(amqp.message(b"%d" % number)), Accepted)
    ids = [row.msg_id.to_bytes(8, "big") for row in queue.browse(0, 10)]
    given: list[bytes] = []
    if state != "never given":
        ann.receiver("queue://q", 1, 3)
        given = [got.transfer.delivery_tag for got in ann.messages()]
        assert len(given) == 3
    if state == "cut":
        ann.connection.lost("gone")
        router.settle()
    tags = [*CLAIMS[claim](ids, own), *given]
    thief = as_user(router, amqp, "ben", "c")
    answers = attach_receiver(thief, dict.fromkeys(tags, described(Accepted())))
    assert not known(answers[0])
    assert queue.spooled_count == 5
    if state == "cut":
        # The client username itself settles them, from any container.
        again = as_user(router, amqp, "ann", "other")
        thief.connection.lost("gone")
        router.settle()
        told = attach_receiver(again, dict.fromkeys(given, described(Accepted())))
        assert known(told[0]) == dict.fromkeys(given, Accepted())
        assert queue.spooled_count == 2


def test_tags_are_the_same_after_a_restart(
    router: SpooledWorld, join: Any, amqp: ModuleType
) -> None:
    """A client that knows an outcome from before the router started anew settles the message with it."""
    router.queue("q")
    peer = join()
    peer.sender("queue://q", 0)
    peer.sent(amqp.message(b"1"))
    attach_receiver(peer)
    peer.credit(1, 10)
    (got,) = peer.messages()
    again = router.restart()
    again.attract("q")
    peer = amqp.Peer(again)
    peer.join("me")
    told = attach_receiver(peer, {got.transfer.delivery_tag: described(Accepted())})
    assert known(told[0]) == {got.transfer.delivery_tag: Accepted()}
