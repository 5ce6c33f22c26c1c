"""The acceptor's end: who is let in, who is not and what both sides hear, takeover."""

from typing import Any

import pytest

from vpnrouter import limits
from vpnrouter.bridges.link import LinkFactory
from vpnrouter.core.access import AclProfile, TopicRule
from vpnrouter.core.credentials import ClientUsername
from vpnrouter.core.profile import ClientProfile
from vpnrouter.core.scram import Verifier, stored_text
from vpnrouter.core.vpn import VpnLimits
from vpnrouter.topics.grammar import SMF
from vpnrouter.wire.link import codes, encode, frames
from vpnrouter.wire.link.decode import decode, link_frame_at

HASH = "$scrypt$not-looked-at-by-the-core"


def spoken(data: bytes) -> list[Any]:
    """The frames in `data`."""
    found, pos = [], 0
    while length := link_frame_at(data, pos, len(data), limits.LINK_FRAME_BYTES):
        found.append(decode(data, pos, length))
        pos += length
    return found


def heard(link: Any) -> list[Any]:
    """The frames that the acceptor sent."""
    return spoken(b"".join(link.wire.carried[1]))


def refusal(link: Any) -> tuple[int, str]:
    """Code and reason of the REFUSE that ended a handshake, the only frame sent but for a challenge."""
    (frame,) = (each for each in heard(link) if not isinstance(each, frames.Challenge))
    assert isinstance(frame, frames.Refuse)
    return frame.code, frame.reason


def test_a_login_that_is_in_order(world: Any) -> None:
    """The bridge becomes a client of the remote VPN, named after its router, VPN and itself."""
    local, remote = world.vpn("yellow", "core"), world.vpn("blue", "edge")
    link = world.link(local, "edge", "blue", ["a/>"], bridge="from-blue")
    assert link.up
    assert link.events.told == [("welcomed", ""), ("subscribed", "")]
    assert list(remote.clients) == ["#bridge/core/yellow/from-blue"]
    assert list(local.clients) == ["#bridge/from-blue"]
    assert remote.subscription_count == 1
    assert local.subscription_count == 0
    assert (link.dialed.peer_router, link.dialed.peer_vpn) == ("edge", "blue")


REFUSALS: list[tuple[str, dict[str, Any], dict[str, Any], int, str]] = [
    ("unknown VPN", {}, {"out_of": "green"}, 0x86, "403 Forbidden"),
    (
        "other router",
        {},
        {"terms": {"remote_router": "edge-2"}},
        0xC3,
        "404 Router Name Mismatch: this is edge",
    ),
    (
        "TLS believed by the dialer alone",
        {},
        {"terms": {"tls": True}},
        0xC4,
        "400 TLS Mismatch",
    ),
    (
        "TLS known to the acceptor alone",
        {},
        {"listener_tls": True},
        0xC4,
        "400 TLS Mismatch",
    ),
    (
        "unknown client username",
        {"basic": True},
        {"terms": {"client_username": "nobody", "password": "x"}},
        0x86,
        "403 Forbidden",
    ),
    ("no client username", {"basic": True}, {}, 0x86, "403 Forbidden"),
    (
        "client username shut down",
        {"basic": True, "usernames": [ClientUsername("off", "pw", enabled=False)]},
        {"terms": {"client_username": "off", "password": "pw"}},
        0x87,
        "403 Client Username Is Shutdown",
    ),
    (
        "profile without bridges",
        {"usernames": [ClientUsername("app", client_profile="plain")]},
        {"terms": {"client_username": "app"}},
        0x87,
        "403 Bridge Connections Not Allowed",
    ),
    (
        "address not allowed",
        {
            "basic": True,
            "usernames": [ClientUsername("app", "pw")],
            "acl": AclProfile("default", connect_exceptions=["192.0.2.0/24"]),
        },
        {"peer": "192.0.2.7", "terms": {"client_username": "app", "password": "pw"}},
        0x87,
        "403 Forbidden",
    ),
]


