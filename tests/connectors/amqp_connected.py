"""A connector of a router in memory. The test is its provider of AMQP 1.0: it sees frames, and answers with frames."""

from __future__ import annotations

import sys
from typing import Any

from vpnrouter.config.configured_connector import provider_settings_of
from vpnrouter.connectors.amqp.client import AmqpProvider
from vpnrouter.core.scram import Derivation
from vpnrouter.testing.memory import MOST
from vpnrouter.wire.amqp import frames, performatives, types
from vpnrouter.wire.amqp.frames import AMQP_HEADER, EMPTY, SASL, SASL_HEADER
from vpnrouter.wire.amqp.performatives import (
    Accepted,
    Attach,
    Begin,
    Disposition,
    Flow,
    Header,
    MessageProperties,
    Open,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    Transfer,
)
from vpnrouter.wire.amqp.sections import APPLICATION_PROPERTIES, DATA, sections
from vpnrouter.wire.amqp.types import Symbol

Connected: Any = sys.modules["connectors_connected"].Connected  # loaded by the fixture `kit`

WINDOW = 1 << 30


def message(
    text: str, *, count: int = 0, more: dict[object, object] | None = None, **said: Any
) -> bytes:
    """A durable message that was delivered `count` times before, with properties, and application properties `more`."""
    parts = [performatives.write(Header(durable=True, delivery_count=count))]
    if said:
        parts.append(performatives.write(MessageProperties(**said)))
    if more:
        parts.append(b"\x00\x53\x74" + types.write(more))
    return b"".join(parts) + b"\x00\x53\x75" + types.write(text.encode())


def body_of(payload: bytes) -> str:
    """The text in the data of a message."""
    for one in sections(payload):
        if one.code == DATA:
            value = types.read(payload, one.value, one.end)[0]
            assert isinstance(value, bytes)
            return value.decode()
    return ""


def application_of(payload: bytes) -> dict[object, object]:
    """Its application properties."""
    for one in sections(payload):
        if one.code == APPLICATION_PROPERTIES:
            value = types.read(payload, one.value, one.end)[0]
            assert isinstance(value, dict)
            return value
    return {}


