"""Stateful fuzz driver of links against a whole router: what peer routers may say, with extreme but legal values.

    python -m fuzz.links [--seconds 60] [--seed N]

Some peers dial the router and log in as bridges that take messages and queues from it. The router's own bridges dial
other peers, which send it messages. Peers answer rightly and wrongly, in order and out of order, and close in many
ways; the router is restarted and killed in between. whole_router.py says what counts as a finding. The driver prints
the seed first, so that a finding can be repeated as far as the timing of two processes allows. On a finding it prints
the last steps and exits 1.
"""

from __future__ import annotations

import contextlib
import random
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

from fuzz.whole_router import AttackingSocket, Finding, HonestClient, WholeRouter, attack, drive
from vpnrouter.core.scram import auth_message, salted_password, verifier_of
from vpnrouter.errors import ProtocolError
from vpnrouter.wire.link import codes as close_codes
from vpnrouter.wire.link import encode, frames
from vpnrouter.wire.link.compressed import LinkPacker, LinkUnpacker
from vpnrouter.wire.link.decode import Frame, decode, link_frame_at

if TYPE_CHECKING:
    from collections.abc import Callable

PASSWORD: Final = b"secret"
SALT: Final = b"0123456789abcdef"
BRIDGES: Final = 12
PEERS: Final = 4
STEPS_BETWEEN_LOOKS: Final = 300
MOST_FRAME: Final = 1 << 24

NUMBERS: Final = (
    0,
    1,
    2,
    3,
    127,
    128,
    255,
    65_535,
    0x7FFFFFFF,
    0xFFFFFFFF,
    1 << 62,
    (1 << 63) - 1,
    (1 << 64) - 1,
)
TOPICS: Final = (
    *(
        "d/a",
        "d/b/c",
        "e",
        "secret/x",
        "$queue/in",
        "$queue/none",
        "$SYS/LOG/x",
        "é/ü",
        "a//b",
        "/",
    ),
    *(
        "d/" + "x" * 65_000,
        "/".join(["d"] * 128),
        "/".join(["d"] * 129),
        "#share/g/a",
        "d/+",
        "d/#",
        "",
    ),
)
FILTERS: Final = (
    *(
        "d/>",
        ">",
        "*/*",
        "e",
        "secret/>",
        "!d/a",
        "#share/g/d/>",
        "#noexport/d/>",
        "d/*/c",
        "x*",
        "",
    ),
    *("$queue/q", "a" * 60_000, "/".join("*" * 128), "d/>/x", "ü/>"),
)
SELECTORS: Final = ("", "", "", "a = 1", "x IS NULL", "NOT " * 300 + "a", "a LIKE '%_%'", "(", "é")
PATHS: Final[tuple[list[str], ...]] = (
    ["far/v"],
    ["x/y", "far/v"],
    [f"r{number}/v" for number in range(7)] + ["far/v"],
    [f"r{number}/v" for number in range(254)] + ["far/v"],
    ["fuzzed/blue", "far/v"],
    [],
)


_REMOTES: Final = (
    ", queue_binding: q1",
    ", queue_binding: q2, compressed_data_enabled: true",
    ", compressed_data_enabled: true",
    ", queue_binding: q3",
)


def configuration(ports: list[int]) -> str:
    """The router's configuration: bridges to the ports, queues that peers may take, another message VPN to watch."""
    bridges = "".join(
        f"""
      b{index}:
        remote_authentication: {{basic: {{client_username: peer, password: secret}}}}
        remote_connection: {{retry_delay: 1}}
        on_reject: {("block", "park", "skip", "block")[index % 4]}
        remote_msg_vpns: [{{name: v, location: "127.0.0.1:{port}"{_REMOTES[index % 4]}}}]
        remote_subscriptions: [{{topic: "d/>"}}, "e"]"""
        for index, port in enumerate(ports)
    )
    return f"""\
router: {{name: fuzzed, data_dir: ./data}}
listeners:
  - {{protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}}
  - {{protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: watch}}
  - {{protocol: link, bind: "127.0.0.1:0"}}
  - {{protocol: http, bind: "127.0.0.1:0"}}
trace: {{directory: ./traces, sample: 0.2}}
msg_vpns:
  watch:
    authentication: {{basic: {{enabled: false}}}}
  blue:
    authentication: {{basic: {{enabled: false}}}}
    max_msg_spool_usage: 20
    client_profiles:
      default: {{allow_bridge_connections_enabled: true, max_subscription_count: 50}}
    queues:
      q: {{subscriptions: ["a/>"], access_type: exclusive, max_spooled_msg_count: 300}}
      r: {{subscriptions: ["a/b"], access_type: exclusive, max_redelivery_count: 2}}
      in: {{subscriptions: ["d/a"], max_spooled_msg_count: 60}}
      closed: {{permission: no-access}}
    topic_endpoints:
      te: {{}}
    bridges:{bridges}
"""