@pytest.mark.parametrize(
    ("vpn", "asked", "code", "reason"),
    [row[1:] for row in REFUSALS],
    ids=[row[0] for row in REFUSALS],
)
def test_refusals(
    world: Any, vpn: dict[str, Any], asked: dict[str, Any], code: int, reason: str
) -> None:
    """Each obstacle has its code and reason, heard on both sides, and leaves nothing behind."""
    local = world.vpn("yellow", "core")
    remote = world.vpn("blue", "edge", **vpn)
    link = world.link(local, "edge", asked.pop("out_of", "blue"), **asked)
    for login in world.routers["edge"].verifications.take_all():
        login.settle(good=False)
    world.settle()
    assert refusal(link) == (code, reason)
    assert link.events.told == [("refused", reason), ("lost", reason)]
    assert link.dialed.closing
    assert link.accepted.closing
    assert world.routers["edge"].logins_refused == 1
    assert (remote.clients, remote.publishers, remote.connections_of) == ({}, {}, {})
    assert (local.clients, local.publishers) == ({}, {})


def test_a_vpn_out_of_service(world: Any) -> None:
    """A VPN that is shut down refuses whoever proves himself with a code of its own: another remote may serve."""
    local = world.vpn("yellow", "core")
    remote = world.vpn("blue", "edge", basic=True, usernames=[ClientUsername("app", "pw")])
    remote.enabled = False
    link = world.link(local, "edge", "blue", terms={"client_username": "app", "password": "pw"})
    assert refusal(link) == (0x88, "503 Message VPN Unavailable")


SCRAM_STORED = stored_text(Verifier(4096, b"s" * 16, b"k" * 32, b"v" * 32))


@pytest.mark.parametrize(
    ("vpn", "enabled", "username", "password", "why"),
    [
        ({"basic": True, "usernames": [ClientUsername("u", "pw")]}, True, "u", "no", ""),
        ({"basic": True, "usernames": [ClientUsername("u", SCRAM_STORED)]}, True, "u", "no", ""),
        ({"basic": True, "usernames": [ClientUsername("a", SCRAM_STORED)]}, True, "u", "no", ""),
        ({"basic": True, "usernames": [ClientUsername("u", "pw")]}, False, "u", "no", ""),
        ({"basic": True}, True, "", "", ""),
        ({}, False, "", "", "503 Message VPN Unavailable"),
        ({}, False, "u", "", "503 Message VPN Unavailable"),
        ({}, False, "u", "no", "503 Message VPN Unavailable"),
        ({"acl": AclProfile("default", False)}, True, "u", "", ""),
    ],
)
def test_message_vpns_that_strangers_cannot_tell_from_none(
    world: Any, vpn: dict[str, Any], enabled: bool, username: str, password: str, why: str
) -> None:
    """A bridge that has not proved who it is hears the same of a message VPN that is not there, in the same frames;
    the event of the router that was dialled tells what it was.
    """
    world.router("edge", sample=1.0)
    local, remote = world.vpn("yellow", "core"), world.vpn("blue", "edge", **vpn)
    remote.enabled = enabled
    terms = {"client_username": username, "password": password}
    said, rejected = [], []
    for name in ("blue", "nowhere"):
        link = world.link(local, "edge", name, terms=dict(terms))
        waiting = world.routers["edge"].verifications.take_all()
        for login in waiting:
            login.settle(good=False)
        world.settle()
        frames_ = heard(link)
        asked = [
            (len(one.salt), one.iterations) for one in frames_ if isinstance(one, frames.Challenge)
        ]
        said.append((asked, [login.hashed for login in waiting], refusal(link)))
        rejected.append(
            [e.context.reason for e in world.traces("edge") if e.event == "link_rejected"][-1]
        )
    assert said[0] == said[1]
    assert said[0][-1] == (0x86, "403 Forbidden")
    assert bool(said[0][0]) == bool(password)
    assert rejected == [why or "403 Forbidden", "403 Message VPN Not Allowed"]


