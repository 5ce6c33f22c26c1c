"""vpnrouter.core.mqtt.connect: who is let in, which session, and what the CONNACK says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from vpnrouter import limits
from vpnrouter.core.access import AclProfile, TopicRule
from vpnrouter.core.credentials import ClientCertRules, ClientUsername, PeerCertificate
from vpnrouter.core.profile import ClientProfile
from vpnrouter.core.vpn import VpnLimits
from vpnrouter.events.log import EventLog
from vpnrouter.topics.grammar import MQTT
from vpnrouter.wire.mqtt.packets import Connack, Connect, Publish, Will
from vpnrouter.wire.mqtt.properties import Properties

if TYPE_CHECKING:
    from vpnrouter.testing.memory import MemoryRouter

HOUR = 3_600


def lasting(seconds: int = HOUR, **more: Any) -> Properties:
    """Properties of a CONNECT whose session outlives the connection."""
    return Properties(session_expiry_interval=seconds, **more)


def test_connack_says_what_the_router_offers(world: MemoryRouter) -> None:
    """MQTT 5 clients learn of maximum QoS 0, the topic aliases and the largest packet."""
    properties = world.connect("c").connack.properties
    assert properties.maximum_qos == 0
    assert properties.topic_alias_maximum == limits.TOPIC_ALIASES
    assert properties.maximum_packet_size is not None
    assert properties.maximum_packet_size > limits.MESSAGE_BYTES
    assert properties.server_keep_alive is None
    assert properties.assigned_client_identifier is None
    assert properties.response_information is None


def test_client_ids_are_assigned(world: MemoryRouter) -> None:
    """Clients without an id get different ones, and are known by them."""
    names = [world.connect("").connack.properties.assigned_client_identifier for _ in range(2)]
    assert names[0] != names[1]
    assert set(names) == set(world.vpn().clients)


def test_an_empty_client_id_of_3_1_1_wants_a_clean_session(world: MemoryRouter) -> None:
    """Without an id and without a clean session a 3.1.1 client is refused with 2 (MQTT-3.1.3-8)."""
    assert world.refused("", level=4, clean_start=False).reason_code == 0x85
    assert world.connect("", level=4).connack.reason_code == 0


def test_response_information_on_request(world: MemoryRouter) -> None:
    """A client that asks gets a topic prefix of its own."""
    wish = Properties(request_response_information=1)
    assert (
        world.connect("c", properties=wish).connack.properties.response_information == "_P2P/here/c"
    )


def test_client_ids_of_the_router_are_refused(world: MemoryRouter) -> None:
    """A client may not take a name that begins with #."""
    assert world.refused("#bridge/x").reason_code == 0x85


@pytest.mark.parametrize("level", [4, 5])
def test_a_session_without_expiry_is_never_resumed(world: MemoryRouter, level: int) -> None:
    """A session ends with its connection, also when another connection takes over (3.1.1: MQTT-3.1.2-6)."""
    first = world.connect("c", level=level)
    first.subscribe("a")
    second = world.connect("c", level=level, clean_start=False)
    assert first.closed
    assert not second.connack.session_present
    assert world.vpn().subscription_count == 0


def test_a_taken_over_client_hears_why(world: MemoryRouter) -> None:
    """MQTT 5: DISCONNECT 0x8E and nothing after it; the new connection goes on with the session."""
    first = world.connect("c", properties=lasting())
    first.subscribe("a")
    second = world.connect("c", clean_start=False, properties=lasting())
    assert second.connack.session_present
    world.connect("p").publish("a", b"1")
    assert first.reason() == 0x8E
    assert second.payloads() == [b"1"]


def test_a_taken_over_3_1_1_client_is_only_closed(world: MemoryRouter) -> None:
    """3.1.1 has no word for it."""
    first = world.connect("c", level=4, clean_start=False)
    world.connect("c", level=4, clean_start=False)
    assert first.closed
    assert first.drain() == b""


