"""Defines what the links of a connector and a connection to its provider ask of each other, whatever it speaks.

    runner  → Provider        begins the connection and ends it
    Provider → ConnectorCallbacks  the login was accepted, the connection is over
    links   → Provider        may this link be carried; ask for its messages; give me a flow for its queue; send this
    Provider → links          opened or refused; here is a message; it was accepted, or refused

A provider is made for each connection. What has to outlive connections, so that a message is known again, is its own
matter (provider_session.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from mypy_extensions import mypyc_attr

from vpnrouter import limits
from vpnrouter.connectors.link_state import LinkOwner
from vpnrouter.core.guaranteed.unit_of_work import CompletionCallback
from vpnrouter.text import printable

if TYPE_CHECKING:
    from vpnrouter.connectors.inward import InwardLink
    from vpnrouter.connectors.links import LinkSettings
    from vpnrouter.connectors.outward import OutwardFlow, OutwardLink
    from vpnrouter.connectors.settings import ProviderSettings
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.message import Message
    from vpnrouter.core.vpn import MessageVpn


class Loss(NamedTuple):
    """Why and how a connection ended. `joined`: after the login was accepted.

    `other_version`: the provider might take another version of its protocol. `renews`: the next one is due at once.
    `link` and `message_id` are those of the message that it had to answer next where it closed the connection itself,
    or answered all but that; "" and 0 for none. `asked` is the link whose request it had to answer next, "" for none.
    `blame` says what it did. `suspected`: that message was alone on the way, and the provider had just shown that it
    was alive.
    """

    why: str
    joined: bool = False
    other_version: bool = False
    renews: bool = False
    link: str = ""
    message_id: int = 0
    asked: str = ""
    blame: str = ""
    suspected: bool = False


ENDED: Final = "the provider ended the connection"
"""Begins why a connection ended that the provider has closed."""

MASK: Final = "***"

LEAST_SECRET: Final = 4
"""Characters of a secret that is looked for in what a provider says: a shorter one stands in any text."""

ALONE: Final = 1
"""Messages on the way while one is suspected of ending the connection. Each answer lets one more be on the way then."""

LOOKS: Final = 5
"""How often it is looked within the time that a provider has for an answer."""


@mypyc_attr(allow_interpreted_subclasses=True)
class ConnectorCallbacks(LinkOwner):
    """What its links and its connections tell a connector."""

    __slots__ = ()

    def joined(self, provider: Provider) -> None:
        """The provider has accepted the login."""
        raise AssertionError(provider)

    def lost(self, provider: Provider, loss: Loss) -> None:
        """The connection is over."""
        raise AssertionError(loss)

    def more_connections(self, provider: Provider, count: int) -> None:
        """Make so many more connections to a provider that takes several (`Provider.added`, `not_reached`)."""
        raise AssertionError(count)


@mypyc_attr(allow_interpreted_subclasses=True)
class Provider:
    """One connection to a provider. `protocol` is what it speaks, as people write it; `place` its name in paths, and
    `carries_path` whether it passes these on. `identity` names its connector, and the message VPN `vpn`, in logs.
    `unclaimed` counts messages of it that no link takes, by reason.
    """

    __slots__ = (
        "carries_path",
        "connection",
        "identity",
        "place",
        "protocol",
        "secrets",
        "unclaimed",
        "vpn",
    )

    def __init__(
        self,
        connection: Connection,
        vpn: MessageVpn,
        client_name: str,
        protocol: str,
        settings: ProviderSettings,
        *,
        carries_path: bool,
    ) -> None:
        self.connection = connection
        self.vpn = vpn
        self.identity = (client_name, vpn.name)
        self.protocol = protocol
        self.place = settings.place
        self.secrets = settings.secrets
        self.carries_path = carries_path
        self.unclaimed: dict[str, int] = {}

    def scrubbed(self, text: str, most: int = limits.PRINTED_CHARS) -> str:
        """Return what a provider says without secrets, on one line, of at most `most` characters.

        It is cut after that, since a part of a secret is one too.
        """
        for secret in self.secrets:
            if len(secret) >= LEAST_SECRET:
                text = text.replace(secret, MASK)
        return printable(text, most)

    def begin(self) -> None:
        """Log in."""
        raise AssertionError(self)

    def added(self) -> Connection:
        """Return the connection that is served over a transport which was made: of most providers the only one."""
        return self.connection

    def not_reached(self, why: str) -> None:
        """One of the connections that were asked for cannot be made, for `why`."""
        raise AssertionError(why)

    def end(self, why: str) -> None:
        """Log out, for `why`."""
        raise AssertionError(why)

    def renew(self, why: str) -> None:
        """Log in anew, at once, for `why`: what is not acknowledged comes again."""
        raise AssertionError(why)

    def ended(self, why: str) -> None:
        """Its connection is over, for `why`."""
        raise AssertionError(why)

    def on_timer(self, kind: int) -> None:
        """Do what is due, by the kind of a timer that it has armed."""

    # -- links that bring messages in ------------------------------------------------------------

    def obstacle(self, terms: LinkSettings) -> str:
        """Return why this provider cannot carry a link as it is configured, "" where it can. Asked when joined."""
        return ""

    def ask(self, link: InwardLink) -> None:
        """Ask for the messages of a link, which is told whether it gets them (`opened`, `refused`)."""
        raise AssertionError(link)

    def inward_paused(self, link: InwardLink) -> None:
        """A link was paused, or goes on. What still comes for one that is paused is set aside if it is guaranteed."""

    # -- links that take messages out ------------------------------------------------------------

    def offer(self, link: OutwardLink) -> None:
        """Have the provider take the messages of a link, which is told whether it does (`opened`, `not_opened`)."""
        link.opened()

    def flow(self, link: OutwardLink, endpoint: Endpoint) -> OutwardFlow:
        """Return a flow that sends what `endpoint` has for a link; not bound yet."""
        raise AssertionError(link)

    def outward_resumed(self, link: OutwardLink) -> None:
        """A link was paused, and goes on: send what has waited here."""

    def send_direct(self, link: OutwardLink, message: Message, topic: bytes) -> str:
        """Send a message at most once, under `topic`; "" or the reason (discard_reasons.py) why it was not."""
        raise AssertionError(topic)


@mypyc_attr(allow_interpreted_subclasses=True)
class Receipts(CompletionCallback):
    """What a connection is told of the guaranteed messages that it has brought; each is known by a token.

    `on_outcome` is called for each that was accepted, when it is in the synced spool, or was left out for good.
    """

    __slots__ = ()

    def remember(self, token: int) -> None:
        """Put into the unit being built by what the message is known again, if that is needed."""

    def forget(self, token: int) -> None:
        """Take that back: the message is not in the unit."""
