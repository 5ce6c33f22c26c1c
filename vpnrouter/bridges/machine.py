"""What a bridge does next, without I/O: which remote it takes, over which link, when it moves, goes back and waits.

Its caller reports what has happened, and the time. `step` returns actions, to be performed in their order, and
`wake_ns` is the time of the next step. It moves the record of the bridge (bridge.py) through its states.

A *login* is one try to be logged in at a remote, from the begin of the connection to the end of the half. At most
three exist: the one in use, the one that stands by at a better remote, and the one that the bridge moves to. A move
waits until the other login is welcomed, lets what is on the way arrive (LINK-20), and leaves the login in use.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, NamedTuple, final

from vpnrouter import limits
from vpnrouter.bridges.bridge import Bridge, BridgeFacts, Inbound, Input
from vpnrouter.bridges.half_events import FLOW_EVENTS, HalfEvent
from vpnrouter.bridges.remote_order import Backoff, Remote, RemoteOrder
from vpnrouter.events import table
from vpnrouter.units import SECOND_NS
from vpnrouter.wire.link import codes

if TYPE_CHECKING:
    from vpnrouter.bridges.link import Link
    from vpnrouter.events.table import EventType

SLOWEST_NS: Final = 30 * SECOND_NS
"""Longest delay between two tries, unless SPREAD needs a longer one."""

SPREAD: Final = 3
"""The longest delay is at least this many times `retry_delay`: with a smaller range many bridges would try in step."""

DRAIN_NS: Final = 2 * SECOND_NS
"""Silence after which nothing more is expected from a link that is left."""

DRAIN_MOST_NS: Final = 10 * SECOND_NS
"""Time that a link that is left has for its messages in flight, as long as something is received."""

VERSION_WAIT_NS: Final = 60 * SECOND_NS
"""Time before a remote that speaks another major version is tried again."""

MERGE_AGAIN_NS: Final = 3 * SECOND_NS
"""Time before a bridge tries again to log in over the connection of a peer that refused it."""

FORGIVEN_NS: Final = 300 * SECOND_NS
"""After this time a fault that ended the work of a bridge does not count as a repetition."""

FAULTS_DOUBLED: Final = 5
"""How often the wait after such a fault is doubled, from one second on."""

STALL_TELLS_NS: Final = 60 * SECOND_NS
"""Time for which a stall of the bridge is not reported again."""

_TRY_NS: Final = limits.CONNECT_TIMEOUT_S * SECOND_NS

_WAITING: Final = (Inbound.NOT_READY_WAIT_NEXT, Inbound.NOT_READY_WAIT_BRIDGE_VERSION_MISMATCH)


@final
@dataclass(slots=True)
class BridgeSettings:
    """When and where a bridge connects, and whether it is paused then, from the configuration. Delays are nanoseconds;
    a `failback_delay_ns` of 0 means no automatic fail-back, a `give_up_after` of 0 that tries may fail without end.
    """

    remotes: tuple[Remote, ...] = ()
    enabled: bool = True
    vpn_enabled: bool = True
    retry_count: int = 0
    retry_delay_ns: int = 3 * SECOND_NS
    failback_delay_ns: int = 30 * SECOND_NS
    give_up_after: int = 0
    paused: bool = False


class ConnectionEnds(NamedTuple):
    """Both ends of a connection: the remote as it is configured, its IP address and port, the address of this end."""

    peer: str
    address: str = ""
    interface: str = ""
    dialed: bool = True
    encrypted: bool = False


NOWHERE: Final = ConnectionEnds("")


class Dial(NamedTuple):
    """Connect to a remote and send HELLO. `moves_from` is the login that this one replaces, 0 for none."""

    number: int
    remote: Remote
    moves_from: int = 0


class Reuse(NamedTuple):
    """Say HELLO over a link that serves the peer's bridge."""

    number: int
    remote: Remote
    link: Link
    moves_from: int = 0


class CancelDial(NamedTuple):
    """Give up a connection that is not made yet."""

    number: int


class DetachHalf(NamedTuple):
    """End the half of a login, for the reason that belongs to `code`."""

    number: int
    code: int = codes.NORMAL


class ApplySettings(NamedTuple):
    """Request from the remote what is configured now."""

    number: int


class Drain(NamedTuple):
    """Attract nothing more over this login."""

    number: int


class Resume(NamedTuple):
    """Read the link of a login again, where it was not read before the one in use had ended."""

    number: int


