"""The client's end of an AMQP connection, in memory: performatives in, performatives out."""

from __future__ import annotations

from typing import Any

from vpnrouter.core.amqp.connection import AmqpConnection
from vpnrouter.wire.amqp import frames, performatives, types
from vpnrouter.wire.amqp.frames import AMQP_HEADER, SASL_HEADER, Frame
from vpnrouter.wire.amqp.performatives import (
    Attach,
    Begin,
    Coordinator,
    Declare,
    Declared,
    Detach,
    Discharge,
    Disposition,
    Flow,
    Header,
    MessageProperties,
    Open,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    Source,
    Target,
    Transfer,
)
from vpnrouter.wire.amqp.sections import sections
from vpnrouter.wire.amqp.types import Symbol

MOST = 1 << 30


def symbols(*names: str) -> list[object]:
    """Names as symbols."""
    return [Symbol(name) for name in names]


def message(
    body: bytes | str | dict[object, object] = b"x",
    header: Header | None = None,
    annotations: dict[object, object] | None = None,
    properties: MessageProperties | None = None,
    application: dict[object, object] | None = None,
) -> bytes:
    """One message of AMQP; a body of bytes is a data section, others are values."""
    parts = []
    if header is not None:
        parts.append(performatives.write(header))
    if annotations is not None:
        parts.append(b"\x00\x53\x72" + types.write(annotations))
    if properties is not None:
        parts.append(performatives.write(properties))
    if application is not None:
        parts.append(b"\x00\x53\x74" + types.write(application))
    parts.append(
        (b"\x00\x53\x75" if isinstance(body, bytes) else b"\x00\x53\x77") + types.write(body)
    )
    return b"".join(parts)


class Got:
    """A message that came: its first transfer, its bytes, and its sections by code."""

    def __init__(self, transfer: Transfer, data: bytes) -> None:
        self.transfer = transfer
        self.data = data
        self.sections: dict[int, Any] = {}
        for one in sections(data):
            if one.code in performatives.SHAPES:
                shape = performatives.SHAPES[one.code]
                value, _ = performatives.read_fields(shape, data, one.value, one.end)
            else:
                value, _ = types.read(data, one.value, one.end)
            self.sections[one.code] = value

    @property
    def header(self) -> Header:
        """The header, or one of defaults."""
        found: Header = self.sections.get(0x70, Header())
        return found

    @property
    def body(self) -> Any:
        """The body's value."""
        return self.sections.get(0x75, self.sections.get(0x77))

    @property
    def bare(self) -> bytes:
        """The bare message: from the properties on."""
        for one in sections(self.data):
            if one.code >= 0x73:
                return self.data[one.start :]
        return b""


