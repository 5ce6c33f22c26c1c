"""A peer on a link that is not who it claims to be learns nothing, and nothing that it says is believed."""

import queue
import select
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import trustme

from vpnrouter import limits
from vpnrouter.core.scram import auth_message, proof_of, salted_password, verifier_of
from vpnrouter.errors import ProtocolError
from vpnrouter.wire.link import encode, frames
from vpnrouter.wire.link.decode import decode, link_frame_at

SECRET = "the-secret-of-the-hub"
NONCE = b"n" * frames.NONCE_BYTES


class Peer:
    """One end of a link by hand. Frames are handled as they come, in a thread of their own."""

    def __init__(self, sock: socket.socket, **hello: Any) -> None:
        self.sock = sock
        # What ties a proof to this connection.
        self.binding = (
            (sock.get_channel_binding() or b"") if isinstance(sock, ssl.SSLSocket) else b""
        )
        # OpenSSL wants one thread at a time for a connection.
        self.turn = threading.Lock()
        self.heard = b""
        self.frames: queue.Queue[Any] = queue.Queue()
        self.raw: dict[type, bytes] = {}
        self.asked = hello
        self.own: dict[str, Any] = {}
        self.thread = threading.Thread(target=self._listen, daemon=True)
        self.thread.start()

    def _listen(self) -> None:
        rest = b""
        # Somebody may speak TLS where we do not.
        with suppress(OSError, ProtocolError):
            while data := self._receive():
                self.heard += data
                rest += data
                pos = 0
                while length := link_frame_at(rest, pos, len(rest), limits.LINK_FRAME_BYTES):
                    frame = decode(rest, pos, length)
                    if isinstance(frame, frames.Heartbeat) and not frame.answer:
                        self.say(encode.heartbeat(frames.Heartbeat(frame.token, answer=True)))
                    else:
                        self.raw[type(frame)] = rest[pos : pos + length]
                        self.frames.put(frame)
                    pos += length
                rest = rest[pos:]
        self.frames.put(None)

    def _receive(self) -> bytes:
        while True:
            select.select([self.sock], [], [])
            with self.turn, suppress(ssl.SSLWantReadError):
                self.sock.settimeout(0)
                try:
                    return self.sock.recv(65_536)
                finally:
                    self.sock.settimeout(None)

    def close(self) -> None:
        """End the connection."""
        with suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)
        self.thread.join(20)
        self.sock.close()

    def say(self, data: bytes) -> None:
        """Send a frame."""
        with suppress(OSError), self.turn:
            self.sock.sendall(data)

    def next(self, *kinds: type) -> Any:
        """The next frame of these kinds; others are passed over. None once the peer has closed."""
        while True:
            frame = self.frames.get(timeout=60)
            if frame is None:
                assert type(None) in kinds, f"closed before {kinds}"
                return None
            if isinstance(frame, kinds):
                return frame

    def log_in(self, password: str, **fields: Any) -> Any:
        """Log in with a proof; WELCOME or REFUSE."""
        asked = {"scheme": frames.SCRAM, "nonce": NONCE, "features": frames.REUSE | frames.FLOWS}
        hello = encode.hello(frames.Hello(**(asked | fields)))
        self.say(hello)
        answer = self.next(frames.Challenge, frames.Refuse)
        if isinstance(answer, frames.Refuse):
            return answer
        message = auth_message(hello, self.raw[frames.Challenge], self.binding, b"")
        salted = salted_password(password.encode(), answer.salt, answer.iterations)
        self.say(encode.proof(frames.Proof(proof_of(salted, message))))
        answer = self.next(frames.Welcome, frames.Refuse)
        if isinstance(answer, frames.Welcome):
            verifier = verifier_of(salted, b"", 0)
            assert answer.signature == verifier.signature(message)
        return answer

    def logs_in(self, password: str, **fields: Any) -> None:
        """Log in as `log_in`, with success."""
        answer = self.log_in(password, **fields)
        assert isinstance(answer, frames.Welcome), answer.reason

    def let_in(self, router: str, vpn: str, password: str = "", **more: Any) -> frames.Hello:
        """Take the login of a bridge as router `router` would, knowing this password or none."""
        hello = self.next(frames.Hello)
        if hello.scheme == frames.SCRAM:
            challenge = encode.challenge(frames.Challenge(NONCE, b"saltsalt", 4_096))
            self.say(challenge)
            self.next(frames.Proof)
            message = auth_message(self.raw[frames.Hello], challenge, self.binding, b"")
            salted = salted_password(password.encode(), b"saltsalt", 4_096)
            more["signature"] = verifier_of(salted, b"", 0).signature(message)
        welcome = frames.Welcome(router, vpn, "#c", features=hello.features, **more)
        self.say(encode.welcome(welcome))
        return hello


