"""The server side of one AMQP 1.0 connection: protocol headers, SASL, open and close, and its sessions.

The table `ALLOWED` is the state machine: a frame that is not in it for the current state is an error. Bytes in, effects
on the router out; no socket in sight.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, final

from mypy_extensions import i64
from typing_extensions import override

from vpnrouter import limits
from vpnrouter.core.amqp.client import AmqpClient
from vpnrouter.core.amqp.connection_states import (
    ALLOWED,
    AMQP_DUE,
    ENDED,
    HEADER_DUE,
    HEADERS,
    INIT_DUE,
    OPEN_DUE,
    OPENED,
    RESPONSE_DUE,
    VERIFYING,
)
from vpnrouter.core.amqp.errors import condition_of, error
from vpnrouter.core.amqp.link_release import LinkRelease, Successor
from vpnrouter.core.amqp.login import Login, SaslConnection, mechanisms
from vpnrouter.core.amqp.receiving_link import ReceivingLink, forward
from vpnrouter.core.amqp.session import AmqpSession, WakeLinks
from vpnrouter.core.amqp.transactions import Transactions
from vpnrouter.core.fault_barrier import ReleaseStep
from vpnrouter.core.known_deliveries import KNOWS
from vpnrouter.core.memory_account import MemoryAccount
from vpnrouter.errors import ProtocolError, Refused
from vpnrouter.events import table
from vpnrouter.units import MILLISECOND_NS, SECOND_NS
from vpnrouter.wire.amqp import conditions, frames, sasl
from vpnrouter.wire.amqp.frames import AMQP_HEADER, EMPTY, HEADER_BYTES, SASL_HEADER
from vpnrouter.wire.amqp.performatives import (
    Begin,
    Close,
    End,
    Open,
    SaslChallenge,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
)
from vpnrouter.wire.amqp.transfers import PlainTransfer
from vpnrouter.wire.amqp.types import Budget, Symbol

if TYPE_CHECKING:
    from vpnrouter.core.amqp.link import Link
    from vpnrouter.core.amqp.sending_link import SendingLink
    from vpnrouter.core.login import Admission
    from vpnrouter.core.router import Router
    from vpnrouter.core.timers import Job, Timer
    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.events.table import EventType

LOGIN_TIMEOUT: Final = 0
IDLE: Final = 1
BEAT: Final = 2
DRAIN: Final = 3
"""Kinds of timers."""

FRAME_WORK: Final = 8
"""What a frame costs that is handled alone, in parts of a turn (TurnContext.work), besides its bytes and values."""

BYTES_SHIFT: Final = 10
VALUES_SHIFT: Final = 2
"""What its bytes and its values cost: so many bits are shifted out of their numbers."""

TRANSFER_WORK: Final = 5
"""What a message costs that is handled alone."""

SESSION_COST: Final = 2_048
"""Bytes that a session takes, without its links, until the client has ended it."""

_PLAIN: Final = PlainTransfer()

DRAIN_NS: Final = 20_000_000
"""Until a consumer is looked at again whose client takes messages slowly."""

NAME_TAKEN: Final = "amqp:connection-establishment-failed"
SOLE: Final = "sole-connection-for-container"
OFFERED: Final = ("ANONYMOUS-RELAY", "DELAYED_DELIVERY", "SHARED-SUBS", SOLE, KNOWS)
"""What clients look for among the capabilities of a connection: the first ones are for JMS."""

PLATFORM: Final = "AMQP 1.0"


@final
class AmqpConnection(SaslConnection):
    """One client's connection.

    `stand_bys` are the servers that clients may turn to, as maps of the field's form, which clients are told.
    `client` is the subscriber that publishes and binds, once it is logged in. `max_frame` bounds the frames that the
    peer takes. `sessions` are by channel; `link_count` counts the links of all of them. `temporary` are the queues that
    were made for it.
    """

    __slots__ = (
        "_beat_ns",
        "_beat_timer",
        "_draining",
        "_in_order",
        "_letting_go",
        "_part_bytes",
        "_stand_bys",
        "_timer",
        "_transactions",
        "_waking",
        "client",
        "link_count",
        "login",
        "max_frame",
        "open_packet",
        "sasl_done",
        "sasl_login",
        "sessions",
        "state",
        "temporary",
    )

    def __init__(
        self, router: Router, peer: str, listener_vpn: str, stand_bys: list[object] | None = None
    ) -> None:
        super().__init__(router, peer, listener_vpn)
        self._stand_bys = stand_bys or []
        self.client: AmqpClient | None = None
        self.outbox.amqp = True
        self.state = HEADER_DUE
        self.max_frame = frames.MIN_MAX_FRAME
        self.open_packet: Open | None = None
        # Until it is logged in.
        self.sasl_login: Login | None = Login(self)
        self.sasl_done = False
        self.sessions: dict[int, AmqpSession] = {}
        self.link_count = 0
        self.temporary: dict[str, None] = {}
        self._transactions: Transactions | None = None
        # The links that are to be looked at; made when there are too many for one turn.
        self._waking: WakeLinks | None = None
        # What lets go of links; made when the first session ends.
        self._letting_go: LinkRelease | None = None
        self._part_bytes = 0
        self._draining = False
        # The client closes the connection, or the router stops: its consumers have done nothing wrong.
        self._in_order = False
        self._beat_ns = 0
        self._beat_timer: Timer | None = None
        self._timer: Timer | None = self.context.timers.arm(
            self.context.now_ns + limits.CONNECT_TIMEOUT_S * SECOND_NS, self, LOGIN_TIMEOUT
        )

    # -- input -----------------------------------------------------------------------------------

    @override
    def _needed(self) -> int:
        first = self._parts[0]
        if self.state in (HEADER_DUE, AMQP_DUE):
            return HEADER_BYTES
        if len(first) < 4:
            return 0
        # A size beyond the bound is for `consume` to refuse.
        return min(int.from_bytes(first[:4], "big"), self.largest() + HEADER_BYTES)

    @override
    def largest(self) -> int:
        if self.state == OPENED:
            return limits.AMQP_FRAME_BYTES
        return limits.AMQP_LOGIN_FRAME_BYTES

    @override
    def consume(self, data: bytes, pos: int) -> int:
        if self.state == ENDED:
            return -1
        end = len(data)
        context = self.context
        try:
            while pos < end and not self.paused:
                if context.work > context.allowance:
                    self.rest()
                    break
                if self.state in (HEADER_DUE, AMQP_DUE):
                    if end - pos < HEADER_BYTES:
                        break
                    self._header(data[pos : pos + HEADER_BYTES])
                    length = HEADER_BYTES
                else:
                    if self.state == OPENED:
                        before = pos
                        pos = self._scan_transfers(data, pos, end)
                        if self.state == ENDED:
                            return -1
                        if pos != before:
                            continue
                    length = frames.frame_at(data, pos, end, self.largest())
                    if length == 0:
                        break
                    context.work += FRAME_WORK
                    self._handle(data, pos, length)
                pos += length
                if self.state == ENDED:
                    return -1
        except ProtocolError as problem:
            self.router.protocol_errors += 1
            self.report_protocol_error(str(problem))
            self.fail(problem.reason_code, str(problem))
            return -1
        return pos

    def _scan_transfers(self, buf: bytes, pos: i64, end: i64) -> i64:
        """Take the plain transfers that begin at `pos`; return the position of the first other frame."""
        plain = _PLAIN
        context = self.context
        publisher = self.publisher
        while (
            publisher is not None
            and not self.paused
            and context.work <= context.allowance
            and plain.read(buf, pos, end, limits.AMQP_FRAME_BYTES)
        ):
            session = self.sessions.get(plain.channel)
            if session is None or session.over:
                return pos
            link = session.links.get(plain.handle)
            if not isinstance(link, ReceivingLink) or link.detached or not link.plain:
                return pos
            if plain.message_format > 0:
                return pos
            if plain.settled and link.topic:
                following = forward(link, publisher, buf, pos, end)
                if following != pos:
                    pos = following
                    continue
            context.work += TRANSFER_WORK
            following = plain.end
            payload = buf[plain.message : following]
            session.came(1)
            link.take_whole(plain.delivery_id, payload, following - pos, settled=plain.settled)
            pos = following
        return pos

    def _header(self, header: bytes) -> None:
        action = HEADERS.get((self.state, header))
        if action is None:
            self.outbox.control(SASL_HEADER if self.state == HEADER_DUE else AMQP_HEADER)
            self._end("no protocol header of AMQP 1.0")
            return
        self.outbox.control(header)
        if action == "offer":
            self.state = INIT_DUE
            names = mechanisms(self.router, self.listener_vpn, self.certificate is not None)
            self._say(SaslMechanisms([Symbol(name) for name in names]), frames.SASL)
        else:
            if self.state == HEADER_DUE:
                # Without SASL a client is as one that says ANONYMOUS, and is identified when it opens.
                self._login().waiting = True
            self.state = OPEN_DUE

    def _handle(self, data: bytes, pos: int, length: int) -> None:
        most = limits.AMQP_VALUES if self.state == OPENED else limits.AMQP_LOGIN_VALUES
        budget = Budget(most)
        frame = frames.decode(data, pos, length, budget)
        self.context.work += (length >> BYTES_SHIFT) + (budget.spent >> VALUES_SHIFT)
        performative = frame.performative
        if performative is None:
            if self.state != OPENED:
                raise ProtocolError(conditions.FRAMING_ERROR, "2.4.5: an empty frame before open")
            return
        name = type(performative).__name__
        action = ALLOWED.get((self.state, frame.kind, name))
        if action is None:
            raise ProtocolError(
                conditions.NOT_ALLOWED, f"{name} is not allowed in state {self.state}"
            )
        if action == "session":
            session = self.sessions.get(frame.channel)
            if session is None:
                raise ProtocolError(
                    conditions.NOT_ALLOWED, f"2.5.1: {name} on channel {frame.channel}, not begun"
                )
            session.handle(performative, frame.payload, length)
        elif action == "begin":
            self._begin(frame.channel, performative)
        elif action == "end":
            self._end_session(frame.channel, performative)
        elif action == "open":
            self._open(performative)
        elif action == "close":
            self._say(Close())
            self._in_order = performative.error is None
            self._end("client closed the connection")
        else:
            self._sasl(performative)

    def _sasl(self, performative: SaslInit | SaslResponse) -> None:
        login = self._login()
        try:
            if isinstance(performative, SaslInit):
                self.state = VERIFYING
                login.begin(performative)
            else:
                self.state = VERIFYING
                login.respond(performative.response)
        except Refused as refusal:
            self.refused(refusal)
            return
        self._go_on()

    @override
    def challenge(self, challenge: SaslChallenge) -> None:
        self.state = RESPONSE_DUE
        self._say(challenge, frames.SASL)

    def _go_on(self) -> None:
        """Wait for a verification, or go on without one."""
        if self.state != VERIFYING:
            return
        login = self._login()
        if login.done or (login.waiting and not self.sasl_done):
            self._logged_in()
        else:
            self.paused = True

    # -- login -----------------------------------------------------------------------------------

    def _login(self) -> Login:
        login = self.sasl_login
        if login is None:
            raise AssertionError(self.state)
        return login

    @override
    def logged_in(self) -> None:
        self.paused = False
        self._logged_in()
        if self.state != ENDED:
            self.resume()

    def _logged_in(self) -> None:
        if self.open_packet is not None:
            self._establish(self.open_packet)
            return
        self.sasl_done = True
        self.state = AMQP_DUE
        self._say(SaslOutcome(sasl.OK, self._login().outcome_data), frames.SASL)

    @override
    def refused(self, refusal: Refused) -> None:
        self.paused = False
        self.report_refused(refusal.why)
        text = refusal.reason
        if self.open_packet is None:
            self._say(SaslOutcome(sasl.REFUSED), frames.SASL)
            self._end(text)
        else:
            self._close(condition_of(text, refusal.reason_code), text)

    @override
    def password_verified(self, good: bool) -> None:
        if self.state != VERIFYING:
            return
        try:
            self._login().verified(good)
        except Refused as refusal:
            self.refused(refusal)
            return
        self.logged_in()

    @override
    def login_refused(self, code: int, text: str) -> None:
        if self.state == VERIFYING:
            self.refused(Refused(text, code))

    def _open(self, packet: Open) -> None:
        self.open_packet = packet
        self.max_frame = min(packet.max_frame_size, limits.AMQP_FRAME_BYTES)
        if packet.max_frame_size < frames.MIN_MAX_FRAME:
            raise ProtocolError(
                conditions.INVALID_FIELD,
                f"2.7.1: max-frame-size is {frames.MIN_MAX_FRAME} at least",
            )
        name = packet.container_id
        if len(name.encode()) > limits.CLIENT_ID_BYTES or name.startswith("#") or "\0" in name:
            raise ProtocolError(
                conditions.INVALID_FIELD,
                f"a container id has at most {limits.CLIENT_ID_BYTES} bytes and does not begin with #",
            )
        if not self._login().waiting:
            self._establish(packet)
            return
        self.state = VERIFYING
        try:
            self._login().opened(packet.hostname or "")
        except Refused as refusal:
            self.refused(refusal)
            return
        self._go_on()

    def _establish(self, packet: Open) -> None:
        """Make the client and its publisher, and answer `open`."""
        admission = self.admission
        if admission is None:
            raise AssertionError(self.state)
        vpn = admission.vpn
        name = packet.container_id or vpn.credentials.assigned_client_id(self.context.ids.next())
        desired = packet.desired_capabilities or []
        # One that wants to be alone is the only one of its client username and container.
        fellows = vpn.containers.get((admission.username.name, name))
        if fellows and (SOLE in desired or _is_sole(next(iter(fellows)))):
            self._fail_to_establish(name)
            return
        self.state = OPENED
        self._cancel_timer()
        self.leave_strangers()
        self.outbox.set_limit(admission.profile.max_outbox_bytes)
        client = AmqpClient(self, admission, packet.container_id or name, SOLE in desired)
        self.client = client
        self.hold_in_account()
        self.publisher = client.publish(admission)
        admission.password = b""
        answer = self._answer(None)
        if len(frames.encode(answer, 0)) > self.max_frame:
            # A list of stand-by servers, which the client has no room for.
            answer = answer._replace(properties=None)
        self._say(answer)
        self._keep_time(packet)
        # They are not needed again, and there are many connections that do nothing.
        self.open_packet = None
        self.sasl_login = None
        self._report(table.CONNECT, f" connected: {PLATFORM}")
        if client.predecessors:
            self.hold()
            self.context.jobs.add(Successor(self))

    def _answer(self, failed: str | None) -> Open:
        properties: dict[object, object] = {
            Symbol("product"): "vpnrouter",
            Symbol("topic-prefix"): "topic://",
            Symbol("queue-prefix"): "queue://",
        }
        if failed is not None:
            properties = {Symbol(failed): True}
        elif self._stand_bys:
            properties[Symbol("failover-server-list")] = self._stand_bys
        return Open(
            self.router.name,
            None,
            limits.AMQP_FRAME_BYTES,
            limits.AMQP_CHANNELS - 1,
            limits.AMQP_IDLE_S * 1000 // 2,
            offered_capabilities=[Symbol(name) for name in OFFERED],
            properties=properties,
        )

    def _fail_to_establish(self, name: str) -> None:
        """Refuse a second connection of a container that wants to have one alone."""
        text = f"another connection of the container {name} is there"
        self.report_refused(text)
        self._say(self._answer(NAME_TAKEN))
        why = error(conditions.INVALID_FIELD, text)
        info: dict[object, object] = {Symbol("invalid-field"): Symbol("container-id")}
        self._say(Close(why._replace(info=info)))
        self._end(text)

    def _keep_time(self, packet: Open) -> None:
        context = self.context
        self._timer = context.timers.arm(
            context.now_ns + limits.AMQP_IDLE_S * SECOND_NS, self, IDLE
        )
        if packet.idle_time_out:
            # Twice as often as the client asks for: what is late on its way is still in time.
            self._beat_ns = max(packet.idle_time_out, 100) * MILLISECOND_NS // 2
            self._beat_timer = context.timers.arm(context.now_ns + self._beat_ns, self, BEAT)

    @property
    def stranger(self) -> bool:
        """True before the login."""
        return self.client is None

    @override
    def log_identity(self) -> tuple[str, str]:
        client, packet = self.client, self.open_packet
        if client is not None:
            return f"{client.client_name} at {self.peer}", client.vpn.name
        return self.peer if packet is None else f"{packet.container_id} at {self.peer}", ""

    @override
    def open_account(self) -> MemoryAccount | None:
        client = self.client
        if client is None or self.state == ENDED:
            return None
        profile = client.profile
        home = client.username_memory()
        return MemoryAccount(client.client_name, profile.max_memory_bytes, home, self)

    # -- sessions --------------------------------------------------------------------------------

    def _begin(self, channel: int, packet: Begin) -> None:
        if channel >= limits.AMQP_CHANNELS:
            raise ProtocolError(
                conditions.FRAMING_ERROR, f"2.7.1: channel {channel} beyond channel-max"
            )
        if channel in self.sessions:
            raise ProtocolError(conditions.NOT_ALLOWED, f"2.5.1: channel {channel} has begun")
        if packet.remote_channel is not None:
            raise ProtocolError(conditions.INVALID_FIELD, "2.7.2: nobody asked for a session")
        if not self.take(SESSION_COST):
            self.crowded_out()
            return
        session = AmqpSession(self, channel, packet)
        self.sessions[channel] = session
        self.say(session.begin(), channel)
        if len(self.sessions) > limits.AMQP_SESSIONS:
            text = f"a connection has at most {limits.AMQP_SESSIONS:,} sessions"
            session.leave(End(error(conditions.RESOURCE_LIMIT_EXCEEDED, text)), lost=True)

    def _end_session(self, channel: int, packet: End) -> None:
        session = self.sessions.pop(channel, None)
        if session is None:
            raise ProtocolError(conditions.NOT_ALLOWED, f"2.5.1: end of channel {channel}")
        self.give_back(SESSION_COST)
        session.leave(End(), lost=packet.error is not None)

    def say(self, performative: tuple[Any, ...], channel: int = 0) -> None:
        """Send a frame of AMQP without a payload."""
        self.outbox.control(frames.encode(performative, channel))

    def _say(self, performative: tuple[Any, ...], kind: int = frames.AMQP) -> None:
        self.outbox.control(frames.encode(performative, 0, kind))

    @property
    def transactions(self) -> Transactions:
        """The transactions of the connection, made when the first is needed."""
        found = self._transactions
        if found is None:
            found = Transactions(self)
            self._transactions = found
        return found

    def work_on(self, job: Job) -> None:
        """Run the job in this turn if it is short; otherwise the client's next frames wait for it."""
        if not job.step():
            self.hold()
            self.context.jobs.add(job)

    def worked(self) -> None:
        """Read the client again, if it waited for a job that is done."""
        if self.held:
            self.release()

    def let_go_of(self, session: AmqpSession, links: list[Link], answer: End | None) -> None:
        """Let go of the links of a session that has ended; `answer` the client then, whose next frames wait for it."""
        job = self._letting_go
        if job is None:
            job = LinkRelease(self)
            self._letting_go = job
        job.add(session, links, answer)
        if not self.closing:
            self.work_on(job)

    def wake_later(self, links: list[SendingLink]) -> None:
        """Look in a later turn whether links have something to send: this one has done enough."""
        job = self._waking
        if job is None:
            job = WakeLinks(self)
            self._waking = job
        job.links.update(dict.fromkeys(links))
        self.context.jobs.add(job)

    def waits(self, link: SendingLink) -> bool:
        """Return whether a link is to be looked at in a later turn."""
        job = self._waking
        return job is not None and link in job.links

    def hold_parts(self, more: int) -> None:
        """Count bytes of messages of which parts have come."""
        self._part_bytes += more
        self.keep_packet(self._part_bytes)

    def drain_later(self) -> None:
        """The client takes messages slowly, or browses: look again soon."""
        if not self._draining and self.state == OPENED:
            self._draining = True
            self.context.timers.arm(self.context.now_ns + DRAIN_NS, self, DRAIN)

    @property
    @override
    def platform(self) -> str:
        return PLATFORM

    @property
    @override
    def keepalive_s(self) -> int:
        return limits.AMQP_IDLE_S

    @property
    @override
    def bind_count(self) -> int:
        client = self.client
        return 0 if client is None else client.egress_flows

    @override
    def put_out(self, why: str, *, stopping: bool = False) -> None:
        self._in_order = stopping
        self.fail(conditions.CONNECTION_FORCED, why)

    @override
    def judge_again(self, rights: Admission, *, told: bool) -> bool:
        client = self.client
        if client is None:
            return False
        changed = client.judge_again(rights, told=told)
        if self._transactions is not None:
            self._transactions.judge()
        return changed

    # -- end -------------------------------------------------------------------------------------

    def fail(self, condition: int, text: str) -> None:
        """Send the reason, as the state allows, and close."""
        if self.state == ENDED:
            return
        if self.state >= OPEN_DUE or self.open_packet is not None:
            self._close(condition, text)
            return
        if self.state in (INIT_DUE, RESPONSE_DUE, VERIFYING):
            self._say(SaslOutcome(sasl.REFUSED), frames.SASL)
        self._end(text)

    def _close(self, condition: int, text: str) -> None:
        if self.client is None:
            self._say(self._answer(NAME_TAKEN))
        self._say(Close(error(condition, text)))
        self._end(text)

    @override
    def crowded_out(self) -> None:
        text = self.evicted(logged_in=self.client is not None)
        self.fail(conditions.RESOURCE_LIMIT_EXCEEDED, text)

    @override
    def ends(self, why: str) -> None:
        self._end(why)

    def _end(self, why: str) -> None:
        if self.state == ENDED:
            return
        self.state = ENDED
        self.closing = True
        self.give_all_back(
            [
                ReleaseStep("timer", self._cancel_timer),
                ReleaseStep("sessions", self._leave_sessions, again=True),
                ReleaseStep("event", lambda: self._report_gone(why)),
                ReleaseStep("client", self._end_client, again=True),
                ReleaseStep("links", self._begin_letting_go),
            ]
        )

    def _leave_sessions(self) -> None:
        while self.sessions:
            channel = next(iter(self.sessions))
            self.sessions[channel].leave(None, lost=not self._in_order)
            del self.sessions[channel]
            self.give_back(SESSION_COST)

    def _report_gone(self, why: str) -> None:
        if self.publisher is not None:
            self.report_gone(self.publisher, self.outbox.messages, why)

    def _end_client(self) -> None:
        if self.client is not None:
            self.client.end()

    def _begin_letting_go(self) -> None:
        job = self._letting_go or LinkRelease(self)
        self._letting_go = job
        if not job.step():
            if self.client is not None:
                self.client.leaves()
            self.context.jobs.add(job)

    def links_gone(self) -> bool:
        """Give back all else that an ended connection holds; False where this turn has done enough before that."""
        transactions = self._transactions
        while transactions is not None and transactions.roll_back_one():
            if self.context.turn_spent:
                return False
        self._letting_go = None
        self._waking = None
        client = self.client
        if client is not None:
            client.has_left()
        self.release_resources()
        return True

    @override
    def _close_account(self) -> None:
        # What the links hold counts until it is given back.
        if self._letting_go is None:
            super()._close_account()

    def _cancel_timer(self) -> None:
        for timer in (self._timer, self._beat_timer):
            if timer is not None:
                timer.cancel()
        self._timer = None
        self._beat_timer = None

    def on_timer(self, kind: int, now_ns: int) -> None:
        """End a connection that did not log in in time or is silent; send a sign of life; look at slow consumers."""
        if self.state == ENDED:
            return
        if kind == DRAIN:
            self._draining = False
            for session in list(self.sessions.values()):
                session.wake()
        elif kind == BEAT:
            self.outbox.control(EMPTY)
            self._beat_timer = self.context.timers.arm(now_ns + self._beat_ns, self, BEAT)
        elif kind == LOGIN_TIMEOUT:
            self._timer = None
            self._end("no login in time")
        else:
            self._timer = None
            silent_ns = self.silent_at(limits.AMQP_IDLE_S * SECOND_NS, now_ns)
            if silent_ns > now_ns:
                self._timer = self.context.timers.arm(silent_ns, self, IDLE)
            else:
                self.fail(
                    conditions.RESOURCE_LIMIT_EXCEEDED,
                    f"2.4.5: nothing heard for {limits.AMQP_IDLE_S} seconds",
                )

    # -- events ----------------------------------------------------------------------------------

    def report_refused(self, why: str) -> None:
        """Count and report a login that was refused for `why`; the client learns less."""
        self.router.logins_refused += 1
        admission = self.admission
        vpn: MessageVpn | None = None if admission is None else admission.vpn
        name = "" if self.open_packet is None else self.open_packet.container_id
        username = "" if admission is None else admission.username.name
        self.report_failed(vpn, name, username, why)

    @override
    def report_protocol_error(self, why: str) -> None:
        # A peer that is not logged in counts as no client.
        self._report(table.PARSE_ERROR, f": {why}")

    def _report(self, kind: EventType, text: str) -> None:
        client = self.client
        if client is not None and self.admission is not None:
            self.report(kind, client.vpn.name, client.client_name, text)


def _is_sole(holder: object) -> bool:
    return isinstance(holder, AmqpClient) and holder.sole
