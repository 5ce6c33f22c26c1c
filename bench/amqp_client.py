"""One AMQP 1.0 connection of the generator, over a blocking socket: what a load needs and no more."""

from __future__ import annotations

import socket
from typing import Final, TypeVar

from vpnrouter.wire.amqp import frames, performatives, transfers, types
from vpnrouter.wire.amqp.frames import AMQP_HEADER, SASL_HEADER
from vpnrouter.wire.amqp.performatives import (
    Accepted,
    Attach,
    Begin,
    Coordinator,
    Declare,
    Declared,
    Disposition,
    Flow,
    Open,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    Source,
    Target,
    TransactionalState,
    Transfer,
)
from vpnrouter.wire.amqp.types import Described, Symbol, Typed

Found = TypeVar("Found")

WINDOW: Final = 0x7FFF_FFFF
MOST: Final = 1 << 20


def message(size: int, *, durable: bool) -> bytes:
    """One message: a header, and data of `size` bytes."""
    body = b"x" * size
    data = b"\xa0" + bytes((size,)) if size < 256 else b"\xb0" + size.to_bytes(4, "big")
    header = b"\x00\x53\x70\xc0\x02\x01\x41" if durable else b""
    return header + b"\x00\x53\x75" + data + body


class Client:
    """A connection with one session; `handle` 0 is a sender's or a receiver's link, 9 the coordinator's."""

    def __init__(self, port: int, name: str) -> None:
        self.sock = socket.create_connection(("127.0.0.1", port))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.left = b""
        self.credit = 0
        self.next_id = 0
        self.sent_count = 0
        self.sock.sendall(SASL_HEADER)
        self._header()
        self.expect(SaslMechanisms)
        self.say(SaslInit(Symbol("ANONYMOUS")), frames.SASL)
        self.expect(SaslOutcome)
        self.sock.sendall(AMQP_HEADER)
        self._header()
        self.say(Open(name, "localhost", MOST, 10))
        self.expect(Open)
        self.say(Begin(None, 0, WINDOW, WINDOW))
        self.expect(Begin)

    def say(self, performative: tuple[object, ...], kind: int = frames.AMQP) -> None:
        """Send a frame."""
        self.sock.sendall(frames.encode(performative, 0, kind))

    def _header(self) -> None:
        while len(self.left) < 8:
            self.left += self.sock.recv(8)
        self.left = self.left[8:]

    def read(self) -> list[frames.Frame]:
        """Wait for bytes, and return the frames that are whole."""
        data = self.left + self.sock.recv(MOST)
        found = []
        pos = 0
        # Some servers send AMQP's header together with the outcome of SASL.
        while data[pos : pos + 4] != b"AMQP" and (
            size := frames.frame_at(data, pos, len(data), MOST)
        ):
            found.append(frames.decode(data, pos, size))
            pos += size
        self.left = data[pos:]
        return found

    def expect(self, kind: type[Found]) -> Found:
        """Wait for a performative of a kind; credit that comes meanwhile is counted."""
        while True:
            found = None
            for frame in self.read():
                performative = frame.performative
                if isinstance(performative, Flow) and performative.handle is not None:
                    self.credit_of(performative)
                if isinstance(performative, kind):
                    found = performative
            if found is not None:
                return found

    def credit_of(self, flow: Flow) -> None:
        """Take credit."""
        self.credit = (flow.delivery_count or 0) + (flow.link_credit or 0) - self.sent_count

    def sender(self, address: str, kind: str, *, settled: bool, handle: int = 0) -> None:
        """Attach a link that sends."""
        target = Target(address, capabilities=[Symbol(kind)])
        mode = 1 if settled else 0
        self.say(
            Attach(
                f"s{handle}", handle, False, mode, 0, Source("x"), target, initial_delivery_count=0
            )
        )
        self.expect(Attach)
        while self.credit <= 0:
            self.read_credit()

    def read_credit(self) -> None:
        """Wait for frames and take the credit in them."""
        for frame in self.read():
            if isinstance(frame.performative, Flow) and frame.performative.handle is not None:
                self.credit_of(frame.performative)

    def receiver(self, address: str, kind: str, *, settled: bool, credit: int) -> None:
        """Attach a link that receives."""
        source = Source(address, capabilities=[Symbol(kind)])
        self.say(Attach("r", 0, True, 1 if settled else 0, 0, source, Target("x")))
        self.expect(Attach)
        self.grant(0, credit)

    def grant(self, count: int, credit: int) -> None:
        """Give credit, after `count` messages."""
        self.say(Flow(0, WINDOW, 0, WINDOW, 0, count, credit))

    def coordinator(self) -> None:
        """Attach a link to the coordinator."""
        target = Coordinator([Symbol("amqp:local-transactions")])
        self.say(Attach("c", 9, False, 0, 0, Source("x"), target, initial_delivery_count=0))
        self.expect(Attach)

    def transaction(self, body: bytes, count: int) -> None:
        """Declare, send `count` messages, and commit; each step waits for its answer."""
        declared = self._control(Declare())
        txn_id = declared.txn_id if isinstance(declared, Declared) else b""
        if not txn_id:
            raise RuntimeError(f"no transaction was begun: {declared}")
        state = TransactionalState(txn_id)
        out = []
        for _ in range(count):
            number = self.next_id
            self.next_id += 1
            self.sent_count += 1
            tag = number.to_bytes(4, "big")
            out.append(frames.encode(Transfer(0, number, tag, 0, False, state=state), payload=body))
        self.sock.sendall(b"".join(out))
        # Artemis wants `fail` to be said.
        outcome = self._control(Described(Typed(types.ULONG, 0x32), [txn_id, False]))
        if outcome != Accepted():
            raise RuntimeError(f"a transaction was refused: {outcome}")

    def _control(self, request: tuple[object, ...] | Described) -> object:
        number = self.next_id
        self.next_id += 1
        body = b"\x00\x53\x77" + performatives.write(request)
        tag = number.to_bytes(4, "big")
        self.sock.sendall(frames.encode(Transfer(9, number, tag, 0, False), payload=body))
        while True:
            for frame in self.read():
                found = frame.performative
                if isinstance(found, Flow) and found.handle == 0:
                    self.credit_of(found)
                if isinstance(found, Disposition) and found.first <= number <= (
                    found.last or found.first
                ):
                    return found.state


class Template:
    """Makes the transfers of one message, again and again, with rising delivery ids."""

    def __init__(self, body: bytes, *, settled: bool) -> None:
        self._settled = settled
        self._body = body
        self._head = transfers.TransferHead(0, 0)
        one = transfers.cut_transfer(0, b"\x43", 0, True, b"", body, MOST).next()
        self._pattern = one * CHUNK
        self._burst = transfers.Burst()
        self._burst.scan(self._pattern, 0, len(self._pattern), 0, 0, MOST, MOST, CHUNK)

    def frames(self, first: int, count: int) -> bytes:
        """Return `count` transfers, at most CHUNK, from the delivery `first` on."""
        if self._settled:
            return self._burst.frames(self._pattern, count, self._head, first, MOST)
        made = [
            transfers.cut_transfer(0, b"\x43", first + index, False, b"", self._body, MOST).next()
            for index in range(count)
        ]
        return b"".join(made)


CHUNK: Final = 1_000
