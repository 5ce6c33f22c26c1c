"""What both kinds of links to a provider of AMQP have in common: a name, a handle, and a life within one connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import mypyc_attr
from typing_extensions import override

from vpnrouter.connectors.amqp.brokers import GLOBAL
from vpnrouter.core.amqp.serials import HALF, SERIAL
from vpnrouter.wire.amqp.performatives import Attach, Detach, Error, Flow, Target
from vpnrouter.wire.amqp.types import Symbol

if TYPE_CHECKING:
    from vpnrouter.connectors.amqp.session import ClientSession
    from vpnrouter.connectors.provider import Provider

UNSETTLED: Final = 0
SETTLED: Final = 1
"""Modes of a sender: the receiver settles each delivery, or all are settled as they are sent (2.8.2)."""

SHARED: Final[list[object]] = [Symbol("shared"), Symbol("global")]
"""Capabilities of a subscription that clients of all containers share, as Qpid JMS and Artemis name them."""

MOST_TEXT: Final = 300
"""Characters of what a provider says of an error that are shown."""


def said(problem: Error | None, provider: Provider) -> str:
    """Return what a provider says of the end of a connection, session or link, for people."""
    if problem is None:
        return "it gives no reason"
    text = provider.scrubbed(str(problem.condition), MOST_TEXT)
    if problem.description:
        text = f"{text}: {provider.scrubbed(problem.description, MOST_TEXT)}"
    info = problem.info or {}
    for name in ("network-host", "hostname"):
        host = info.get(Symbol(name), info.get(name))
        if isinstance(host, str):
            return f"{text}, and names another address: {provider.scrubbed(host, MOST_TEXT)}"
    return text


@mypyc_attr(allow_interpreted_subclasses=True)
class ProviderLink:
    """One link of AMQP, from its attach on. `attached`: the provider has answered. `over`: it carries nothing more.

    `there`: the answer named a terminus; one without announces a refusal (2.6.3).
    """

    __slots__ = ("attached", "handle", "name", "over", "session", "there")

    def __init__(self, session: ClientSession, name: str, handle: int) -> None:
        self.session = session
        self.name = name
        self.handle = handle
        self.attached = False
        self.there = False
        self.over = False

    @property
    def receives(self) -> bool:
        """Whether it brings messages in."""
        raise AssertionError(self)

    def request(self) -> Attach:
        """Return what the provider is asked for."""
        raise AssertionError(self)

    def granted(self, packet: Attach) -> None:
        """The provider has attached the link."""
        raise AssertionError(packet)

    def flow(self, packet: Flow) -> None:
        """The provider says how far it is."""
        raise AssertionError(packet)

    def wake(self) -> None:
        """The provider's window is open again."""

    def settled(self, message_id: int, state: object, *, done: bool) -> bool:
        """Take what the provider says of a delivery, which the session knows by `message_id`; `done`: it says nothing
        more. False where it is no outcome.
        """
        raise AssertionError(message_id)

    def owed(self, message_id: int) -> tuple[str, int]:
        """Return the link, and the message of the spool, that such a delivery is for; "" and 0 for none."""
        raise AssertionError(message_id)

    def refused(self, why: str) -> None:
        """The provider has not attached the link, or has detached it, for `why`."""
        raise AssertionError(why)

    def answered(self, packet: Attach) -> None:
        """Take the provider's answer."""
        self.attached = True
        terminus = packet.source if self.receives else packet.target
        self.there = terminus is not None
        if self.there:
            self.granted(packet)

    def detached(self, packet: Detach) -> None:
        """Take the provider's end of the link, and answer it."""
        if not self.over:
            self.over = True
            self.session.say(Detach(self.handle, packet.closed))
            verb = "detached" if self.there else "refused"
            self.refused(f"the provider {verb} it: {said(packet.error, self.session.client)}")


@mypyc_attr(allow_interpreted_subclasses=True)
class OutgoingLink(ProviderLink):
    """A link over which the provider is sent messages. `credit` is how many more it takes (2.6.7)."""

    __slots__ = ("_count", "credit")

    def __init__(self, session: ClientSession, name: str, handle: int) -> None:
        super().__init__(session, name, handle)
        self.credit = 0
        self._count = 0

    @property
    @override
    def receives(self) -> bool:
        return False

    def take_credit(self, packet: Flow) -> None:
        """Take the credit that the provider gives."""
        if packet.link_credit is not None:
            base = 0 if packet.delivery_count is None else packet.delivery_count
            under_way = (self._count - base) & SERIAL
            if under_way >= HALF:
                under_way -= SERIAL + 1
            # What is on its way to the provider may be more than it takes now.
            self.credit = min(max(0, packet.link_credit - under_way), SERIAL)

    def use_credit(self) -> None:
        """Count a message that is sent."""
        self._count = (self._count + 1) & SERIAL
        self.credit -= 1

    def answer(self, packet: Flow) -> None:
        """Say how far the link is, where the provider asks for that; a drain uses up what credit is left (2.6.7)."""
        if packet.drain:
            self._count = (self._count + self.credit) & SERIAL
            self.credit = 0
        if packet.drain or packet.echo:
            state = self.session.flow()
            self.session.say(
                state._replace(
                    handle=self.handle,
                    delivery_count=self._count,
                    link_credit=self.credit,
                    available=0,
                    drain=packet.drain,
                )
            )


@final
class Ending(ProviderLink):
    """A link that only ends a durable subscription of its name: it is attached without a source, and closed.

    A provider that knows of no such subscription detaches it by itself.
    """

    __slots__ = ()

    def __init__(self, session: ClientSession, name: str, handle: int) -> None:
        super().__init__(session, name, handle)

    @property
    @override
    def receives(self) -> bool:
        return True

    @override
    def request(self) -> Attach:
        shared = SHARED if self.name.endswith(GLOBAL) else None
        return Attach(self.name, self.handle, True, target=Target(), desired_capabilities=shared)

    @override
    def answered(self, packet: Attach) -> None:
        self.attached = True
        self.session.say(Detach(self.handle, True))

    @override
    def detached(self, packet: Detach) -> None:
        self.over = True
        self.session.client.forgotten(self.name)