def test_takeover_crosses_protocol_levels(world: MemoryRouter) -> None:
    """A 3.1.1 session goes on with an MQTT 5 client, which gets frames of its own level."""
    first = world.connect("c", level=4, clean_start=False)
    first.subscribe("a/#")
    publisher = world.connect("p")
    publisher.publish("a/b", b"1")
    assert first.payloads() == [b"1"]
    second = world.connect("c", level=5, clean_start=False)
    publisher.publish("a/b", b"2")
    assert second.payloads() == [b"2"]


@pytest.mark.parametrize(("asked", "given"), [(0, 60), (30, None), (60, None), (61, 60)])
def test_keep_alive_is_bounded_by_the_profile(
    world: MemoryRouter, asked: int, given: int | None
) -> None:
    """A longer keep-alive than the client profile allows, or none, is answered with the profile's."""
    world.add_vpn("blue", profile=ClientProfile("default", max_keepalive_timeout=60))
    properties = world.connect("c", keep_alive_s=asked).connack.properties
    assert properties.server_keep_alive == given


@pytest.mark.parametrize(
    ("connect", "code", "v3"),
    [
        ({"vpn": "nowhere"}, 0x87, 5),
        ({"vpn": ""}, 0x87, 5),
        ({"vpn": "", "username": "u@nowhere", "password": b"pw"}, 0x86, 4),
        ({"vpn": "down"}, 0x88, 3),
        ({"vpn": "basic"}, 0x86, 4),
        ({"vpn": "basic", "username": "nobody", "password": b"pw"}, 0x86, 4),
        ({"vpn": "basic", "username": "shut", "password": b"pw"}, 0x87, 5),
        ({"vpn": "basic", "username": "shut", "password": b"no"}, 0x86, 4),
        ({"vpn": "basic", "username": "u", "password": b"no"}, 0x86, 4),
        ({"vpn": "basic", "username": "nopassword", "password": b"pw"}, 0x86, 4),
        ({"vpn": "full"}, 0x97, 3),
        ({"vpn": "closed"}, 0x87, 5),
    ],
)
@pytest.mark.parametrize("level", [4, 5])
def test_refusals(
    world: MemoryRouter, connect: dict[str, Any], code: int, v3: int, level: int
) -> None:
    """Each refusal has its reason code in MQTT 5 and its return code in 3.1.1, and is counted.

    That a username is shut down learns only who knows its password.
    """
    world.add_vpn("down").enabled = False
    names = (
        ClientUsername("shut", "pw", enabled=False),
        ClientUsername("nopassword"),
        ClientUsername("u", "pw"),
    )
    world.add_vpn("basic", names, basic=True)
    world.add_vpn("full", bounds=VpnLimits(max_connection_count=1))
    world.add_vpn("closed", acl=AclProfile("default", connect_default_allow=False))
    world.connect("first", vpn="full")
    client = world.hello("c", level=level, **connect)
    world.verify()
    data = client.drain()
    assert data[:1] == b"\x20"
    assert data[3] == (code if level == 5 else v3)
    assert client.closed
    assert world.router.logins_refused == 1
    assert world.router.protocol_errors == 0


SCRYPT = "scrypt$14$8$1$c2FsdHNhbHRzYWx0c2FsdA$" + "B" * 43
NO_SUCH = "403 Message VPN Not Allowed"
SHOWN = PeerCertificate("x", (), "ab", 0, 1 << 62, 0, "CN=x")