class Peer:
    """One client. `world` settles what the spool has to do before anything is looked at."""

    def __init__(self, world: Any, vpn: str = "blue", peer: str = "192.0.2.1") -> None:
        self.world = world
        self.connection = AmqpConnection(world.router, peer, vpn)
        self.kept: list[Frame] = []
        self._delivery = 0
        self.parts: dict[int, tuple[Transfer, bytes]] = {}

    @property
    def closed(self) -> bool:
        """Whether the router closes the connection once what waits has left."""
        return self.connection.closing

    def raw(self, data: bytes) -> None:
        """Feed bytes as they are."""
        self.connection.feed(data)

    def say(self, *performatives_: Any, channel: int = 0, kind: int = frames.AMQP) -> None:
        """Feed frames in one chunk."""
        self.raw(b"".join([frames.encode(one, channel, kind) for one in performatives_]))

    def drain(self) -> bytes:
        """What the router would have sent by now, everything synced."""
        self.world.settle()
        outbox = self.connection.outbox
        outbox.dirty = False
        ready = self.world.router.context.ready
        ready[:] = [other for other in ready if other is not outbox]
        parts: list[bytes] = []
        while outbox.chunks:
            parts.append(outbox.take(MOST))
        return b"".join(parts)

    def got(self) -> list[Frame]:
        """Frames that came; protocol headers are left out, empty frames too."""
        data = self.drain()
        found, self.kept = self.kept, []
        pos = 0
        while pos < len(data):
            if data[pos : pos + 4] == b"AMQP":
                pos += 8
                continue
            size = frames.frame_at(data, pos, len(data), MOST)
            assert size, data[pos:]
            frame = frames.decode(data, pos, size)
            if frame.performative is not None:
                found.append(frame)
            pos += size
        return found

    def answers(self) -> list[Any]:
        """Performatives that came."""
        return [frame.performative for frame in self.got()]

    def answer(self, kind: type) -> Any:
        """The one performative of a kind that came, among others."""
        (found,) = [one for one in self.answers() if isinstance(one, kind)]
        return found

    # -- login -----------------------------------------------------------------------------------

    def sasl(self, mechanism: str, response: bytes | None = None, host: str | None = None) -> Any:
        """Begin a login; what is answered, the mechanisms left out."""
        self.raw(SASL_HEADER)
        self.say(SaslInit(Symbol(mechanism), response, host), kind=frames.SASL)
        found = [one for one in self.answers() if not isinstance(one, SaslMechanisms)]
        return found[0] if found else None

    def plain(self, username: str, password: str, host: str | None = None) -> Any:
        """Log in with a password; the outcome."""
        return self.sasl("PLAIN", f"\0{username}\0{password}".encode(), host)

    def open(self, container: str = "me", **more: Any) -> list[Any]:
        """Send AMQP's header and open; what is answered."""
        self.raw(AMQP_HEADER)
        self.say(Open(container, **more))
        return self.answers()

    def join(self, container: str = "me", **more: Any) -> Open:
        """Log in without a name, open, and begin a session."""
        outcome = self.sasl("ANONYMOUS")
        assert isinstance(outcome, SaslOutcome), outcome
        assert outcome.code == 0
        (opened,) = self.open(container, **more)
        assert isinstance(opened, Open), opened
        self.begin()
        return opened

    def begin(self, channel: int = 0, window: int = 5_000, outgoing: int = 0) -> Begin:
        """Begin a session."""
        self.say(Begin(None, outgoing, window, 5_000), channel=channel)
        found: Begin = self.answer(Begin)
        return found

    # -- links -----------------------------------------------------------------------------------

    def attach(self, packet: Attach) -> list[Any]:
        """Attach a link; what is answered."""
        self.say(packet)
        return self.answers()

    def sender(self, address: Any, handle: int = 0, name: str = "", **more: Any) -> list[Any]:
        """Attach a link that sends; what is answered. `capabilities` are the target's."""
        given = more.pop("capabilities", None)
        target = more.pop("target", Target(address, capabilities=given))
        packet = Attach(
            name or f"sender {handle}",
            handle,
            False,
            source=Source("here"),
            target=target,
            initial_delivery_count=0,
            **more,
        )
        return self.attach(packet)

    def receiver(
        self,
        address: Any,
        handle: int = 1,
        credit: int = 100,
        name: str = "",
        mode: int = 0,
        **source: Any,
    ) -> list[Any]:
        """Attach a link that receives, and give it credit; what is answered to the attach."""
        packet = Attach(
            name or f"receiver {handle}",
            handle,
            True,
            mode,
            source=Source(address, **source),
            target=Target("here"),
        )
        found = self.attach(packet)
        if credit and not any(isinstance(one, Detach) for one in found):
            self.credit(handle, credit)
        return found

    def credit(self, handle: int, credit: int, count: int = 0, **more: Any) -> None:
        """Give credit to a link that has got `count` messages."""
        self.say(Flow(0, 5_000, 0, 5_000, handle, count, credit, **more))

    def send(
        self,
        data: bytes,
        handle: int = 0,
        *,
        settled: bool = False,
        state: Any = None,
        frame: int = 0,
    ) -> int:
        """Send one message, in frames of `frame` bytes; its delivery id."""
        number = self._delivery
        self._delivery += 1
        step = frame or max(1, len(data))
        pieces = [data[at : at + step] for at in range(0, len(data), step)] or [b""]
        for index, piece in enumerate(pieces):
            first = Transfer(
                handle,
                number,
                number.to_bytes(4, "big"),
                0,
                settled,
                index + 1 < len(pieces),
                state=state,
            )
            self.raw(frames.encode(first, 0, payload=piece))
        return number

    def sent(self, data: bytes, handle: int = 0, **more: Any) -> Any:
        """Send one message; the state in which it is settled."""
        number = self.send(data, handle, **more)
        came = self.got()
        # Messages that come meanwhile are looked at later.
        self.kept = [frame for frame in came if isinstance(frame.performative, Transfer)]
        (found,) = [
            one
            for one in (frame.performative for frame in came)
            if isinstance(one, Disposition) and one.first <= number <= (one.last or one.first)
        ]
        return found.state

    def messages(self) -> list[Got]:
        """Messages that came; nothing else may have come but flows."""
        found: list[Got] = []
        for frame in self.got():
            packet = frame.performative
            if isinstance(packet, Flow):
                continue
            assert isinstance(packet, Transfer), packet
            first, data = self.parts.pop(packet.handle, (packet, b""))
            data += frame.payload
            if packet.more:
                self.parts[packet.handle] = (first, data)
            else:
                found.append(Got(first, data))
        return found

    def bodies(self) -> list[Any]:
        """Bodies of messages that came."""
        return [one.body for one in self.messages()]

    def settle(self, got: Got, state: Any, *, settled: bool = True) -> None:
        """Settle a message that came."""
        self.say(Disposition(True, got.transfer.delivery_id or 0, None, settled, state))

    # -- transactions ----------------------------------------------------------------------------

    def coordinator(self, handle: int = 9) -> None:
        """Attach a link to the coordinator."""
        found = self.sender(None, handle, target=Coordinator(symbols("amqp:local-transactions")))
        assert isinstance(found[0], Attach), found

    def declare(self, handle: int = 9) -> bytes:
        """Begin a transaction; its id."""
        state = self.sent(b"\x00\x53\x77" + performatives.write(Declare()), handle)
        assert isinstance(state, Declared), state
        return state.txn_id

    def discharge(self, txn_id: bytes, *, fail: bool = False, handle: int = 9) -> Any:
        """End a transaction; the state with which that is answered."""
        return self.sent(b"\x00\x53\x77" + performatives.write(Discharge(txn_id, fail)), handle)