class AmqpConnected(Connected):
    """The connector `there` of the message VPN blue of `world`.

    `attached` are the links that the router has asked for, by name; our handles are the router's and 100. `count` is
    how many messages the provider has sent, `early` are those that came while it was connected.
    """

    def __init__(self, world: Any, links: dict[str, Any], **provider: Any) -> None:
        self.derivations: list[Derivation] = []
        self.attached: dict[str, Attach] = {}
        self.count = 0
        self.early: list[Any] = []
        given = {"url": "amqp://127.0.0.1:1", **provider}
        super().__init__(world, links, provider=given)

    def dial(self, *, leaving: bool = False) -> AmqpProvider:
        """Connect; the router says its first header."""
        settings = provider_settings_of("r", "blue", "there", self.configured)
        self.attached.clear()
        self.count = 0
        self.early = []
        self.client = AmqpProvider(
            self,
            self.world.vpn(),
            peer="192.0.2.9",
            host="provider.example.org",
            session=self.session,
            home=self.account,
            inward=self.links.inward,
            outward=self.links.outward,
            settings=settings,
            derivations=self.derivations,
            leaving=leaving,
        )
        self.client.begin()
        assert self.bytes() == SASL_HEADER
        return self.client

    def login(self, *mechanisms: str) -> SaslInit:
        """Offer mechanisms; what the router chooses."""
        offer = SaslMechanisms([Symbol(name) for name in mechanisms or ("PLAIN", "ANONYMOUS")])
        self.raw(SASL_HEADER + frames.encode(offer, 0, SASL))
        (init,) = self.received()
        assert isinstance(init, SaslInit)
        return init

    def let_in(self, **opened: Any) -> Open:
        """Accept the login, open the connection as the provider says, and begin the session."""
        self.raw(frames.encode(SaslOutcome(0), 0, SASL))
        data = self.bytes()
        assert data.startswith(AMQP_HEADER)
        (opening,) = self._frames(data[len(AMQP_HEADER) :])
        self.raw(AMQP_HEADER)
        self.send(Open("provider", **opened))
        assert [type(each).__name__ for each in self.received()] == ["Begin"]
        self.send(Begin(0, 0, WINDOW, WINDOW))
        assert isinstance(opening, Open)
        return opening

    def join(
        self, *, credit: int = 100, grants: bool = True, product: str = "", **opened: Any
    ) -> Any:
        """Connect, and grant what the router asks for; what else it said."""
        self.dial()
        self.login()
        if product:
            opened["properties"] = {Symbol("product"): product}
        self.let_in(**opened)
        said = []
        for packet in self.got():
            if isinstance(packet, Attach):
                self.attached[packet.name] = packet
                if grants:
                    self.grant(packet, credit=credit)
            else:
                said.append(packet)
        said += self.got()
        self.early = [
            each for each in said if isinstance(each, tuple) and isinstance(each[0], Transfer)
        ]
        return [each for each in said if each not in self.early]

    def grant(self, asked: Attach, *, credit: int = 100, **changed: Any) -> None:
        """Attach a link, with credit where the router sends."""
        answer = asked._replace(
            handle=asked.handle + 100,
            role=not asked.role,
            initial_delivery_count=0 if asked.role else None,
            **changed,
        )
        self.send(answer)
        if not asked.role and credit:
            self.send(Flow(0, WINDOW, 0, WINDOW, asked.handle + 100, 0, credit))

    # -- frames ----------------------------------------------------------------------------------

    def send(self, *packets: Any, payload: bytes = b"") -> None:
        """Let the provider send frames, in one chunk."""
        data = b"".join([frames.encode(packet, 0, payload=payload) for packet in packets])
        self.client.connection.feed(data)

    def gives(self, name: str, *messages: bytes, settled: bool = False) -> None:
        """Let the provider send messages over a link."""
        handle = self.attached[name].handle + 100
        for each in messages:
            number = self.count
            self.count += 1
            tag = number.to_bytes(4, "big")
            self.send(Transfer(handle, number, tag, 0, settled), payload=each)

    def bytes(self) -> bytes:
        """What the router has sent by now."""
        context = self.world.router.context
        context.jobs.finish()
        outbox = self.client.connection.outbox
        outbox.dirty = False
        context.ready[:] = [other for other in context.ready if other is not outbox]
        data = b""
        while outbox.chunks:
            data += outbox.take(MOST)
        return data

    @staticmethod
    def _frames(data: bytes) -> list[Any]:
        found: list[Any] = []
        pos = 0
        while pos < len(data):
            size = frames.frame_at(data, pos, len(data), MOST)
            frame = frames.decode(data, pos, size)
            pos += size
            if isinstance(frame.performative, Transfer):
                found.append((frame.performative, frame.payload))
            elif frame.performative is not None:
                found.append(frame.performative)
        return found

    def received(self, *, pings: bool = True) -> list[Any]:
        """The frames that the router has sent by now, of transfers with what they carry; signs of life are left out."""
        assert pings
        data = self.bytes()
        return self._frames(data.removesuffix(EMPTY) if data == EMPTY else data)

    # -- what is asked most ----------------------------------------------------------------------

    def transfers(self) -> list[tuple[Transfer, bytes]]:
        """Messages that the router has sent since."""
        early, self.early = self.early, []
        return early + [
            each for each in self.got() if isinstance(each, tuple) and isinstance(each[0], Transfer)
        ]

    def answer(self, transfer: Transfer, state: Any = None, *, settled: bool = True) -> None:
        """Say what became of a message: accepted, without another state."""
        number = transfer.delivery_id
        assert number is not None
        self.send(Disposition(True, number, None, settled, Accepted() if state is None else state))

    def outcomes(self) -> dict[int, str]:
        """What the router has said of messages that it was sent, by their numbers."""
        found: dict[int, str] = {}
        for each in self.got():
            if isinstance(each, Disposition):
                assert (each.role, each.settled) == (True, True)
                last = each.first if each.last is None else each.last
                name = type(each.state).__name__
                found |= dict.fromkeys(range(each.first, last + 1), name)
        return found

    def bodies(self, queue: str) -> list[str]:
        """The texts of the messages in a queue."""
        endpoint = self.world.vpn().queue(queue)
        return [body_of(row.message.amqp()) for row in endpoint.browse(0, 1_000)]
