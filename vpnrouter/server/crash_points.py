"""Named points in a router where a test can make it crash, to see what the crash leaves behind.

The environment variable VPNROUTER_FAULT plants one fault in a process: `POINT:COUNT` or
`POINT:COUNT:ACTION`. At the COUNT-th passing of POINT the action is done, once. A router without the variable holds
None instead of a callable:

    if self.fault is not None:
        self.fault("commit-after-sync")

docs/testing-faults.md has the points and what each of them proves.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, Final, final

from vpnrouter.errors import OperationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

VARIABLE: Final = "VPNROUTER_FAULT"

MOST_COUNT: Final = 1_000_000_000

POINTS: Final[dict[str, str]] = {
    "publish-accepted": "a guaranteed publish is in the unit being built, which is not handed over yet",
    "commit-before-write": "a unit is handed over, nothing of it is written",
    "commit-after-sync": "a unit is written and synced, the core is not told",
    "answered": "the core is told of a commit, answers stand in outboxes and are not flushed",
    "deliver-before-flush": "a guaranteed message stands in a consumer's outbox and is not flushed",
    "ack-received": "the PUBACK of a consumer is taken, or the outcome of a provider, the settlement is not committed",
    "endpoint-settled": "a settlement is in the unit being built",
    "segment-deleted": "the deletion of a wholly settled segment is in the unit being built",
    "pubrec-received": "a consumer's PUBREC is taken, its record is not committed, PUBREL not sent",
    "pubrel-received": "a producer's PUBREL is taken, the packet id is not free in the store",
    "pubcomp-received": "a consumer's PUBCOMP is taken, the packet id is not free in the store",
    "session-saved": "a durable session's record is in the unit being built, CONNACK or SUBACK not sent",
    "transaction-half": "the messages of a transaction are in the unit being built, its outcomes are not",
    "dead-letter-placed": "a dead letter of a bridge or link is in the unit being built, it has not left where it was",
    "bridge-received": "a guaranteed message came over a bridge, it is not in a unit yet",
    "bridge-ack-before-send": "a message and its bridge position are synced, the link ACK is not sent",
    "bridge-forget-before-send": "a link ACK is taken by the remote side, its queue has not committed it",
    "recover-during": "a store is being read at the start, a part of it is in memory",
}
"""Each point and what is true when it is passed. tests/server/test_crash_points.py checks that all are passed."""

ACTIONS: Final[dict[str, int]] = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}
"""What happens: `kill` is a crash; `stop` leaves the process there, silent, with all connections open."""


@final
class CrashPoint:
    """Counts the passings of one point. Call it with the name of the point that is passed."""

    def __init__(self, point: str, count: int, act: Callable[[], None]) -> None:
        self._point = point
        self._left = count
        self._act = act

    def __call__(self, point: str) -> None:
        """Act if `point` is the chosen one and has been passed often enough."""
        if point != self._point or not self._left:
            return
        self._left -= 1
        if not self._left:
            self._act()


def crash_point_from_environment(
    environment: Mapping[str, str] = os.environ,
    send: Callable[[int, int], None] = os.kill,
) -> CrashPoint | None:
    """Return the crash point that the environment names, None where it names none; reported on stderr.

    Raises OperationError when the variable is not POINT:COUNT or POINT:COUNT:ACTION.
    """
    written = environment.get(VARIABLE, "")
    if not written:
        return None
    point, _, rest = written.partition(":")
    number, _, action = rest.partition(":")
    action = action or "kill"
    if point not in POINTS:
        raise OperationError(f"{VARIABLE}={written}: points are {', '.join(POINTS)}")
    if action not in ACTIONS:
        raise OperationError(f"{VARIABLE}={written}: actions are {', '.join(ACTIONS)}")
    if not (number.isascii() and number.isdigit() and 1 <= int(number[:10]) <= MOST_COUNT):
        raise OperationError(f"{VARIABLE}={written}: a count is 1 to {MOST_COUNT}")
    print(f"vpnrouter: {VARIABLE}: {action} at passing {number} of {point}", file=sys.stderr)
    return CrashPoint(point, int(number), lambda: send(os.getpid(), ACTIONS[action]))


def environment_for(point: str, count: int = 1, action: str = "kill") -> dict[str, str]:
    """What to add to the environment of a router that is to fail."""
    return {VARIABLE: f"{point}:{count}:{action}"}
