"""The end of a link in the remote message VPN: lets bridges in and sends them what they attract."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.bridges.link import Link
from vpnrouter.bridges.link_client import LinkClient
from vpnrouter.bridges.loops import vpn_id
from vpnrouter.core.login import Admission, admit, check_allowed
from vpnrouter.core.publisher import Publisher
from vpnrouter.core.subscriber import Subscription
from vpnrouter.core.totals import absorb
from vpnrouter.errors import ProtocolError, Refused, TopicError
from vpnrouter.topics.grammar import SMF, parse_filter
from vpnrouter.trace.events import DIRECT, LINK_DOWN, LINK_UP
from vpnrouter.trace.recorder import Context
from vpnrouter.wire.link import close_codes, encode, frames
from vpnrouter.wire.link.agree import (
    agreed_features,
    agreed_heartbeat_ms,
    agreed_max_frame,
    agreed_minor,
)
from vpnrouter.wire.link.order import ACCEPTOR

if TYPE_CHECKING:
    from vpnrouter.core.router import Router
    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.wire.link.decode import Frame

NO_BRIDGES: Final = "403 Bridge Connections Not Allowed"
"""The client profile lacks allow_bridge_connections_enabled (LINK-18)."""


@final
class LinkDoor:
    """Makes the acceptor's end for each connection to one link listener; `tls` if it is encrypted."""

    def __init__(self, router: Router, *, tls: bool) -> None:
        self.router = router
        self.tls = tls

    def connection(self, peer: str) -> AcceptedLink:
        """The connection for a socket accepted from `peer`."""
        return AcceptedLink(self.router, peer, tls=self.tls)


