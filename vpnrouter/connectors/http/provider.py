"""A connector's provider that is an HTTP server: several connections, over which messages are posted.

Servers close connections that are idle as a matter of course. So the connector is up from its first connection until
one that it needs cannot be made while there is no other: only then the provider is away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from typing_extensions import override

from vpnrouter import limits
from vpnrouter.connectors.http.authorization import authorization
from vpnrouter.connectors.http.connection import HttpConnection
from vpnrouter.connectors.http.exchanges import BROKEN, LinkRequests
from vpnrouter.connectors.http.requests import RequestWriter, identity_of
from vpnrouter.connectors.outward import OutwardFlow
from vpnrouter.connectors.provider import LOOKS, Loss, Provider
from vpnrouter.connectors.provider_connection import ProviderConnection
from vpnrouter.connectors.provider_timers import ProviderTimers
from vpnrouter.core.connection import Connection
from vpnrouter.core.guaranteed.spool import spool_of
from vpnrouter.core.memory_account import MemoryAccount
from vpnrouter.core.timers import Job
from vpnrouter.text import printable
from vpnrouter.units import SECOND_NS

if TYPE_CHECKING:
    from vpnrouter.connectors.http.exchanges import Exchange
    from vpnrouter.connectors.inward import InwardLink
    from vpnrouter.connectors.links import LinkSettings
    from vpnrouter.connectors.outward import OutwardLink
    from vpnrouter.connectors.provider import ConnectorCallbacks
    from vpnrouter.connectors.settings import ProviderSettings
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.message import Message
    from vpnrouter.core.publisher import Publisher
    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.wire.http1 import AnswerReader

PROTOCOL: Final = "HTTP/1.1"

IDLE_NS: Final = 50 * SECOND_NS
"""How long a connection may have been idle to be used again: proxies and servers forget it after a minute."""

DIAL_NS: Final = SECOND_NS
"""How soon another connection is tried, where one could not be made and there are others."""

REASON_CHARS: Final = 100
"""Characters of a server's own words that are told."""

WATCH: Final = 0
DIAL: Final = 1
"""Kinds of timers: a look is due whether messages are answered; connections may be asked for again."""