@pytest.mark.parametrize(
    ("vpn", "enabled", "who", "why"),
    [
        ({"basic": True, "usernames": (ClientUsername("u", SCRYPT),)}, True, "u", "403 Forbidden"),
        ({"basic": True, "usernames": (ClientUsername("a", SCRYPT),)}, True, "u", "403 Forbidden"),
        ({"basic": True, "usernames": (ClientUsername("u", "pw"),)}, True, "u", "403 Forbidden"),
        ({"basic": True, "usernames": (ClientUsername("u", SCRYPT),)}, False, "u", "403 Forbidden"),
        ({"basic": True}, True, "", "403 Forbidden"),
        ({}, False, "u", "503 Message VPN Unavailable"),
        ({}, False, "", "503 Message VPN Unavailable"),
        (
            {"client_cert": ClientCertRules(), "usernames": (ClientUsername("u"),)},
            *(True, "u", "403 Basic Authentication is Shutdown"),
        ),
        (
            {"basic": True, "client_cert": ClientCertRules(), "usernames": (ClientUsername("u"),)},
            *(True, "", "403 Forbidden: the certificate names no client username"),
        ),
        ({"acl": AclProfile("default", False)}, True, "u", "403 Forbidden"),
        (
            {
                "basic": True,
                "usernames": (ClientUsername("u", enabled=False, password_required=False),),
            },
            *(True, "u", "403 Client Username Is Shutdown"),
        ),
    ],
)
@pytest.mark.parametrize("level", [4, 5])
def test_message_vpns_that_strangers_cannot_tell_from_none(
    world: MemoryRouter, vpn: dict[str, Any], enabled: bool, who: str, why: str, level: int
) -> None:
    """On a listener of all message VPNs whoever has not proved who he is hears the same, after as long, of one that
    is not there; the event tells the operator what it was.
    """
    world.add_vpn("blue", **vpn).enabled = enabled
    log = EventLog("here", lambda: 1)
    told: list[str] = []
    log.listeners.append(lambda event: told.append(event.text.partition(" failed: ")[2]))
    world.router.context.events = log
    shut = why.endswith("Shutdown") and vpn.get("basic")
    found = []
    for name in ("blue", "nowhere"):
        client = world.open("", level)
        client.connection.certificate = None if who else SHOWN
        given = b"" if shut else b"no"
        client.send(
            Connect(
                "c",
                protocol_level=level,
                username=f"{who}@{name}",
                password=given if who else None,
            )
        )
        before = client.drain()
        costs = []
        for login in world.router.verifications.take_all():
            assert login.given == given
            costs.append(login.stored.rpartition("$")[0])
            login.settle(login.given == login.stored.encode())
        found.append((before, costs, client.drain(), client.closed))
    assert found[0] == found[1]
    before, costs, after, closed = found[0]
    answer = before + after
    assert answer[3] == (0x86 if level == 5 else 4)
    assert (b"403 Forbidden" in answer) == (level == 5)
    assert closed
    assert len(costs) == bool(who)
    assert told == [why, NO_SUCH]


def test_what_is_said_of_a_message_vpn_to_those_who_prove_themselves(world: MemoryRouter) -> None:
    """On the same listener, that a message VPN is disabled or a username shut down learns who has the password or the
    certificate.
    """
    names = (
        ClientUsername("u", "pw"),
        ClientUsername("x"),
        ClientUsername("off", "pw", enabled=False),
    )
    blue = world.add_vpn("blue", names, basic=True, client_cert=ClientCertRules())
    outcomes = []
    for enabled in (True, False):
        blue.enabled = enabled
        for who, password in (("off", b"pw"), ("u", b"pw"), ("", None)):
            client = world.open("")
            client.connection.certificate = None if who else SHOWN
            client.send(Connect("c", username=f"{who}@blue", password=password))
            world.verify()
            (answer,) = client.received()
            assert isinstance(answer, Connack)
            outcomes.append(answer.properties.reason_string or "")
            client.lose()
    shut = "403 Client Username Is Shutdown"
    assert outcomes == [shut, "", "", *["503 Message VPN Unavailable"] * 3]


def test_failures_are_counted_alike_where_there_is_no_message_vpn(world: MemoryRouter) -> None:
    """A username that was tried too often at a message VPN that is not there waits as it does at one that is."""
    world.add_vpn("blue", (ClientUsername("u", "pw"),), basic=True)
    answers = []
    for name in ("nowhere", "blue"):
        for _ in range(limits.LOGIN_FAILURES + 1):
            client = world.hello("c", vpn="", username=f"u@{name}", password=b"no")
            world.verify()
            answers.append(client.drain())
    half = len(answers) // 2
    assert answers[:half] == answers[half:]
    assert b"Too Many Failed Logins" in answers[-1]


