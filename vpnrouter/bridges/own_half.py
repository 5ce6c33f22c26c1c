"""Logs in at the peer for the own bridge, subscribes and receives messages."""

from __future__ import annotations

import hmac
from hashlib import sha256
from typing import TYPE_CHECKING, Final, final

from typing_extensions import override

from vpnrouter.bridges.counters import RxTally
from vpnrouter.bridges.half_events import HalfEvent
from vpnrouter.bridges.link_client import InboundTraces, vpn_id
from vpnrouter.bridges.link_registry import ListenAddress
from vpnrouter.bridges.own_flow import OwnFlow
from vpnrouter.bridges.peer_half import host_of
from vpnrouter.bridges.peer_subscriptions import SubscribedFilters, subscribed_to
from vpnrouter.bridges.receive import copy_of_another, direct, known_snapshot, obstacle
from vpnrouter.bridges.snapshot import Snapshot, SnapshotSweep, wants_retained
from vpnrouter.core.conversion import MEASURE
from vpnrouter.core.discard_reasons import (
    DUPLICATE,
    FAULT,
    NOT_SUBSCRIBED,
    TOPIC_PARSE_ERROR,
)
from vpnrouter.core.fault_barrier import ReleaseStep, release
from vpnrouter.core.scram import Derivation, Deriver, auth_message, proof_of, verifier_of
from vpnrouter.core.selection import Selection, heavy
from vpnrouter.errors import ProtocolError, TopicError
from vpnrouter.trace.events import LINK_DOWN, LINK_REJECTED, LINK_UP
from vpnrouter.wire.link import codes, encode, frames
from vpnrouter.wire.link.encode import subscribe_frames, unsubscribe_frames
from vpnrouter.wire.link.order import ASKING, ATTRACTING, PROVING, agreed_max_frame

if TYPE_CHECKING:
    from vpnrouter.bridges.bridge import Bridge
    from vpnrouter.bridges.flow_receiver import FlowReceiver
    from vpnrouter.bridges.half_events import HalfCallbacks
    from vpnrouter.bridges.link import Link
    from vpnrouter.bridges.remote_settings import RemoteSettings
    from vpnrouter.core.message import Message
    from vpnrouter.core.publisher import Publisher
    from vpnrouter.core.route import Route
    from vpnrouter.wire.link.decode import Frame


REFUSAL: Final = 0x80
"""Codes of SUBSCRIBED are refusals from this one on (LINK-25)."""

UNPROVED: Final = (
    "401 Unauthorized: the remote has not proved that it knows the password of our client username; where it lets"
    " everybody in, configure the client username there"
)

UNSURE: Final = -1
"""Stands in place of flags while it is unknown whether the peer has this subscription."""


