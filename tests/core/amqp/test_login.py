"""Logins of AMQP clients: SASL, message VPNs, open and close, and how long silence may last."""

from __future__ import annotations

import base64
import hashlib
import hmac
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from vpnrouter.core.access import AclProfile
from vpnrouter.core.credentials import ClientUsername
from vpnrouter.core.scram import salted_password, stored_text, verifier_of
from vpnrouter.wire.amqp import frames
from vpnrouter.wire.amqp.frames import AMQP_HEADER, EMPTY, SASL_HEADER
from vpnrouter.wire.amqp.performatives import (
    Close,
    Open,
    SaslChallenge,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
)
from vpnrouter.wire.amqp.types import Symbol

if TYPE_CHECKING:
    from tests.core.amqp.amqp_peer import Peer
    from tests.core.mqtt.spooled import SpooledWorld

SALT = b"0123456789abcdef"


def _verify(router: SpooledWorld) -> None:
    """Verify the passwords that wait, as the edge does."""
    for login in router.router.verifications.plain():
        login.settle(login.stored == login.given.decode())


def _guarded(router: SpooledWorld, *usernames: ClientUsername, **more: Any) -> Any:
    return router.add_vpn("blue", usernames or (ClientUsername("ann", "secret"),), True, **more)


def test_anonymous(router: SpooledWorld, amqp: ModuleType) -> None:
    """Anonymous."""
    peer: Peer = amqp.Peer(router)
    opened = peer.join("c")
    assert opened.container_id == "here"
    offered = {str(one) for one in opened.offered_capabilities or ()}
    assert {"ANONYMOUS-RELAY", "DELAYED_DELIVERY", "SHARED-SUBS"} <= offered
    client = router.vpn().clients["c"]
    assert client.client_connection() is peer.connection
    peer.say(Close())
    assert peer.answers() == [Close()]
    assert peer.closed
    assert "c" not in router.vpn().clients
    assert router.vpn().publishers == {}


def test_without_sasl(router: SpooledWorld, amqp: ModuleType) -> None:
    """Without sasl."""
    peer: Peer = amqp.Peer(router)
    (opened,) = peer.open("c")
    assert isinstance(opened, Open)
    assert "c" in router.vpn().clients


@pytest.mark.parametrize(("password", "code"), [("secret", 0), ("wrong", 1)])
def test_plain(router: SpooledWorld, amqp: ModuleType, password: str, code: int) -> None:
    """Plain."""
    _guarded(router)
    peer: Peer = amqp.Peer(router)
    assert peer.plain("ann", password) is None
    assert peer.connection.paused
    _verify(router)
    (outcome,) = peer.answers()
    assert outcome.code == code
    assert peer.closed == (code == 1)
    if not code:
        assert isinstance(peer.open()[0], Open)
        assert router.vpn().connections_of == {"ann": 1}


def test_unknown_name_takes_as_long_as_a_wrong_password(
    router: SpooledWorld, amqp: ModuleType
) -> None:
    """Unknown name takes as long as a wrong password."""
    _guarded(router)
    peer: Peer = amqp.Peer(router)
    assert peer.plain("bob", "secret") is None
    assert len(router.router.verifications)


@pytest.mark.parametrize(
    ("username", "host"), [("ann@blue", None), ("ann", "blue"), ("ann@blue", "10.0.0.1")]
)
def test_vpn_by_name(
    router: SpooledWorld, amqp: ModuleType, username: str, host: str | None
) -> None:
    """Vpn by name."""
    _guarded(router)
    peer: Peer = amqp.Peer(router, vpn="")
    peer.plain(username, "secret", host)
    _verify(router)
    assert peer.answers() == [SaslOutcome(0)]
    assert isinstance(peer.open(hostname="somewhere")[0], Open)
    assert "me" in router.vpn().clients


@pytest.mark.parametrize("password", ["secret", "wrong"])
def test_vpn_by_hostname_of_open(router: SpooledWorld, amqp: ModuleType, password: str) -> None:
    """Vpn by hostname of open."""
    _guarded(router)
    peer: Peer = amqp.Peer(router, vpn="")
    assert peer.plain("ann", password) == SaslOutcome(0)
    assert peer.open(hostname="blue") == []
    _verify(router)
    answers = peer.answers()
    if password == "secret":
        assert isinstance(answers[0], Open)
        assert "me" in router.vpn().clients
    else:
        assert isinstance(answers[0], Open)
        assert answers[1].error.condition == "amqp:unauthorized-access"
        assert router.vpn().clients == {}