def test_a_vpn_cannot_link_to_itself(world: Any) -> None:
    """Router and VPN alike on both sides is refused; another VPN of the router is not."""
    blue = world.vpn("blue", "edge")
    green = world.vpn("green", "edge")
    link = world.link(blue, "edge", "blue")
    assert refusal(link) == (0xC7, "400 Message VPN Cannot Link To Itself")
    assert world.link(green, "edge", "blue").up


def test_another_major_version(world: Any) -> None:
    """A HELLO of another major is refused with 0x84, and the dialer's owner is told which it was."""
    world.vpn("blue", "edge")
    door = LinkFactory(world.book("edge"), tls=False)
    accepted = door.connection("192.0.2.7")
    hello = frames.Hello("core", "b", "yellow", "blue", major=2)
    accepted.feed(encode.hello(hello))
    (answer,) = spoken(accepted.outbox.take(1 << 20))
    assert (answer.code, answer.reason) == (0x84, "LINK-12: major version 2, here 1")
    assert accepted.closing
    link = world.link(world.vpn("yellow", "core"), "edge", "blue", settle=False)
    link.dialed.feed(encode.refuse(answer))
    assert link.events.told == [
        ("version-mismatch", answer.reason),
        ("lost", answer.reason),
    ]


def with_password(world: Any) -> Any:
    """A remote VPN that wants a password."""
    return world.vpn("blue", "edge", basic=True, usernames=[ClientUsername("core", HASH)])


CREDENTIALS = {"client_username": "core", "password": "change-me"}

SHOWN: dict[str, Any] = {
    "terms": CREDENTIALS | {"scheme": frames.BASIC, "tls": True, "verified": True},
    "listener_tls": True,
}
"""Over TLS the password may be shown as it is."""


def test_a_password_is_verified_by_the_edge(world: Any) -> None:
    """The core hands the login to the edge, reads no further meanwhile, and goes on with its word."""
    remote = with_password(world)
    link = world.link(world.vpn("yellow", "core"), "edge", "blue", **SHOWN)
    (login,) = world.routers["edge"].verifications.take_all()
    assert login.connections == [link.accepted]
    assert (login.stored, login.given) == (HASH, b"change-me")
    assert link.accepted.paused
    assert not heard(link)
    link.accepted.password_verified(good=True)
    world.settle()
    assert link.up
    assert not link.accepted.paused
    assert remote.subscription_count == 1


def test_a_password_verified_before_is_remembered(world: Any) -> None:
    """A bridge that comes back does not wait for the edge again; with another password it does."""
    with_password(world)
    local = world.vpn("yellow", "core")
    first = world.link(local, "edge", "blue", **SHOWN)
    first.accepted.password_verified(good=True)
    world.settle()
    first.dialed.goodbye(codes.NORMAL, "Bridge Shutdown")
    world.settle()
    assert world.link(local, "edge", "blue", **SHOWN).up
    world.routers["edge"].verifications.take_all()
    guess = SHOWN | {"terms": {**SHOWN["terms"], "password": "guess"}}
    world.link(local, "edge", "blue", bridge="c", **guess)
    assert len(world.routers["edge"].verifications) == 1


def test_a_dialer_that_goes_during_verification(world: Any) -> None:
    """The edge's late answer to a connection that is gone changes nothing."""
    remote = with_password(world)
    link = world.link(world.vpn("yellow", "core"), "edge", "blue", **SHOWN)
    link.accepted.lost("closed by peer")
    link.accepted.password_verified(good=True)
    assert remote.clients == {}
    assert remote.connections_of == {}


def test_limits_hold_for_logins_that_overlap(world: Any) -> None:
    """Logins whose passwords are verified at the same time do not slip past the bound together."""
    remote = world.vpn(
        "blue",
        "edge",
        basic=True,
        usernames=[ClientUsername("core", HASH)],
        bounds=VpnLimits(max_connection_count=1),
    )
    local = world.vpn("yellow", "core")
    links = [world.link(local, "edge", "blue", bridge=name, **SHOWN) for name in ("x", "y")]
    for link in links:
        link.accepted.password_verified(good=True)
    world.settle()
    assert [link.up for link in links] == [True, False]
    assert refusal(links[1]) == (0x97, "503 Too Many Clients")
    assert len(remote.publishers) == 1


