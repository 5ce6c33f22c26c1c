"""Stateful fuzz driver of AMQP against a whole router: what clients may say, with extreme but legal values.

    python -m fuzz.amqp_links [--seconds 60] [--seed N]

Several clients log in, begin sessions, attach links of all kinds, send and settle rightly and wrongly, open
transactions, give credit or none, read or do not, and break off. The router is restarted and killed in between.
whole_router.py says what counts as a finding.
"""

from __future__ import annotations

import contextlib
import random
import socket
import sys
from pathlib import Path
from typing import Any, Final, final

from fuzz.whole_router import AttackingSocket, Finding, WholeRouter, attack, drive
from vpnrouter.errors import ProtocolError
from vpnrouter.wire.amqp import frames, performatives, types
from vpnrouter.wire.amqp.frames import AMQP_HEADER, SASL_HEADER
from vpnrouter.wire.amqp.performatives import (
    Accepted,
    Attach,
    Begin,
    Close,
    Coordinator,
    Declare,
    Declared,
    Detach,
    Discharge,
    Disposition,
    End,
    Flow,
    Header,
    MessageProperties,
    Modified,
    Open,
    Received,
    Rejected,
    Released,
    SaslInit,
    Source,
    Target,
    TransactionalState,
    Transfer,
    described,
)
from vpnrouter.wire.amqp.types import Described, Symbol, Typed

CONFIG: Final = """\
router: {name: fuzzed, data_dir: ./data}
listeners:
  - {protocol: amqp, bind: "127.0.0.1:0"}
  - {protocol: http, bind: "127.0.0.1:0"}
  - {protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}
  - {protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: watch}
trace: {directory: ./traces, sample: 0.2}
msg_vpns:
  watch:
    authentication: {basic: {enabled: false}}
  blue:
    max_msg_spool_usage: 20
    client_profiles:
      small: {max_subscription_count: 3, max_egress_flow_count: 2, max_outbox_bytes: 65536,
              max_endpoint_count_per_client_username: 3}
    acl_profiles:
      some:
        client_connect: {default_action: allow}
        publish_topic: {default_action: allow, exceptions: ["secret/>"]}
        subscribe_topic: {default_action: allow, exceptions: ["secret/>"]}
    client_usernames:
      all: {password: all}
      some: {password: some, acl_profile: some, client_profile: small}
    queues:
      q: {subscriptions: ["a/>"], max_spooled_msg_count: 40, access_type: exclusive}
      shared: {subscriptions: ["a/b"], access_type: non-exclusive, max_redelivery_count: 2, max_ttl: 1,
               respect_ttl_enabled: true, dead_msg_queue: dead}
      parts: {subscriptions: ["p/>"], access_type: non-exclusive, partition: {count: 3}}
      last: {subscriptions: ["l/>"], max_msg_spool_usage: 0}
      dead: {access_type: non-exclusive}
      closed: {permission: no-access}
"""

NUMBERS: Final = (0, 1, 2, 255, 256, 65_535, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFE, 0xFFFF_FFFF)
ADDRESSES: Final = (
    *(
        "topic://a/b",
        "topic://a/*",
        "topic://>",
        "a/b",
        "p/x",
        "l/x",
        "queue://q",
        "queue://shared",
    ),
    *("queue://parts", "queue://dead", "queue://closed", "queue://none", "queue://#x", "secret/x"),
    *(
        "",
        None,
        "topic://",
        "queue://",
        "topic://a//b",
        "topic://" + "x/" * 200,
        "topic://#share/g/a",
    ),
)
SELECTORS: Final = (
    "",
    "a = 1",
    "JMSPriority > 3",
    "(" * 90,
    "NOT " * 200 + "a",
    "x LIKE '%_'",
    "\0",
)
CAPABILITIES: Final = ("queue", "topic", "temporary-queue", "temporary-topic", "shared", "global")
NAMES: Final = ("one", "two", "sub|1", "sub", "sub|global", "x" * 2_000, "", "ü")
CLIENTS: Final = 7
HANDLES: Final = 12
STEPS_BETWEEN_LOOKS: Final = 150