def test_nobody_names_a_vpn(router: SpooledWorld, amqp: ModuleType) -> None:
    """Nobody names a vpn."""
    peer: Peer = amqp.Peer(router, vpn="")
    peer.sasl("ANONYMOUS")
    _, closed = peer.open()
    assert closed.error.condition == "amqp:unauthorized-access"
    assert peer.closed


def test_external_without_a_certificate(router: SpooledWorld, amqp: ModuleType) -> None:
    """External without a certificate."""
    peer: Peer = amqp.Peer(router)
    assert peer.sasl("EXTERNAL").code == 1


def test_mechanism_that_is_not_offered(router: SpooledWorld, amqp: ModuleType) -> None:
    """Mechanism that is not offered."""
    peer: Peer = amqp.Peer(router)
    assert peer.sasl("CRAM-MD5").code == 1


@pytest.mark.parametrize("stored", ["plain", "scram"])
@pytest.mark.parametrize("password", [b"secret", b"wrong"])
def test_scram(router: SpooledWorld, amqp: ModuleType, stored: str, password: bytes) -> None:
    """Scram."""
    verifier = verifier_of(salted_password(b"secret", SALT, 4_096), SALT, 4_096)
    text = "secret" if stored == "plain" else stored_text(verifier)
    _guarded(router, ClientUsername("ann", text))
    peer: Peer = amqp.Peer(router)
    peer.raw(SASL_HEADER)
    (offer,) = peer.answers()
    assert isinstance(offer, SaslMechanisms)
    assert Symbol("SCRAM-SHA-256") in offer.sasl_server_mechanisms
    bare = b"n=ann,r=abc"
    peer.say(amqp.SaslInit(Symbol("SCRAM-SHA-256"), b"n,," + bare), kind=frames.SASL)
    (challenge,) = peer.answers()
    assert isinstance(challenge, SaslChallenge)
    said = dict(part.split(b"=", 1) for part in challenge.challenge.split(b","))
    assert said[b"r"].startswith(b"abc")
    unproven = b"c=biws,r=" + said[b"r"]
    message = b",".join([bare, challenge.challenge, unproven])
    salted = salted_password(password, base64.b64decode(said[b"s"]), int(said[b"i"]))
    key = hmac.digest(salted, b"Client Key", "sha256")
    signed = hmac.digest(hashlib.sha256(key).digest(), message, "sha256")
    proof = bytes([one ^ other for one, other in zip(key, signed, strict=True)])
    peer.say(SaslResponse(unproven + b",p=" + base64.b64encode(proof)), kind=frames.SASL)
    for job in router.router.derivations:
        job.finish(job.work())
    (outcome,) = peer.answers()
    assert isinstance(outcome, SaslOutcome)
    if password == b"secret":
        assert outcome.code == 0
        server_key = hmac.digest(salted, b"Server Key", "sha256")
        signature = hmac.digest(server_key, message, "sha256")
        assert outcome.additional_data == b"v=" + base64.b64encode(signature)
        assert isinstance(peer.open()[0], Open)
    else:
        assert outcome.code == 1
        assert peer.closed


def test_acl_forbids_the_address(router: SpooledWorld, amqp: ModuleType) -> None:
    """Acl forbids the address."""
    router.add_vpn("blue", acl=AclProfile("default", False))
    peer: Peer = amqp.Peer(router)
    assert peer.sasl("ANONYMOUS").code == 1


def test_other_protocol_is_told_ours(router: SpooledWorld, amqp: ModuleType) -> None:
    """Other protocol is told ours."""
    peer: Peer = amqp.Peer(router)
    peer.raw(b"\x10\x0c\x00\x04MQTT\x05\x02\x00\x3c")
    assert peer.drain() == SASL_HEADER
    assert peer.closed
    late: Peer = amqp.Peer(router)
    late.sasl("ANONYMOUS")
    late.raw(b"AMQP\x00\x00\x09\x01")
    assert late.drain() == AMQP_HEADER
    assert late.closed


def test_second_connection_of_a_container(router: SpooledWorld, amqp: ModuleType) -> None:
    """Second connection of a container."""
    first: Peer = amqp.Peer(router)
    first.join("c")
    second: Peer = amqp.Peer(router)
    second.join("c")
    assert set(router.vpn().clients) == {"c", "c:2"}
    third: Peer = amqp.Peer(router)
    third.sasl("ANONYMOUS")
    sole = amqp.symbols("sole-connection-for-container")
    opened, closed = third.open("c", desired_capabilities=sole)
    assert opened.properties == {Symbol("amqp:connection-establishment-failed"): True}
    assert closed.error.condition == "amqp:invalid-field"
    assert closed.error.info == {Symbol("invalid-field"): Symbol("container-id")}
    assert third.closed


