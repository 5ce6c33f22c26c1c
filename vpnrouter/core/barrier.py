"""The barrier: what is raised unexpectedly ends the one thing that raised it, and nothing else (promise CONTAIN).

Whoever does something for one connection, task, timer or thread does it within a `try`, and gives what was raised
to the one `Barrier` of the router. That counts it, tells it in one event with the place in the code, and sees to it
that the connection that it cost is let go of.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final, final
from zlib import crc32

from vpnrouter import limits
from vpnrouter.events import table

if TYPE_CHECKING:
    from types import TracebackType

    from vpnrouter.core.connection import Connection
    from vpnrouter.core.plane import Plane
    from vpnrouter.core.timers import Timed

CONNECTION: Final = "connection"
"""Bytes of one peer, or what its connection owed to others."""
TIMER: Final = "timer"
SPOOL: Final = "spool"
"""Work on guaranteed messages that belongs to no connection."""
BRIDGE: Final = "bridge"
REQUEST: Final = "request"
"""A request to the management API."""
LISTENER: Final = "listener"
TASK: Final = "task"
"""One of the router's own: rates, metrics, events, reloads."""
THREAD: Final = "thread"

KINDS: Final = (CONNECTION, TIMER, SPOOL, BRIDGE, REQUEST, LISTENER, TASK, THREAD)
"""What a fault can cost, as metrics name it."""

TELL_NS: Final = 10_000_000_000
"""How long a fault at the same place is only counted after it was told."""

RETRY_NS: Final = 1_000_000_000
"""After how long a timer that raised, and belongs to no connection, is tried again."""

TRIES: Final = 16
"""Times that a connection is told that it is lost. Each goes on behind what raised before."""

FRAMES: Final = 5
"""Places of a traceback that are told, the innermost first."""

LOST: Final = "a fault of the router"
"""Why a connection was lost, for its own event."""


@final
class Barrier:
    """What was contained in one router. `counts` are faults by KINDS.

    One thread uses it, the router's: faults of other threads are carried there first.
    """

    __slots__ = ("_places", "_plane", "_telling", "counts")

    def __init__(self, plane: Plane) -> None:
        self._plane = plane
        self.counts: dict[str, int] = dict.fromkeys(KINDS, 0)
        # When a fault was told last, and how often it came since, by what names it.
        self._places: dict[str, tuple[int, int]] = {}
        self._telling = False

    def caught(
        self, error: BaseException, kind: str, name: str = "", msg_vpn: str = "", cost: str = ""
    ) -> str:
        """Count and tell what was raised; returns the fault's id, the same for the same place.

        `name` and `msg_vpn` are whom it was done for, `cost` is what it costs in words. Never raises.
        """
        self.counts[kind] = self.counts.get(kind, 0) + 1
        fault = fault_id(error)
        if self._telling:
            # Telling raised: who is told about that?
            return fault
        self._telling = True
        # What raises here is counted already, and nobody is left to be told.
        with suppress(Exception):
            self._tell(error, kind, fault, (name, msg_vpn, cost))
        self._telling = False
        return fault

    def _tell(
        self, error: BaseException, kind: str, fault: str, whom: tuple[str, str, str]
    ) -> None:
        events = self._plane.events
        now_ns = self._plane.now_ns
        told_ns, more = self._places.pop(fault, (0, -1))
        if more >= 0 and 0 <= now_ns - told_ns < TELL_NS:
            self._places[fault] = (told_ns, more + 1)
            return
        if len(self._places) >= limits.FAULT_PLACES:
            del self._places[next(iter(self._places))]
        self._places[fault] = (now_ns, 0)
        name, msg_vpn, cost = whom
        text = f"fault {fault}: {kind} {name}".rstrip()
        text = f"{text}: {cost or 'ended'}: {described(error)}"
        if more > 0:
            text = f"{text} ({more:,} more since it was told last)"
        if events is not None:
            told = table.MANAGEMENT_FAULT if kind == REQUEST else table.FAULT
            events.raise_event(told, msg_vpn, name, text)

    def end(self, connection: Connection, error: BaseException) -> None:
        """A connection raised: count, tell, and cut it."""
        connection.faulty = True
        name, msg_vpn = _whose(connection)
        self.caught(error, CONNECTION, name, msg_vpn, "the connection is closed")
        self.cut(connection)

    def cut(self, connection: Connection) -> None:
        """Close the transport of a connection at once."""
        channel = connection.outbox.channel
        try:
            if channel is not None and channel.cut(LOST):
                return
        except Exception as error:  # noqa: BLE001 - the same
            self.caught(error, CONNECTION)
        self.lose(connection, LOST)

    def lose(self, connection: Connection, why: str) -> None:
        """Tell a connection that its transport is gone, whatever that raises.

        What ends it takes each thing out before it lets go of it, so that a further call goes on with the next.
        """
        for _ in range(TRIES):
            try:
                connection.lost(why)
            except Exception as error:  # noqa: BLE001 - the same
                name, msg_vpn = _whose(connection)
                self.caught(error, CONNECTION, name, msg_vpn, "the end of the connection goes on")
            else:
                return
        connection.closing = True
        with suppress(Exception):
            connection.outbox.close()

    def timer(self, target: Timed, kind: int, error: BaseException) -> None:
        """A timer raised: its connection is closed; one that has none is tried again."""
        party = target.party()
        if party is not None:
            self.end(party, error)
            return
        self.caught(error, TIMER, type(target).__name__, "", "tried again")
        plane = self._plane
        plane.timers.arm(plane.now_ns + RETRY_NS, target, kind)

    def of(self, party: Connection | None, error: BaseException, kind: str = SPOOL) -> None:
        """Something that was done for `party`, or for nobody who is connected, raised."""
        if party is not None:
            self.end(party, error)
        else:
            self.caught(error, kind, "", "", "the rest goes on")


def _whose(connection: Connection) -> tuple[str, str]:
    try:
        return connection.whose()
    except Exception:  # noqa: BLE001 - a name for a log
        return connection.peer, ""


def fault_id(error: BaseException) -> str:
    """A short name for a fault: the same as long as the same kind of error is raised at the same place."""
    error = _first(error)
    places = _places(error)
    where = places[0] if places else ""
    return f"F{crc32(f'{type(error).__name__} {where}'.encode()):08x}"


def described(error: BaseException) -> str:
    """What was raised and where, in one line: `FILE:LINE:FUNCTION`, the innermost first."""
    error = _first(error)
    said = str(error)
    if len(said) > limits.FAULT_TEXT_CHARS:
        said = f"{said[: limits.FAULT_TEXT_CHARS]}…"
    where = " < ".join(_places(error)[:FRAMES])
    name = type(error).__name__
    return f"{name}: {said} at {where}" if said else f"{name} at {where}"


def _first(error: BaseException) -> BaseException:
    """The error itself, of a group the first."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _places(error: BaseException) -> list[str]:
    found: list[str] = []
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        _, found_package, file = code.co_filename.rpartition("vpnrouter/")
        short = file if found_package else code.co_filename.rpartition("/")[2]
        found.append(f"{short}:{trace.tb_lineno}:{code.co_name}")
        trace = trace.tb_next
    found.reverse()
    return found