@final
class Peer(AttackingSocket):
    """One socket of the attacker and what it knows of the conversation."""

    def __init__(self) -> None:
        super().__init__()
        self.came = b""
        self.deliveries: list[int] = []
        self.transactions: list[bytes] = []
        # Links that are attached: those that the client sends over, and those that it is sent messages over.
        self.senders: set[int] = set()
        self.receivers: set[int] = set()
        self.coordinators: set[int] = set()
        # Handles that an attach or a detach is under way for.
        self.busy: set[int] = set()
        self.leaving: set[int] = set()
        self.next_id = 0
        self.reads = True
        self.begins = False

    def close(self) -> None:
        """Hang up."""
        super().close()
        self.came = b""
        self.deliveries.clear()
        self.transactions.clear()
        self.forget_links()

    def forget_links(self) -> None:
        """The session has ended, and all links with it."""
        self.senders.clear()
        self.receivers.clear()
        self.coordinators.clear()
        self.busy.clear()
        self.leaving.clear()
        self.deliveries.clear()
        self.next_id = 0
        self.begins = False

    def listen(self) -> None:
        """Read what came, and remember what needs an answer."""
        chunk = self.take() if self.reads else b""
        self.came += chunk
        try:
            start = 0
            while start < len(self.came):
                if self.came[start : start + 4] == b"AMQP":
                    start += 8
                    continue
                size = frames.frame_at(self.came, start, len(self.came), 1 << 28)
                if not size:
                    break
                self._note(frames.decode(self.came, start, size).performative)
                start += size
            self.came = self.came[start:]
        except ProtocolError as error:
            raise Finding(f"the router broke the protocol: {error}") from error

    def _note(self, performative: object) -> None:
        if isinstance(performative, Transfer) and performative.delivery_id is not None:
            self.deliveries.append(performative.delivery_id)
            del self.deliveries[:-500]
        elif isinstance(performative, Disposition) and isinstance(performative.state, Declared):
            self.transactions.append(performative.state.txn_id)
        elif isinstance(performative, Attach):
            self.busy.discard(performative.handle)
            if isinstance(performative.target, Coordinator):
                self.coordinators.add(performative.handle)
            elif performative.role:
                self.senders.add(performative.handle)
            else:
                self.receivers.add(performative.handle)
        elif isinstance(performative, Detach):
            for links in (self.senders, self.receivers, self.coordinators):
                links.discard(performative.handle)
            self.busy.discard(performative.handle)
            if performative.handle not in self.leaving:
                # The handle is free when both sides have detached.
                self.say(frames.encode(Detach(performative.handle, True)))
            self.leaving.discard(performative.handle)
        elif isinstance(performative, End):
            self.forget_links()
            self.begins = True


