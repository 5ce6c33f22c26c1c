"""The own half of a link: our bridge logs in there, subscribes, and takes messages in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter.bridges.inbound_traces import InboundTraces
from vpnrouter.bridges.loops import vpn_id, why_not
from vpnrouter.bridges.outbound import host_of
from vpnrouter.bridges.tally import RxTally
from vpnrouter.bridges.terms import LinkEvent
from vpnrouter.core.discards import DUPLICATE, MSG_TOO_BIG, TOPIC_PARSE_ERROR
from vpnrouter.core.message import Message
from vpnrouter.core.seen import FIRST, SHORTER, SeenIds
from vpnrouter.errors import ProtocolError, TopicError
from vpnrouter.trace.events import LINK_DOWN, LINK_REJECTED, LINK_UP
from vpnrouter.wire.link import close_codes, encode, frames
from vpnrouter.wire.link.agree import agreed_max_frame
from vpnrouter.wire.link.batches import subscribe_frames, unsubscribe_frames
from vpnrouter.wire.link.order import ASKING, ATTRACTING
from vpnrouter.wire.mqtt.publish_block import split_publish_properties

if TYPE_CHECKING:
    from vpnrouter.bridges.bridge import Bridge
    from vpnrouter.bridges.link import Link
    from vpnrouter.bridges.terms import BridgeTerms, Owner
    from vpnrouter.wire.link.decode import Frame

SECOND_NS: Final = 1_000_000_000

UNSURE: Final = -1
"""In place of flags: nobody knows whether the peer has this subscription."""


@final
class InboundHalf:
    """Our bridge on one link, from its HELLO on.

    `wanted` is what is subscribed, or on its way to be, filter → flags, `selectors` those of them that
    have one. `record` counts; `discards`
    are in it as well as in the VPN's. `welcomed` says that the login succeeded, `resumed` that it goes on
    with the subscriptions of `moves_from`, the half on another connection whose place it takes: nothing
    is read before that one is over, so that everything comes once and in order (LINK-20).
    """

    __slots__ = (
        "_draining",
        "_moves_from",
        "_over",
        "_pending",
        "_refusal",
        "_request_id",
        "_tally",
        "_traces",
        "_unsure",
        "link",
        "owner",
        "record",
        "resumed",
        "selectors",
        "terms",
        "wanted",
        "welcomed",
    )

    def __init__(
        self,
        link: Link,
        terms: BridgeTerms,
        owner: Owner,
        record: Bridge,
        moves_from: InboundHalf | None = None,
    ) -> None:
        self.link = link
        self._moves_from = moves_from
        self.resumed = False
        self.terms = terms
        self.owner = owner
        self.record = record
        self.welcomed = False
        self.wanted: dict[str, int] = {}
        self.selectors: dict[str, str] = {}
        self._pending = 0
        self._unsure: dict[str, None] = {}
        self._refusal = ""
        self._request_id = 0
        self._draining = False
        self._over = False
        self._traces = InboundTraces(link, terms)
        self._tally: RxTally | None = None
        link.inbound = self
        link.now_does(ASKING)
        vpn = link.vpn
        if vpn is None:
            raise AssertionError("a link without a message VPN here")
        book = link.book
        offer = link.features if link.client is not None else frames.REUSE
        if link.client is None and terms.compress:
            offer |= frames.ZSTD
        link.say_login(
            encode.hello(
                frames.Hello(
                    book.router.name,
                    terms.bridge,
                    vpn.name,
                    terms.remote_vpn,
                    remote_router=terms.remote_router,
                    client_username=terms.client_username,
                    password=terms.password,
                    tls=link.tls,
                    features=offer,
                    heartbeat_ms=terms.heartbeat_ms,
                    incarnation=link.plane.ids.high,
                    scheme=terms.scheme,
                    resume=moves_from is not None,
                    link_port=book.link_port,
                    links_port=book.links_port,
                )
            )
        )

    # -- control ---------------------------------------------------------------------------------

    def on_frame(self, frame: Frame) -> None:
        """A frame for this half."""
        if isinstance(frame, frames.Welcome):
            self._welcomed(frame)
        elif isinstance(frame, frames.Refuse):
            self._refused(frame)
        elif isinstance(frame, frames.Subscribed):
            self._subscribed(frame)

    def _refused(self, frame: frames.Refuse) -> None:
        link = self.link
        link.login_rx_msgs += 1
        event = LinkEvent.REFUSED
        if frame.code == close_codes.VERSION_MISMATCH:
            event = LinkEvent.VERSION_MISMATCH
        self._traces.link(LINK_REJECTED, frame.reason)
        self.owner.link_event(self, event, frame.reason)
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
        link.no_more_does(ASKING)
        first = link.client is None
        if first:
            # The handshake is over: a fault is told with CLOSE from here on.
            link.up(agreed_max_frame(welcome.max_frame))
        if terms.remote_router and welcome.router != terms.remote_router:
            raise ProtocolError(
                close_codes.WRONG_ROUTER,
                f"{close_codes.REASONS[close_codes.WRONG_ROUTER]}: not {terms.remote_router}",
            )
        try:
            vpn_id(welcome.router, welcome.vpn)
        except ValueError as error:
            raise ProtocolError(
                close_codes.PROTOCOL_ERROR, "LINK-31: a VPN that no path can name"
            ) from error
        offered = frames.REUSE | (frames.ZSTD if terms.compress or not first else 0)
        if (
            vpn is None
            or welcome.vpn != terms.remote_vpn
            or welcome.minor > frames.MINOR
            or welcome.features & ~offered
            or (not first and welcome.router != link.peer_router)
        ):
            raise ProtocolError(
                close_codes.PROTOCOL_ERROR, "LINK-19: WELCOME answers another HELLO"
            )
        client = link.join(vpn, f"#bridge/{terms.bridge}", welcome.router, welcome.vpn)
        if first:
            link.agree(welcome.features, welcome.heartbeat_ms)
        link.now_does(ATTRACTING)
        self.welcomed = True
        client.bridge = terms.bridge
        link.book.learn(welcome.router, host_of(link.peer), welcome.link_port, welcome.links_port)
        if link.sink is not None:
            self._tally = RxTally(link.sink)
        self.take(terms)
        before = self._moves_from
        self._moves_from = None
        if welcome.resume and before is not None:
            self.resumed = True
            self.wanted = dict(before.wanted)
            self.selectors = dict(before.selectors)
            for text in before._unsure:  # noqa: SLF001 - what is under way there may be lost with it
                self.wanted[text] = UNSURE
            if not before.over:
                link.paused = True
        self._traces.link(LINK_UP, "")
        self.owner.link_event(self, LinkEvent.WELCOMED, "")

    def take(self, terms: BridgeTerms) -> None:
        """Go on under changed terms: hop limit and mapping hold for the next message."""
        self.terms = terms
        # What is renamed is looked at one by one.
        self.link.publisher = None if terms.mapping is not None else self.link.sink

    # -- subscriptions ---------------------------------------------------------------------------

    def want(self, filters: list[tuple[int, str]], selectors: dict[str, str]) -> None:
        """Ask for exactly these filters: the difference goes over the link (LINK-26).

        What is added is asked for before what is no more wanted is dropped, so that no message
        attracted by both is missed.
        """
        if self._over or not self.welcomed:
            return
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
        self.wanted = after
        self.selectors = dict(selectors)
        link = self.link
        for asked in subscribe_frames(self._request_id + 1, fresh, link.send_most, selectors):
            self._request_id = asked.request_id
            self._pending += 1
            link.say(encode.subscribe(asked))
        for dropped in unsubscribe_frames(self._request_id + 1, gone, link.send_most):
            self._request_id = dropped.request_id
            self._pending += 1
            link.say(encode.unsubscribe(dropped))
        if self._pending == 0:
            self._settled("")

    def drain(self) -> None:
        """Drop every subscription; DRAINED is told when all that was on the way has arrived."""
        self._draining = True
        self.want([], {})

    def _subscribed(self, answer: frames.Subscribed) -> None:
        if self._pending == 0:
            raise ProtocolError(close_codes.PROTOCOL_ERROR, "LINK-25: SUBSCRIBED without a request")
        self._pending -= 1
        self._refusal = self._refusal or answer.reason
        if self._pending == 0:
            refusal = self._refusal
            self._refusal = ""
            self._settled(refusal)

    def _settled(self, refusal: str) -> None:
        self._unsure.clear()
        event = LinkEvent.DRAINED if self._draining else LinkEvent.SUBSCRIBED
        self.owner.link_event(self, event, refusal)

    # -- messages --------------------------------------------------------------------------------

    def on_message(self, frame: frames.Direct, length: int) -> None:
        """What the batch path left standing: properties, an extension, a topic that is no good here."""
        link = self.link
        vpn, sink, client = link.vpn, link.sink, link.client
        if vpn is None or sink is None or client is None:
            return
        sink.messages += 1
        sink.bytes_ += length
        message = Message(frame.topic, frame.payload, frame.properties, False, client)
        message.path = sink.path
        message.hops = 1
        extension = frame.extension
        if extension is not None:
            if extension.path:
                message.path = extension.path
            message.hops = extension.hops
            message.retain = extension.retain
            message.trace_high = extension.trace_high
            message.trace_low = extension.trace_low
            message.message_id = extension.message_id
            message.origin_router = extension.origin_router
            message.origin_vpn = extension.origin_vpn
            message.origin_ts_ns = extension.origin_ts_ns
        message.ingress_ns = link.plane.wall_ns
        if frame.properties:
            _, _, expiry_s = split_publish_properties(frame.properties, 0, len(frame.properties))
            if expiry_s >= 0:
                message.expires_ns = link.plane.now_ns + expiry_s * SECOND_NS
        if message.traced:
            self._traces.received(message)
        reason = self._obstacle(message)
        counters = self.record.counters
        if not reason:
            try:
                if self.terms.mapping is not None:
                    message.topic = self.terms.mapping.apply_bytes(message.topic)
                told = sink.publish(message)
            except TopicError:
                # Good enough for the sender's VPN but not for ours: no reason to lose the link.
                reason = TOPIC_PARSE_ERROR
            else:
                if told:
                    counters.discard_rx(told)
                return
        sink.refused += 1
        counters.discard_rx(reason)
        vpn.discards.add(reason)
        vpn.trace_discard(message, reason)

    def _obstacle(self, message: Message) -> str:
        """Why `message` may not enter the VPN, or "" (LINK-36, LINK-47)."""
        vpn, sink = self.link.vpn, self.link.sink
        if vpn is None or sink is None:
            return ""
        if len(message.payload) > sink.max_frame:
            return MSG_TOO_BIG
        reason = why_not(message.path, message.hops, vpn.vpn_id, self.terms.max_ttl)
        if reason or not message.message_id:
            return reason
        # The hop limit comes first: only what may enter is remembered.
        if vpn.seen is None:
            vpn.seen = SeenIds()
        verdict = vpn.seen.look(message.message_id, message.hops)
        if verdict == FIRST:
            return ""
        if verdict == SHORTER:
            self._relay(message)
        return DUPLICATE

    def _relay(self, message: Message) -> None:
        """A copy that came the shorter way after a longer one may reach VPNs that the other could not."""
        vpn = self.link.vpn
        if vpn is None:
            return
        topic = message.topic
        try:
            if self.terms.mapping is not None:
                message.topic = self.terms.mapping.apply_bytes(topic)
            vpn.relay(message)
        except TopicError:
            message.topic = topic

    # -- end and traces --------------------------------------------------------------------------

    def leave(self, code: int, why: str) -> None:
        """End this half: the connection stays for the peer's bridge, or is closed where there is none."""
        if self._over:
            return
        link = self.link
        if link.outbound is None or link.client is None:
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
        self.bring()
        link.tally()
        link.inbound = None
        link.publisher = None
        link.no_more_does(ASKING)
        if link.client is not None:
            link.client.bridge = ""
        self.end(why)

    def end(self, why: str) -> None:
        """The half is over, with its link or before it."""
        if self._over:
            return
        self._over = True
        self.bring()
        if self.welcomed:
            self._traces.link(LINK_DOWN, why)
        self.owner.link_event(self, LinkEvent.LOST, why)

    @property
    def over(self) -> bool:
        """Whether nothing more comes of this half."""
        return self._over

    def bring(self) -> None:
        """Bring the record up to date."""
        link = self.link
        if self._tally is not None and link.sink is not None:
            self._tally.bring(link.sink, self.record.counters, link.plane.now_ns)