@pytest.mark.parametrize(
    "bounds",
    [
        {"bounds": VpnLimits(max_connection_count=1)},
        {
            "profile": ClientProfile(
                "bridging",
                allow_bridge_connections_enabled=True,
                max_connection_count_per_client_username=1,
            )
        },
    ],
    ids=["VPN", "client username"],
)
def test_takeover_at_the_limit(world: Any, bounds: dict[str, Any]) -> None:
    """A bridge that is back before its old connection was missed takes no second place (LINK-20)."""
    local = world.vpn("yellow", "core")
    world.vpn("blue", "edge", **bounds)
    old = world.link(local, "edge", "blue")
    old.wire.cut = True
    new = world.link(local, "edge", "blue")
    assert new.up


def test_takeover(world: Any) -> None:
    """The second login of one bridge closes the first, whose subscriptions go with it (LINK-20)."""
    local = world.vpn("yellow", "core")
    remote = world.vpn("blue", "edge")
    old = world.link(local, "edge", "blue", ["old/>"])
    again = world.vpn("yellow", "core")
    new = world.link(again, "edge", "blue", ["new/>"])
    (close,) = heard(old)[-1:]
    assert isinstance(close, frames.Close)
    assert (close.code, close.reason) == (0x8E, "409 Client Name Taken Over")
    assert old.events.told[-1] == ("lost", "409 Client Name Taken Over")
    assert new.up
    assert remote.subscription_count == 1
    assert len(remote.clients) == len(remote.publishers) == len(world.books["edge"].serving) == 1
    assert sum(remote.connections_of.values()) == 1
    subscriber = world.client(again, "s")
    subscriber.subscribe("#")
    publisher = world.client(remote, "p")
    publisher.publish("new/1", b"n")
    publisher.publish("old/1", b"o")
    assert subscriber.payloads() == [b"n"]


@pytest.mark.parametrize("other", ["bridge", "vpn", "router"])
def test_no_takeover_of_somebody_else(world: Any, other: str) -> None:
    """Identity is router, VPN and bridge: one of them different is another client (LINK-20)."""
    world.vpn("blue", "edge")
    first = world.link(world.vpn("yellow", "core"), "edge", "blue", bridge="b")
    into = world.vpn(
        "red" if other == "vpn" else "yellow", "core-2" if other == "router" else "core"
    )
    second = world.link(into, "edge", "blue", bridge="c" if other == "bridge" else "b")
    assert first.up
    assert second.up


def test_a_client_id_cannot_be_a_bridge_s_name(world: Any) -> None:
    """An MQTT client that calls itself like a bridge neither is displaced by it nor displaces it."""
    local, remote = world.vpn("yellow", "core"), world.vpn("blue", "edge")
    impostor = world.client(remote, "#bridge/core/yellow/b")
    inside = world.client(local, "#bridge/b")
    link = world.link(local, "edge", "blue")
    late = world.client(remote, "#bridge/core/yellow/b")
    for client in (impostor, inside, late):
        assert client.connection.closing
        assert client.received()[0].reason_code == 0x85
    assert link.up
    assert remote.clients["#bridge/core/yellow/b"] is link.accepted.client


def test_the_end_leaves_nothing_behind(world: Any) -> None:
    """A link that is lost takes its client, its subscriptions and its counters with it."""
    local, remote = world.vpn("yellow", "core"), world.vpn("blue", "edge")
    link = world.link(local, "edge", "blue", ["a", "b/*", ">"])
    link.accepted.lost("reset")
    link.dialed.lost("reset")
    assert remote.subscription_count == 0
    assert (remote.clients, remote.publishers, remote.connections_of) == ({}, {}, {})
    assert (local.clients, local.publishers) == ({}, {})
    assert world.books["edge"].serving == {}
    assert link.events.told[-1] == ("lost", "reset")