@pytest.fixture
def dialled() -> Iterator[Callable[..., Peer]]:
    """`dialled(port)` is a connection of ours to a link listener."""
    peers: list[Peer] = []

    def make(port: int, context: ssl.SSLContext | None = None) -> Peer:
        sock = socket.create_connection(("127.0.0.1", port))
        if context is not None:
            sock = context.wrap_socket(sock, server_hostname="127.0.0.1")
        peers.append(Peer(sock))
        return peers[-1]

    yield make
    for peer in peers:
        peer.close()


class Answering:
    """A listener of ours; each connection to it is a `Peer`."""

    def __init__(self) -> None:
        self.sock = socket.create_server(("127.0.0.1", 0))
        self.port = self.sock.getsockname()[1]
        self.peers: queue.Queue[Peer] = queue.Queue()
        self.accepted: list[Peer] = []
        self.thread = threading.Thread(target=self._accept, daemon=True)
        self.thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                peer = Peer(self.sock.accept()[0])
                self.accepted.append(peer)
                self.peers.put(peer)

    def close(self) -> None:
        """End all connections; no more come."""
        self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()
        self.thread.join(20)
        for peer in self.accepted:
            peer.close()

    def next(self) -> Peer:
        """The next connection."""
        return self.peers.get(timeout=60)


@pytest.fixture
def answering() -> Iterator[Answering]:
    """A listener that is not the router that somebody means."""
    made = Answering()
    yield made
    made.close()


HUB = """
listeners:
  - {protocol: link, bind: "127.0.0.1:0"}
  - {protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}
  - {protocol: http, bind: "127.0.0.1:0"}
msg_vpns:
  blue:
    authentication: {basic: {enabled: true}}
    client_profiles: {bridging: {allow_bridge_connections_enabled: true}}
    acl_profiles:
      low: {client_connect: {default_action: allow}, subscribe_topic: {exceptions: ["low/>"]}}
    client_usernames:
      spoke: {password: spoke-pw, client_profile: bridging}
      low: {password: low-pw, client_profile: bridging, acl_profile: low}
      app: {password: app}
    queues:
      otherq: {permission: no-access}
      shared: {permission: consume, access_type: exclusive, subscriptions: ["work/>"]}
    bridges: {BRIDGES}
  red:
    bridges: {RED}
"""

GOOD = """
listeners:
  - {protocol: link, bind: "127.0.0.1:LINK"}
  - {protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: corp}
msg_vpns:
  corp:
    client_profiles: {bridging: {allow_bridge_connections_enabled: true}}
    client_usernames:
      hub-at-good: {password: the-secret-of-the-hub, client_profile: bridging}
      app: {password: app}
"""


def to_good(location: str, **more: str) -> str:
    """The hub's bridge to corp on good."""
    extra = "".join(f", {key}: {value}" for key, value in more.items())
    return (
        "{to-good: {remote_connection: {retry_delay: 1}, remote_subscriptions: ['weather/>'],"
        f" remote_authentication: {{basic: {{client_username: hub-at-good, password: {SECRET}}}}},"
        f" remote_msg_vpns: [{{name: corp, router: good, location: '{location}'{extra}}}]}}}}"
    )


