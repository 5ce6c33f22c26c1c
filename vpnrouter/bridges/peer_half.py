"""Lets the peer's bridge log in as a client, and sends it what it attracts."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.bridges.bridge import Peer
from vpnrouter.bridges.counters import TxTally
from vpnrouter.bridges.flow_sender import FlowSenders
from vpnrouter.bridges.link_client import vpn_id
from vpnrouter.bridges.link_registry import ListenAddress, client_name_of, key_of
from vpnrouter.bridges.peer_subscriptions import FILTER_WORK, PeerSubscriptions, RetainedReplay
from vpnrouter.bridges.snapshot import wants_retained
from vpnrouter.core.credentials import ANONYMOUS, BAD_PASSWORD
from vpnrouter.core.discard_reasons import FAULT
from vpnrouter.core.fault_barrier import ReleaseStep, release
from vpnrouter.core.login import (
    Admission,
    admit,
    admit_proof,
    begin_verifying,
    check_verified,
    named_vpn,
)
from vpnrouter.core.login_throttle import REFUSE, TOO_MANY_FAILURES
from vpnrouter.core.pre_login_limits import THROTTLED
from vpnrouter.core.scram import Derivation, Deriver, Verifier, auth_message, verifier_of
from vpnrouter.core.timers import Job, TimerTarget
from vpnrouter.core.tracing import record_link
from vpnrouter.errors import ProtocolError, Refused
from vpnrouter.trace.events import DIRECT, LINK_DOWN, LINK_REJECTED, LINK_UP
from vpnrouter.trace.recorder import Context
from vpnrouter.units import SECOND_NS
from vpnrouter.wire.link import codes, encode, frames
from vpnrouter.wire.link.order import (
    CHALLENGING,
    REUSABLE,
    SERVING,
    STRANGE,
    agreed_features,
    agreed_heartbeat_ms,
    agreed_max_frame,
    agreed_minor,
)

if TYPE_CHECKING:
    from vpnrouter.bridges.bridge import Bridge
    from vpnrouter.bridges.link import Link
    from vpnrouter.bridges.link_client import LinkClient
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.subscriber import Subscription
    from vpnrouter.core.timers import Timer
    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.topics.mapping import TopicMapping
    from vpnrouter.wire.link.decode import Frame

NO_BRIDGES: Final = "403 Bridge Connections Not Allowed"
"""The client profile lacks allow_bridge_connections_enabled (LINK-18)."""


IN_CLEAR: Final = (
    "403 Forbidden: a password in the clear; passwords are proved by SCRAM-SHA-256 (version 1.1 of the link"
    " protocol), or shown over TLS"
)
"""Refusal of a peer that is old, or configured to send its password."""


@final
class SubscribeJob(Job):
    """One SUBSCRIBE or UNSUBSCRIBE of a peer's bridge, filter by filter. The answer has a code for each filter."""

    __slots__ = ("_attracted", "_codes", "_first", "_frame", "_link")

    def __init__(
        self, link: Link, attracted: PeerSubscriptions, frame: frames.Subscribe | frames.Unsubscribe
    ) -> None:
        super().__init__()
        self._link = link
        self._attracted = attracted
        self._frame = frame
        self._codes: list[int] = []
        self._first = ""

    def begin(self) -> None:
        """Run the job in this turn if it is short; otherwise the peer's next frames wait for it."""
        if not self.step():
            self._link.hold()
            self._link.context.jobs.add(self)

    def step(self) -> bool:
        """Handle filters until this turn has done enough; after the last one, answer and read the peer again."""
        link = self._link
        peer = link.peer_half
        if link.ended or peer is None or peer.attracted is not self._attracted:
            if link.held:
                link.release()
            return True
        router_context = link.context
        frame = self._frame
        answers = self._codes
        while len(answers) < len(frame.filters):
            if router_context.turn_spent:
                return False
            router_context.work += FILTER_WORK
            if isinstance(frame, frames.Subscribe):
                flags, text = frame.filters[len(answers)]
                answers.append(self._subscribe(flags, text, frame.selectors.get(text, "")))
            else:
                there = self._attracted.unsubscribe_one(frame.filters[len(answers)])
                answers.append(codes.GRANTED if there else codes.NO_SUBSCRIPTION_EXISTED)
        reason = self._first.encode()[: limits.LINK_TEXT_BYTES].decode(errors="ignore")
        link.say(encode.subscribed(frames.Subscribed(frame.request_id, answers, reason)))
        if isinstance(frame, frames.Subscribe) and wants_retained(frame):
            peer.send_retained(self._attracted, frame.request_id)
        if link.held:
            link.release()
        return True

    def _subscribe(self, flags: int, text: str, selector: str) -> int:
        try:
            self._attracted.subscribe_one(flags, text, selector)
        except Refused as refusal:
            self._first = self._first or f"{refusal.reason}: {text}"
            return refusal.reason_code
        return codes.GRANTED

    def owning_connection(self) -> Connection | None:
        """The link of the request."""
        return self._link