@final
class Peer(AttackingSocket):
    """One connection, dialled or accepted by the attacker."""

    def __init__(self, sock: socket.socket, name: str, *, dialled: bool) -> None:
        super().__init__(sock)
        self.name = name
        self.dialled = dialled
        self.up = False
        self.flows: list[int] = []
        self.positions: list[int] = []
        self.requests: list[Frame] = []
        self.hello: frames.Hello | None = None
        self.hello_raw = b""
        self.signature = b""
        self.packer: LinkPacker | None = None
        self._unpacker: LinkUnpacker | None = None
        self._came = b""

    def listen(self) -> list[Frame]:
        """The frames that came."""
        chunk = self.take()
        if not chunk:
            return []
        try:
            found, self._came = self._frames(self._came + chunk)
        except ProtocolError as error:
            raise Finding(f"the router broke the protocol: {error}") from error
        return found

    def _frames(self, data: bytes) -> tuple[list[Frame], bytes]:
        found: list[Frame] = []
        start = 0
        while size := link_frame_at(data, start, len(data), MOST_FRAME):
            frame = decode(data, start, size)
            if isinstance(frame, frames.Hello):
                self.hello, self.hello_raw = frame, data[start : start + size]
            start += size
            if isinstance(frame, frames.Compressed):
                if self._unpacker is None:
                    self._unpacker = LinkUnpacker(MOST_FRAME)
                found += self._frames(self._unpacker.unpack(frame.body))[0]
            else:
                found.append(frame)
        return found, data[start:]