def hub(bridges: str = "{}", red: str = "{}") -> str:
    """The configuration of the router under attack."""
    return HUB.replace("{BRIDGES}", bridges).replace("{RED}", red)


AS_GOOD = {
    "router": "good",
    "bridge": "b",
    "local_vpn": "corp",
    "remote_vpn": "blue",
    "remote_router": "hub",
    "client_username": "spoke",
}


def test_an_impostor_hears_no_password_and_is_not_used(
    start: Any, paho: Any, dialled: Any, free_port: Any
) -> None:
    """An account that logs in as the router that a bridge means is asked, proves nothing, and is left alone: the
    bridge dials, and takes nothing from it.
    """
    port = free_port()
    router = start(hub(to_good(f"127.0.0.1:{port}")), "hub")
    router.says("cannot connect")
    false = dialled(router.port("link"))
    false.logs_in("spoke-pw", **AS_GOOD)
    # It knows neither the password nor anything made of it.
    asked = false.let_in("good", "corp", "a guess")
    assert (asked.client_username, asked.password) == ("hub-at-good", "")
    detached = false.next(frames.Detach)
    assert "has not proved that it knows the password" in detached.reason
    assert SECRET.encode() not in false.heard
    good = start(GOOD.replace("LINK", str(port)), "good")
    router.bridge("to-good", inboundState="ready-in-sync", remoteRouterName="good")
    taker = paho(router.port("mqtt"), "t", login=("app", "app"))
    taker.subscribe("#")
    false.say(encode.message(frames.Direct(b"weather/forged", b"", b"forged")))
    paho(good.port("mqtt"), "p", login=("app", "app")).publish("weather/true", b"true")
    assert taker.next() == ("weather/true", b"true")


def test_a_bridge_does_not_move_to_an_impostor(start: Any, paho: Any, dialled: Any) -> None:
    """While the true link is up, another peer that logs in under the remote's name does not take its place."""
    good = start(GOOD.replace("LINK", "0"), "good")
    router = start(hub(to_good(f"127.0.0.1:{good.port('link')}")), "hub")
    before = router.bridge("to-good", inboundState="ready-in-sync")
    false = dialled(router.port("link"))
    # The name of the message VPN sorts before ours, so that it is the hub that would have to move.
    false.logs_in("spoke-pw", **AS_GOOD)
    asked = false.let_in("good", "corp", "a guess", resume=True)
    assert asked.resume
    false.next(frames.Detach)
    taker = paho(router.port("mqtt"), "t", login=("app", "app"))
    taker.subscribe("#")
    paho(good.port("mqtt"), "p", login=("app", "app")).publish("weather/true", b"true")
    assert taker.next() == ("weather/true", b"true")
    after = router.bridge("to-good", inboundState="ready-in-sync")
    assert after["remoteAddress"] == before["remoteAddress"]


def test_with_tls_nobody_is_asked_who_shows_no_certificate(
    start: Any, dialled: Any, tmp_path: Path, answering: Answering
) -> None:
    """What `tls_server_cert` asks of a remote holds for one that came in as well: it gets not even a HELLO."""
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    issued.private_key_and_cert_chain_pem.write_to_path(tmp_path / "hub.pem")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    pem, ca = tmp_path / "hub.pem", tmp_path / "ca.pem"
    bridges = to_good(f"127.0.0.1:{answering.port}", tls_enabled="true")
    text = hub(bridges).replace(
        '{protocol: link, bind: "127.0.0.1:0"}',
        f'{{protocol: links, bind: "127.0.0.1:0", tls: {{certificate: "{pem}", key: "{pem}"}}}}',
    )
    text = text.replace(
        "  blue:\n", f'  blue:\n    bridging: {{tls_server_cert: {{ca: "{ca}"}}}}\n'
    )
    router = start(text, "hub")
    context = ssl.create_default_context(cafile=str(ca))
    false = dialled(router.port("links"), context)
    false.logs_in("spoke-pw", tls=True, **AS_GOOD)
    # The bridge was told of the link, and dials its remote all the same.
    for _ in range(2):
        answering.next().close()
    false.say(encode.heartbeat(frames.Heartbeat(1, answer=False)))
    answer = false.next(frames.Hello, frames.Heartbeat)
    assert isinstance(answer, frames.Heartbeat)