@final
class ProofTimeout(TimerTarget):
    """Refuses a second half whose peer does not answer the challenge; the first half has the clock of its link."""

    __slots__ = ("_half",)

    def __init__(self, half: PeerHalf) -> None:
        self._half = half

    def on_timer(self, kind: int, now_ns: int) -> None:
        """Refuse the login."""
        self._half.unproven()

    def owning_connection(self) -> Connection | None:
        """The link of the half."""
        return self._half.link


@final
class PeerHalf(Deriver):
    """One bridge of the peer, from its HELLO on. `record` and `key` are set once it is logged in."""

    __slots__ = (
        "_asked",
        "_challenge",
        "_client",
        "_message",
        "_over",
        "_proof",
        "_replay",
        "_said",
        "_tally",
        "_timer",
        "attracted",
        "flows",
        "hello",
        "key",
        "link",
        "mapping",
        "record",
    )

    def __init__(self, link: Link, hello: frames.Hello) -> None:
        self.link = link
        self.hello = hello
        self.key = ""
        self._said = link.raw
        self._asked: Admission | None = None
        self._challenge: frames.Challenge | None = None
        self._message = b""
        self._proof = b""
        self.record: Bridge | None = None
        self.mapping: TopicMapping | None = None
        self.attracted: PeerSubscriptions | None = None
        self.flows: FlowSenders | None = None
        self._client: LinkClient | None = None
        self._tally: TxTally | None = None
        self._replay: RetainedReplay | None = None
        self._over = False
        self._timer: Timer | None = None

    # -- login -----------------------------------------------------------------------------------

    def log_in(self) -> None:
        """Let the bridge in, refuse it, or wait for the verdict on its password (LINK-18)."""
        link = self.link
        hello = self.hello
        router = link.book.router
        try:
            vpn_id(hello.router, hello.local_vpn)
        except ValueError as error:
            # No path could name this VPN, and what it forwards must carry one.
            raise ProtocolError(
                codes.PROTOCOL_ERROR, "LINK-10: a name no path can carry"
            ) from error
        if hello.remote_router and hello.remote_router != router.name:
            self._refuse(codes.WRONG_ROUTER, f"404 Router Name Mismatch: this is {router.name}")
            return
        if hello.tls != link.tls:
            self._refuse(codes.TLS_MISMATCH, codes.REASONS[codes.TLS_MISMATCH])
            return
        if link.client is not None and (
            link.vpn is None
            or hello.remote_vpn != link.vpn.name
            or hello.router != link.peer_router
            or hello.local_vpn != link.peer_vpn
        ):
            # The other half says between which two message VPNs this connection is.
            raise ProtocolError(codes.PROTOCOL_ERROR, "LINK-39: a HELLO for other VPNs")
        # What is said from here on until the peer has proved who it is says nothing of the message VPN.
        if hello.router == router.name and hello.local_vpn == hello.remote_vpn:
            self._refuse(codes.SELF_LINK, codes.REASONS[codes.SELF_LINK])
            return
        if hello.scheme == frames.BASIC and hello.password and not link.tls:
            # Anybody on the line has read this password; the refusal keeps the peer from sending it again.
            self._refuse(codes.BAD_CREDENTIALS, IN_CLEAR)
            return
        vpn = named_vpn(router, hello.remote_vpn)
        if hello.scheme == frames.SCRAM:
            self._ask(vpn)
            return
        by_certificate = hello.scheme == frames.CLIENT_CERTIFICATE
        try:
            admission = admit(
                vpn,
                hello.client_username or None,
                hello.password.encode(),
                link.peer,
                self._held(
                    self._certified(vpn) if by_certificate else hello.client_username or ANONYMOUS
                ),
                link.certificate,
                "client-certificate" if by_certificate else "basic",
                hides=True,
            )
        except Refused as refusal:
            self._refuse(refusal.reason_code, refusal.reason, refusal.why)
            return
        link.admission = admission
        if admission.needs_password:
            link.paused = True
            try:
                begin_verifying(link, admission, router.pre_login_limits)
            except Refused as refusal:
                self.login_refused(refusal.reason_code, refusal.reason)
            return
        self._admit(admission)

    def password_verified(self, good: bool) -> None:
        """Go on with the login, or refuse it, by the verdict on the password."""
        link = self.link
        admission = link.admission
        if link.ended or admission is None:
            return
        if self._challenge is not None:
            if good:
                self._verified(bytes(frames.PROOF_BYTES))
            else:
                self._refuse(codes.BAD_CREDENTIALS, BAD_PASSWORD, admission.why)
            return
        link.paused = False
        if good:
            self._verified(b"")
        else:
            self._refuse(codes.BAD_CREDENTIALS, BAD_PASSWORD, admission.why)
        if not link.ended:
            link.resume()

    def login_refused(self, code: int, text: str) -> None:
        """Refuse the login without a look at its password."""
        link = self.link
        link.paused = False
        self._refuse(code, text)
        if not link.ended:
            link.resume()

    def _ask(self, vpn: MessageVpn) -> None:
        """Send a challenge: the peer has to prove that it knows the password (LINK-51)."""
        link = self.link
        try:
            admission = admit_proof(vpn, self.hello.client_username or None)
        except Refused as refusal:
            self._refuse(refusal.reason_code, refusal.reason, refusal.why)
            return
        self._asked = admission
        credentials = vpn.credentials
        verifier = credentials.verifier(admission.username)
        challenge = frames.Challenge(
            link.book.nonce(),
            credentials.salt_of(admission.username) if verifier is None else verifier.salt,
            limits.SCRAM_ITERATIONS_PLAIN if verifier is None else verifier.iterations,
        )
        self._challenge = challenge
        data = encode.challenge(challenge)
        self._message = auth_message(self._said, data, link.binding, link.bond)
        self._said += data
        link.no_more_does(STRANGE | REUSABLE)
        link.now_does(CHALLENGING)
        if link.client is not None:
            until_ns = link.context.now_ns + limits.CONNECT_TIMEOUT_S * SECOND_NS
            self._timer = link.context.timers.arm(until_ns, ProofTimeout(self), 0)
        link.say_login(data)

    def unproven(self) -> None:
        """Refuse the login: the proof did not come in time. The first half stands."""
        self._timer = None
        if self.waits() and not self._proof:
            self._refuse(codes.HANDSHAKE_TIMEOUT, codes.REASONS[codes.HANDSHAKE_TIMEOUT])

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _proven(self, frame: frames.Proof) -> None:
        link = self.link
        admission = self._asked
        challenge = self._challenge
        link.login_rx_msgs += 1
        link.no_more_does(CHALLENGING)
        self._stop_timer()
        if admission is None or challenge is None:
            return
        self._proof = frame.proof
        book = link.book
        if book.rehearsal is not None:
            # Routers within one process need no proof, and passwords may be masked: they are compared as they are.
            admission.password = book.rehearsal.get(self.hello.nonce, "").encode()
            link.admission = admission
            try:
                begin_verifying(link, admission, book.router.pre_login_limits)
            except Refused as refusal:
                self._refuse(refusal.reason_code, refusal.reason)
            return
        entrance = book.router.pre_login_limits
        credentials = admission.vpn.credentials
        name = admission.username.name
        known = credentials.usernames.get(name) is admission.username
        verdict = entrance.throttle.begin(
            link.origin, admission.vpn.name, name, known=known, now_ns=link.context.now_ns
        )
        if verdict == REFUSE:
            entrance.turned_away(THROTTLED, link.peer)
            self._refuse(codes.RATE_EXCEEDED, TOO_MANY_FAILURES)
            return
        verifier = credentials.verifier(admission.username)
        if verifier is not None:
            self._judge(verifier)
            return
        stored = (admission.username.password or "").encode()
        book.router.derivations.append(
            Derivation(self, link, stored, challenge.salt, challenge.iterations, link.peer or "?")
        )

    def waits(self) -> bool:
        """True until the half or its link is over."""
        return not self.link.ended and not self._over

    def derived(self, salted: bytes) -> None:
        """Judge the proof by the verifier of a password that is stored as text."""
        challenge = self._challenge
        if challenge is not None:
            self._judge(verifier_of(salted, challenge.salt, challenge.iterations))

    def underivable(self, why: str) -> None:
        """Refuse the login, unless it is over already; the peer may try again."""
        if self.waits():
            self._refuse(codes.QUOTA_EXCEEDED, why)

    def _judge(self, verifier: Verifier) -> None:
        link = self.link
        asked = self._asked
        if asked is not None and verifier.accepts(self._proof, self._message):
            link.book.router.pre_login_limits.throttle.take_back(
                link.origin, asked.vpn.name, asked.username.name
            )
            self._verified(verifier.signature(self._message))
        else:
            why = "" if asked is None else asked.why
            self._refuse(codes.BAD_CREDENTIALS, BAD_PASSWORD, why)

    def _verified(self, signature: bytes) -> None:
        """Log the peer in: it has proved who it is, and the rules of the login are checked next."""
        link = self.link
        admission = self._asked or link.admission
        if admission is None:
            return
        try:
            check_verified(admission, link.peer, self._held(admission.username.name))
        except Refused as refusal:
            self._refuse(refusal.reason_code, refusal.reason, refusal.why)
        else:
            link.admission = admission
            self._admit(admission, signature)

    def _certified(self, vpn: MessageVpn) -> str:
        """The client username that the peer's certificate names, if it names one."""
        rules = vpn.credentials.client_cert
        certificate = self.link.certificate
        return "" if rules is None or certificate is None else rules.name_of(certificate)

    def _key(self, username: str) -> str:
        hello = self.hello
        return key_of(hello.remote_vpn, hello.router, hello.local_vpn, hello.bridge, username)

    def _holder(self, username: str) -> Link | None:
        """The link over which the same bridge of the same client username is logged in now. A login takes its place
        (LINK-20).
        """
        return self.link.book.serving.get(self._key(username))

    def _held(self, username: str) -> Admission | None:
        """The admission of that link."""
        holder = self._holder(username)
        return None if holder is None else holder.admission

    def _admit(self, admission: Admission, signature: bytes = b"") -> None:
        if not admission.profile.allow_bridge_connections_enabled:
            self._refuse(codes.NOT_AUTHORIZED, NO_BRIDGES)
            return
        link = self.link
        hello = self.hello
        book = link.book
        vpn = admission.vpn
        self.key = self._key(admission.username.name)
        holder = self._holder(admission.username.name)
        before: PeerSubscriptions | None = None
        inherited: list[Subscription] = []
        if holder is not None and holder is not link:
            # The same bridge moves, or came back before we noticed that it was gone.
            if hello.resume and holder.peer_half is not None and holder.client is not None:
                before = holder.peer_half.attracted
                inherited = list(holder.client.subscriptions.values())
            holder.part(codes.TAKEN_OVER, codes.REASONS[codes.TAKEN_OVER])
        name = client_name_of(hello.router, hello.local_vpn, hello.bridge)
        first = link.client is None
        client = link.join(vpn, name, hello.router, hello.local_vpn)
        client.peer_bridge = hello.bridge
        link.outbox.set_limit(admission.profile.max_outbox_bytes)
        vpn.occupy(admission.username.name)
        self.mapping = book.out_mapping(vpn.name, hello.router, hello.local_vpn)
        client.rename(self.mapping)
        client.judge(admission)
        self.attracted = PeerSubscriptions(client, admission, self.mapping)
        self.flows = FlowSenders(link, client, admission, self.mapping, name)
        if before is not None:
            self.attracted.inherit(before, inherited)
        features = link.features
        if first:
            features = agreed_features(hello.features)
            if link.book.router.context.spool is None:
                features &= ~frames.FLOWS
            if not admission.profile.compression_enabled:
                features &= ~frames.ZSTD
        heartbeat_ms = agreed_heartbeat_ms(hello.heartbeat_ms)
        welcome = encode.welcome(
            frames.Welcome(
                book.router.name,
                vpn.name,
                client.client_name,
                features=features,
                heartbeat_ms=heartbeat_ms,
                incarnation=link.context.ids.high,
                resume=before is not None,
                link_port=book.link_port,
                links_port=book.links_port,
                signature=signature,
                minor=agreed_minor(hello.minor),
            )
        )
        link.say_login(welcome)
        if first:
            link.bond = sha256(self._said + welcome).digest()
            link.up(agreed_max_frame(hello.max_frame))
            link.agree(features, heartbeat_ms)
        link.no_more_does(REUSABLE)
        link.now_does(SERVING)
        if signature or hello.scheme == frames.CLIENT_CERTIFICATE:
            # The peer has proved that it may log in here, not which router it is: a bridge that dials it asks for that.
            place = ListenAddress(host_of(link.peer), hello.link_port, hello.links_port)
            book.learn(vpn.name, hello.router, place, proved=False)
        record = book.record(self.key, vpn.name, name, link.context.now_ns)
        self.record = record
        record.handle_peer(Peer.LOGGED_IN)
        record.peer_is(hello.router, hello.local_vpn, link.peer, encrypted=link.tls)
        record.up_since_ns = link.context.now_ns
        record.sending.append(link)
        self._client = client
        self._tally = TxTally(link.outbox, client, client.discarded)
        self._trace(LINK_UP, "")
        book.log.peer_up(record)
        book.peer_logged_in(self.key, link)

    def judge(self) -> None:
        """Apply what the client username of the login may do now (promise OWNER)."""
        link = self.link
        admission = link.admission
        if admission is None or self._client is None or self._over:
            return
        if not admission.profile.allow_bridge_connections_enabled:
            link.goodbye(codes.NOT_AUTHORIZED, NO_BRIDGES)
            return
        self._client.judge(admission)
        if self.flows is not None:
            self.flows.judge()

    def _refuse(self, code: int, text: str, why: str = "") -> None:
        """Refuse the login; `why` is the full reason where the peer gets a shorter one."""
        link = self.link
        why = why or text
        if link.book.rehearsal is not None:
            # Nobody listens there but who asked for it.
            text = why
        link.book.router.logins_refused += 1
        link.peer_half = None
        self._over = True
        self._trace(LINK_REJECTED, why)
        link.book.log.peer_rejected(self.hello, link.peer, why)
        if link.client is None:
            link.goodbye(code, text)
        else:
            # The first half stands (LINK-39).
            link.no_more_does(CHALLENGING)
            link.now_does(REUSABLE)
            link.say_login(encode.refuse(frames.Refuse(code, text)))

    def on_frame(self, frame: Frame) -> None:
        """Act on a frame for this half."""
        attracted = self.attracted
        if isinstance(frame, frames.Detach):
            self._detached(frame.reason)
        elif isinstance(frame, frames.Proof):
            self._proven(frame)
        elif attracted is None:
            return
        elif isinstance(frame, (frames.Subscribe, frames.Unsubscribe)):
            SubscribeJob(self.link, attracted, frame).begin()
        elif self.flows is not None:
            self.flows.on_frame(frame)

    def send_retained(self, attracted: PeerSubscriptions, request_id: int) -> None:
        """Send what was retained before a SUBSCRIBE, behind the answer to it (LINK-26), and that this is all."""
        wanting = attracted.wanting_retained
        attracted.wanting_retained = []
        client = self.link.client
        if client is None or not self.link.features & frames.RETAINED:
            return
        if self._replay is None:
            self._replay = RetainedReplay(self.link, client)
        self._replay.want(wanting, request_id)

    # -- end -------------------------------------------------------------------------------------

    def parted(self, why: str) -> None:
        """End the half without its connection: messages that wait still leave."""
        link = self.link
        client = link.client
        self.end(why)
        if client is not None:
            client.vpn.drop(client)
        self.settle(-link.outbox.waiting())
        link.peer_half = None

    def _detached(self, why: str) -> None:
        """Handle DETACH: the peer's bridge is gone, and ours stays if it uses the connection."""
        link = self.link
        self.parted(why)
        link.no_more_does(SERVING)
        link.now_does(REUSABLE)
        if link.own_half is None:
            link.goodbye(codes.NORMAL, codes.REASONS[codes.NORMAL])
        else:
            # Another bridge of the peer may have its own connection, which our bridge should share now.
            link.book.changed(link)

    def end(self, why: str) -> None:
        """The half is over, with its link or before it."""
        link = self.link
        admission = link.admission
        record = self.record
        self._stop_timer()
        if self._over or record is None or admission is None:
            return
        self._over = True
        record.up_since_ns = -1
        release(
            [
                ReleaseStep("flows", self._end_flows, again=True),
                ReleaseStep("place", lambda: admission.vpn.release(admission.username.name)),
                ReleaseStep("login", lambda: link.book.peer_logged_out(self.key, link)),
                ReleaseStep("state", lambda: record.handle_peer(Peer.LOGGED_OUT, why)),
                ReleaseStep("trace", lambda: self._trace(LINK_DOWN, why)),
                ReleaseStep("event", lambda: link.book.log.peer_down(record, why)),
            ],
            lambda error: link.report_fault(error, "the end of the peer's half goes on"),
        )

    def _end_flows(self) -> None:
        if self.flows is not None:
            self.flows.end()

    def account(self) -> None:
        """After a fault of the router, count as discarded what was offered and not sent."""
        record = self.record
        if record is None:
            return
        missing = record.counters.tx_imbalance(record.tx_in_flight)
        if missing > 0:
            record.counters.discard_tx(FAULT, missing)

    # -- counting --------------------------------------------------------------------------------

    def update_counters(self, dropped: int = 0) -> None:
        """Update the counters of the record."""
        link = self.link
        if self._client is not None and self._tally is not None and self.record is not None:
            client = self._client
            self._tally.update_counters(
                link.outbox,
                client,
                client.discarded,
                self.record.counters,
                link.context.now_ns,
                dropped,
            )

    def settle(self, dropped: int) -> None:
        """Update the counters for the last time; `dropped` messages were lost with the connection."""
        self.update_counters(dropped)
        self._tally = None
        if self.record is not None and self.link in self.record.sending:
            self.record.sending.remove(self.link)

    # -- traces ----------------------------------------------------------------------------------

    def _trace(self, event: int, why: str) -> None:
        router_context = self.link.context
        if not router_context.tracing:
            return
        hello = self.hello
        context = Context(
            event,
            hello.remote_vpn,
            DIRECT,
            client=client_name_of(hello.router, hello.local_vpn, hello.bridge),
            bridge=hello.bridge,
            peer_router=hello.router,
            peer_vpn=hello.local_vpn,
            reason=why,
        )
        record_link(router_context, context)


def host_of(peer: str) -> str:
    """The host of "HOST:PORT" or "[IPV6]:PORT"; an address without a port is all host."""
    if peer.startswith("["):
        return peer[1 : peer.index("]")]
    return peer.partition(":")[0] if peer.count(":") == 1 else peer