@final
class Links:
    """All peers of one run; `doors` are what the router's bridges dial."""

    def __init__(
        self, router: WholeRouter, draw: random.Random, doors: list[socket.socket]
    ) -> None:
        self._router = router
        self._draw = draw
        self._doors = doors
        # What it publishes goes to the queues that peers take.
        self._feeder = HonestClient(router, 0, "feeder", topic="a/b")
        self._peers: list[Peer] = []
        self.count = 0
        self.logins = 0
        # Subscriptions that the router's own bridges made here: such a bridge is really up.
        self.asked = 0

    # -- values ----------------------------------------------------------------------------------

    def _number(self) -> int:
        return self._draw.choice(NUMBERS)

    def _ranges(self, known: list[int]) -> list[tuple[int, int]]:
        """Ranges of positions in rising order: positions that were sent, that are near them, or any."""
        draw = self._draw
        starts = [draw.choice(known) for _ in range(3)] if known and draw.randrange(3) else []
        starts += [
            draw.choice((1, 2, 1_000, 1 << 40, (1 << 63) - 9)) for _ in range(draw.randrange(3))
        ]
        ranges: list[tuple[int, int]] = []
        for start in sorted(set(starts)):
            if not ranges or start > sum(ranges[-1]):
                ranges.append((start, draw.choice((1, 1, 1, 2, 60_000))))
        return ranges or [(1, 1)]

    def _extension(self) -> frames.Extension | None:
        draw = self._draw
        if draw.randrange(3) == 0:
            return None
        path = draw.choice(PATHS)
        return frames.Extension(
            path,
            max(len(path), draw.choice((1, 1, 2, 8, 9, 255))),
            trace_high=draw.choice((0, 1, (1 << 64) - 1)),
            trace_low=draw.choice((0, 1, (1 << 64) - 1)),
            message_id=self._number(),
            trace_flags=draw.choice((0, 1, 255)),
            origin_router=draw.choice(("", "far", "é")),
            origin_vpn=draw.choice(("", "v")),
            origin_ts_ns=self._number(),
            retain=draw.randrange(3) == 0,
            expiry_ms=draw.choice((-1, *NUMBERS)),
        )

    def _message(self) -> frames.Direct:
        draw = self._draw
        properties = draw.choice(
            (b"", b"\x01\x01", b"\x02\xff\xff\xff\xff", b"\x26\0\x01k\0\x01v", b"\x09\0\x02ab")
        )
        payload = b"p" * draw.choice((0, 1, 100, 70_000))
        return frames.Direct(draw.choice(TOPICS).encode(), properties, payload, self._extension())

    def _text(self) -> str:
        return self._draw.choice(("", "503 Spool Over Quota", "\x1b[2J", "ü" * 400, "x" * 1_000))

    # -- coming up -------------------------------------------------------------------------------

    def dial(self) -> None:
        """Open a connection and say HELLO."""
        draw = self._draw
        try:
            address = ("127.0.0.1", self._router.ports["link"][0])
            peer = Peer(
                socket.create_connection(address, 10), f"dialled {self.count}", dialled=True
            )
        except OSError:
            self._router.examine()
            return
        self._peers.append(peer)
        self._send(peer, encode.hello, self._hello())
        if draw.randrange(10) == 0:
            # Without waiting for the answer.
            self.act(peer)

    def _hello(self) -> frames.Hello:
        draw = self._draw
        return frames.Hello(
            draw.choice(("far", "far", "other", "fuzzed", "é")),
            draw.choice(("b", "b", "c", "x" * 150, "x" * 1_000, "\x1b[2J")),
            draw.choice(("v", "v", "w", "blue")),
            draw.choice(("blue", "blue", "blue", "none", "watch")),
            remote_router=draw.choice(("", "fuzzed", "another")),
            client_username=draw.choice(("", "anybody", "x" * 189)),
            features=draw.choice((0, frames.REUSE, frames.REUSE | frames.FLOWS, 7, 7, 7, 0xFFFF)),
            heartbeat_ms=draw.choice((0, 100, 5_000, 0xFFFFFFFF)),
            max_frame=draw.choice((0, 1, 65_536, 1 << 24, 0xFFFFFFFF)),
            incarnation=self._number(),
            resume=draw.randrange(3) == 0,
            link_port=draw.choice((0, 1, 65_535)),
            links_port=draw.choice((0, 1, 65_535)),
            minor=draw.choice((0, 0, 0, 255)),
        )

    def accept(self) -> None:
        """Take the connections of the router's bridges."""
        for door in self._doors:
            with contextlib.suppress(BlockingIOError):
                sock, _ = door.accept()
                self._peers.append(Peer(sock, f"accepted {self.count}", dialled=False))

    def hear(self, peer: Peer) -> None:
        """Note the frames that came, and answer most of those that ask for an answer."""
        for frame in peer.listen():
            if isinstance(frame, frames.Hello):
                if frame.scheme == frames.SCRAM and self._draw.randrange(20):
                    self._challenge(peer)
                else:
                    self._welcome(peer, frame)
            elif isinstance(frame, frames.Proof):
                if peer.hello is not None:
                    self._welcome(peer, peer.hello)
            elif isinstance(frame, frames.Welcome):
                self.logins += 1
                peer.up = True
                if frame.features & frames.ZSTD:
                    peer.packer = LinkPacker(MOST_FRAME)
            elif isinstance(frame, frames.Bound):
                if frame.flow_id:
                    peer.flows.append(frame.flow_id)
            elif isinstance(frame, frames.Guaranteed):
                if len(peer.positions) < 1_000:
                    peer.positions.append(frame.position)
            else:
                self._answer(peer, frame)

    def _challenge(self, peer: Peer) -> None:
        """Ask for a proof. Most challenges are allowed, and come from a peer that knows the password."""
        draw = self._draw
        iterations = draw.choice((4_096, 4_096, 4_096, 4_096, 1, 0xFFFFFFFF))
        asked = frames.Challenge(draw.randbytes(frames.NONCE_BYTES), SALT, iterations)
        password = PASSWORD if draw.randrange(12) else b"wrong"
        verifier = verifier_of(salted_password(password, SALT, 4_096), SALT, 4_096)
        raw = encode.challenge(asked)
        peer.signature = verifier.signature(auth_message(peer.hello_raw, raw, b"", b""))
        self._router.note(f"{peer.name} Challenge({iterations})")
        self._say(peer, raw)

    def _welcome(self, peer: Peer, hello: frames.Hello) -> None:
        draw = self._draw
        answer = frames.Welcome(
            draw.choice(("far", "far", "far", "other")),
            hello.remote_vpn if draw.randrange(12) else "w",
            "#bridge/fuzzed/blue/b",
            features=hello.features & draw.choice((0, 7, 7, 7)),
            heartbeat_ms=hello.heartbeat_ms,
            max_frame=draw.choice((65_536, 1 << 24, 1)),
            incarnation=self._number(),
            resume=hello.resume and draw.randrange(2) == 0,
            link_port=draw.choice((0, 1)),
            signature=peer.signature,
        )
        if draw.randrange(12) == 0:
            self._send(
                peer,
                encode.refuse,
                frames.Refuse(draw.choice(tuple(close_codes.REASONS)), self._text()),
            )
            return
        self.logins += 1
        peer.up = True
        self._send(peer, encode.welcome, answer)
        if answer.features & frames.ZSTD:
            peer.packer = LinkPacker(MOST_FRAME)

    def _answer(self, peer: Peer, frame: Frame) -> None:
        draw = self._draw
        if isinstance(frame, frames.Heartbeat) and not frame.answer:
            self._send(peer, encode.heartbeat, frames.Heartbeat(frame.token, answer=True))
        elif isinstance(frame, (frames.Subscribe, frames.Unsubscribe)) and draw.randrange(20):
            self.asked += 1
            codes = [draw.choice((0, 0, 0, 0x87)) for _ in frame.filters]
            self._send(
                peer, encode.subscribed, frames.Subscribed(frame.request_id, codes, self._text())
            )
        elif isinstance(frame, frames.Bind) and draw.randrange(20):
            if draw.randrange(6) == 0:
                bound = frames.Bound(frame.request_id, 0x8F, 0, 0, bytes(16), "503 Unknown Queue")
            else:
                flow = 2 * draw.randrange(1, 9)
                peer.flows.append(flow)
                store = draw.choice((b"s" * 16, b"t" * 16))
                bound = frames.Bound(frame.request_id, 0, flow, frame.window, store)
            self._send(peer, encode.bound, bound)

    # -- what peers do ---------------------------------------------------------------------------

    def act(self, peer: Peer) -> None:
        """Send some frames, which may or may not be allowed at this point."""
        draw = self._draw
        flow = (
            draw.choice(peer.flows)
            if peer.flows and draw.randrange(12)
            else self._number() & 0xFFFFFFFF
        )
        match draw.randrange(20):
            case 0 | 1 | 2:
                for _ in range(draw.choice((1, 3, 30))):
                    self._send(peer, encode.message, self._message())
            case 3 | 4 | 5:
                for _ in range(draw.choice((1, 3, 30))):
                    position = draw.choice((self.count, self.count, 1, 2, (1 << 63) - 1))
                    flags = draw.randrange(16)
                    frame = frames.Guaranteed(
                        flow, position, flags, draw.randrange(10), self._message()
                    )
                    self._send(peer, encode.guaranteed_message, frame)
            case 6 | 7:
                count = draw.choice((1, 2, 60))
                filters = [
                    (draw.choice((0, 1, 2, 8, 255)), draw.choice(FILTERS)) for _ in range(count)
                ]
                selectors = {
                    text: draw.choice(SELECTORS) for _, text in filters if draw.randrange(3) == 0
                }
                request = frames.Subscribe(self._number() & 0xFFFFFFFF, filters, selectors)
                self._send(peer, encode.subscribe, request)
            case 8:
                dropped = frames.Unsubscribe(
                    7, [draw.choice(FILTERS) for _ in range(draw.choice((1, 20)))]
                )
                self._send(peer, encode.unsubscribe, dropped)
            case 9 | 10:
                self._bind(peer)
            case 11 | 12:
                ack = frames.Ack(
                    flow, draw.choice((0, 1, 255, 65_535)), self._ranges(peer.positions)
                )
                self._send(peer, encode.ack, ack)
            case 13:
                position = draw.choice(peer.positions) if peer.positions else 1
                reject = frames.Reject(flow, position, 0x97, self._text(), draw.randrange(3))
                self._send(peer, encode.reject, reject)
            case 14:
                position = draw.choice(peer.positions) if peer.positions else 1
                settled = frames.Settled(flow, position, draw.randrange(7))
                self._send(peer, encode.settled, settled)
            case 15:
                self._send(peer, encode.forget, frames.Forget(flow, self._ranges([self.count])))
            case 16:
                self._send(peer, encode.unbind, frames.Unbind(flow, 0x88, self._text()))
                self._send(peer, encode.unbound, frames.Unbound(flow))
            case 17:
                beats = encode.heartbeat(
                    frames.Heartbeat(self._number(), answer=draw.randrange(2) == 0)
                )
                self._say(peer, beats * draw.choice((1, 2, 2_000)))
            case 18:
                self._go(peer)
            case _:
                extension = frames.Extension(["x/y", "far/v"], 2, message_id=9, expiry_ms=5)
                raw = bytearray(encode.message(frames.Direct(b"d/a", b"", b"xyz", extension)))
                raw[draw.randrange(len(raw))] = draw.randrange(256)
                self._say(peer, bytes(raw))

    def _bind(self, peer: Peer) -> None:
        draw = self._draw
        stores = {
            store: self._ranges(peer.positions)
            for store in (b"s" * 16, b"u" * 16)
            if draw.randrange(3) == 0
        }
        bind = frames.Bind(
            draw.randrange(1, 60),
            draw.choice(("q", "q", "r", "none", "closed", "te", "in", "é")),
            draw.choice((1, 255, 65_535)),
            accepted=stores,
            selector=draw.choice(SELECTORS),
            lanes=draw.randrange(3),
            on_reject=draw.randrange(3),
        )
        self._send(peer, encode.bind, bind)

    def _go(self, peer: Peer) -> None:
        draw = self._draw
        match draw.randrange(5):
            case 0:
                self._send(peer, encode.detach, frames.Detach(0, self._text()))
            case 1:
                self._send(
                    peer,
                    encode.close,
                    frames.Close(draw.choice(tuple(close_codes.REASONS)), self._text()),
                )
            case 2:
                self._send(peer, encode.hello, self._hello())
            case 3:
                whole = encode.message(frames.Direct(b"d/a", b"", b"x" * 1_000))
                peer.say(whole[: draw.randrange(1, len(whole))])
                peer.close()
            case _:
                peer.close()

    # -- the run ---------------------------------------------------------------------------------

    def _send(self, peer: Peer, encoder: Callable[[Any], bytes], frame: object) -> None:
        slots = getattr(type(frame), "__slots__", ())
        shown = ", ".join(f"{name}={getattr(frame, name)!r}"[:60] for name in slots)
        self._router.note(f"{peer.name} {type(frame).__name__}({shown})")
        # A drawn value may be longer than its field.
        with contextlib.suppress(ValueError, OverflowError):
            self._say(peer, encoder(frame))

    def _say(self, peer: Peer, data: bytes) -> None:
        if peer.packer is not None and self._draw.randrange(3) == 0:
            data = peer.packer.pack(data)
        peer.say(data)

    def step(self) -> None:
        """One peer does one thing."""
        self.count += 1
        self.accept()
        self._peers = [peer for peer in self._peers if peer.sock is not None]
        if sum(peer.dialled for peer in self._peers) < PEERS and self._draw.randrange(8) == 0:
            self.dial()
        if not self._peers:
            return
        peer = self._draw.choice(self._peers)
        self.hear(peer)
        if peer.up:
            self.act(peer)

    def steps(self) -> None:
        """Take the steps between two looks at the router, and publish to the queues between them."""
        for _ in range(STEPS_BETWEEN_LOOKS):
            self.step()
            if self._draw.randrange(10) == 0:
                self._feeder.publishes()

    def hang_up(self) -> None:
        """Close the connections of all peers and of the feeder."""
        for peer in self._peers:
            peer.close()
        self._feeder.lost()


def fuzz(draw: random.Random, seconds: float, folder: Path) -> str:
    """Run for so long; what was done. Raises Finding."""
    doors = [socket.create_server(("127.0.0.1", 0)) for _ in range(BRIDGES)]
    for door in doors:
        door.setblocking(False)
    ports = [int(door.getsockname()[1]) for door in doors]
    with contextlib.ExitStack() as stack:
        for door in doors:
            stack.callback(door.close)
        router = stack.enter_context(WholeRouter(folder, configuration(ports)))
        links = Links(router, draw, doors)
        attack(router, draw, seconds, links.steps, links.hang_up)
        return f"{links.count} steps, {links.logins} logins, {links.asked} requests of bridges"


if __name__ == "__main__":
    sys.exit(drive(__doc__ or "", fuzz))
