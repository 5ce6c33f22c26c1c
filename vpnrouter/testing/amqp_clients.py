"""Sessions of AMQP 1.0 that write down what they saw: one that sends, one that receives, and one that moves messages.

Each is told frames and says frames; it does no I/O. `AmqpClient` is the thread that keeps it connected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol, final

from vpnrouter.testing.client_threads import ClientThread, ConnectionEnded, Conversation
from vpnrouter.wire.amqp import frames, performatives, types
from vpnrouter.wire.amqp.frames import AMQP_HEADER, SASL_HEADER, Frame
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
    Open,
    Rejected,
    SaslInit,
    SaslOutcome,
    Source,
    Target,
    TransactionalState,
    Transfer,
)
from vpnrouter.wire.amqp.sections import sections
from vpnrouter.wire.amqp.types import Symbol

if TYPE_CHECKING:
    import random
    import socket
    from collections.abc import Callable

    from vpnrouter.testing.history import History

Say = tuple[Any, bytes]
"""A performative and the payload behind it."""

WINDOW: Final = 1 << 30
MOST_FRAME_BYTES: Final = 65_536
DATA: Final = 0x75
OUT: Final = 0
IN: Final = 1
CONTROL: Final = 2
"""Handles of links: those that send, those that receive, and that to the coordinator."""


def body_of(payload: bytes) -> str:
    """Return the text in the data section of a message."""
    for one in sections(payload):
        if one.code == DATA:
            value, _ = types.read(payload, one.value, one.end)
            if isinstance(value, bytes):
                return value.decode()
    return ""


def message(text: str, name: str | None = None) -> bytes:
    """Return a durable message with a text in its data section, and an id if it has a `name`."""
    said = b"" if name is None else performatives.write(MessageProperties(message_id=name))
    body = b"\x00\x53\x75" + types.write(text.encode())
    return performatives.write(Header(durable=True)) + said + body


def request(value: Declare | Discharge) -> bytes:
    """Return a message to the coordinator."""
    return b"\x00\x53\x77" + performatives.write(value)


class AmqpSession(Protocol):
    """What is said on a connection; it outlives all its connections."""

    name: str

    def opened(self) -> list[Say]:
        """The router took the connection; returns what to say first."""

    def received(self, performative: Any, payload: bytes) -> list[Say]:  # noqa: ANN401 - of any kind
        """Handle a frame. Returns what to answer at once."""

    def due(self) -> list[Say]:
        """Called once in a tick. Returns what to send unprompted."""

    def closed(self) -> None:
        """The connection is gone, whether or not it was opened."""


@final
class AmqpClient(ClientThread):
    """One thread for one session of AMQP 1.0."""

    def __init__(
        self,
        session: AmqpSession,
        port: Callable[[], int | None],
        history: History,
        draws: random.Random,
        cut_chance: float = 0.0,
    ) -> None:
        super().__init__(session, port, history, draws, cut_chance)
        self._talks = session

    def conversation(self, link: socket.socket) -> Conversation:
        """Return what is talked on a new connection."""
        return _Conversation(self._talks, link, self.lasts)


@final
class _Conversation(Conversation):
    """One connection from its protocol header to its end."""

    def __init__(
        self, session: AmqpSession, link: socket.socket, lasts: Callable[[socket.socket], bool]
    ) -> None:
        super().__init__(link, lasts)
        self._session = session

    def first(self) -> bytes:
        return (
            SASL_HEADER
            + frames.encode(SaslInit(Symbol("ANONYMOUS")), 0, frames.SASL)
            + AMQP_HEADER
            + frames.encode(Open(self._session.name))
            + frames.encode(Begin(None, 0, WINDOW, WINDOW))
        )

    def packets(self) -> list[Frame]:
        found: list[Frame] = []
        start, end = 0, len(self.came)
        while end - start >= frames.HEADER_BYTES:
            if self.came[start : start + 4] == b"AMQP":
                start += frames.HEADER_BYTES
                continue
            size = frames.frame_at(self.came, start, end, MOST_FRAME_BYTES)
            if not size:
                break
            frame = frames.decode(self.came, start, size)
            if frame.performative is not None:
                found.append(frame)
            start += size
        self.came = self.came[start:]
        return found

    def opens(self, packet: Frame) -> bool:
        self._check(packet)
        if not isinstance(packet.performative, Begin):
            return False
        self._say(self._session.opened())
        return True

    def hears(self, packet: Frame) -> None:
        self._check(packet)
        self._say(self._session.received(packet.performative, packet.payload))

    def _check(self, packet: Frame) -> None:
        said = packet.performative
        if isinstance(said, SaslOutcome) and said.code:
            raise ConnectionEnded(f"refused: {said!r}")
        if isinstance(said, (Close, End, Detach)):
            raise ConnectionEnded(repr(said))

    def due(self) -> None:
        self._say(self._session.due())

    def _say(self, said: list[Say]) -> None:
        self.leaves += b"".join([frames.encode(one, payload=payload) for one, payload in said])


def sends_to(name: str, handle: int, target: Target | Coordinator) -> Say:
    """Return the attach of a link that sends."""
    packet = Attach(name, handle, False, source=Source("here"), target=target)
    return packet._replace(initial_delivery_count=0), b""


def receives_from(name: str, address: str, credit: int) -> list[Say]:
    """Return the attach of a link that receives, and its credit, which holds for the whole connection."""
    attach = Attach(name, IN, True, source=Source(address), target=Target("here"))
    return [(attach, b""), (Flow(0, WINDOW, 0, WINDOW, IN, 0, credit), b"")]


@final
class AmqpProducer:
    """Sends `NAME-1`, `NAME-2`, … to an address, durable and not settled, at most `window` without an outcome.

    What has none when the connection is lost is not sent again: whether the router has it is not known. A message that
    is `named` has its text as its id, too, and is for a queue of a broker that has to be told that it is one.
    """

    def __init__(
        self,
        name: str,
        history: History,
        address: str,
        endpoint: str,
        window: int = 8,
        *,
        named: bool = False,
    ) -> None:
        self.name = name
        self.stopping = False
        self.answered = 0
        self._history = history
        self._address = address
        self._endpoint = endpoint
        self._window = window
        self._named = named
        self._count = 0
        self._number = 0
        self._open = False
        self._in_flight: dict[int, str] = {}

    @property
    def done(self) -> bool:
        """Nothing more to send, and everything answered."""
        return self.stopping and not self._in_flight

    def opened(self) -> list[Say]:
        """Attach the link."""
        self._number = 0
        capabilities: list[object] | None = [Symbol("queue")] if self._named else None
        return [sends_to(self.name, OUT, Target(self._address, capabilities=capabilities))]

    def received(self, performative: Any, _: bytes) -> list[Say]:  # noqa: ANN401 - of any kind
        """Take outcomes."""
        if isinstance(performative, Flow):
            self._open = True
        elif isinstance(performative, Disposition):
            last = performative.first if performative.last is None else performative.last
            for number in range(performative.first, last + 1):
                sent = self._in_flight.pop(number)
                self.answered += 1
                if isinstance(performative.state, Accepted):
                    self._history.acknowledged(sent)
                else:
                    self._history.rejected(sent, repr(performative.state))
        return []

    def due(self) -> list[Say]:
        """Send what the window has room for."""
        said: list[Say] = []
        while self._open and not self.stopping and len(self._in_flight) < self._window:
            self._count += 1
            text = f"{self.name}-{self._count}"
            self._history.published(
                text,
                producer=self.name,
                sequence=self._count,
                topic=self._address,
                targets=(self._endpoint,),
            )
            number = self._number
            self._number += 1
            self._in_flight[number] = text
            transfer = Transfer(OUT, number, number.to_bytes(4, "big"), 0, False)
            said.append((transfer, message(text, text if self._named else None)))
        return said

    def closed(self) -> None:
        """Forget what was not answered."""
        self._open = False
        self._in_flight.clear()


@final
class AmqpConsumer:
    """Receives from a queue, here or at `address`, and accepts.

    It is told by the router's settlement that this is stored (2.6.12).
    """

    def __init__(self, name: str, history: History, endpoint: str, address: str = "") -> None:
        self.name = name
        self.endpoint = endpoint
        self._address = address or f"queue://{endpoint}"
        self.ready = False
        self.delivered: set[str] = set()
        self._history = history
        self._unsettled: dict[int, str] = {}

    @property
    def idle(self) -> bool:
        """Everything that came is settled."""
        return not self._unsettled

    def opened(self) -> list[Say]:
        """Attach the link, with credit without end."""
        return receives_from(self.name, self._address, WINDOW)

    def received(self, performative: Any, payload: bytes) -> list[Say]:  # noqa: ANN401 - of any kind
        """Accept what comes; take the settlement."""
        if isinstance(performative, Attach):
            self.ready = True
        elif isinstance(performative, Transfer):
            text = body_of(payload).partition(" ")[0]
            number = performative.delivery_id or 0
            self.delivered.add(text)
            again = not header_of(payload).first_acquirer
            self._history.delivered(text, endpoint=self.endpoint, redelivered=again)
            self._history.consumed(text, endpoint=self.endpoint)
            self._unsettled[number] = text
            return [(Disposition(True, number, None, False, Accepted()), b"")]
        elif isinstance(performative, Disposition) and performative.settled:
            last = performative.first if performative.last is None else performative.last
            for number in range(performative.first, last + 1):
                self._history.settled(self._unsettled.pop(number), endpoint=self.endpoint)
        return []

    def due(self) -> list[Say]:
        """Say nothing unprompted."""
        return []

    def closed(self) -> None:
        """Nothing that came is known to be settled."""
        self.ready = False
        self._unsettled.clear()


def header_of(payload: bytes) -> Header:
    """Return the header of a message, the default one where it has none."""
    for one in sections(payload):
        if one.code == 0x70:
            shape = performatives.SHAPES[one.code]
            found, _ = performatives.read_fields(shape, payload, one.value, one.end)
            if isinstance(found, Header):
                return found
    return Header()


@final
class AmqpMover:
    """Moves messages from one queue to another in transactions: each is accepted, and sent again under a new name.

    The name is that of the message, `/` and the number of the attempt. A transaction that was not answered is not
    known to have happened; `moved` are those that have.
    """

    def __init__(
        self, name: str, history: History, source: str, target: str, most: int = 5
    ) -> None:
        self.name = name
        self.moved: set[str] = set()
        self.transactions = 0
        self.refused = 0
        self._history = history
        self._source = source
        self._target = target
        self._most = most
        self._attempts = 0
        self._number = 0
        self._waiting: dict[int, str] = {}
        self._batch: dict[int, str] = {}
        self._asked = -1

    @property
    def idle(self) -> bool:
        """All that came was moved."""
        return not self._waiting and not self._batch

    def opened(self) -> list[Say]:
        """Attach three links."""
        self._number = 0
        coordinator = Coordinator([Symbol("amqp:local-transactions")])
        return [
            sends_to(f"{self.name} out", OUT, Target(f"queue://{self._target}")),
            sends_to(f"{self.name} control", CONTROL, coordinator),
            *receives_from(self.name, f"queue://{self._source}", WINDOW),
        ]

    def received(self, performative: Any, payload: bytes) -> list[Say]:  # noqa: ANN401 - of any kind
        """Collect messages; go on with the transaction where the coordinator has answered."""
        if isinstance(performative, Transfer):
            self._waiting[performative.delivery_id or 0] = body_of(payload)
            return self._declare()
        if not isinstance(performative, Disposition) or not performative.role:
            return []
        if performative.first != self._asked:
            return []
        self._asked = -1
        state = performative.state
        if isinstance(state, Declared):
            return self._fill(state.txn_id)
        if isinstance(state, Rejected):
            self.refused += 1
        elif isinstance(state, Accepted):
            self.transactions += 1
            for text in self._batch.values():
                self.moved.add(text)
                self._history.acknowledged(text)
        self._batch = {}
        return self._declare()

    def _ask(self, value: Declare | Discharge) -> Say:
        number = self._number
        self._number += 1
        self._asked = number
        return Transfer(CONTROL, number, number.to_bytes(4, "big"), 0, False), request(value)

    def _declare(self) -> list[Say]:
        if self._asked >= 0 or self._batch or not self._waiting:
            return []
        return [self._ask(Declare())]

    def _fill(self, txn_id: bytes) -> list[Say]:
        """Send and accept some messages within the transaction, and discharge it."""
        said: list[Say] = []
        for delivery in list(self._waiting)[: self._most]:
            self._attempts += 1
            text = f"{self._waiting.pop(delivery)}/{self._attempts}"
            self._batch[delivery] = text
            self._history.published(
                text,
                producer=self.name,
                sequence=self._attempts,
                topic=self._target,
                targets=(self._target,),
            )
            number = self._number
            self._number += 1
            tag = number.to_bytes(4, "big")
            sent = Transfer(OUT, number, tag, 0, False, state=TransactionalState(txn_id))
            said.append((sent, message(text)))
            accepted = TransactionalState(txn_id, Accepted())
            said.append((Disposition(True, delivery, None, True, accepted), b""))
        return [*said, self._ask(Discharge(txn_id, fail=False))]

    def due(self) -> list[Say]:
        """Begin a transaction where messages wait."""
        return self._declare()

    def closed(self) -> None:
        """What came waits in its queue again, unless the transaction happened."""
        self._waiting = {}
        self._batch = {}
        self._asked = -1