def test_bad_names_in_hello(world: Any) -> None:
    """A router whose name no path could carry is refused before it can send anything."""
    world.vpn("blue", "edge")
    for router in ("r" * 300, "a/b"):
        accepted = LinkFactory(world.book("edge"), tls=False).connection("192.0.2.7")
        accepted.feed(encode.hello(frames.Hello(router, "b", "yellow", "blue")))
        (answer,) = spoken(accepted.outbox.take(1 << 20))
        assert isinstance(answer, frames.Refuse)
        assert answer.code == 0x82


# -- outbound subscriptions ------------------------------------------------------------------------


def test_subscriptions_have_codes_of_their_own(world: Any) -> None:
    """What is refused is told with code and first reason; the rest is granted and the link stays."""
    acl = AclProfile("default", subscribe=TopicRule(True, [("secret/>", SMF)]))
    remote = world.vpn("blue", "edge", acl=acl)
    link = world.link(
        world.vpn("yellow", "core"), "edge", "blue", ["a/>", "secret/x", "x" + "/x" * 128, "b"]
    )
    (answer,) = [frame for frame in heard(link) if isinstance(frame, frames.Subscribed)]
    assert answer.codes == [0x00, 0x87, 0x8F, 0x00]
    assert answer.reason == "403 Subscription ACL Denied: secret/x"
    assert link.events.told[-1] == ("subscribed", "403 Subscription ACL Denied: secret/x")
    assert link.up
    assert remote.subscription_count == 2


@pytest.mark.parametrize(
    "bounds",
    [
        {"bounds": VpnLimits(max_subscription_count=2)},
        {
            "profile": ClientProfile(
                "b", allow_bridge_connections_enabled=True, max_subscription_count=2
            )
        },
    ],
    ids=["VPN", "client profile"],
)
def test_limits_on_subscriptions(world: Any, bounds: dict[str, Any]) -> None:
    """One subscription too many is refused alone; one that is there already may be repeated."""
    remote = world.vpn("blue", "edge", **bounds)
    link = world.link(world.vpn("yellow", "core"), "edge", "blue", ["a", "b", "c"])
    assert heard(link)[-1].codes == [0x00, 0x00, 0x97]
    assert heard(link)[-1].reason == "400 Max Num Subscriptions Exceeded: c"
    link.half.want([(1, "a"), (0, "b"), (0, "c")], {})
    world.settle()
    assert heard(link)[-1].codes == [0x00]
    assert remote.subscription_count == 2


def test_a_long_refused_filter_is_cut(world: Any) -> None:
    """A reason quotes as much of a refused filter as a reason may hold, whole characters only."""
    world.vpn("blue", "edge", bounds=VpnLimits(max_topic_bytes=250))
    link = world.link(world.vpn("yellow", "core"), "edge", "blue", ["é" * 2_000])
    answer = heard(link)[-1]
    assert answer.codes == [0x8F]
    assert len(answer.reason.encode()) in range(
        limits.LINK_TEXT_BYTES - 1, limits.LINK_TEXT_BYTES + 1
    )


def test_unsubscribe_is_a_barrier(world: Any) -> None:
    """After the answer to UNSUBSCRIBE nothing comes that only those filters attracted (LINK-26)."""
    local, remote = world.vpn("yellow", "core"), world.vpn("blue", "edge")
    link = world.link(local, "edge", "blue", ["a", "b"])
    subscriber = world.client(local, "s")
    subscriber.subscribe("#")
    publisher = world.client(remote, "p")
    publisher.publish("a", b"1")
    link.dialed.say(encode.unsubscribe(frames.Unsubscribe(9, ["a", "never"])))
    link.half._pending += 1
    publisher.publish("a", b"2")
    publisher.publish("a", b"3")
    publisher.publish("b", b"4")
    # The first was published before the router heard of the change.
    assert subscriber.payloads() == [b"1", b"2", b"4"]
    assert [f.codes for f in heard(link) if isinstance(f, frames.Subscribed)][-1] == [0x00, 0x11]
    assert remote.subscription_count == 1
