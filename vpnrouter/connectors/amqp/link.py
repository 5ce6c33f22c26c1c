"""What both kinds of links to a provider of AMQP have in common: a name, a handle, and a life within one connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import mypyc_attr
from typing_extensions import override

from vpnrouter.connectors.amqp.brokers import GLOBAL
from vpnrouter.wire.amqp.performatives import Attach, Detach, Error, Flow, Target
from vpnrouter.wire.amqp.types import Symbol

if TYPE_CHECKING:
    from vpnrouter.connectors.amqp.session import ClientSession

UNSETTLED: Final = 0
SETTLED: Final = 1
"""Modes of a sender: the receiver settles each delivery, or all are settled as they are sent (2.8.2)."""

SHARED: Final[list[object]] = [Symbol("shared"), Symbol("global")]
"""Capabilities of a subscription that clients of all containers share, as Qpid JMS and Artemis name them."""

MOST_TEXT: Final = 300
"""Characters of what a provider says of an error that are shown."""


def said(problem: Error | None) -> str:
    """Return what a provider says of the end of a connection, session or link, for people."""
    if problem is None:
        return "it gives no reason"
    text = str(problem.condition)
    if problem.description:
        text = f"{text}: {problem.description[:MOST_TEXT]}"
    info = problem.info or {}
    for name in ("network-host", "hostname"):
        host = info.get(Symbol(name), info.get(name))
        if isinstance(host, str):
            return f"{text}, and names another address: {host[:MOST_TEXT]}"
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
            self.refused(f"the provider {verb} it: {said(packet.error)}")


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