@final
class Links:
    """All clients of one run."""

    def __init__(self, router: WholeRouter, draw: random.Random) -> None:
        self._router = router
        self._draw = draw
        self._peers = [Peer() for _ in range(CLIENTS)]
        self.count = 0

    # -- values ----------------------------------------------------------------------------------

    def _number(self) -> int:
        return self._draw.choice((*NUMBERS, self._draw.randrange(300)))

    def _handle(self, links: set[int]) -> int:
        """One of these links, or, rarely, any handle."""
        draw = self._draw
        if links and draw.randrange(300):
            return draw.choice(sorted(links))
        return draw.choice(NUMBERS) if draw.randrange(10) == 0 else draw.randrange(HANDLES)

    def _free_handle(self, peer: Peer) -> int:
        """A handle that no link has, or, rarely, any."""
        taken = peer.senders | peer.receivers | peer.coordinators | peer.busy
        free = [handle for handle in range(HANDLES) if handle not in taken]
        if free and self._draw.randrange(300):
            chosen = self._draw.choice(free)
            peer.busy.add(chosen)
            return chosen
        return self._handle(taken)

    def _capabilities(self) -> list[object] | None:
        draw = self._draw
        chosen = draw.sample(CAPABILITIES, draw.choice((0, 0, 1, 1, 2, 4)))
        return [Symbol(name) for name in chosen] or None

    def _state(self, peer: Peer) -> object:
        draw = self._draw
        outcome = draw.choice(
            (
                *(Accepted(), Accepted(), Accepted(), Rejected(), Released(), Modified(True)),
                *(Modified(True, True), Modified(), Received(1, 0xFFFF_FFFF), None),
            )
        )
        if peer.transactions and draw.randrange(3) == 0:
            return TransactionalState(draw.choice(peer.transactions), outcome)
        if draw.randrange(600) == 0:
            return TransactionalState(draw.randbytes(draw.choice((0, 8, 200))), outcome)
        return outcome

    def _message(self) -> bytes:
        draw = self._draw
        parts: list[bytes] = []
        if draw.randrange(2):
            parts.append(
                performatives.write(
                    Header(
                        draw.randrange(2) == 0,
                        draw.choice((0, 4, 9, 255)),
                        draw.choice((None, 0, 1, 500, 0xFFFF_FFFF)),
                        delivery_count=self._number(),
                    )
                )
            )
        if draw.randrange(4) == 0:
            delay = Typed("timestamp", draw.choice((0, 1 << 62, -(1 << 63), 1_700_000_000_000)))
            notes: dict[object, object] = {
                Symbol(draw.choice(("x-opt-delivery-time", "x-opt-delivery-delay", "x"))): delay,
                Symbol("x-opt-jms-msg-type"): Typed("byte", 3),
            }
            parts.append(b"\x00\x53\x72" + types.write(notes))
        if draw.randrange(2):
            parts.append(
                performatives.write(
                    MessageProperties(
                        draw.choice((None, "id", b"\xff", Typed("uuid", bytes(16)), 5)),
                        to=draw.choice((*ADDRESSES, None)),
                        reply_to=draw.choice((*ADDRESSES, None)),
                        correlation_id=draw.choice((None, "c", b"\x00")),
                        absolute_expiry_time=draw.choice((None, 0, 1 << 62, -1)),
                        group_id=draw.choice((None, "g", "ü" * 200)),
                    )
                )
            )
        if draw.randrange(3) == 0:
            more: dict[object, object] = {
                "a": draw.choice((1, True, None, 1.5, "x", b"\xff", Typed("char", bytes(4)))),
                "deliver-to-one": "true",
                "dmq-eligible": draw.choice(("false", False, "x")),
            }
            parts.append(b"\x00\x53\x74" + types.write(more))
        body = draw.choice((b"", b"x", b"x" * 5_000, "text", {"k": [1, None]}, [1, 2], None))
        code = b"\x75" if isinstance(body, bytes) else b"\x77"
        parts.append(b"\x00\x53" + code + types.write(body))
        return b"".join(parts)

    # -- what clients do -------------------------------------------------------------------------

    def connect(self, peer: Peer) -> None:
        """Log in, open and begin a session, all in one go."""
        draw = self._draw
        peer.close()
        try:
            sock = socket.create_connection(("127.0.0.1", self._router.ports["amqp"][0]), 10)
        except OSError:
            self._router.examine()
            return
        sock.setblocking(False)
        peer.sock = sock
        peer.reads = draw.randrange(12) != 0
        username = draw.choice(("all", "all", "some", "none"))
        plain = f"\0{username}@blue\0{username}".encode()
        wanted: list[object] | None = None
        if draw.randrange(8) == 0:
            wanted = [Symbol("sole-connection-for-container")]
        opened = Open(
            draw.choice(("one", "two", "three", "four", *NAMES)),
            draw.choice((None, "blue", "x")),
            draw.choice((512, 513, 65_536, 0xFFFF_FFFF)),
            idle_time_out=draw.choice((0, 1, 60_000, 0xFFFF_FFFF)),
            desired_capabilities=wanted,
        )
        window = draw.choice((0, 1, 5, 5_000, 0x7FFF_FFFF, 0xFFFF_FFFF))
        self._router.note(f"{self._peers.index(peer)} {username} {opened!r:.300} window {window}")
        peer.say(
            SASL_HEADER
            + frames.encode(SaslInit(Symbol("PLAIN"), plain), 0, frames.SASL)
            + AMQP_HEADER
            + frames.encode(opened)
            + frames.encode(Begin(None, self._number(), window, 5_000))
        )

    def attach(self, peer: Peer) -> None:
        """Attach a link that sends or receives, with any terminus."""
        draw = self._draw
        if len(peer.senders) + len(peer.receivers) > HANDLES - 2:
            self.detach(peer)
            return
        address = draw.choice(ADDRESSES)
        dynamic = draw.randrange(8) == 0
        given = self._capabilities()
        durable = draw.choice((0, 0, 1, 2))
        filters: dict[object, object] = {}
        if draw.randrange(3) == 0:
            text = draw.choice(SELECTORS)
            filters[Symbol("s")] = Described(Symbol("apache.org:selector-filter:string"), text)
        if draw.randrange(4) == 0:
            filters[Symbol("n")] = Described(Typed("ulong", 0x0000_468C_0000_0003), [])
        source = Source(
            address,
            durable,
            Symbol(draw.choice(("never", "link-detach", "session-end"))),
            dynamic=dynamic,
            distribution_mode=draw.choice((None, Symbol("copy"), Symbol("move"))),
            filter=filters or None,
            default_outcome=draw.choice((None, Released(), Modified(True))),
            capabilities=given,
        )
        target = draw.choice(
            (
                Target(address, durable, dynamic=dynamic, capabilities=given),
                Target(address, capabilities=given),
                Coordinator([Symbol("amqp:local-transactions")]),
            )
        )
        receives = draw.randrange(2) == 0
        mode = draw.randrange(3)
        self._say(
            peer,
            Attach(
                draw.choice(NAMES),
                self._free_handle(peer),
                receives,
                mode,
                draw.randrange(2),
                draw.choice((source, source, source, None)) if receives else source,
                Target("x") if receives else target,
                self._unsettled(peer),
                initial_delivery_count=None if receives else self._number(),
            ),
        )

    def _unsettled(self, peer: Peer) -> dict[object, object] | None:
        """Deliveries of an earlier link: messages of the spool, or tags that were sent before, or others."""
        draw = self._draw
        if draw.randrange(4):
            return None
        states = (None, described(Accepted()), described(Modified(True)), 7, Described(0x99, []))
        found: dict[object, object] = {}
        for _ in range(draw.choice((1, 5, 50))):
            spooled = draw.randrange(200).to_bytes(8, "big") + bytes(draw.choice((0, 8)))
            sent = draw.randrange(peer.next_id + 2).to_bytes(4, "big")
            found[draw.choice((spooled, sent, b"", "x", bytes(33)))] = draw.choice(states)
        return found

    def credit(self, peer: Peer) -> None:
        """Send a flow, of a link or of the session."""
        draw = self._draw
        handle = self._handle(peer.receivers) if peer.receivers and draw.randrange(9) else None
        self._say(
            peer,
            Flow(
                draw.choice((0, 0, 0, self._number())),
                draw.choice((0, 1, 5_000, 0x7FFF_FFFF, self._number())),
                self._number(),
                self._number(),
                handle,
                draw.choice((None, 0, 0, self._number())),
                draw.choice((None, 1, 100, 100, self._number())),
                drain=draw.randrange(3) == 0,
                echo=draw.randrange(4) == 0,
            ),
        )

    def send(self, peer: Peer) -> None:
        """Send some messages, in one frame or several."""
        draw = self._draw
        if not peer.senders:
            self.attach(peer)
            return
        handle = self._handle(peer.senders)
        for _ in range(draw.choice((1, 1, 5, 60))):
            data = self._message()
            settled = draw.choice((True, False, None))
            state = self._state(peer) if draw.randrange(6) == 0 else None
            number = peer.next_id
            peer.next_id += 1
            step = draw.choice((len(data), len(data), 7, 300))
            pieces = [data[at : at + step] for at in range(0, len(data), step)]
            for index, piece in enumerate(pieces[:40]):
                transfer = Transfer(
                    handle,
                    number,
                    number.to_bytes(4, "big"),
                    0,
                    settled,
                    index + 1 < len(pieces),
                    state=state,
                    resume=draw.randrange(20) == 0,
                    aborted=draw.randrange(200) == 0,
                )
                self._say(peer, transfer, piece)

    def control(self, peer: Peer) -> None:
        """Declare or discharge a transaction, or say something else to what may be a coordinator."""
        draw = self._draw
        if not peer.coordinators:
            target = Coordinator([Symbol("amqp:local-transactions")])
            handle = self._free_handle(peer)
            source = Source("x")
            self._say(
                peer,
                Attach(
                    "c",
                    handle,
                    role=False,
                    snd_settle_mode=0,
                    rcv_settle_mode=0,
                    source=source,
                    target=target,
                    unsettled=None,
                    incomplete_unsettled=False,
                    initial_delivery_count=0,
                ),
            )
            return
        request: Any = Declare(draw.choice((None, None, b"x")))
        if peer.transactions and draw.randrange(2):
            request = Discharge(draw.choice(peer.transactions), draw.randrange(2) == 0)
        number = peer.next_id
        peer.next_id += 1
        body = b"\x00\x53\x77" + performatives.write(request)
        self._say(peer, Transfer(self._handle(peer.coordinators), number, b"t", 0, False), body)

    def settle(self, peer: Peer) -> None:
        """Settle what came, mostly rightly."""
        draw = self._draw
        peer.listen()
        for number in peer.deliveries[: draw.randrange(1, 60)]:
            last = draw.choice((None, None, number, number + draw.randrange(9)))
            if draw.randrange(200) == 0:
                last = self._number()
            state = self._state(peer)
            self._say(peer, Disposition(True, number, last, draw.randrange(5) != 0, state))
        del peer.deliveries[:60]

    def detach(self, peer: Peer) -> None:
        """Detach a link, with or without an end of its terminus."""
        links = peer.senders | peer.receivers | peer.coordinators
        if links:
            handle = self._handle(links)
            for held in (peer.senders, peer.receivers, peer.coordinators):
                held.discard(handle)
            peer.busy.add(handle)
            peer.leaving.add(handle)
            self._say(peer, Detach(handle, self._draw.randrange(2) == 0))

    def session(self, peer: Peer) -> None:
        """End the session, or begin one more."""
        draw = self._draw
        if draw.randrange(2):
            self._say(peer, End())
            peer.forget_links()
        self._say(peer, Begin(None, self._number(), draw.choice((0, 5, 5_000)), 100))

    def leave(self, peer: Peer) -> None:
        """Close, with a word or without one."""
        if self._draw.randrange(2):
            self._say(peer, Close())
        else:
            peer.close()

    def scramble(self, peer: Peer) -> None:
        """Send a frame with one byte changed."""
        raw = bytearray(frames.encode(Transfer(0, 1, b"t", 0, True), payload=self._message()))
        raw[self._draw.randrange(len(raw))] = self._draw.randrange(256)
        peer.say(bytes(raw))

    # -- the run ---------------------------------------------------------------------------------

    def _say(self, peer: Peer, performative: tuple[object, ...], payload: bytes = b"") -> None:
        shown = repr(performative)[:400]
        self._router.note(f"{self._peers.index(peer)} {shown} {len(payload)} bytes")
        # A drawn value may not fit its field.
        with contextlib.suppress(ValueError):
            peer.say(frames.encode(performative, 0, frames.AMQP, payload))

    def step(self) -> None:
        """One client does one thing."""
        self.count += 1
        peer = self._draw.choice(self._peers)
        if peer.sock is None:
            self.connect(peer)
            return
        if peer.begins:
            peer.begins = False
            self._say(peer, Begin(None, 0, self._draw.choice((0, 5, 5_000)), 5_000))
        acts = (
            *((self.attach, 20), (self.send, 25), (self.credit, 20), (self.settle, 20)),
            *((self.control, 8), (self.detach, 6), (self.session, 0.2), (self.leave, 0.5)),
            *((self.scramble, 0.2), (self.connect, 0.3)),
        )
        (act,) = self._draw.choices([act for act, _ in acts], [weight for _, weight in acts])
        act(peer)
        peer.listen()

    def steps(self) -> None:
        """Take the steps between two looks at the router."""
        for _ in range(STEPS_BETWEEN_LOOKS):
            self.step()

    def hang_up(self) -> None:
        """All clients go."""
        for peer in self._peers:
            peer.close()


def fuzz(draw: random.Random, seconds: float, folder: Path) -> str:
    """Run for so long; what was done. Raises Finding."""
    with WholeRouter(folder, CONFIG) as router:
        links = Links(router, draw)
        attack(router, draw, seconds, links.steps, links.hang_up)
        return f"{links.count} steps"


if __name__ == "__main__":
    sys.exit(drive(__doc__ or "", fuzz))