def test_the_listener_or_the_username_chooses_the_vpn(world: MemoryRouter) -> None:
    """On a listener without a VPN the part after the last @ of the username does."""
    world.add_vpn("green")
    world.connect("c", vpn="", username="me@home@green")
    assert list(world.vpn("green").clients) == ["c"]
    assert list(world.vpn("green").connections_of) == ["me@home"]
    world.connect("d", vpn="blue", username="me@green")
    assert list(world.vpn("blue").connections_of) == ["me@green"]


@pytest.mark.parametrize("wanted", [0, 1])
def test_reason_strings_only_where_wanted(world: MemoryRouter, wanted: int) -> None:
    """A client that declines problem information gets the code alone."""
    world.vpn().enabled = False
    answer = world.refused("c", properties=Properties(request_problem_information=wanted))
    expected = "503 Message VPN Unavailable" if wanted else None
    assert answer.properties.reason_string == expected


def test_explanations_never_exceed_the_clients_largest_packet(world: MemoryRouter) -> None:
    """A reason string or response information that would make a packet too large is left out."""
    small = Properties(maximum_packet_size=25, request_response_information=1)
    assert world.connect("c" * 30, properties=small).connack.properties.response_information is None
    world.vpn().enabled = False
    answer = world.refused("d", properties=Properties(maximum_packet_size=25))
    assert answer.properties.reason_string is None


def test_a_password_is_verified_before_anything_is_read(world: MemoryRouter) -> None:
    """While the edge verifies a password the connection is paused; what came meanwhile is then handled in order."""
    world.add_vpn("blue", (ClientUsername("u", "pw"),), basic=True)
    client = world.open()
    client.send(
        Connect("c", username="u", password=b"pw"),
        Publish(b"a", b"1", retain=True),
    )
    client.send(Publish(b"b", b"2", retain=True))
    paused = [client.connection.paused]
    assert len(world.vpn().retained) == 0
    assert client.drain() == b""
    world.verify()
    paused.append(client.connection.paused)
    assert paused == [True, False]
    (answer,) = client.received()
    assert isinstance(answer, Connack)
    assert answer.reason_code == 0
    assert len(world.vpn().retained) == 2


@pytest.mark.parametrize("level", [4, 5])
def test_a_wrong_password(world: MemoryRouter, level: int) -> None:
    """It is refused as an unknown name is; what followed the CONNECT is not read."""
    world.add_vpn("blue", (ClientUsername("u", "pw"),), basic=True)
    client = world.open(level=level)
    client.send(
        Connect("c", username="u", password=b"no", protocol_level=level),
        Publish(b"a", b"1", retain=True),
    )
    world.verify()
    (answer,) = client.received()
    assert isinstance(answer, Connack)
    assert answer.reason_code == 0x86
    assert client.closed
    assert len(world.vpn().retained) == 0
    assert world.router.logins_refused == 1


def test_a_good_password_is_remembered(world: MemoryRouter) -> None:
    """The next login with the same password needs no verification, one with another does."""
    world.add_vpn("blue", (ClientUsername("u", "pw"),), basic=True)
    world.hello("c", username="u", password=b"pw")
    world.verify()
    world.connect("d", username="u", password=b"pw")
    world.hello("e", username="u", password=b"no")
    assert len(world.router.verifications) == 1


def test_a_verified_password_finds_the_client_gone(world: MemoryRouter) -> None:
    """The edge's answer to a connection that was lost meanwhile changes nothing."""
    world.add_vpn("blue", (ClientUsername("u", "pw"),), basic=True)
    client = world.hello("c", username="u", password=b"pw")
    client.lose()
    world.verify()
    assert world.vpn().clients == {}
    assert world.vpn().publishers == {}


def test_bounds_hold_for_logins_under_verification(world: MemoryRouter) -> None:
    """Clients verified at the same time do not slip past the bound on connections."""
    world.add_vpn(
        "blue", (ClientUsername("u", "pw"),), basic=True, bounds=VpnLimits(max_connection_count=2)
    )
    clients = [world.hello(f"c{number}", username="u", password=b"pw") for number in range(4)]
    world.verify()
    codes = [packet.reason_code for client in clients for packet in client.received()
             if isinstance(packet, Connack)]  # fmt: skip
    assert codes == [0, 0, 0x97, 0x97]
    assert len(world.vpn().publishers) == 2