@final
class HttpProvider(Provider):
    """The connections of a connector to one HTTP server, `authority` as it is called in requests.

    `most` is how many there may be. `publisher` publishes replies, `account` counts what is held in memory. The
    connection that all of it counts for has no socket of its own.
    """

    def __init__(
        self,
        owner: ConnectorCallbacks,
        vpn: MessageVpn,
        peer: str,
        authority: str,
        publisher: Publisher,
        home: MemoryAccount,
        settings: ProviderSettings,
    ) -> None:
        connection = HttpHome(vpn, peer, self, home)
        name = publisher.subscriber.client_name
        super().__init__(connection, vpn, name, PROTOCOL, settings, carries_path=True)
        connection.guaranteed = True
        self.peer = peer
        self.publisher = publisher
        self.account = home
        self.most = settings.max_connections
        self._owner = owner
        self._authority = authority
        self._authorization, self._flaw, _ = authorization(settings)
        self._answer_ns = settings.answer_timeout_s * SECOND_NS
        self._links: list[LinkRequests] = []
        self._open: dict[HttpConnection, None] = {}
        self._idle: list[HttpConnection] = []
        self._dialling = 0
        self._dial_ns = 0
        self._turn = 0
        self._pumping = False
        self._joined = False
        self.over = False
        self._timers = ProviderTimers(self)

    # -- life ------------------------------------------------------------------------------------

    @override
    def begin(self) -> None:
        # There is no login: it is up when its first connection is served.
        self.vpn.context.jobs.add(Begin(self))

    def join(self) -> None:
        """Be up."""
        if not self.over:
            self._joined = True
            self._owner.joined(self)
            self.pump()

    @override
    def added(self) -> Connection:
        connection = HttpConnection(self, self.peer)
        connection.guaranteed = True
        self._open[connection] = None
        self._idle.append(connection)
        if self._joined:
            self._dialling = max(0, self._dialling - 1)
            self._dial_ns = 0
            self.pump()
        return connection

    @override
    def not_reached(self, why: str) -> None:
        self._dialling = max(0, self._dialling - 1)
        if self.over:
            return
        if self._open:
            now_ns = self.vpn.context.now_ns
            self._dial_ns = now_ns + DIAL_NS
            self._timers.arm(DIAL, DIAL_NS)
        elif not self._dialling:
            self.end(why)

    @override
    def end(self, why: str) -> None:
        if self.over:
            return
        self.over = True
        self._timers.stop()
        for connection in list(self._open):
            connection.end(why)
        for requests in self._links:
            requests.end()
        home = self.connection
        home.closing = True
        try:
            self._owner.lost(self, Loss(why, joined=self._joined))
        finally:
            home.release_resources()

    @override
    def renew(self, why: str) -> None:
        self.end(why)

    # -- links -----------------------------------------------------------------------------------

    @override
    def obstacle(self, terms: LinkSettings) -> str:
        if terms.inbound or terms.request is None:
            return "nothing comes in from an HTTP server"
        if terms.qos == 2:
            return (
                "HTTP does not say whether a request that was not answered was carried out, which its quality of"
                " service needs; duplicates-ok is the most"
            )
        if terms.qos and spool_of(self.vpn.context) is None:
            return "guaranteed messages are disabled here"
        return self._flaw

    @override
    def ask(self, link: InwardLink) -> None:
        link.refused("nothing comes in from an HTTP server")

    @override
    def offer(self, link: OutwardLink) -> None:
        request = link.terms.request
        if request is None:
            return
        spool = spool_of(self.vpn.context)
        store_id = b"" if spool is None else spool.ledger.store_id
        identity = identity_of(store_id, self.vpn.name, link.label)
        writer = RequestWriter(request, self._authority, self._authorization, identity)
        self._links.append(LinkRequests(self, link, request, writer))
        link.opened()

    def _requests_of(self, link: OutwardLink) -> LinkRequests | None:
        for requests in self._links:
            if requests.link is link:
                return requests
        return None

    @override
    def flow(self, link: OutwardLink, endpoint: Endpoint) -> OutwardFlow:
        requests = self._requests_of(link)
        if requests is None:
            raise AssertionError(link.label)
        return HttpOutwardFlow(self, requests, endpoint)

    @override
    def send_direct(self, link: OutwardLink, message: Message, topic: bytes) -> str:
        requests = self._requests_of(link)
        return "" if requests is None else requests.take_direct(message, topic)

    @override
    def outward_resumed(self, link: OutwardLink) -> None:
        self.pump()

    # -- requests --------------------------------------------------------------------------------

    def pump(self) -> None:
        """Send what can be sent: the links in turn, each message over a connection that is free."""
        if self._pumping or self.over or not self._joined:
            return
        self._pumping = True
        try:
            self._send_all()
        finally:
            self._pumping = False

    def _send_all(self) -> None:
        links = self._links
        count = len(links)
        # None takes all connections, so that one whose requests hang does not hold up the others.
        share = max(1, self.most - count + 1)
        silent = 0
        while silent < count:
            requests = links[self._turn % count]
            if requests.sendable(share) <= 0:
                self._turn += 1
                silent += 1
                continue
            connection = self._free()
            if connection is None:
                self._ask_for_more(share)
                return
            self._turn += 1
            silent = 0
            if not requests.send_next(connection):
                self._idle.append(connection)
            elif self._answer_ns:
                self._timers.arm(WATCH, self._answer_ns // LOOKS)

    def _free(self) -> HttpConnection | None:
        """Return the connection that was used last of those that are free, None where none is."""
        idle = self._idle
        now_ns = self.vpn.context.now_ns
        while idle:
            connection = idle.pop()
            if now_ns - connection.idle_ns <= IDLE_NS:
                return connection
            connection.end("it was idle for long")
        return None

    def _ask_for_more(self, share: int) -> None:
        room = self.most - len(self._open) - self._dialling
        if room <= 0 or self._dial_ns > self.vpn.context.now_ns:
            return
        wanted = -self._dialling
        for requests in self._links:
            wanted += max(0, requests.sendable(share))
        count = min(room, wanted)
        if count > 0:
            self._dialling += count
            self._owner.more_connections(self, count)

    def answered(self, connection: HttpConnection, *, keeps: bool) -> None:
        """An answer is complete. Without `keeps` its connection is not used again."""
        exchange = connection.exchange
        if exchange is None:
            return
        # An early answer: what has not left of the request would be taken for the next one.
        keeps = keeps and not connection.outbox.size
        connection.used = True
        exchange.requests.answered(exchange, connection.answer)
        # Not before: where that raises, the message is still known to be under way.
        connection.exchange = None
        if keeps and not self.over:
            connection.idle_ns = self.vpn.context.now_ns
            self._idle.append(connection)
        else:
            connection.end("the server does not keep it")
        self.pump()

    def gone(self, connection: HttpConnection, why: str) -> None:
        """A connection has ended."""
        self._open.pop(connection, None)
        if connection in self._idle:
            self._idle.remove(connection)
        exchange: Exchange | None = connection.exchange
        connection.exchange = None
        if exchange is None or self.over:
            return
        how = connection.how
        if not exchange.once and how != BROKEN:
            # Others that were used before may be closed as well: what is sent again goes over a new one.
            self._drop_used()
        exchange.requests.lost(exchange, how, self.scrubbed(why))
        self.pump()

    def _drop_used(self) -> None:
        idle = self._idle
        used = [connection for connection in idle if connection.used]
        for connection in used:
            connection.end("another one was closed")

    def said(self, answer: AnswerReader) -> str:
        """Return what a server has answered, in one line, without a secret that it may have repeated."""
        words = self._quoted(answer.reason)
        text = f"the provider answered {answer.status} {words}".strip()
        if 300 <= answer.status < 400:
            place = self._quoted(answer.location)
            text += f", to {place}" if place else ""
            text += "; redirects are not followed"
        return printable(text)

    def _quoted(self, words: bytes) -> str:
        """Return a server's own words, cut: after secrets were taken out, since a part of one is secret too."""
        return self.scrubbed(words.decode("utf-8", "replace"), limits.HTTP_HEAD_BYTES)[
            :REASON_CHARS
        ]

    # -- time ------------------------------------------------------------------------------------

    @override
    def on_timer(self, kind: int) -> None:
        if kind == DIAL:
            self._dial_ns = 0
            self.pump()
            return
        now_ns = self.vpn.context.now_ns
        busy = False
        for connection in list(self._open):
            exchange = connection.exchange
            if exchange is None:
                continue
            busy = True
            if now_ns - exchange.began_ns >= self._answer_ns:
                seconds = self._answer_ns // SECOND_NS
                connection.end(f"the provider has not answered it for {seconds} s", BROKEN)
        if busy and not self.over:
            self._timers.arm(WATCH, self._answer_ns // LOOKS)


@final
class Begin(Job):
    """Lets a provider be up when its first connection is served."""

    __slots__ = ("_provider",)

    def __init__(self, provider: HttpProvider) -> None:
        super().__init__()
        self._provider = provider

    @override
    def owning_connection(self) -> Connection | None:
        return self._provider.connection

    @override
    def step(self) -> bool:
        self._provider.join()
        return True


@final
class HttpHome(ProviderConnection):
    """What the messages of a connector to an HTTP server count for, and what ends when its work raises: no socket."""

    __slots__ = ()

    def __init__(
        self, vpn: MessageVpn, peer: str, provider: HttpProvider, home: MemoryAccount
    ) -> None:
        super().__init__(vpn.context, provider, peer, home)
        self.outbox.plain = True

    @override
    def end(self, why: str) -> None:
        self.provider.end(why)


@final
class HttpOutwardFlow(OutwardFlow):
    """The flow of one link to an HTTP server."""

    __slots__ = ("_requests",)

    def __init__(self, provider: HttpProvider, requests: LinkRequests, endpoint: Endpoint) -> None:
        super().__init__(
            requests.link, endpoint, provider.connection, limits.HTTP_AHEAD * provider.most
        )
        self._requests = requests

    @override
    def provider_room(self) -> int:
        return self.window

    @override
    def transmit(self, message_id: int, message: Message, topic: bytes) -> None:
        self._requests.take(self, message_id, message, topic)

    @override
    def letting_go(self) -> None:
        super().letting_go()
        self._requests.let_go()