@final
class AcceptedLink(Link):
    """One bridge that logged in here."""

    __slots__ = ("_hello", "client", "router", "tls")

    def __init__(self, router: Router, peer: str, *, tls: bool) -> None:
        super().__init__(router.plane, peer, ACCEPTOR)
        self.tls = tls
        self.router = router
        self.client: LinkClient | None = None
        self._hello: frames.Hello | None = None

    def on_frame(self, frame: Frame) -> None:
        """See Link.on_frame."""
        if isinstance(frame, frames.Hello):
            self._log_in(frame)
        elif isinstance(frame, frames.Subscribe):
            self._subscribe(frame)
        elif isinstance(frame, frames.Unsubscribe):
            self._unsubscribe(frame)

    def on_message(self, frame: frames.Direct, length: int) -> None:
        """See Link.on_message; order.py lets none through to this end."""
        raise AssertionError(length)

    # -- login -----------------------------------------------------------------------------------

    def _log_in(self, hello: frames.Hello) -> None:
        self._hello = hello
        try:
            vpn_id(hello.router, hello.local_vpn)
        except ValueError as error:
            # No path could name this VPN, and what it forwards must carry one.
            raise ProtocolError(
                close_codes.PROTOCOL_ERROR, "LINK-10: a name no path can carry"
            ) from error
        if hello.remote_router and hello.remote_router != self.router.name:
            self._refuse(
                close_codes.WRONG_ROUTER, f"404 Router Name Mismatch: this is {self.router.name}"
            )
            return
        if hello.tls != self.tls:
            self._refuse(close_codes.TLS_MISMATCH, close_codes.REASONS[close_codes.TLS_MISMATCH])
            return
        vpn = self.router.vpns.get(hello.remote_vpn)
        if vpn is None:
            self._refuse(
                close_codes.VPN_NOT_ALLOWED, close_codes.REASONS[close_codes.VPN_NOT_ALLOWED]
            )
            return
        if not vpn.enabled:
            self._refuse(close_codes.UNAVAILABLE, close_codes.REASONS[close_codes.UNAVAILABLE])
            return
        if hello.router == self.router.name and hello.local_vpn == hello.remote_vpn:
            self._refuse(close_codes.SELF_LINK, close_codes.REASONS[close_codes.SELF_LINK])
            return
        try:
            admission = admit(
                vpn,
                hello.client_username or None,
                hello.password.encode(),
                self.peer,
                self._holder(vpn, hello),
            )
        except Refused as refusal:
            self._refuse(refusal.reason_code, refusal.reason)
            return
        self.admission = admission
        if admission.needs_password:
            self.paused = True
            self.router.verifications.append(self)
            return
        self._admit(admission, hello)

    def password_verified(self, good: bool) -> None:
        """See Connection.password_verified."""
        admission = self.admission
        hello = self._hello
        if self.ended or admission is None or hello is None:
            return
        self.paused = False
        if not good:
            self._refuse(close_codes.BAD_CREDENTIALS, "403 Forbidden")
            return
        admission.vpn.credentials.remember(admission.username, admission.password)
        try:
            check_allowed(admission, self.peer, self._holder(admission.vpn, hello))
        except Refused as refusal:
            self._refuse(refusal.reason_code, refusal.reason)
            return
        self._admit(admission, hello)
        self.resume()

    def _admit(self, admission: Admission, hello: frames.Hello) -> None:
        if not admission.profile.allow_bridge_connections_enabled:
            self._refuse(close_codes.NOT_AUTHORIZED, NO_BRIDGES)
            return
        vpn = admission.vpn
        name = _client_name(hello)
        holder = self._holder(vpn, hello)
        if holder is not None:
            # The same bridge came back before we noticed that it was gone.
            holder.goodbye(close_codes.TAKEN_OVER, close_codes.REASONS[close_codes.TAKEN_OVER])
        client = LinkClient(vpn, name, self.outbox, hello.bridge, hello.router, hello.local_vpn)
        self.client = client
        self.outbox.limit = admission.profile.max_outbox_bytes
        vpn.clients[name] = client
        vpn.publishers[name] = Publisher(vpn, client, None, 1, vpn.limits.max_msg_size)
        vpn.occupy(admission.username.name)
        self.router.links[f"{vpn.name}\0{name}"] = self
        client.bound_frames(agreed_max_frame(hello.max_frame))
        heartbeat_ms = agreed_heartbeat_ms(hello.heartbeat_ms)
        self.say(
            encode.welcome(
                frames.Welcome(
                    self.router.name,
                    vpn.name,
                    name,
                    features=agreed_features(hello.features),
                    heartbeat_ms=heartbeat_ms,
                    incarnation=self.plane.ids.high,
                    minor=agreed_minor(hello.minor),
                )
            )
        )
        self.up(heartbeat_ms)
        self._trace(LINK_UP, "")

    def _holder(self, vpn: MessageVpn, hello: frames.Hello) -> AcceptedLink | None:
        """The link that the same bridge has to `vpn` now; a login takes it over (LINK-20)."""
        holder = self.router.links.get(f"{vpn.name}\0{_client_name(hello)}")
        return holder if isinstance(holder, AcceptedLink) else None

    def _refuse(self, code: int, text: str) -> None:
        self.router.logins_refused += 1
        self.goodbye(code, text)

    def broken(self, code: int, text: str) -> None:
        """See Link.broken; counted like the faults of any client."""
        self.router.protocol_errors += 1
        self.goodbye(code, text)

    # -- subscriptions ---------------------------------------------------------------------------

    def _subscribe(self, frame: frames.Subscribe) -> None:
        codes: list[int] = []
        first = ""
        for flags, text in frame.filters:
            try:
                self._subscribe_one(flags, text)
                codes.append(close_codes.GRANTED)
            except Refused as refusal:
                codes.append(refusal.reason_code)
                first = first or f"{refusal.reason}: {text}"
        reason = first.encode()[: limits.LINK_TEXT_BYTES].decode(errors="ignore")
        self.say(encode.subscribed(frames.Subscribed(frame.request_id, codes, reason)))

    def _subscribe_one(self, flags: int, text: str) -> None:
        client = self.client
        admission = self.admission
        if client is None or admission is None:
            return
        vpn = client.vpn
        try:
            filter_ = parse_filter(
                text,
                SMF,
                max_levels=vpn.limits.max_topic_levels,
                max_bytes=vpn.limits.max_topic_bytes,
            )
        except TopicError as error:
            raise Refused(
                "400 Subscription Parse Error", close_codes.SUBSCRIPTION_PARSE_ERROR
            ) from error
        acl = admission.acl.subscribe
        if not acl.unrestricted and not acl.bind(
            admission.username.name, client.client_name
        ).allows_filter(filter_):
            raise Refused("403 Subscription ACL Denied", close_codes.NOT_AUTHORIZED)
        bound = admission.profile.max_subscription_count
        if (
            bound
            and len(client.subscriptions) >= bound
            and filter_.original not in client.subscriptions
        ):
            raise Refused("400 Max Num Subscriptions Exceeded", close_codes.QUOTA_EXCEEDED)
        vpn.subscribe(
            Subscription(filter_, client, deliver_always=bool(flags & frames.DELIVER_ALWAYS))
        )

    def _unsubscribe(self, frame: frames.Unsubscribe) -> None:
        client = self.client
        if client is None:
            return
        codes: list[int] = []
        for text in frame.filters:
            existed = client.vpn.unsubscribe(client, text)
            codes.append(close_codes.GRANTED if existed else close_codes.NO_SUBSCRIPTION_EXISTED)
        self.say(encode.subscribed(frames.Subscribed(frame.request_id, codes)))

    # -- end -------------------------------------------------------------------------------------

    def on_end(self, why: str) -> None:
        """See Link.on_end."""
        client = self.client
        admission = self.admission
        self.client = None
        if client is None or admission is None:
            return
        vpn = client.vpn
        client.connected = False
        vpn.drop(client)
        if vpn.clients.get(client.client_name) is client:
            del vpn.clients[client.client_name]
        publisher = vpn.publishers.pop(client.client_name, None)
        if publisher is not None:
            absorb(vpn, publisher)
        vpn.release(admission.username.name)
        key = f"{vpn.name}\0{client.client_name}"
        if self.router.links.get(key) is self:
            del self.router.links[key]
        self._trace_of(client, LINK_DOWN, why)

    def _trace(self, event: int, why: str) -> None:
        if self.client is not None:
            self._trace_of(self.client, event, why)

    def _trace_of(self, client: LinkClient, event: int, why: str) -> None:
        plane = self.plane
        if not plane.tracing:
            return
        context = Context(
            event,
            client.vpn.name,
            DIRECT,
            client=client.client_name,
            bridge=client.bridge,
            peer_router=client.peer_router,
            peer_vpn=client.peer_vpn,
            reason=why,
        )
        plane.recorder.record(context, plane.wall_ns, b"", 0, 0, 0, -1, -1, 0)


def _client_name(hello: frames.Hello) -> str:
    """The bridge's client name in the remote VPN: who it is, so that it takes over itself alone."""
    return f"#bridge/{hello.router}/{hello.local_vpn}/{hello.bridge}"
