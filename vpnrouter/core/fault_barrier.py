"""Contains unexpected exceptions: they end the one thing that raised them, and nothing else (promise CONTAIN).

Code that works for one connection, task, timer or thread does so within a `try`, and gives the exception to the
router's `FaultBarrier`. It counts the fault, raises one event with the place in the code, and closes the connection
that raised.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final, final
from zlib import crc32

from vpnrouter import limits
from vpnrouter.events import table

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from vpnrouter.core.connection import Connection
    from vpnrouter.core.timers import TimerTarget
    from vpnrouter.core.turn import TurnContext

CONNECTION: Final = "connection"
"""Handling of what one peer sent or is to be sent."""
TIMER: Final = "timer"
SPOOL: Final = "spool"
"""Work on guaranteed messages that belongs to no connection."""
BRIDGE: Final = "bridge"
CONNECTOR: Final = "connector"
REQUEST: Final = "request"
"""A request to the management API."""
LISTENER: Final = "listener"
TASK: Final = "task"
"""A task of the router itself: rates, metrics, events, reloads."""
THREAD: Final = "thread"

KINDS: Final = (CONNECTION, TIMER, SPOOL, BRIDGE, CONNECTOR, REQUEST, LISTENER, TASK, THREAD)
"""What a fault can end, as metrics name it."""

EVENT_INTERVAL_NS: Final = 10_000_000_000
"""After an event, further faults at the same place are only counted for this long."""

RETRY_NS: Final = 1_000_000_000
"""A timer that raised and belongs to no connection is tried again after this time."""

TRIES: Final = 16
"""How often `lost` of a connection is called at most. Each call goes on behind the step that raised."""

FRAMES: Final = 5
"""Places of a traceback that an event names, the innermost first."""

LOST: Final = "a fault of the router"
"""The reason in the event of the connection that is lost."""


@final
class FaultBarrier:
    """Counts and reports the faults of one router; `counts` has them by KINDS.

    Only the router's thread uses it: faults of other threads are handed to that thread first.
    """

    __slots__ = ("_context", "_places", "_telling", "counts")

    def __init__(self, context: TurnContext) -> None:
        self._context = context
        self.counts: dict[str, int] = dict.fromkeys(KINDS, 0)
        # By fault id: when it was told last, and how often it came since.
        self._places: dict[str, tuple[int, int]] = {}
        self._telling = False

    def caught(
        self, error: BaseException, kind: str, name: str = "", msg_vpn: str = "", cost: str = ""
    ) -> str:
        """Count and report an exception; returns the fault's id, the same for the same place. Never raises.

        `name` and `msg_vpn` are the object that the work was for, `cost` is what the fault ends, in words.
        """
        self.counts[kind] = self.counts.get(kind, 0) + 1
        fault = fault_id(error)
        if self._telling:
            # Raising the event raised: this is only counted, or it would never end.
            return fault
        self._telling = True
        # The fault is counted already: where its event raises, nothing more can be done.
        with suppress(Exception):
            self._tell(error, kind, fault, (name, msg_vpn, cost))
        self._telling = False
        return fault

    def _tell(
        self, error: BaseException, kind: str, fault: str, whom: tuple[str, str, str]
    ) -> None:
        events = self._context.events
        now_ns = self._context.now_ns
        told_ns, more = self._places.pop(fault, (0, -1))
        if more >= 0 and 0 <= now_ns - told_ns < EVENT_INTERVAL_NS:
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
        """Count and report what a connection raised, and close it."""
        connection.faulty = True
        name, msg_vpn = _log_identity(connection)
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
        """Call `connection.lost`, again after each exception that it raises, up to TRIES times."""
        for _ in range(TRIES):
            try:
                connection.lost(why)
            except Exception as error:  # noqa: BLE001 - the same
                name, msg_vpn = _log_identity(connection)
                self.caught(error, CONNECTION, name, msg_vpn, "the end of the connection goes on")
            else:
                return
        connection.closing = True
        with suppress(Exception):
            connection.outbox.close()

    def timer(self, target: TimerTarget, kind: int, error: BaseException) -> None:
        """Close the connection of a timer that raised; a timer without a connection is tried again."""
        owning_connection = target.owning_connection()
        if owning_connection is not None:
            self.end(owning_connection, error)
            return
        self.caught(error, TIMER, type(target).__name__, "", "tried again")
        context = self._context
        context.timers.arm(context.now_ns + RETRY_NS, target, kind)

    def of(
        self, owning_connection: Connection | None, error: BaseException, kind: str = SPOOL
    ) -> None:
        """Close the connection for which something raised; without one, count and report the fault."""
        if owning_connection is not None:
            self.end(owning_connection, error)
        else:
            self.caught(error, kind, "", "", "the rest goes on")


def _log_identity(connection: Connection) -> tuple[str, str]:
    try:
        return connection.log_identity()
    except Exception:  # noqa: BLE001 - the address will do as a name
        return connection.peer, ""


def fault_id(error: BaseException) -> str:
    """The id of a fault: equal for errors of one kind that are raised at one place."""
    error = _first(error)
    places = _places(error)
    where = places[0] if places else ""
    return f"F{crc32(f'{type(error).__name__} {where}'.encode()):08x}"


def described(error: BaseException) -> str:
    """Describe the exception and its place in one line: `FILE:LINE:FUNCTION`, the innermost first."""
    error = _first(error)
    said = str(error)
    if len(said) > limits.FAULT_TEXT_CHARS:
        said = f"{said[: limits.FAULT_TEXT_CHARS]}…"
    where = " < ".join(_places(error)[:FRAMES])
    name = type(error).__name__
    return f"{name}: {said} at {where}" if said else f"{name} at {where}"


def _first(error: BaseException) -> BaseException:
    """The error itself, or the first one of a group."""
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


@final
class ReleaseStep:
    """One thing that is given back when something ends. `again`: a step that raised half-way is taken once more, and
    goes on behind what it had done.
    """

    __slots__ = ("act", "again", "name")

    def __init__(self, name: str, act: Callable[[], object], *, again: bool = False) -> None:
        self.name = name
        self.act = act
        self.again = again


def release(steps: list[ReleaseStep], caught: Callable[[Exception], None]) -> None:
    """Take all steps in order, whatever one of them raises: that is given to `caught`."""
    for step in steps:
        if not _taken(step, caught) and step.again:
            _taken(step, caught)


def _taken(step: ReleaseStep, caught: Callable[[Exception], None]) -> bool:
    try:
        step.act()
    except Exception as error:  # noqa: BLE001 - given to the caller
        caught(error)
        return False
    return True