def test_sole_connection_keeps_others_out(router: SpooledWorld, amqp: ModuleType) -> None:
    """Sole connection keeps others out."""
    sole = amqp.symbols("sole-connection-for-container")
    first: Peer = amqp.Peer(router)
    first.join("c", desired_capabilities=sole)
    second: Peer = amqp.Peer(router)
    second.sasl("ANONYMOUS")
    _, closed = second.open("c")
    assert closed.error.condition == "amqp:invalid-field"
    first.connection.lost("gone")
    third: Peer = amqp.Peer(router)
    third.join("c")


@pytest.mark.parametrize("name", ["#mqtt", "x" * 10_000])
def test_container_id_that_is_not_taken(router: SpooledWorld, amqp: ModuleType, name: str) -> None:
    """Container id that is not taken."""
    peer: Peer = amqp.Peer(router)
    peer.sasl("ANONYMOUS")
    answers = peer.open(name)
    assert isinstance(answers[-1], Close)
    assert peer.closed


def test_stand_bys_are_told(router: SpooledWorld, amqp: ModuleType) -> None:
    """Stand bys are told."""
    peer: Peer = amqp.Peer(router)
    servers: list[object] = [{Symbol("hostname"): "other", Symbol("port"): 5671}]
    peer.connection._stand_bys = servers
    opened = peer.join()
    properties = opened.properties or {}
    assert properties[Symbol("failover-server-list")] == servers


def test_silence_and_signs_of_life(router: SpooledWorld, amqp: ModuleType) -> None:
    """Silence and signs of life."""
    peer: Peer = amqp.Peer(router)
    opened = peer.join(idle_time_out=20_000)
    assert opened.idle_time_out == 60_000
    router.advance(10.5)
    assert peer.drain() == EMPTY
    peer.raw(EMPTY)
    router.advance(100)
    peer.drain()
    router.advance(30)
    (closed,) = [one for one in peer.answers() if isinstance(one, Close)]
    assert closed.error is not None
    assert closed.error.condition == "amqp:resource-limit-exceeded"
    assert peer.closed


def test_stranger_that_says_nothing_is_closed(router: SpooledWorld, amqp: ModuleType) -> None:
    """Stranger that says nothing is closed."""
    peer: Peer = amqp.Peer(router)
    peer.raw(SASL_HEADER)
    router.advance(120)
    assert peer.closed


@pytest.mark.parametrize("size", [4, 8_193, 0xFFFF_FFFF])
def test_frame_of_a_stranger_is_bounded(router: SpooledWorld, amqp: ModuleType, size: int) -> None:
    """Frame of a stranger is bounded."""
    peer: Peer = amqp.Peer(router)
    peer.raw(SASL_HEADER + size.to_bytes(4, "big") + b"\x02\x01\x00\x00")
    outcome = peer.answers()[-1]
    assert isinstance(outcome, SaslOutcome)
    assert outcome.code == 1
    assert peer.closed


def test_every_cut_of_a_login_is_waited_for(router: SpooledWorld, amqp: ModuleType) -> None:
    """Every cut of a login is waited for."""
    data = (
        SASL_HEADER
        + frames.encode(amqp.SaslInit(Symbol("ANONYMOUS")), 0, frames.SASL)
        + AMQP_HEADER
        + frames.encode(Open("c"))
        + frames.encode(amqp.Begin(None, 0, 10, 10))
    )
    for cut in range(1, len(data)):
        peer: Peer = amqp.Peer(router)
        peer.raw(data[:cut])
        peer.raw(data[cut:])
        names = [type(one).__name__ for one in peer.answers()]
        assert names == ["SaslMechanisms", "SaslOutcome", "Open", "Begin"], cut
        peer.connection.lost("gone")


def test_changed_rights_apply_to_links(router: SpooledWorld, amqp: ModuleType) -> None:
    """Changed rights apply to links."""
    router.queue("q")
    peer: Peer = amqp.Peer(router)
    peer.join("c")
    peer.receiver("queue://q")
    vpn = router.vpn()
    admission = peer.connection.admission
    assert admission is not None
    vpn.profiles["default"].allow_guaranteed_msg_receive_enabled = False
    assert peer.connection.judge_again(admission, told=True)
    (detached,) = peer.answers()
    assert detached.error.condition == "amqp:unauthorized-access"
