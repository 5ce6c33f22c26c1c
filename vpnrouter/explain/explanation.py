"""The answer to "where does this message go, and why": a tree of steps, each with the rules that decided."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Final, final

YES: Final = "yes"
"""The message goes this way."""
NO: Final = "no"
"""It does not, and the step says why."""
NOTE: Final = "note"
"""Something to know about it."""

PUBLISH: Final = "publish"
VISIT: Final = "message-vpn"
ENDPOINT: Final = "endpoint"
CLIENT: Final = "client"
BRIDGE: Final = "bridge"
LOSS: Final = "loss"
REMARK: Final = "remark"
KINDS: Final = (PUBLISH, VISIT, ENDPOINT, CLIENT, BRIDGE, LOSS, REMARK)
"""What a step is about."""


@final
@dataclass(frozen=True, slots=True)
class Rule:
    """What decided: `text` says what it is, then where it stands. `line` and `column` begin at 1; `file` is ""
    for what stands in no configuration. `written` is False where a default holds: then the place is that of
    the object which does not say otherwise.
    """

    text: str
    file: str = ""
    line: int = 0
    column: int = 0
    written: bool = True

    @property
    def place(self) -> str:
        """`FILE:LINE`, "" where it stands in no configuration."""
        return f"{self.file}:{self.line}" if self.file else ""


@final
@dataclass(slots=True)
class Step:
    """One thing that happens to the message, or does not.

    `kind` is one of KINDS, `verdict` one of YES, NO, NOTE; `text` is for people. `router`, `msg_vpn`, `name`
    say where and to whom (queue, client, bridge); `event` is the trace event behind it, "" without one;
    `reason` the router's own name of the reason. `since_ns` are nanoseconds since the message came into this
    router, `link_ns` from leaving the router before to coming in here (two clocks), -1 where not known.
    `steps` is what follows.
    """

    kind: str
    verdict: str
    text: str
    router: str = ""
    msg_vpn: str = ""
    name: str = ""
    event: str = ""
    reason: str = ""
    mode: str = ""
    topic: str = ""
    count: int = 1
    since_ns: int = -1
    link_ns: int = -1
    rules: list[Rule] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)


@final
@dataclass(frozen=True, slots=True, order=True)
class Arrival:
    """Who gets the message: a queue or topic endpoint (`kind` "endpoint"), or a client ("client").

    `mode` is direct, non_persistent or persistent; `topic` the name that the message has there.
    """

    router: str
    msg_vpn: str
    kind: str
    name: str
    mode: str
    topic: str
    count: int = 1


@final
@dataclass(frozen=True, slots=True, order=True)
class Loss:
    """Where a copy of the message ends without anybody having it: `event` is discard, reject or expire.

    `name` is the queue (then `endpoint`), or the bridge, or the client that it concerns.
    """

    router: str
    msg_vpn: str
    event: str
    reason: str
    name: str
    count: int = 1
    endpoint: bool = False


@final
@dataclass(frozen=True, slots=True)
class BridgeState:
    """One bridge of the mesh: `up`, and towards which `remote` ("router/vpn"), or `why` it is down."""

    router: str
    msg_vpn: str
    name: str
    up: bool
    remote: str
    why: str
    rule: Rule


@final
@dataclass(slots=True)
class Explanation:
    """Everything about one message. `steps` is the tree; `bridges` are those of the whole mesh, `notes` what
    the answer does not know. `answer` is what the publisher is told, "" for nothing (Direct messages are not
    answered). `trace_id` is "" for a message that was only thought of.
    """

    topic: str
    mode: str
    router: str
    msg_vpn: str
    client: str = ""
    client_username: str = ""
    size: int = 0
    trace_id: str = ""
    answer: str = ""
    steps: list[Step] = field(default_factory=list)
    arrivals: list[Arrival] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)
    bridges: list[BridgeState] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """As plain data: dict, list, str, int, bool, with the names of the fields."""
        return asdict(self)
