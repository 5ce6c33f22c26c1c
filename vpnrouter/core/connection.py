"""Holds what all connections have in common, whatever protocol they speak.

The edge feeds received bytes, flushes the outbox, and reports the end of the transport. A connection never touches a
socket.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import mypyc_attr

from vpnrouter import limits
from vpnrouter.core.fault_barrier import CONNECTION, release
from vpnrouter.core.memory_account import Eviction
from vpnrouter.core.origin import origin_of
from vpnrouter.core.outbox import Outbox
from vpnrouter.core.timers import Job, TimerTarget
from vpnrouter.units import SECOND_NS

if TYPE_CHECKING:
    from vpnrouter.core.credentials import PeerCertificate
    from vpnrouter.core.fault_barrier import ReleaseStep
    from vpnrouter.core.memory_account import MemoryAccount
    from vpnrouter.core.outbox import Channel
    from vpnrouter.core.pending_connections import BufferedBytes, PendingConnections
    from vpnrouter.core.timers import Timer
    from vpnrouter.core.turn import TurnContext
    from vpnrouter.core.verifications import PendingLogin


APART_BYTES: Final = 4_096
"""Bytes behind the rest of an incomplete frame from which on they are not copied to stand behind it."""


LARGE_OUTBOX: Final = 1_048_576
"""Bytes of an outbox from which on it takes no more when memory is short for others."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Connection(TimerTarget):
    """The connection of one peer: an MQTT client or a link.

    `closing`: close once the outbox has left. `paused`: do not read for now (a password is being verified);
    `Channel.wake` is called when that ends. `held`: paused until `release`, while earlier input is handled in slices.
    `peer` is the address as text, `origin` the part of it that limits by address count, `since_ns` (monotonic) when the
    transport came. The edge sets `certificate`, shown in the TLS handshake, and `binding`, known to the two ends of
    this TLS connection alone (b"" without TLS), before it feeds the first byte. `guaranteed`: its input is work for the
    spool, so that the edge can share its time. `login` is the verification that it waits for. `faulty`: it ends because
    the router raised an exception, or because it holds too much. `spared_ns`: until then it is not held for receivers
    that were not tried before (backpressure.py).
    """

    __slots__ = (
        "_account",
        "_counted",
        "_have",
        "_holdings",
        "_kept",
        "_parts",
        "_spare",
        "_stall",
        "_strangers",
        "_ticket",
        "_unread",
        "binding",
        "certificate",
        "choked",
        "closing",
        "context",
        "faulty",
        "guaranteed",
        "heard_ns",
        "held",
        "login",
        "origin",
        "outbox",
        "paused",
        "peer",
        "since_ns",
        "spared_ns",
        "stuck",
        "unsettled_bytes",
    )

    def __init__(self, context: TurnContext, peer: str, limit: int) -> None:
        self.context = context
        self.peer = peer
        self.outbox = Outbox(context.ready, limit, context.backpressure.outboxes())
        self.certificate: PeerCertificate | None = None
        self.binding = b""
        self.closing = False
        self.faulty = False
        self.guaranteed = False
        self.paused = False
        self.held = False
        self.heard_ns = context.now_ns
        self.since_ns = context.now_ns
        self.spared_ns = 0
        self.origin = origin_of(peer)
        self.login: PendingLogin | None = None
        self._parts: list[bytes] = []
        self._have = 0
        # Bytes of packets that are not complete, or not handled yet, where there are more than `_spare`: `_counted` of
        # them count in `_holdings` before the login, and in the account of the connection later. `_kept` are those of a
        # packet that is being handled, or waits for its verdict.
        self._holdings: BufferedBytes | None = None
        self._spare = 0
        self._counted = 0
        self._kept = 0
        # Made with the first bytes that count: most connections hold next to nothing.
        self._account: MemoryAccount | None = None
        self.unsettled_bytes = 0
        # Bytes of the outbox that count.
        self._unread = 0
        # `choked`: nothing is read because the peer does not read, which `_stall` watches. `stuck`: the kernel
        # takes no more of what waits.
        self.choked = False
        self._stall: StallWatch | None = None
        self.stuck = False
        self._strangers: PendingConnections | None = None
        self._ticket: Channel | None = None

    # -- before and after login ------------------------------------------------------------------

    def hold_in(self, holdings: BufferedBytes) -> None:
        """Count in `holdings` the bytes held here, until the login."""
        self._holdings = holdings

    def hold_in_account(self) -> None:
        """From now on count in the account of the connection what is held here: it is logged in."""
        self._release()
        self._kept = 0
        self._holdings = None
        self._spare = limits.SPARE_BYTES
        self._count()

    def placed(self, strangers: PendingConnections, ticket: Channel) -> None:
        """Take a place among the connections before login, as `ticket`."""
        self._strangers = strangers
        self._ticket = ticket

    def leave_strangers(self) -> None:
        """Give back its place among the connections before login."""
        if self._strangers is not None and self._ticket is not None:
            self._strangers.leave(self.origin, self._ticket)
            self._strangers = None
            self._ticket = None

    def keep_packet(self, size: int) -> None:
        """Note that a packet of `size` bytes waits for its verdict, 0 when it waits no more."""
        self._kept = size
        self._count()

    def release_resources(self) -> None:
        """Give back its place, its buffers and its waiting login: the connection has ended."""
        self.leave_strangers()
        self._end_stall()
        self._parts.clear()
        self._have = 0
        self._kept = 0
        self._release()
        self._holdings = None
        if not self._unread:
            self._close_account()
        login = self.login
        if login is not None:
            self.login = None
            login.leave(self)

    def _count(self) -> None:
        size = self._kept
        if self._parts:
            size += self._have
        if size <= self._spare:
            size = 0
        change = size - self._counted
        holdings = self._holdings
        if change == 0:
            return
        if holdings is not None:
            self._counted = size
            holdings.hold(self, size)
        elif change < 0:
            self._counted = size
            self.give_back(-change)
        elif self.take(change):
            self._counted = size
        else:
            self.crowded_out()

    def _release(self) -> None:
        counted = self._counted
        if counted:
            self._counted = 0
            holdings = self._holdings
            if holdings is not None:
                holdings.hold(self, 0)
            else:
                self.give_back(counted)

    # -- what it holds ---------------------------------------------------------------------------

    def open_account(self) -> MemoryAccount | None:
        """Make the account of the connection; None before the login, and after its end."""
        return None

    @property
    def account(self) -> MemoryAccount | None:
        """What counts the memory that the connection holds, None where that is nothing."""
        return self._account

    def take(self, size: int) -> bool:
        """Count `size` bytes that the router holds for the peer; False where they are too many, and do not count."""
        account = self._account
        if account is None:
            account = self.open_account()
            if account is None:
                return True
            self._account = account
        return account.take(size)

    def give_back(self, size: int) -> None:
        """Count `size` bytes less."""
        account = self._account
        if account is not None:
            account.give_back(size)

    def has_room(self, size: int) -> bool:
        """Return whether the client may hold so much more of messages that it has not settled.

        Where it holds no such messages it may, whatever their size, so that it always goes on.
        """
        account = self._account
        if account is None:
            return True
        if account.crowded():
            return False
        return self.unsettled_bytes == 0 or account.has_room(size)

    def crowded(self) -> bool:
        """Return whether it should be given nothing that can wait: little is left of what it may hold."""
        account = self._account
        return account is not None and account.crowded()

    def _close_account(self) -> None:
        account = self._account
        if account is not None:
            account.close()

    def grows_out(self) -> None:
        """End the connection soon: it was to take what it has no room for."""
        if not self.faulty:
            self.faulty = True
            self.context.jobs.add(Eviction(self))

    def outgrown(self, why: str) -> None:
        """End the connection, which holds most where others need room."""
        if self.stuck or self.closing:
            self.cut_off(why)
        else:
            self.crowded_out()

    def cut_off(self, why: str) -> None:
        """End the connection at once: its peer takes nothing, or too much waits for it."""
        channel = self.outbox.channel
        if channel is None or not channel.cut(why):
            self.context.barrier.lose(self, why)

    def silent_at(self, interval_ns: int, now_ns: int) -> int:
        """Return when the peer will have been silent for an interval, in monotonic nanoseconds. A connection that the
        router does not read on purpose says nothing of its peer.
        """
        return (now_ns if self.paused else self.heard_ns) + interval_ns

    def crowded_out(self) -> None:
        """Close with a reason: the connection holds too much, and most of it."""
        raise AssertionError(self)

    def login_refused(self, code: int, text: str) -> None:
        """Refuse a login that waited for its verification."""
        raise AssertionError(code, text)

    # -- input -----------------------------------------------------------------------------------

    def feed(self, data: bytes) -> None:
        """Take received bytes (not empty); the clocks of the context have been set."""
        context = self.context
        self.heard_ns = context.now_ns
        context.work = 0
        start = 0
        if self._parts:
            needed = self._needed()
            start = needed - self._have
            if 0 < start <= len(data) - APART_BYTES:
                # The frame at the front is completed by itself: what follows it need not be copied.
                front = b"".join([*self._parts, data[:start]])
                self._empty_parts()
                rest = 0 if self.paused else self.consume(front, 0)
                if rest < 0:
                    return
                if self.paused or rest < len(front):
                    data = front[rest:] + data[start:]
                    start = 0
            else:
                self._have += len(data)
                self._parts.append(data)
                if self._have < needed:
                    if self._have > self._spare:
                        self._count()
                    return
                data = b"".join(self._parts)
                start = 0
                self._empty_parts()
                # A microsecond for each KB: a long frame is joined in one turn and handled in another.
                context.work = len(data) >> 10
        self._consume(data, start)

    def _empty_parts(self) -> None:
        self._parts.clear()
        if self._counted:
            self._count()

    def _consume(self, data: bytes, pos: int) -> None:
        """Handle what has arrived, from `pos` on; keep what is not complete, and all while the connection is paused."""
        if self.paused:
            self._keep(data[pos:])
            return
        outbox = self.outbox
        chunks = len(outbox.chunks)
        rest = self.consume(data, pos)
        if rest >= 0 and rest < len(data):
            self._keep(data[rest:])
        if outbox.size > outbox.limit or (
            len(outbox.chunks) > limits.OUTBOX_CHUNKS and len(outbox.chunks) > chunks
        ):
            self._choke()
        backpressure = self.context.backpressure
        if backpressure.crowded:
            backpressure.hold(self, self.context.now_ns)

    def _keep(self, data: bytes) -> None:
        self._parts.append(data)
        self._have = len(data)
        if self._have > self._spare:
            self._count()

    def _choke(self) -> None:
        """Stop reading while the peer does not read: answers must not fill the memory."""
        if self.choked or self.closing:
            return
        self.choked = True
        self.paused = True
        self._stall = StallWatch(self)

    def eased(self) -> None:
        """Note that the peer has read. Resume when at most half of the outbox's limits is left."""
        stall = self._stall
        if stall is not None:
            stall.moved = True
        outbox = self.outbox
        if outbox.size <= outbox.limit // 2 and len(outbox.chunks) <= limits.OUTBOX_CHUNKS // 2:
            self._end_stall()
            self.resume()

    def _end_stall(self) -> None:
        self.choked = False
        stall = self._stall
        self._stall = None
        if stall is not None:
            stall.timer.cancel()

    def stuck_with(self, size: int) -> None:
        """Note that the kernel takes no more and `size` bytes wait, 0 when they wait no more."""
        self.stuck = size > 0
        if size <= limits.SPARE_BYTES:
            size = 0
        change = size - self._unread
        if change < 0:
            self._unread = size
            self.give_back(-change)
            if self.outbox.narrowed and not self.crowded():
                self.outbox.widen()
            if size == 0 and self.closing:
                self._close_account()
        elif change > 0:
            if self.take(change):
                self._unread = size
                account = self._account
                if account is not None and (
                    account.crowded() or (size > LARGE_OUTBOX and account.crowded_around())
                ):
                    self.outbox.narrow()
            else:
                self.cut_off("too many bytes wait for clients that read too slowly")

    def hold(self) -> None:
        """Handle no further input until `release`: the work on earlier input is not done."""
        self.held = True
        self.paused = True

    def release(self) -> None:
        """Resume reading after `hold`, unless the connection is closing."""
        self.held = False
        if not self.closing:
            self.resume()

    def rest(self) -> None:
        """Go on in a later turn: this one has done enough."""
        self.hold()
        self.context.jobs.add(NextTurn(self))

    def resume(self) -> None:
        """Go on after a pause with what arrived before it; not while the connection is held or choked."""
        if self.held or self.choked:
            return
        self.paused = False
        if self._parts:
            data = b"".join(self._parts)
            self._empty_parts()
            self._consume(data, 0)
        channel = self.outbox.channel
        if channel is not None:
            channel.wake()

    def _needed(self) -> int:
        """Return the length of the frame at the front, so that a long one is joined once; 0 if that is unknown.

        MQTT and links frame alike (varint.py).
        """
        first = self._parts[0]
        if len(first) < 5:
            return 0
        length = 0
        shift = 0
        for index in range(1, 5):
            byte = first[index]
            length |= (byte & 127) << shift
            if byte < 128:
                # A length beyond the bound is for `consume` to refuse.
                return min(length, self.largest()) + index + 1
            shift += 7
        return 0

    def largest(self) -> int:
        """Bytes of the largest frame that the peer may send."""
        raise AssertionError(self)

    def consume(self, data: bytes, pos: int) -> int:
        """Handle whole frames from `pos` on; return where the first incomplete one begins, -1 when closed."""
        raise AssertionError(data, pos)

    @property
    def stranger(self) -> bool:
        """True before the login."""
        return True

    def password_verified(self, good: bool) -> None:
        """Take the edge's answer to a login that needs a password."""
        raise AssertionError(good)

    def owning_connection(self) -> Connection | None:
        """The connection itself."""
        return self

    def log_identity(self) -> tuple[str, str]:
        """Return the peer's name for logs, and its message VPN ("" before the login)."""
        return self.peer, ""

    def give_all_back(self, steps: list[ReleaseStep]) -> None:
        """Take the steps of the end, and have the edge close the transport once the outbox has left."""
        release(steps, self.caught_at_end)
        self.close_when_sent()

    def close_when_sent(self) -> None:
        """Have the edge close the transport once the outbox has left, also where nothing is in it."""
        if not self.outbox.dirty:
            self.outbox.dirty = True
            self.context.ready.append(self.outbox)

    def caught_at_end(self, error: Exception) -> None:
        """Count and report what a step of the end raised; the other steps follow."""
        name, msg_vpn = self.log_identity()
        cost = "the end of the connection goes on"
        self.context.barrier.caught(error, CONNECTION, name, msg_vpn, cost)

    def lost(self, reason: str) -> None:
        """Clean up after the transport has ended, for `reason` (text for logs).

        Called once, and again each time it raised. Each thing is taken out before it is released, so that the next call
        continues behind it.
        """
        raise AssertionError(reason)


@final
class NextTurn(Job):
    """The next turn of a connection that has more to do than one allows."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self._connection = connection

    def step(self) -> bool:
        """Resume the connection."""
        self._connection.release()
        return True

    def owning_connection(self) -> Connection | None:
        """Return the connection that waits for its turn."""
        return self._connection


@final
class StallWatch(TimerTarget):
    """Watches a connection that is not read because its peer does not read."""

    __slots__ = ("connection", "moved", "timer")

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.moved = False
        self.timer = self._arm()

    def _arm(self) -> Timer:
        context = self.connection.context
        return context.timers.arm(context.now_ns + limits.UNREAD_S * SECOND_NS, self, 0)

    def owning_connection(self) -> Connection | None:
        """Return the watched connection."""
        return self.connection

    def on_timer(self, kind: int, now_ns: int) -> None:
        """Close the connection if nothing has left since the timer was armed."""
        if self.moved:
            self.moved = False
            self.timer = self._arm()
        else:
            self.connection.cut_off("took nothing of what waited for it")