def test_a_proof_is_bound_to_its_tls_connection(start: Any, dialled: Any, tmp_path: Path) -> None:
    """A proof made for another TLS connection, or for none, is refused."""
    authority = trustme.CA()
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(
        tmp_path / "hub.pem"
    )
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    pem = tmp_path / "hub.pem"
    text = hub().replace(
        '{protocol: link, bind: "127.0.0.1:0"}',
        f'{{protocol: links, bind: "127.0.0.1:0", tls: {{certificate: "{pem}", key: "{pem}"}}}}',
    )
    router = start(text, "hub")
    context = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
    one, other = dialled(router.port("links"), context), dialled(router.port("links"), context)
    one.binding = other.binding
    assert one.log_in("spoke-pw", tls=True, **AS_GOOD).reason == "403 Forbidden"
    other.logs_in("spoke-pw", tls=True, **AS_GOOD)


def v_far(username: str = "blue-at-far") -> str:
    """A bridge to wherever router far says that it is."""
    return (
        "{to-far: {remote_connection: {retry_delay: 1}, remote_subscriptions: ['>'],"
        f" remote_authentication: {{basic: {{client_username: {username}, password: {SECRET}}}}},"
        " remote_msg_vpns: [{name: corp, location: 'v:far'}]}}"
    )


def test_no_place_is_believed_across_message_vpns(
    start: Any, dialled: Any, answering: Answering
) -> None:
    """An account of one message VPN that says where a router is sends no bridge of another one there."""
    router = start(hub(v_far(), red=v_far("red-at-far")), "hub")
    router.says("no link to router far is up")
    false = dialled(router.port("link"))
    fields = AS_GOOD | {"router": "far", "local_vpn": "else", "link_port": answering.port}
    false.logs_in("spoke-pw", **fields)
    for _ in range(2):
        there = answering.next()
        asked = there.let_in("far", "corp", "a guess")
        assert (asked.local_vpn, asked.client_username) == ("blue", "blue-at-far")
    assert len(router.told("red", "no link to router far is up")) > 0


def test_a_place_that_is_believed_has_to_prove_itself(
    start: Any, dialled: Any, answering: Answering
) -> None:
    """Within one message VPN a false address costs one attempt: the router there hears no password and is left."""
    router = start(hub(v_far()), "hub")
    false = dialled(router.port("link"))
    # Another message VPN of far, so that the connection itself does not fit.
    fields = AS_GOOD | {"router": "far", "local_vpn": "else", "link_port": answering.port}
    false.logs_in("spoke-pw", **fields)
    there = answering.next()
    asked = there.let_in("far", "corp", "a guess")
    assert asked.password == ""
    there.next(type(None))
    assert SECRET.encode() not in there.heard
    router.says("has not proved that it knows the password")


