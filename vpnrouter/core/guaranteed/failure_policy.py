"""What a bridge or a link of a connector does with a message that it cannot deliver, as it is configured."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, final

from vpnrouter.core.guaranteed.endpoint_settings import QUEUE
from vpnrouter.units import SECOND_NS

DEAD_LETTER: Final = "dead-letter"
PARK: Final = "park"
SKIP: Final = "skip"
STOP: Final = "stop"
"""What is done with a message that was refused too often (`then`)."""

CROSS: Final = "deliver"
DISCARD: Final = "discard"
"""What is done with one that has expired (`expired`), beside DEAD_LETTER."""

TOO_LATE_TO_ENTER: Final = "its life time was over before it could enter"
TOO_LATE_TO_CROSS: Final = "its life time was over before it could cross"
"""Why it is a dead letter: of one that came here, and of one that was to leave."""


@final
@dataclass(slots=True, eq=False)
class DeadMsgQueue:
    """Where dead letters go: the endpoint `name` of `kind`, or the `topic` where that is not "".

    The queue of a connector's link is named without the connector, which completes it.

    It is tried `attempts` times, with `interval_ns` between them. A letter lives `ttl_ns` there, 0 for as long as the
    message does. `shown` is its name for people.
    """

    shown: str
    name: str = ""
    kind: int = QUEUE
    topic: str = ""
    attempts: int = 3
    interval_ns: int = 5 * SECOND_NS
    ttl_ns: int = 0


@final
@dataclass(slots=True, eq=False)
class FailurePolicy:
    """What is done with a message that was refused `reject_attempts` times (0: no bound), or has `expired`.

    One that is given up goes to the first of `dead_msg_queues` that takes it; where there is none of these, to that of
    its own queue.
    """

    reject_attempts: int = 3
    then: str = DEAD_LETTER
    expired: str = CROSS
    dead_msg_queues: list[DeadMsgQueue] = field(default_factory=list)
