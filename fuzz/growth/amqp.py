"""What a client of AMQP 1.0 does in the plans that look for growth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from fuzz.growth.plans import Vocabulary
from fuzz.growth.talking import (
    ANSWER_S,
    PIECE,
    SELECTORS,
    SHAPES,
    Talk,
    draw_count,
    draw_size,
    filter_of,
    selector_of,
    text_of,
)
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
    Rejected,
    Released,
    SaslInit,
    Source,
    Target,
    TransactionalState,
    Transfer,
    described,
)
from vpnrouter.wire.amqp.types import Described, Symbol

if TYPE_CHECKING:
    import random

    from fuzz.growth.plans import Value

MOST: Final = 0x7FFF_FFFF
UINT: Final = 0xFFFF_FFFF
READ_BYTES: Final = 4 << 20
"""Bytes of answers that are looked at in one go; a client that reads more does not look."""


class AmqpTalk(Talk):
    """One client of AMQP, with its sessions and links numbered from 0 as they were made."""

    _last: dict[str, Value] | None = None

    def _forget(self) -> None:
        self._opened = False
        self._sessions = 0
        # Channel, handle, and whether this client sends over it.
        self._links: list[tuple[int, int, bool]] = []
        self._handles = 0
        self._coordinator: tuple[int, int] | None = None
        self._transactions: list[bytes] = []
        self._next_id: dict[int, int] = {}
        self._received: list[int] = []
        # What is to be said before the next thing: `_note` is called while something is being said.
        self._replies: list[bytes] = []

    def connect(self, frame: int, reads: bool, notes: int, name: int, answers: bool) -> None:
        """Log in and open; nothing is begun yet. Without `answers` refused links are not detached."""
        self._answers = answers
        self.reads = True
        self._forget()
        self.dial()
        plain = f"\0{self.username}@blue\0{self.username}".encode()
        opened = Open(self.name.ljust(name, "n"), "blue", frame, properties=_map(notes))
        self.say(
            SASL_HEADER
            + frames.encode(SaslInit(Symbol("PLAIN"), plain), 0, frames.SASL)
            + AMQP_HEADER
            + frames.encode(opened)
        )
        self.wait(ANSWER_S, lambda: self._opened)
        self.reads = reads

    def do(self, act: str, values: dict[str, Value]) -> None:
        """Do one step; a client that was disconnected comes back first."""
        if act == "connect":
            self._last = values
            super().do(act, values)
            return
        if self.sock is None:
            if self._last is None:
                return
            super().do("connect", self._last)
        if act != "begin" and not self._sessions:
            self.begin(1, 5_000, 0)
        if self._replies:
            replies, self._replies = b"".join(self._replies), []
            self.say(replies)
        super().do(act, values)

    def begin(self, count: int, window: int, notes: int) -> None:
        """Begin sessions with this incoming window."""
        parts = []
        for channel in range(self._sessions, min(self._sessions + count, 256)):
            begun = Begin(None, 0, window, 5_000, properties=_map(notes))
            parts.append(frames.encode(begun, channel))
            self._next_id[channel] = 0
        self._sessions += len(parts)
        self.say(b"".join(parts))

    def attach(
        self,
        count: int,
        sends: bool,
        place: str,
        name: int,
        durable: bool = False,
        shared: str = "",
        copies: bool = False,
        second: bool = False,
        settled: bool = False,
        notes: int = 0,
        selector: str = "",
        unsettled: int = 0,
        credit: int = 0,
    ) -> None:
        """Attach links on all sessions in turn, and give them credit."""
        capabilities: list[object] | None = None
        if shared:
            capabilities = [Symbol(one) for one in shared.split(",")]
        waiting: dict[object, object] | None = None
        if unsettled:
            state = described(Accepted())
            waiting = {number.to_bytes(8, "big"): state for number in range(unsettled)}
        parts: list[bytes] = []
        for number in range(count):
            handle = self._handles
            self._handles += 1
            channel = handle % self._sessions
            dynamic = place.startswith("dynamic")
            address = None if dynamic else _address(place, number)
            if place == "one" and not sends:
                address = "topic://" + filter_of("same", number).replace("+", "*")
            if dynamic:
                capabilities = [
                    Symbol("temporary-topic" if "topic" in place else "temporary-queue")
                ]
            filters: dict[object, object] = {}
            if selector:
                text = selector_of(selector, number)
                filters[Symbol("s")] = Described(Symbol("apache.org:selector-filter:string"), text)
            source = Source(
                address,
                2 if durable else 0,
                Symbol("never" if durable else "link-detach"),
                dynamic=dynamic and not sends,
                distribution_mode=Symbol("copy") if copies else None,
                filter=filters or None,
                capabilities=capabilities,
            )
            target = Target(address, dynamic=dynamic and sends, capabilities=capabilities)
            attach = Attach(
                f"l{handle}".ljust(name, "n"),
                handle,
                not sends,
                1 if settled else 0,
                1 if second else 0,
                Source("here") if sends else source,
                target if sends else Target("here"),
                waiting,
                initial_delivery_count=0 if sends else None,
                properties=_map(notes),
            )
            parts.append(frames.encode(attach, channel))
            self._links.append((channel, handle, sends))
            if credit and not sends:
                flow = Flow(0, MOST, 0, MOST, handle, 0, credit)
                parts.append(frames.encode(flow, channel)) if credit > 1 else None
            if sum(map(len, parts[-8:])) > PIECE or len(parts) > 500:
                self.say(b"".join(parts))
                parts = []
                if self.sock is None:
                    return
        self.say(b"".join(parts))
        self.wait(0.1)

    def credit(self, count: int, credit: int, window: int, drain: bool, again: int) -> None:
        """Give credit to the links attached last, and the session a window; again and again."""
        if not any(not sends for _, _, sends in self._links):
            self.attach(1, sends=False, place="large", name=1, copies=True)
        links = [(channel, handle) for channel, handle, sends in self._links if not sends][-count:]
        data = b"".join(
            frames.encode(
                Flow(0, window, 0, MOST, handle, 0, credit, drain=drain, echo=drain), channel
            )
            for channel, handle in links
        )
        for _ in range(again):
            self.say(data)
        self.wait(0.1)

    def ask_flow(self, count: int, notes: int) -> None:
        """Flows of the session that ask for an answer."""
        one = frames.encode(Flow(0, MOST, 0, MOST, echo=True, properties=_map(notes)), 0)
        step = max(1, min(count, PIECE // len(one)))
        for _ in range(0, count, step):
            self.say(one * step)

    def send(
        self,
        count: int,
        size: int,
        part: int,
        settled: bool,
        ends: bool,
        within: bool,
        onto: str,
        to: str,
        notes: int,
        tag: int,
        durable: bool,
    ) -> None:
        """Send messages over the links that send, in turn; in parts, and with or without an end."""
        links = [(channel, handle) for channel, handle, sends in self._links if sends]
        if not links:
            self.attach(1, sends=True, place=onto, name=1, settled=settled)
            links = [(channel, handle) for channel, handle, sends in self._links if sends]
            if not links:
                return
        state = None
        if within:
            if not self._transactions:
                self.declare(1)
            if not self._transactions:
                return
            state = TransactionalState(self._transactions[-1])
        parts: list[bytes] = []
        held = 0
        for number in range(count):
            channel, handle = links[number % len(links)]
            identity = self._next_id[channel]
            self._next_id[channel] = identity + 1
            data = b"" if not durable else performatives.write(Header(True))
            if to:
                data += performatives.write(MessageProperties(to=_address(to, number)))
            if notes:
                data += b"\x00\x53\x74" + types.write(_map(notes) or {})
            data += b"\x00\x53\x75" + types.write(b"b" * size)
            cut = [data[at : at + part] for at in range(0, len(data), part)]
            name = identity.to_bytes(4, "big").rjust(tag, b"t")
            for index, piece in enumerate(cut):
                more = not ends or index + 1 < len(cut)
                transfer = Transfer(handle, identity, name, 0, settled, more, state=state)
                if index:
                    transfer = Transfer(handle, more=more)
                raw = frames.encode(transfer, channel, frames.AMQP, piece)
                parts.append(raw)
                held += len(raw)
                if held > PIECE:
                    self.say(b"".join(parts))
                    parts, held = [], 0
                    if self.sock is None:
                        return
        self.say(b"".join(parts))
        self.wait(0.05)

    def declare(self, count: int) -> None:
        """Open transactions."""
        if self._coordinator is None:
            handle = self._handles
            target = Coordinator([Symbol("amqp:local-transactions")])
            attach = Attach("c", handle, False, 0, 0, Source("x"), target, initial_delivery_count=0)
            self.say(frames.encode(attach, 0))
            self._handles += 1
            self._coordinator = (0, handle)
        body = b"\x00\x53\x77" + performatives.write(Declare())
        self._control(body, count)
        self.wait(1.0, lambda: bool(self._transactions))

    def discharge(self, count: int, fail: bool) -> None:
        """End the transactions that were opened last."""
        for identity in self._transactions[-count:]:
            self._control(b"\x00\x53\x77" + performatives.write(Discharge(identity, fail)), 1)
        del self._transactions[-count:]

    def _control(self, body: bytes, count: int) -> None:
        if self._coordinator is None:
            return
        channel, handle = self._coordinator
        for _ in range(count):
            identity = self._next_id[channel]
            self._next_id[channel] = identity + 1
            tag = identity.to_bytes(4, "big")
            self.say(
                frames.encode(Transfer(handle, identity, tag, 0, False), channel, frames.AMQP, body)
            )

    def settle(
        self, role: bool, first: int, width: int, state: str, settled: bool, count: int
    ) -> None:
        """Send a disposition over a range, again and again."""
        outcome: Any = {
            "accepted": Accepted(),
            "rejected": Rejected(),
            "released": Released(),
            "modified": Modified(True, False, _map(1_000)),
            "none": None,
        }[state.removeprefix("within-")]
        for number in range(count):
            told = outcome
            if state.startswith("within-") and self._transactions:
                told = TransactionalState(
                    self._transactions[number % len(self._transactions)], outcome
                )
            last = min(first + width, UINT)
            for channel in range(min(self._sessions, 4)):
                self.say(frames.encode(Disposition(role, first, last, settled, told), channel))
        self.wait(0.05)

    def detach(self, count: int, closed: bool) -> None:
        """Detach the links attached last; their handles are not used again."""
        for channel, handle, _ in self._links[-count:]:
            self.say(frames.encode(Detach(handle, closed), channel))

    def end(self, count: int) -> None:
        """End sessions, and begin them again."""
        for channel in range(min(count, self._sessions)):
            self.say(frames.encode(End(), channel) + frames.encode(Begin(None, 0, 1, 1), channel))

    def half(self, size: int) -> None:
        """Begin a frame and do not end it."""
        attach = Attach("h", 4_000, True, source=Source("h"), properties=_map(size))
        self.say_half(frames.encode(attach)[:-20])

    def leave(self, word: bool) -> None:
        """Close, with a word or without one."""
        if word:
            self.say(frames.encode(Close()))
        self.close()

    def heard(self, chunk: bytes) -> None:
        """Look for what needs an answer, where it is not too much."""
        self.came += chunk
        start = 0
        try:
            while start < len(self.came):
                if self.came[start : start + 4] == b"AMQP":
                    start += 8
                    continue
                size = frames.frame_at(self.came, start, len(self.came), 1 << 28)
                if not size:
                    break
                if len(self._received) < 20_000:
                    self._note(frames.decode(self.came, start, size))
                start += size
        except ProtocolError:
            self.close()
        self.came = self.came[start:]

    def _note(self, frame: frames.Frame) -> None:
        told = frame.performative
        if isinstance(told, Open):
            self._opened = True
        elif isinstance(told, Transfer) and told.delivery_id is not None:
            self._received.append(told.delivery_id)
        elif isinstance(told, Disposition) and isinstance(told.state, Declared):
            self._transactions.append(told.state.txn_id)
        elif isinstance(told, Detach):
            # The handles of the router's side are those of this side's attaches, in this order.
            mine = (frame.channel, told.handle)
            self._links = [link for link in self._links if link[:2] != mine]
            if self._answers:
                self._replies.append(frames.encode(Detach(told.handle, True), frame.channel))
        elif isinstance(told, End):
            self._links = [link for link in self._links if link[0] != frame.channel]
            self._next_id[frame.channel] = 0
            if self._coordinator and self._coordinator[0] == frame.channel:
                self._coordinator = None
                self._transactions.clear()
            if told.error is not None:
                begun = frames.encode(Begin(None, 0, 5_000, 5_000), frame.channel)
                self._replies.append(frames.encode(End(), frame.channel) + begun)


def _map(count: int) -> dict[object, object] | None:
    """A map of many small values, or of a large one."""
    if not count:
        return None
    if count > 5_000:
        return {Symbol("large"): "v" * count}
    return {Symbol(f"k{number}"): number for number in range(count)}


def _address(place: str, number: int) -> str | None:
    match place:
        case "":
            return None
        case "many" | "large" | "topics" | "nothing":
            return f"queue://{place}"
        case "one":
            return "topic://t/0"
        case "all":
            return "topic://t/>"
        case "spooled":
            return f"topic://q/{number}"
        case _:
            return "topic://" + text_of(place, number)


PLACES: Final = (
    *("many", "large", "large", "topics", "nothing", "one", "all", "spooled", ""),
    *("dynamic-queue", "dynamic-topic", *SHAPES),
)


def _attach(draw: random.Random) -> dict[str, Value]:
    return {
        "count": min(draw_count(draw), 5_000),
        "sends": draw.randrange(3) == 0,
        "place": draw.choice(PLACES),
        "name": draw.choice((1, 1, 1_000, 60_000)),
        "durable": draw.randrange(4) == 0,
        "shared": draw.choice(("", "", "", "shared", "shared,global")),
        "copies": draw.randrange(3) == 0,
        "second": draw.randrange(3) == 0,
        "settled": draw.randrange(2) == 0,
        "notes": draw.choice((0, 0, 0, 3_000, 60_000)),
        "selector": draw.choice(SELECTORS),
        "unsettled": draw.choice((0, 0, 0, 0, 2_000)),
        "credit": draw.choice((0, 0, 1, 10, MOST, UINT)),
    }


def _send(draw: random.Random) -> dict[str, Value]:
    size = draw_size(draw)
    return {
        "count": min(draw_count(draw), 60_000_000 // (size + 1) + 3),
        "size": size,
        "part": draw.choice((60_000, 60_000, 400)) if size < 2_000_000 else 60_000,
        "settled": draw.randrange(2) == 0,
        "ends": draw.randrange(4) != 0,
        "within": draw.randrange(3) == 0,
        "onto": draw.choice(("", *PLACES)),
        "to": draw.choice(("", "", "", *PLACES)),
        "notes": draw.choice((0, 0, 0, 3_000, 40_000)),
        "tag": draw.choice((4, 32)),
        "durable": draw.randrange(2) == 0,
    }


def _settle(draw: random.Random) -> dict[str, Value]:
    outcomes = ("accepted", "rejected", "released", "modified", "none")
    return {
        "role": draw.randrange(4) != 0,
        "first": draw.choice((0, 0, 0, 1, MOST)),
        "width": draw.choice((0, 10, 5_000, MOST)),
        "state": draw.choice((*outcomes, *(f"within-{one}" for one in outcomes))),
        "settled": draw.randrange(2) == 0,
        "count": draw.choice((1, 1, 10, 100, 2_000)),
    }


WORDS: Final = Vocabulary(
    "connect",
    {
        "connect": (
            0.5,
            lambda draw: {
                "frame": draw.choice((512, 512, 65_536, UINT)),
                "reads": draw.randrange(3) != 0,
                "notes": draw.choice((0, 0, 200)),
                "name": draw.choice((1, 1, 1_000)),
                "answers": draw.randrange(2) == 0,
            },
        ),
        "begin": (
            3,
            lambda draw: {
                "count": draw.choice((1, 20, 255)),
                "window": draw.choice((0, 1, 1, 1, 5, 5_000, MOST)),
                "notes": draw.choice((0, 0, 3_000, 60_000)),
            },
        ),
        "attach": (8, _attach),
        "credit": (
            5,
            lambda draw: {
                "count": draw.choice((1, 10, 300, 4_096)),
                "credit": draw.choice((0, 1, 1, 10, MOST, UINT)),
                "window": draw.choice((0, 1, 5, 5_000, MOST)),
                "drain": draw.randrange(4) == 0,
                "again": draw.choice((1, 1, 20)),
            },
        ),
        "ask_flow": (
            1,
            lambda draw: {"count": draw_count(draw), "notes": draw.choice((0, 0, 3_000))},
        ),
        "send": (8, _send),
        "declare": (3, lambda draw: {"count": draw.choice((1, 5, 99, 120))}),
        "discharge": (
            1,
            lambda draw: {"count": draw.choice((1, 99)), "fail": draw.randrange(2) == 0},
        ),
        "settle": (4, _settle),
        "detach": (
            1,
            lambda draw: {"count": draw.choice((1, 300, 4_000)), "closed": draw.randrange(2) == 0},
        ),
        "end": (0.5, lambda draw: {"count": draw.choice((1, 255))}),
        "half": (1, lambda draw: {"size": draw.choice((100, 130_000))}),
        "reading": (1, lambda draw: {"on": draw.randrange(2) == 0}),
        "pause": (1, lambda draw: {"tenths": draw.choice((1, 5, 12))}),
        "leave": (0.5, lambda draw: {"word": draw.randrange(2) == 0}),
    },
)