def test_connections_per_client_username_are_bounded(world: MemoryRouter) -> None:
    """One username reaches its profile's bound, another does not feel it; a place becomes free again."""
    profile = ClientProfile("default", max_connection_count_per_client_username=2)
    world.add_vpn("blue", profile=profile)
    first = world.connect("a", username="u")
    world.connect("b", username="u")
    assert world.refused("c", username="u").reason_code == 0x97
    world.connect("d", username="v")
    first.disconnect()
    world.connect("c", username="u")
    assert world.vpn().connections_of == {"u": 2, "v": 1}


def test_a_takeover_needs_no_place(world: MemoryRouter) -> None:
    """A client may take its own connection over in a full message VPN."""
    world.add_vpn("blue", bounds=VpnLimits(max_connection_count=1))
    world.connect("c")
    world.connect("c")
    assert world.refused("d").reason_code == 0x97


@pytest.mark.parametrize(
    ("will", "code"),
    [
        (Will(b"denied/x", b""), 0x87),
        (Will(b"a/b/c/d", b""), 0x90),
        (Will(b"a", b"12345"), 0x95),
        (Will(b"a", b"", qos=1), 0x9B),
    ],
)
def test_a_will_that_may_not_be_published_refuses_the_client(
    world: MemoryRouter, will: Will, code: int
) -> None:
    """ACL, topic limits, size and QoS hold for wills as for messages."""
    publish = TopicRule(True, [("denied/#", MQTT)])
    world.add_vpn(
        "blue",
        acl=AclProfile("default", publish=publish),
        bounds=VpnLimits(max_topic_levels=3, max_msg_size=4),
    )
    assert world.refused("c", will=will).reason_code == code
    assert world.vpn().clients == {}


def test_enhanced_authentication_is_refused(world: MemoryRouter) -> None:
    """A client that names an authentication method gets 0x8C."""
    assert world.refused("c", properties=Properties(authentication_method="x")).reason_code == 0x8C


@pytest.mark.parametrize("clean", [True, False])
def test_a_will_without_delay_is_published_on_takeover(world: MemoryRouter, clean: bool) -> None:
    """The old connection's will is due when another takes the session (MQTT 5, 3.1.3.2.2)."""
    watcher = world.connect("w")
    watcher.subscribe("will")
    old = world.connect("c", properties=lasting(), will=Will(b"will", b"old"))
    old.subscribe("will")
    world.connect("c", clean_start=clean, properties=lasting(), will=Will(b"will", b"new"))
    assert watcher.payloads() == [b"old"]
    assert old.reason() == 0x8E


@pytest.mark.parametrize(("clean", "published"), [(True, [b"old"]), (False, [])])
def test_a_delayed_will_on_takeover(
    world: MemoryRouter, clean: bool, published: list[bytes]
) -> None:
    """A clean start ends the session and so publishes; going on with the session cancels."""
    watcher = world.connect("w")
    watcher.subscribe("will")
    will = Will(b"will", b"old", properties=Properties(will_delay_interval=9))
    world.connect("c", properties=lasting(), will=will)
    world.connect("c", clean_start=clean, properties=lasting())
    assert watcher.payloads() == published
    world.advance(10)
    assert watcher.payloads() == []


# -- certificates and unknown usernames (rules: ../test_login.py) --------------------------------------


@pytest.mark.parametrize("level", [4, 5])
def test_a_certificate_logs_in(world: MemoryRouter, level: int) -> None:
    """The certificate of the transport names the client username; without one nobody gets in."""
    world.add_vpn("blue", (ClientUsername("x"),), client_cert=ClientCertRules())
    client = world.open(level=level)
    client.connection.certificate = SHOWN
    client.send(Connect("c", protocol_level=level))
    (answer,) = client.received()
    assert isinstance(answer, Connack)
    assert answer.reason_code == 0
    admission = client.connection.admission
    assert admission is not None
    assert admission.username.name == "x"
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