def test_nobody_takes_over_the_bridge_of_another_username(
    start: Any, paho: Any, dialled: Any
) -> None:
    """The same names in HELLO, and the wish to resume, by another client username: the bridge that is there stays,
    and nothing of it is inherited.
    """
    router = start(hub(), "hub")
    identity = AS_GOOD | {"router": "branch", "bridge": "secrets"}
    boss = dialled(router.port("link"))
    boss.logs_in("spoke-pw", **identity)
    boss.say(encode.subscribe(frames.Subscribe(1, [(0, "secret/>")])))
    boss.next(frames.Subscribed)
    low = dialled(router.port("link"))
    fields = identity | {"client_username": "low", "resume": True}
    answer = low.log_in("low-pw", **fields)
    assert isinstance(answer, frames.Welcome), answer.reason
    assert not answer.resume
    low.say(encode.subscribe(frames.Subscribe(1, [(0, "low/>")])))
    low.next(frames.Subscribed)
    publisher = paho(router.port("mqtt"), "p", login=("app", "app"))
    for topic in ("secret/x", "low/x", "secret/y"):
        publisher.publish(topic, b"m")
    direct = frames.Direct
    assert [boss.next(direct, frames.Close).topic for _ in range(2)] == [b"secret/x", b"secret/y"]
    assert low.next(direct).topic == b"low/x"
    assert b"secret/" not in low.heard


def test_a_remote_brings_nothing_that_was_not_asked_for(
    start: Any, paho: Any, answering: Answering
) -> None:
    """A remote that knows the password sends other topics, retained ones and such that name a queue: all are
    discarded and counted, and what was asked for comes.
    """
    router = start(hub(to_good(f"127.0.0.1:{answering.port}")), "hub")
    there = answering.next()
    there.let_in("good", "corp", SECRET)
    asked = there.next(frames.Subscribe)
    there.say(encode.subscribed(frames.Subscribed(asked.request_id, [0])))
    router.bridge("to-good", inboundState="ready-in-sync")
    taker = paho(router.port("mqtt"), "t", login=("app", "app"))
    taker.subscribe("#")
    retained = frames.Extension([], 1, retain=True)
    for topic, extension in (
        (b"commands/shutdown", None),
        (b"forged/retained", retained),
        (b"$queue/otherq", None),
        (b"weather/true", None),
    ):
        there.say(encode.message(frames.Direct(topic, b"", b"x", extension)))
    assert taker.next() == ("weather/true", b"x")
    row = router.bridge("to-good", discardedRx={"not-subscribed": 3})
    assert row["rxImbalance"] == 0


def test_a_consumer_settles_nothing_of_another(start: Any, paho: Any, dialled: Any) -> None:
    """Positions that a bridge which stands by claims to have are kept: what the active one holds is not lost."""
    router = start(hub(), "hub")

    def bound(username: str, password: str, **bind: Any) -> tuple[Peer, Any]:
        peer = dialled(router.port("link"))
        fields = AS_GOOD | {"router": username, "client_username": username}
        peer.logs_in(password, **fields)
        peer.say(encode.bind(frames.Bind(1, "shared", 100, **bind)))
        return peer, peer.next(frames.Bound)

    active, first = bound("spoke", "spoke-pw")
    publisher = paho(router.port("mqtt"), "p", login=("app", "app"))
    for number in range(20):
        publisher.client.publish(f"work/{number}", b"%d" % number, qos=1).wait_for_publish(60)
    positions = [active.next(frames.Guaranteed).position for _ in range(20)]
    liar, answer = bound("low", "low-pw", accepted={first.store_id: [(1, 60_000)]})
    assert sorted(
        position for begin, count in answer.kept for position in range(begin, begin + count)
    ) == sorted(positions)
    active.close()
    again = [liar.next(frames.Guaranteed).message.payload for _ in range(20)]
    assert again == [b"%d" % number for number in range(20)]


def test_an_old_peer_is_told_why(start: Any, dialled: Any) -> None:
    """A password in the clear without TLS is refused with the way out, whether it is right or wrong."""
    router = start(hub(), "hub")
    for password in ("spoke-pw", "wrong"):
        peer = dialled(router.port("link"))
        peer.say(encode.hello(frames.Hello(**AS_GOOD, password=password, minor=0)))
        answer = peer.next(frames.Refuse)
        assert answer.code == 0x86
        assert "SCRAM-SHA-256" in answer.reason