class RaiseEvent(NamedTuple):
    """Raise an event about the bridge."""

    kind: EventType
    text: str


Action = Dial | Reuse | CancelDial | DetachHalf | ApplySettings | Drain | Resume | RaiseEvent


class Links(ABC):
    """What the machine looks up among the links of the router."""

    @abstractmethod
    def incoming(self) -> tuple[Remote, Link] | None:
        """Return the best remote whose own bridge came in over a link that this bridge can use, and the link."""

    @abstractmethod
    def serves(self, remote: Remote) -> bool:
        """Return whether such a link to this remote exists."""

    @abstractmethod
    def peers_connection(self, number: int, remote: Remote) -> Link | None:
        """Return the link with the peer's bridge to use instead of the link of a login, where there are two."""

    @abstractmethod
    def heard_ns(self, number: int) -> int:
        """Return when something was received over the link of a login."""


class Phase(Enum):
    """Phases of a login."""

    DIALLING = auto()
    ASKING = auto()
    WELCOMED = auto()
    OVER = auto()


@final
@dataclass(slots=True, eq=False)
class Login:
    """One login. The first two phases time out at `until_ns`; `since_ns` is when it was welcomed."""

    number: int
    remote: Remote
    until_ns: int
    renews: bool = False
    phase: Phase = Phase.DIALLING
    ends: ConnectionEnds = NOWHERE
    welcomed: bool = False
    resumed: bool = False
    left: bool = False
    router: str = ""
    client_name: str = ""
    since_ns: int = 0


@dataclass(slots=True)
class _Draining:
    """The end of a login that is left: what has been heard, and until when to wait."""

    heard_ns: int
    quiet_ns: int
    last_ns: int
    done: bool = False