@final
class OwnHalf(Deriver):
    """Our bridge on one link, from its HELLO on.

    `wanted` is what is subscribed, or on its way to be, filter → flags, `selectors` those of them that
    have one, `refused` those that the remote did not grant, with its reason; `flow` brings guaranteed
    messages. `record` counts. `welcomed` says that the login succeeded,
    `resumed` that it goes on with the subscriptions of `moves_from`, the half on another connection whose
    place it takes: nothing is read before that one is over, so that everything comes once and in order (LINK-20).
    """

    __slots__ = (
        "_challenge",
        "_draining",
        "_message",
        "_moves_from",
        "_offered",
        "_over",
        "_pending",
        "_refusal",
        "_request_id",
        "_requests",
        "_said",
        "_signature",
        "_snapshot",
        "_tally",
        "_unsure",
        "_wanted",
        "flow",
        "link",
        "owner",
        "record",
        "refused",
        "resumed",
        "selectors",
        "terms",
        "traces",
        "wanted",
        "welcomed",
    )

    def __init__(
        self,
        link: Link,
        terms: RemoteSettings,
        owner: HalfCallbacks,
        record: Bridge,
        moves_from: OwnHalf | None = None,
    ) -> None:
        self.link = link
        self._moves_from = moves_from
        self.resumed = False
        self.terms = terms
        self.owner = owner
        self.record = record
        self.welcomed = False
        self.flow: OwnFlow | None = None
        self.wanted: dict[str, int] = {}
        self.selectors: dict[str, str] = {}
        self.refused: dict[str, str] = {}
        # The filters of each SUBSCRIBE that is not answered: the answer does not name them.
        self._requests: dict[int, list[str]] = {}
        self._pending = 0
        self._unsure: dict[str, None] = {}
        self._wanted = SubscribedFilters()
        self._refusal = ""
        self._request_id = 0
        self._snapshot: Snapshot | None = None
        self._draining = False
        self._over = False
        self.traces = InboundTraces(link, terms)
        self._tally: RxTally | None = None
        link.own_half = self
        link.now_does(ASKING)
        vpn = link.vpn
        if vpn is None:
            raise AssertionError("a link without a message VPN here")
        book = link.book
        offer = link.features if link.client is not None else frames.REUSE
        if link.client is None and terms.compress:
            offer |= frames.ZSTD
        if link.client is None:
            offer |= frames.RETAINED | frames.AMQP
        if link.client is None and link.book.router.context.spool is not None:
            offer |= frames.FLOWS
        self._offered = offer
        proves = terms.scheme == frames.SCRAM
        if terms.password and not proves and not (link.dialed and link.tls and terms.verified):
            raise AssertionError("a password is shown to a remote whose name is not verified")
        self._message = b""
        self._signature = b""
        self._challenge: frames.Challenge | None = None
        nonce = book.nonce() if proves else b""
        if book.rehearsal is not None and proves:
            book.rehearsal[nonce] = terms.password
        self._said = encode.hello(
            frames.Hello(
                book.router.name,
                terms.bridge,
                vpn.name,
                terms.remote_vpn,
                remote_router=terms.remote_router,
                client_username=terms.client_username,
                password="" if proves else terms.password,
                tls=link.tls,
                features=offer,
                heartbeat_ms=terms.heartbeat_ms,
                incarnation=link.context.ids.high,
                scheme=terms.scheme,
                resume=moves_from is not None,
                link_port=book.link_port,
                links_port=book.links_port,
                nonce=nonce,
            )
        )
        if proves:
            link.now_does(PROVING)
        link.say_login(self._said)

    # -- control ---------------------------------------------------------------------------------

    def on_frame(self, frame: Frame) -> None:
        """Act on a frame for this half."""
        if isinstance(frame, frames.Welcome):
            self._welcomed(frame)
        elif isinstance(frame, frames.Challenge):
            self._challenged(frame)
        elif isinstance(frame, frames.Refuse):
            self._refused(frame)
        elif isinstance(frame, frames.Subscribed):
            self._subscribed(frame)
        elif isinstance(frame, frames.SnapshotEnd):
            self._ends_snapshot(frame)
        elif self.flow is not None:
            self.flow.on_frame(frame)
        elif isinstance(frame, frames.FlowStatus):
            return
        elif self.welcomed:
            raise ProtocolError(codes.PROTOCOL_ERROR, "LINK-40: a flow that is not bound")

    def _challenged(self, challenge: frames.Challenge) -> None:
        """Prove that the password is known here, without showing it (LINK-51)."""
        link = self.link
        link.login_rx_msgs += 1
        link.no_more_does(PROVING)
        self._challenge = challenge
        if link.book.rehearsal is not None:
            link.say_login(encode.proof(frames.Proof(bytes(frames.PROOF_BYTES))))
            return
        password = self.terms.password.encode()
        link.book.router.derivations.append(
            Derivation(self, link, password, challenge.salt, challenge.iterations, "")
        )
        self._message = auth_message(self._said, link.raw, link.binding, link.bond)
        self._said += link.raw

    def waits(self) -> bool:
        """True until the remote has answered the login, or the half is over."""
        return not self._over and not self.welcomed

    def derived(self, salted: bytes) -> None:
        """Send the proof that the password is known here."""
        challenge = self._challenge
        link = self.link
        if challenge is None:
            return
        verifier = verifier_of(salted, challenge.salt, challenge.iterations)
        self._signature = verifier.signature(self._message)
        link.say_login(encode.proof(frames.Proof(proof_of(salted, self._message))))

    def underivable(self, why: str) -> None:
        """Give the login up, for `why`, unless it is over already."""
        if self.waits():
            self._unproved(why)

    def _proves(self, welcome: frames.Welcome) -> bool:
        """True when the remote has proved that it knows our password, or when we do not log in by SCRAM."""
        if self.terms.scheme != frames.SCRAM or self.link.book.rehearsal is not None:
            return True
        return self._signature != b"" and hmac.compare_digest(welcome.signature, self._signature)

    def _unproved(self, why: str) -> None:
        """Leave a remote that lets us in but has not proved to be the one that we mean."""
        link = self.link
        link.no_more_does(ASKING | PROVING)
        self.traces.link(LINK_REJECTED, why)
        self.owner.on_half_event(self, HalfEvent.REFUSED, why)
        if link.client is None:
            link.end(why)
        else:
            link.say(encode.detach(frames.Detach(codes.BAD_CREDENTIALS, why)))
            self._leave(why)

    def _refused(self, frame: frames.Refuse) -> None:
        link = self.link
        link.login_rx_msgs += 1
        link.no_more_does(PROVING)
        event = HalfEvent.REFUSED
        if frame.code == codes.VERSION_MISMATCH:
            event = HalfEvent.VERSION_MISMATCH
        self.traces.link(LINK_REJECTED, frame.reason)
        self.owner.on_half_event(self, event, frame.reason)
        if link.client is None:
            link.end(frame.reason)
        else:
            # The peer's half stands (LINK-39).
            self._leave(frame.reason)

    def _welcomed(self, welcome: frames.Welcome) -> None:
        terms = self.terms
        link = self.link
        vpn = link.vpn
        link.login_rx_msgs += 1
        if not self._proves(welcome):
            self._unproved(UNPROVED)
            return
        link.no_more_does(ASKING | PROVING)
        first = link.client is None
        if first:
            # The handshake is over: a fault is told with CLOSE from here on.
            link.up(agreed_max_frame(welcome.max_frame))
            link.bond = sha256(self._said + link.raw).digest()
        if terms.remote_router and welcome.router != terms.remote_router:
            raise ProtocolError(
                codes.WRONG_ROUTER,
                f"{codes.REASONS[codes.WRONG_ROUTER]}: not {terms.remote_router}",
            )
        try:
            vpn_id(welcome.router, welcome.vpn)
        except ValueError as error:
            raise ProtocolError(
                codes.PROTOCOL_ERROR, "LINK-31: a VPN that no path can name"
            ) from error
        if (
            vpn is None
            or welcome.vpn != terms.remote_vpn
            or welcome.minor > frames.MINOR
            or welcome.features & ~self._offered
            or (not first and welcome.router != link.peer_router)
        ):
            raise ProtocolError(codes.PROTOCOL_ERROR, "LINK-19: WELCOME answers another HELLO")
        client = link.join(vpn, f"#bridge/{terms.bridge}", welcome.router, welcome.vpn)
        if first:
            link.agree(welcome.features, welcome.heartbeat_ms)
        link.now_does(ATTRACTING)
        self.welcomed = True
        client.bridge = terms.bridge
        if terms.scheme == frames.SCRAM or terms.verified:
            place = ListenAddress(host_of(link.peer), welcome.link_port, welcome.links_port)
            link.book.learn(vpn.name, welcome.router, place, proved=True)
        if link.sink is not None:
            self._tally = RxTally(link.sink)
        before = self._moves_from
        self._moves_from = None
        if welcome.resume and before is not None:
            self.resumed = True
            self.wanted = dict(before.wanted)
            self.selectors = dict(before.selectors)
            self.refused = dict(before.refused)
            for text in before._unsure:  # noqa: SLF001 - what is under way there may be lost with it
                self.wanted[text] = UNSURE
            if not before.over:
                link.paused = True
        self._take_only()
        self.take(terms)
        self.traces.link(LINK_UP, "")
        self.owner.on_half_event(self, HalfEvent.WELCOMED, "")

    def take(self, terms: RemoteSettings) -> None:
        """Go on under changed terms: hop limit and mapping hold for the next message."""
        self.terms = terms
        # Messages that are renamed are handled one by one.
        self.link.publisher = None if terms.mapping is not None else self.link.sink

    # -- subscriptions ---------------------------------------------------------------------------

    def _take_only(self) -> None:
        """Let only subscribed messages enter from now on."""
        sink = self.link.sink
        if sink is not None:
            sink.permitted.clear()
            sink.rule = self._wanted.change(set(self.wanted), set(self._unsure))

    def want(self, filters: list[tuple[int, str]], selectors: dict[str, str]) -> None:
        """Request exactly these filters; the difference goes over the link (LINK-26). New ones are requested before old
        ones are dropped, so that no message that both attract is missed.
        """
        if self._over or not self.welcomed:
            return
        # A peer that does not know the flag would close the connection.
        known = -1 if self.link.features & frames.RETAINED else ~frames.SEND_RETAINED
        filters = [(flags & known, text) for flags, text in filters]
        after = {text: flags for flags, text in filters}
        fresh = [
            (flags, text)
            for text, flags in after.items()
            if self.wanted.get(text) != flags
            or self.selectors.get(text, "") != selectors.get(text, "")
        ]
        gone = [text for text in self.wanted if text not in after]
        for _, text in fresh:
            self._unsure[text] = None
        for text in gone:
            self._unsure[text] = None
            self.refused.pop(text, None)
        self.wanted = after
        self.selectors = dict(selectors)
        self._take_only()
        link = self.link
        for asked in subscribe_frames(self._request_id + 1, fresh, link.send_most, selectors):
            self._request_id = asked.request_id
            self._requests[asked.request_id] = [text for _, text in asked.filters]
            if wants_retained(asked):
                self._snapshot = self._snapshot or Snapshot()
                self._snapshot.ask(asked)
            self._pending += 1
            link.say(encode.subscribe(asked))
        for dropped in unsubscribe_frames(self._request_id + 1, gone, link.send_most):
            self._request_id = dropped.request_id
            self._pending += 1
            link.say(encode.unsubscribe(dropped))
        if self._pending == 0:
            self._settled("")

    def drain(self) -> None:
        """Drop subscriptions and flow; DRAINED is reported when everything in flight has arrived."""
        self._draining = True
        self.want([], {})
        if self.flow is not None:
            self.flow.finish()

    def _subscribed(self, answer: frames.Subscribed) -> None:
        if self._pending == 0:
            raise ProtocolError(codes.PROTOCOL_ERROR, "LINK-25: SUBSCRIBED without a request")
        self._pending -= 1
        self._note_refused(answer)
        self._refusal = self._refusal or answer.reason
        if self._pending == 0:
            refusal = self._refusal
            self._refusal = ""
            self._settled(refusal)

    def _note_refused(self, answer: frames.Subscribed) -> None:
        """Remember which filters were refused. The reason of the frame names the first of them (LINK-25)."""
        filters = self._requests.pop(answer.request_id, [])
        words = answer.reason.partition(":")[0]
        first = 0
        for text, code in zip(filters, answer.codes, strict=False):
            self.refused.pop(text, None)
            if code >= REFUSAL and text in self.wanted:
                first = first or code
                why = words if words and code == first else f"code {code:#04x}"
                self.refused[text] = f"{why}: {text}"

    def _ends_snapshot(self, frame: frames.SnapshotEnd) -> None:
        """Clear what is retained here and was not in the snapshot, unless a newer request is to be answered."""
        snapshot, vpn = self._snapshot, self.link.vpn
        if snapshot is None or vpn is None or frame.request_id != snapshot.request_id:
            return
        self._snapshot = None
        if not snapshot.overflowed:
            self.link.context.jobs.add(SnapshotSweep(self, snapshot, vpn.retained))

    def flow_is_over(self) -> None:
        """Finish draining: all accepted guaranteed messages are acknowledged, and no more follow."""
        if self._draining and self._pending == 0:
            self._settled("")

    def _settled(self, refusal: str) -> None:
        if self._unsure:
            self._unsure.clear()
            self._take_only()
        if self._draining and self.flow is not None and not self.flow.over:
            return
        event = HalfEvent.DRAINED if self._draining else HalfEvent.SUBSCRIBED
        self.owner.on_half_event(self, event, refusal)

    # -- messages --------------------------------------------------------------------------------

    def on_message(self, frame: frames.Direct, length: int) -> None:
        """Receive a message that the batch path left: properties, an extension, a topic that is no good here."""
        link = self.link
        vpn, sink, client = link.vpn, link.sink, link.client
        if vpn is None or sink is None or client is None:
            return
        sink.messages += 1
        sink.bytes_ += length
        message = direct(frame, client, sink.path, link.context)
        if message.traced:
            self.traces.received(message)
        terms = self.terms
        reason = obstacle(message, vpn.vpn_id, terms.max_ttl, sink.max_frame)
        if not subscribed_to(sink, frame.topic):
            reason = NOT_SUBSCRIBED
        if message.retain and self._snapshot is not None:
            self._snapshot.saw(vpn, frame.topic, terms.mapping)
        # The hop limit comes first: only what may enter is remembered.
        if not reason and message.message_id and copy_of_another(message, vpn, terms.mapping):
            reason = DUPLICATE
        if not reason:
            try:
                if terms.mapping is not None:
                    message.topic = terms.mapping.apply_bytes(message.topic)
                if message.snapshot and known_snapshot(message, vpn):
                    reason = DUPLICATE
                else:
                    # From here on it is handled like any other retained message.
                    message.snapshot = False
                    self.take_in(sink, message)
                    return
            except TopicError:
                # Good enough for the sender's VPN but not for ours: no reason to lose the link.
                reason = TOPIC_PARSE_ERROR
        self.passes_over(sink, message, reason)

    def take_in(self, sink: Publisher, message: Message) -> None:
        """Publish a Direct message, later where the selectors of its receivers are much work. Raises TopicError."""
        vpn = sink.vpn
        route = vpn.route(message.topic)
        if route.selector_cost and heavy(route, message):
            SelectedArrival(self, sink, route, message).begin()
        else:
            self.enter(sink, message)
            vpn.context.work += MEASURE.work()

    def enter(self, sink: Publisher, message: Message) -> None:
        """Publish a Direct message in this message VPN. Raises TopicError for a bad topic."""
        told = sink.publish(message)
        if told:
            self.record.counters.discard_rx(told)

    def passes_over(self, sink: Publisher, message: Message, reason: str) -> None:
        """Discard a message, which does not enter this message VPN."""
        sink.refused += 1
        self.record.counters.discard_rx(reason)
        sink.vpn.discard(message, reason)

    # -- guaranteed messages ---------------------------------------------------------------------

    def carry(self, taker: FlowReceiver) -> None:
        """Take guaranteed messages in with `taker`, as the terms say; once welcomed, and when they change."""
        if self._over or not self.welcomed or self._draining:
            return
        if self.flow is None:
            self.flow = OwnFlow(self, taker)
        self.flow.ask(self.terms)

    def on_guaranteed(self, frame: frames.Guaranteed, length: int) -> None:
        """Pass a guaranteed message to the receiver of the flow."""
        if self.flow is not None:
            self.flow.taker.on_message(frame, length)

    # -- end and traces --------------------------------------------------------------------------

    def leave(self, code: int, why: str) -> None:
        """End this half: the connection stays for the peer's bridge, or is closed where there is none."""
        if self._over:
            return
        link = self.link
        if link.peer_half is None or link.client is None:
            link.goodbye(code, why)
            return
        if self.welcomed:
            link.say(encode.detach(frames.Detach(code, why)))
            self._leave(why)
        else:
            # HELLO is on its way: what comes of it would find nobody.
            link.goodbye(code, why)

    def _leave(self, why: str) -> None:
        link = self.link
        if self.flow is not None:
            self.flow.end()
        self.update_counters()
        link.tally()
        link.own_half = None
        link.publisher = None
        link.no_more_does(ASKING | PROVING)
        if link.client is not None:
            link.client.bridge = ""
        self.end(why)
        # The connection stays. Another bridge to the same message VPN may use it instead of its own.
        link.book.changed(link)

    def end(self, why: str) -> None:
        """The half is over, with its link or before it."""
        if self._over:
            return
        self._over = True
        if not self.welcomed and not self.link.dialed:
            self.link.shun()
        release(
            [
                ReleaseStep("flow", self._end_flow, again=True),
                ReleaseStep("counters", self.update_counters),
                ReleaseStep("trace", lambda: self._trace_down(why)),
                ReleaseStep("owner", lambda: self.owner.on_half_event(self, HalfEvent.LOST, why)),
            ],
            lambda error: self.link.report_fault(error, "the end of the bridge's half goes on"),
        )

    def _end_flow(self) -> None:
        if self.flow is not None:
            self.flow.end()

    def _trace_down(self, why: str) -> None:
        if self.welcomed:
            self.traces.link(LINK_DOWN, why)

    def account(self) -> None:
        """After a fault of the router, count as discarded what was received and not delivered."""
        counters = self.record.counters
        missing = counters.rx_imbalance(self.in_flight)
        if missing > 0:
            counters.discard_rx(FAULT, missing)

    @property
    def over(self) -> bool:
        """Whether the half has ended."""
        return self._over

    @property
    def in_sync(self) -> bool:
        """Whether all requests are answered."""
        return self.welcomed and self._pending == 0

    @property
    def attracts(self) -> bool:
        """Whether anything is subscribed or bound."""
        return bool(self.wanted) or (self.flow is not None and not self.flow.over)

    @property
    def in_flight(self) -> int:
        """Messages that were received and wait to be accepted."""
        return 0 if self.flow is None or self.flow.over else self.flow.taker.held

    def update_counters(self) -> None:
        """Update the counters of the record."""
        link = self.link
        if self._tally is not None and link.sink is not None:
            self._tally.update_counters(link.sink, self.record.counters, link.context.now_ns)


@final
class SelectedArrival(Selection):
    """A Direct message of a link that waits until the selectors of its receivers have been evaluated."""

    __slots__ = ("_half", "_sink")

    def __init__(self, half: OwnHalf, sink: Publisher, route: Route, message: Message) -> None:
        super().__init__(half.link, sink.vpn, route, message)
        self._half = half
        self._sink = sink

    @override
    def keep(self, size: int) -> None:
        self._half.link.keep_packet(max(0, size))

    @override
    def deliver(self) -> None:
        try:
            self._half.enter(self._sink, self.message)
        except TopicError:
            # A limit of the message VPN was lowered meanwhile.
            self._half.passes_over(self._sink, self.message, TOPIC_PARSE_ERROR)