@final
class Machine:
    """One bridge. All times are nanoseconds of one clock that never goes back.

    `stopped` says why it does nothing more until it is to `go_on`, "" while it works.

    `use` is the login in use or on its way, `standby` one at a better remote, `mover` the one that takes the place of
    `use`. `failures` say by (message VPN, location) why a remote does not serve, "" where it does.
    """

    def __init__(self, facts: BridgeFacts, settings: BridgeSettings, now_ns: int) -> None:
        self.record = Bridge(facts, now_ns)
        self.remotes = RemoteOrder([])
        self.failures: dict[tuple[str, str], str] = {}
        self.use: Login | None = None
        self.standby: Login | None = None
        self.mover: Login | None = None
        self.removed = False
        self.stopped = ""
        self.wake_ns = -1
        self._settings = settings
        self._backoff = Backoff()
        self._todo: list[Action] = []
        self._number = 0
        self._refused = False
        # Tries in a row that have failed.
        self._failed_tries = 0
        self._reconnect = False
        self._draining: _Draining | None = None
        self._next_ns = -1
        self._merge_ns = 0
        # Remotes better than the one in use that have their turn in this pass, and the time of the next pass.
        self._better: list[Remote] = []
        self._better_ns = 0
        self._faults = 0
        self._fault_ns = -FORGIVEN_NS
        self._rest_ns = 0
        self._announced = False
        self._told = ""
        self._stall_told = False
        self._stall_tells_ns = now_ns
        self._take(settings)

    def logins(self) -> list[Login]:
        """Return the logins that exist, the one in use first."""
        return [one for one in (self.use, self.mover, self.standby) if one is not None]

    def login(self, number: int) -> Login | None:
        """Return the login of this number, None for one that is given up."""
        for one in self.logins():
            if one.number == number and one.phase is not Phase.OVER:
                return one
        return None

    @property
    def reconnecting(self) -> bool:
        """Whether the login in use stands under earlier settings, until a new connection replaces it or fails."""
        if self.mover is not None:
            return self.mover.renews
        return self.use is not None and (self._reconnect or self._draining is not None)

    # -- the configuration -----------------------------------------------------------------------

    def configure(
        self, facts: BridgeFacts, settings: BridgeSettings, now_ns: int, *, reconnect: bool = False
    ) -> list[Action]:
        """Go on under other settings; `reconnect` where the connection itself changes."""
        self.record.facts = facts
        self.go_on()
        was_paused = self._settings.paused
        kept = self._take(settings)
        if settings.paused is not was_paused:
            kind = table.BRIDGE_PAUSED if settings.paused else table.BRIDGE_RESUMED
            self._tell(kind, "paused" if settings.paused else "goes on")
        self._pause(now_ns)
        # What was opened under the settings before is out of date.
        self._give_up(self.standby)
        self.standby = None
        mover, use = self.mover, self.use
        if mover is not None and mover.phase is Phase.DIALLING:
            self._give_up(mover)
            self.mover = mover = None
            reconnect = True
        if use is not None and use.phase is Phase.DIALLING:
            self._give_up(use)
            self._overtaken(now_ns)
            self.use = use = None
        if use is not None and use.phase is Phase.OVER:
            use = None
        if use is not None and kept and mover is None and self._draining is None:
            self._ask(use, now_ns)
        self._reconnect = use is not None and (self._reconnect or reconnect or not kept)
        self._refused = False
        self._next_ns = -1
        self._better.clear()
        self._better_ns = now_ns
        return self._actions()

    def _pause(self, now_ns: int) -> None:
        """Bring the state of a bridge that is logged in to what the settings say of a pause."""
        record, paused = self.record, self._settings.paused
        if record.is_up and paused is not (record.inbound_state is Inbound.PAUSED):
            record.handle(Input.PAUSE if paused else Input.RESUME, now_ns)

    def _take(self, settings: BridgeSettings) -> bool:
        """Take the settings; returns whether the remote in use is still among the remotes."""
        self._settings = settings
        delay_ns = settings.retry_delay_ns
        self._backoff = Backoff(delay_ns, max(SLOWEST_NS, SPREAD * delay_ns))
        return self.remotes.replace(settings.remotes, settings.retry_count)

    def go_on(self) -> None:
        """Begin anew where the bridge has stopped by itself."""
        self.stopped = ""
        self._failed_tries = 0

    def remove(self) -> list[Action]:
        """End all logins: the bridge was removed from the configuration, or the router stops."""
        self.removed = True
        self._leave_all()
        return self._actions()

    # -- what happens ----------------------------------------------------------------------------

    def resolved(self, number: int, now_ns: int) -> None:
        """Note that the name of the remote of a login was looked up."""
        if self._in_use(number) and self.record.inbound_state is Inbound.PREPARE_FETCHING_DNS:
            self.record.handle(Input.RESOLVED, now_ns)

    def reached(self, number: int, now_ns: int, links: Links) -> bool:
        """Return whether HELLO is to be said on a new connection: not where an incoming link serves as well."""
        login = self.login(number)
        if login is None:
            return False
        if login is self.mover or not links.serves(login.remote):
            return True
        login.phase = Phase.OVER
        if login is self.use:
            self.use = None
            if self._overtaken(now_ns):
                self._next_ns = now_ns
        return False

    def connected(self, number: int, ends: ConnectionEnds, now_ns: int) -> None:
        """Note that HELLO of a login is on its way."""
        login = self.login(number)
        if login is None:
            return
        login.ends = ends
        login.phase = Phase.ASKING
        if login is self.use:
            login.until_ns = now_ns + self.try_ns
            self._begin(login, now_ns)
        elif login is self.mover:
            login.until_ns = now_ns + _TRY_NS

    def failed(self, number: int, why: str, now_ns: int) -> None:
        """Note that a login failed before HELLO."""
        login = self.login(number)
        if login is None:
            return
        login.phase = Phase.OVER
        if login is self.use:
            self.use = None
            self._failure(why)
            self._not_reached(why, now_ns)
            self._backoff.down(now_ns)
            self.remotes.failed()
            self._count_failed(why)
        elif login is self.mover:
            self._tell(table.NOT_CONNECTED, f"not connected: {why}")

    def welcomed(
        self, number: int, router: str, client_name: str, now_ns: int, *, resumed: bool = False
    ) -> list[Action]:
        """Note a login that succeeded; `resumed` where the peer hands the subscriptions over to it."""
        login = self.login(number)
        if login is None:
            return []
        login.phase = Phase.WELCOMED
        login.welcomed = True
        login.resumed = resumed
        login.router, login.client_name = router, client_name
        login.since_ns = now_ns
        if login is self.use:
            self._up(login, now_ns)
        return self._actions()

    def on_half_event(
        self, number: int, event: HalfEvent, reason: str, now_ns: int, *, in_sync: bool = False
    ) -> list[Action]:
        """Note any other event of a half. `in_sync` says that all requests are answered."""
        login = self.login(number)
        if login is None:
            return []
        if login is self.use:
            self._event_in_use(login, event, reason, now_ns, in_sync)
        if event == HalfEvent.LOST:
            login.phase = Phase.OVER
        return self._actions()

    def incoming(self, now_ns: int) -> None:
        """Note that the remote to dial next may be reachable, since its bridge has logged in here."""
        if self.record.inbound_state is Inbound.NOT_READY_WAIT_NEXT and not self._refused:
            self._next_ns = now_ns

    def broken(self, why: str, now_ns: int, draw: float) -> list[Action]:
        """Start again after a fault of the router. Each repetition waits longer, so that it does not keep the router
        busy.
        """
        self._todo.clear()
        self._leave_all()
        self.use = self.standby = self.mover = self._draining = None
        self._reconnect = self._refused = False
        self._next_ns = -1
        if now_ns - self._fault_ns > FORGIVEN_NS:
            self._faults = 0
        self._fault_ns = now_ns
        # 1, 2, 4 … 32 seconds, half as much again by chance.
        self._rest_ns = now_ns + int((1 << self._faults) * (1 + draw / 2) * SECOND_NS)
        self._faults = min(self._faults + 1, FAULTS_DOUBLED)
        self.wake_ns = self._rest_ns
        record = self.record
        if record.inbound_state is not Inbound.INIT:
            if record.inbound_state is not Inbound.DISABLED:
                record.handle(Input.DISABLE, now_ns)
            record.handle(Input.ENABLE, now_ns)
        record.inbound_failure_reason = why
        record.last_failure_ns = now_ns
        record.failures += 1
        self._went_down(why)
        return self._actions()

    def _event_in_use(
        self, login: Login, event: HalfEvent, reason: str, now_ns: int, in_sync: bool
    ) -> None:
        record = self.record
        if event == HalfEvent.SUBSCRIBED:
            self._subscribed(reason, now_ns)
        elif event == HalfEvent.DRAINED:
            if self._draining is not None:
                self._draining.done = True
        elif event == HalfEvent.PARTED:
            if record.is_up:
                record.handle(Input.SUBSCRIPTIONS_CHANGED, now_ns)
        elif event in FLOW_EVENTS:
            self._flow_event(event, reason, now_ns, in_sync)
        elif event in {HalfEvent.REFUSED, HalfEvent.VERSION_MISMATCH}:
            self._refused = True
            given = Input.REFUSED if event == HalfEvent.REFUSED else Input.VERSION_MISMATCH
            record.handle(given, now_ns, reason)
            self._tell_once(table.LINK_REJECTED, f"rejected: {reason}", reason)
        elif event == HalfEvent.LOST:
            self._lost(reason, now_ns)
        if not login.welcomed:
            self._failure(reason)

    def _flow_event(self, event: HalfEvent, why: str, now_ns: int, in_sync: bool) -> None:
        record = self.record
        if event == HalfEvent.UNBOUND:
            self._tell(table.NOT_BOUND, f"not bound to its queue: {why}")
        elif event == HalfEvent.STALLED and record.is_up:
            if record.inbound_state not in {Inbound.STALLED, Inbound.PAUSED}:
                record.handle(Input.STALL, now_ns, why)
                # A queue that is full and read from stalls all the time.
                self._stall_told = now_ns >= self._stall_tells_ns
                if self._stall_told:
                    self._stall_tells_ns = now_ns + STALL_TELLS_NS
                    self._tell(table.STALLED, f"stalled: {why}")
        elif event == HalfEvent.RELEASED and record.inbound_state is Inbound.STALLED:
            record.handle(Input.RELEASE, now_ns)
            if self._stall_told:
                self._tell(table.STALLED_CLEAR, "goes on")
            if in_sync:
                self._subscribed("", now_ns)
        elif event == HalfEvent.STOPPED:
            self._stop(why)

    def _subscribed(self, refusal: str, now_ns: int) -> None:
        record = self.record
        if refusal:
            self._tell(table.SUBSCRIPTION_REFUSED, f"remote subscription refused: {refusal}")
        if record.inbound_state in {Inbound.READY_SUBSCRIBING, Inbound.PAUSED}:
            record.handle(Input.SUBSCRIBED, now_ns)
            if not self._announced:
                self._announced = True
                self._tell(table.LINK_UP, "up")

    def _lost(self, why: str, now_ns: int) -> None:
        """Handle the end of the half in use. In a move nothing is reported: another half replaces it."""
        record = self.record
        if not (record.is_up or record.inbound_state is Inbound.NOT_READY_HANDSHAKING):
            return
        was_up = record.is_up
        record.handle(Input.LOST, now_ns, why)
        if self.mover is not None:
            return
        if was_up:
            self._announced = False
            self._tell(table.LINK_DOWN, f"down: {why}")
        else:
            # Somebody took the connection and ended it without an answer to HELLO: no link went down.
            self._not_connected(why)

    # -- what to do ------------------------------------------------------------------------------

    def step(self, now_ns: int, draw: float, links: Links) -> list[Action]:
        """Return what is to be done now, in this order. `draw` is random in [0, 1), for the jitter of retries.

        Ask again when all is performed, until nothing more is to be done; then at `wake_ns`, -1 for never, and after
        each event.
        """
        self.wake_ns = -1
        if self.removed:
            self._leave_all()
        elif now_ns < self._rest_ns:
            self._wait(self._rest_ns)
        else:
            while not self._todo and self._decide(now_ns, draw, links):
                pass
        return self._actions()

    def _decide(self, now_ns: int, draw: float, links: Links) -> bool:
        """Take one decision; returns whether there may be another one to take."""
        may_run = self._may_run(now_ns)
        use = self.use
        if not may_run:
            moving = self.mover is not None
            self._leave_all()
            if use is None or use.phase is not Phase.OVER:
                return False
            return self._after(use, now_ns, moving=moving)
        if use is None:
            return self._connect(now_ns, draw, links)
        if use.phase is Phase.OVER and self.mover is None:
            return self._after(use, now_ns)
        if use.phase is Phase.DIALLING:
            return self._late(use, now_ns)
        if use.phase is Phase.ASKING:
            if now_ns >= use.until_ns:
                self._leave(use, codes.HANDSHAKE_TIMEOUT)
            else:
                self._wait(use.until_ns)
            return False
        if self.mover is not None:
            return self._move(use, self.mover, now_ns, links)
        if self._draining is not None:
            if self._drained(use, self._draining, now_ns, links):
                self._leave(use)
            return False
        return self._improve(use, now_ns, draw, links)

    def _may_run(self, now_ns: int) -> bool:
        """Return whether there is anything to connect to; set the state that says why not."""
        record = self.record
        why = ""
        if not self._settings.enabled:
            why = "Bridge disabled"
        elif not self._settings.vpn_enabled:
            why = "Local message-vpn is disabled"
        elif self.stopped:
            why = self.stopped
        if why:
            if record.inbound_state is not Inbound.DISABLED:
                record.handle(Input.DISABLE, now_ns)
                self._went_down(why)
            record.inbound_failure_reason = why
            return False
        if record.inbound_state in {Inbound.INIT, Inbound.DISABLED}:
            record.handle(Input.ENABLE, now_ns)
        if self.remotes.current is None:
            why = "No remote message-vpns configured"
            if self._settings.remotes:
                why = "Remote message-vpns disabled"
            if record.inbound_failure_reason != why:
                record.inbound_failure_reason = why
                self._tell(table.NO_REMOTE, f"stays down: {why}")
            return False
        return True

    # -- without a login -------------------------------------------------------------------------

    def _connect(self, now_ns: int, draw: float, links: Links) -> bool:
        """Begin a login: over an incoming link that fits, or by dialling when it is time."""
        if self._next_ns < 0:
            if self.remotes.is_next and not self._refused:
                delay_ns = self._backoff.next_remote_ns(draw)
            else:
                delay_ns = self._backoff.delay_ns(now_ns, draw)
            self._next_ns = now_ns + delay_ns
        due = now_ns >= self._next_ns
        # A remote that has refused the bridge is left alone, over whatever connection.
        found = links.incoming() if due or not self._refused else None
        if not due and found is None:
            self._wait(self._next_ns)
            return False
        self._next_ns = -1
        record = self.record
        if found is not None:
            remote, link = found
            self.remotes.choose(remote)
            if record.inbound_state is Inbound.NOT_READY_WAIT_BRIDGE_VERSION_MISMATCH:
                record.handle(Input.NEXT_REMOTE, now_ns)
            record.handle(Input.REUSE, now_ns)
            record.handle(Input.REUSED, now_ns)
            self.use = self._login(remote, now_ns + self.try_ns)
            self._todo.append(Reuse(self.use.number, remote, link))
            return False
        if record.inbound_state in _WAITING:
            record.handle(Input.NEXT_REMOTE, now_ns)
        record.handle(Input.DIAL, now_ns)
        remote = self._current
        record.remote = remote
        record.remote_address = remote.location
        record.peer_address = record.local_interface = ""
        self.use = self._login(remote, now_ns + self.try_ns)
        self._todo.append(Dial(self.use.number, remote))
        return False

    def _late(self, use: Login, now_ns: int) -> bool:
        """Give up a connection that takes too long."""
        if now_ns < use.until_ns:
            self._wait(use.until_ns)
            return False
        self._todo.append(CancelDial(use.number))
        limit_s = self.try_ns // SECOND_NS
        self.failed(use.number, f"{use.remote.location}: no answer within {limit_s} s", now_ns)
        return True

    def _after(self, use: Login, now_ns: int, *, moving: bool = False) -> bool:
        """Replace the ended login by the one that stands by, or set the time of the next try. This depends on how far
        the login had come.
        """
        record = self.record
        standby = self.standby
        self.use = self.standby = self._draining = None
        self._reconnect = False
        self._better.clear()
        self._better_ns = now_ns
        if standby is not None:
            welcomed = standby.phase is Phase.WELCOMED and not standby.left
            if welcomed and self._adopt(standby, now_ns):
                return True
            self._give_up(standby)
        if record.inbound_state is Inbound.DISABLED:
            return True
        if record.inbound_state is Inbound.NOT_READY_WAIT_BRIDGE_VERSION_MISMATCH:
            self._backoff.refused(now_ns)
            self.remotes.failed()
            self._next_ns = now_ns + VERSION_WAIT_NS
            self._count_failed(record.inbound_failure_reason)
            return True
        if record.inbound_state is Inbound.NOT_READY_WAIT_CLEANUP:
            record.handle(Input.CLEANED, now_ns)
        if moving:
            self._went_down(record.inbound_failure_reason)
            self._next_ns = now_ns
        elif use.welcomed:
            self._backoff.down(now_ns)
            self.remotes.lost()
        else:
            if self._refused:
                self._backoff.refused(now_ns)
            else:
                self._backoff.down(now_ns)
            self.remotes.failed()
            self._count_failed(record.inbound_failure_reason)
        return True

    def _count_failed(self, why: str) -> None:
        """Count a try that has failed for `why`, and stop after as many as are allowed."""
        self._failed_tries += 1
        if self._failed_tries == self._settings.give_up_after:
            self._stop(f"gave up after {self._failed_tries} attempts: {why}")

    def _stop(self, why: str) -> None:
        """Do nothing more, for `why`, until `go_on`."""
        if self.stopped:
            return
        self.stopped = why
        self._tell(table.STOPPED, f"stopped: {why}")

    # -- with a login ----------------------------------------------------------------------------

    def _improve(self, use: Login, now_ns: int, draw: float, links: Links) -> bool:
        """Look for a reason to move, while all is well."""
        if self._reconnect:
            # A new connection that fails does not keep the old one alive: what is configured now may be safer.
            self._reconnect = False
            self.mover = self._login(self._current, now_ns + _TRY_NS, renews=True)
            self._todo.append(Dial(self.mover.number, self._current, use.number))
            return False
        if now_ns < self._merge_ns:
            self._wait(self._merge_ns)
        else:
            link = links.peers_connection(use.number, self._current)
            if link is not None:
                # The peer's connection stays. Where the peer refuses, both stay for a while.
                self._merge_ns = now_ns + MERGE_AGAIN_NS
                self.mover = self._login(self._current, now_ns + _TRY_NS)
                self._todo.append(Reuse(self.mover.number, self._current, link, use.number))
                return False
        return self._go_back(now_ns, draw)

    def _go_back(self, now_ns: int, draw: float) -> bool:
        """Log in to a better remote, and move to it when that has stood for the configured time."""
        settings = self._settings
        standby = self.standby
        if standby is not None:
            if standby.phase is Phase.WELCOMED:
                healthy_ns = standby.since_ns + settings.failback_delay_ns
                if now_ns < healthy_ns:
                    self._wait(healthy_ns)
                    return False
                self.mover, self.standby = standby, None
                return True
            if standby.phase is not Phase.OVER and now_ns < standby.until_ns:
                self._wait(standby.until_ns)
                return False
            self._give_up(standby)
            self.standby = None
            # Between half and one and a half times the delay, so that many do not come in step.
            delay_ns = max(SECOND_NS, settings.retry_delay_ns)
            self._better_ns = now_ns + int(delay_ns * (0.5 + draw))
            if not self._better:
                return True
        better = self.remotes.better() if settings.failback_delay_ns > 0 else ()
        if not better:
            return False
        if not self._better:
            if now_ns < self._better_ns:
                self._wait(self._better_ns)
                return False
            self._better.extend(better)
        self.standby = self._login(self._better.pop(0), now_ns + _TRY_NS)
        self._todo.append(Dial(self.standby.number, self.standby.remote))
        return False

    def _move(self, use: Login, mover: Login, now_ns: int, links: Links) -> bool:
        """Go over from the login in use to `mover`, when that is welcomed and the other one is over.

        Where the peer hands the subscriptions over it closes the old connection itself, behind the last message
        (LINK-20). With another peer this side ends the old one, when what is on the way has arrived.
        """
        lost = mover.phase is Phase.OVER
        late = mover.phase in {Phase.DIALLING, Phase.ASKING} and now_ns >= mover.until_ns
        if late or (lost and (self._draining is None or use.phase is Phase.OVER)):
            return self._stay(use, mover, now_ns)
        if mover.phase in {Phase.DIALLING, Phase.ASKING}:
            self._wait(mover.until_ns)
        elif use.phase is Phase.OVER:
            return self._adopt(mover, now_ns) or self._after(use, now_ns, moving=True)
        elif self._draining is None:
            heard_ns = links.heard_ns(use.number)
            self._draining = _Draining(heard_ns, now_ns + DRAIN_NS, now_ns + DRAIN_MOST_NS)
            if not mover.resumed:
                self._todo.append(Drain(use.number))
            return True
        elif lost or self._drained(use, self._draining, now_ns, links):
            self._leave(use)
        return False

    def _stay(self, use: Login, mover: Login, now_ns: int) -> bool:
        """Note that a move failed."""
        self._give_up(mover)
        self.mover = None
        if use.phase is Phase.OVER:
            return self._after(use, now_ns, moving=True)
        if mover.renews:
            self._draining = _Draining(-1, now_ns, now_ns + DRAIN_MOST_NS)
            self._todo.append(Drain(use.number))
        elif not self._reconnect:
            # What was configured meanwhile was not asked for.
            self._ask(use, now_ns)
        return True

    def _drained(self, use: Login, draining: _Draining, now_ns: int, links: Links) -> bool:
        """Return whether nothing more is expected over the login in use."""
        if draining.done or now_ns >= draining.last_ns:
            return True
        if now_ns >= draining.quiet_ns:
            heard_ns = links.heard_ns(use.number)
            if heard_ns == draining.heard_ns:
                return True
            draining.heard_ns = heard_ns
            draining.quiet_ns = min(draining.last_ns, now_ns + DRAIN_NS)
        self._wait(draining.quiet_ns)
        return False

    def _adopt(self, login: Login, now_ns: int) -> bool:
        """Use the login that stands by. Returns False where its remote is no longer configured."""
        if login.remote not in self.remotes.all():
            self._give_up(login)
            self.mover = None
            return False
        self.remotes.choose(login.remote)
        self.use, self.mover, self._draining = login, None, None
        self._merge_ns = 0
        self._better.clear()
        self._better_ns = now_ns
        self._begin(login, now_ns)
        record = self.record
        record.remote_router_name = login.router
        if record.inbound_state is Inbound.NOT_READY_WAIT_CLEANUP:
            record.handle(Input.CLEANED, now_ns)
            record.handle(Input.REUSE, now_ns)
            record.handle(Input.REUSED, now_ns)
        if self._announced:
            self._tell(table.LINK_UP, "moved here")
        self._up(login, now_ns)
        self._todo.append(Resume(login.number))
        return True

    # -- steps that several of these share -------------------------------------------------------

    @property
    def try_ns(self) -> int:
        """Time that a try has to connect, and as much again to log in."""
        return limits.LINK_TRY_S * SECOND_NS if self.remotes.hurries else _TRY_NS

    @property
    def _current(self) -> Remote:
        """The remote to dial, or in use; one is enabled."""
        current = self.remotes.current
        if current is None:
            raise AssertionError("no remote is enabled")
        return current

    def _login(self, remote: Remote, until_ns: int, *, renews: bool = False) -> Login:
        self._number += 1
        return Login(self._number, remote, until_ns, renews)

    def _in_use(self, number: int) -> bool:
        return self.use is not None and self.use.number == number

    def _begin(self, login: Login, now_ns: int) -> None:
        """HELLO of the login in use is on its way."""
        self._refused = False
        record = self.record
        record.remote = self.remotes.current
        record.remote_address, record.peer_address, record.local_interface, _, _ = login.ends
        if record.inbound_state is Inbound.NOT_READY_CONNECTING:
            record.handle(Input.CONNECTED, now_ns)

    def _up(self, login: Login, now_ns: int) -> None:
        """The bridge is logged in."""
        self._backoff.up(now_ns)
        self._failed_tries = 0
        self._failure("")
        record = self.record
        record.remote_router_name = login.router
        record.client_name = login.client_name
        record.encrypted = login.ends.encrypted
        record.establisher = "local" if login.ends.dialed else "remote"
        record.handle(Input.WELCOMED, now_ns)
        self._pause(now_ns)
        self._told = ""
        # At once, even if another connection is to be used soon: that one may break before.
        self._ask(login, now_ns)

    def _ask(self, login: Login, now_ns: int) -> None:
        if login.welcomed and self.record.is_up:
            self.record.handle(Input.SUBSCRIPTIONS_CHANGED, now_ns)
        self._todo.append(ApplySettings(login.number))

    def _give_up(self, login: Login | None) -> None:
        """End a login, however far it has come."""
        if login is None or login.phase is Phase.OVER:
            return
        if login.phase is Phase.DIALLING:
            self._todo.append(CancelDial(login.number))
        else:
            self._leave(login)

    def _leave(self, login: Login, code: int = codes.NORMAL) -> None:
        if not login.left:
            login.left = True
            self._todo.append(DetachHalf(login.number, code))
            if login.resumed and login is not self.use:
                # The half of the peer goes on there.
                self._todo.append(Resume(login.number))

    def _leave_all(self) -> None:
        """End all logins. One that had said HELLO stays in use until its half is over."""
        for login in self.logins():
            self._give_up(login)
        self.standby = self.mover = None
        if self.use is not None and self.use.phase is Phase.DIALLING:
            self.use = None

    def _overtaken(self, now_ns: int) -> bool:
        """Give up a try because another way was found. Returns False where the try was too far along."""
        record = self.record
        if record.inbound_state not in {Inbound.PREPARE_FETCHING_DNS, Inbound.NOT_READY_CONNECTING}:
            return False
        record.handle(Input.FAILED, now_ns)
        record.inbound_failure_reason = ""
        return True

    def _failure(self, why: str) -> None:
        """Why the remote in use, or tried, does not serve; "" when it does."""
        current = self.remotes.current
        if current is not None:
            self.failures[current.msg_vpn, current.location] = why

    def _not_reached(self, why: str, now_ns: int) -> None:
        record = self.record
        if record.inbound_state in {Inbound.PREPARE_FETCHING_DNS, Inbound.NOT_READY_CONNECTING}:
            record.handle(Input.FAILED, now_ns, why)
        self._not_connected(why)

    def _not_connected(self, why: str) -> None:
        self._tell_once(table.NOT_CONNECTED, f"not connected: {why}", why)

    def _tell_once(self, kind: EventType, text: str, why: str) -> None:
        """Report a reason once and not at every attempt: a remote may be away for days."""
        if why != self._told:
            self._told = why
            self._tell(kind, text)

    def _went_down(self, why: str) -> None:
        if self._announced:
            self._announced = False
            self._tell(table.LINK_DOWN, f"down: {why}")

    def _tell(self, kind: EventType, what: str) -> None:
        facts = self.record.facts
        where = f"{self.record.remote_router_name or '?'} at {self.record.remote_address or '?'}"
        text = f"VPN {facts.msg_vpn} bridge {facts.name} from {where}: {what}"
        self._todo.append(RaiseEvent(kind, text))

    def _wait(self, until_ns: int) -> None:
        if self.wake_ns < 0 or until_ns < self.wake_ns:
            self.wake_ns = until_ns

    def _actions(self) -> list[Action]:
        done = self._todo
        self._todo = []
        return done
