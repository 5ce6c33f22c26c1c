"""Templates of trace rows: what a message leaves behind on its way, written once and stamped out for
each message.

A row knows its parent within the template, after which it happens, and the row at which the message
entered its router. Times are drawn for each message; all else is the same.
"""

from dataclasses import dataclass, field
from typing import Final

COLUMNS: Final = (
    *("vpn", "event", "mode", "client", "endpoint", "bridge", "peer_router", "peer_vpn", "hops"),
    *("path", "reason", "origin_router", "origin_vpn", "count", "partition", "topic_syntax"),
)
"""The columns of a trace file that a template states; None is null."""

Value = str | int | None


@dataclass
class Templates:
    """All rows of all templates, one list a column.

    Of a template: `first` its first row and `length`. Of a row: `router` the router's number, `up` how many
    rows its parent stands before it, `entry` the same for the row at which its message entered the router,
    `depth` how many parents it has; its delay after the parent is `base_ns` and an exponential draw with mean
    `spread_ns`, and `ramp_ns` more that grows over the time of the simulation with the square.
    """

    columns: dict[str, list[Value]] = field(default_factory=lambda: {name: [] for name in COLUMNS})
    router: list[int] = field(default_factory=list)
    up: list[int] = field(default_factory=list)
    entry: list[int] = field(default_factory=list)
    depth: list[int] = field(default_factory=list)
    base_ns: list[float] = field(default_factory=list)
    spread_ns: list[float] = field(default_factory=list)
    ramp_ns: list[float] = field(default_factory=list)
    bridge_number: list[int] = field(default_factory=list)
    first: list[int] = field(default_factory=list)
    length: list[int] = field(default_factory=list)

    def begin(self) -> int:
        """Begin a template; the rows added from now on are its rows."""
        self.first.append(len(self.router))
        self.length.append(0)
        return len(self.first) - 1

    def add(
        self,
        router: int,
        values: dict[str, Value],
        *,
        parent: int = -1,
        entry: int = -1,
        base_ns: float = 0.0,
        spread_ns: float = 0.0,
        ramp_ns: float = 0.0,
        bridge_number: int = -1,
    ) -> int:
        """Add a row to the template begun last.

        `parent` and `entry` are rows as this method returned them; -1: the row itself. `bridge_number` is
        the bridge of a send or receive row. Returns the row's number among all rows.
        """
        number = len(self.router)
        for name, column in self.columns.items():
            column.append(values.get(name))
        self.router.append(router)
        self.up.append(0 if parent < 0 else number - parent)
        self.entry.append(0 if entry < 0 else number - entry)
        self.depth.append(0 if parent < 0 else self.depth[parent] + 1)
        self.base_ns.append(base_ns)
        self.spread_ns.append(spread_ns)
        self.ramp_ns.append(ramp_ns)
        self.bridge_number.append(bridge_number)
        self.length[-1] += 1
        return number


@dataclass(frozen=True)
class Stream:
    """Messages of one template and one topic.

    `topic` is the topic's number; `profile` is how they spread over time; `mean_bytes` the mean size. `weight`
    shares out the messages that are not spoken for; `messages` are spoken for, over and above.
    """

    template: int
    topic: int
    profile: int
    mean_bytes: int
    weight: float = 0.0
    messages: int = 0


@dataclass(frozen=True)
class State:
    """A row that concerns no message: `at_s` seconds after the start, `row` of a template, `topic` or -1."""

    at_s: float
    row: int
    topic: int = -1


@dataclass
class Topics:
    """Topics and filters by number."""

    names: list[str] = field(default_factory=list)
    _numbers: dict[str, int] = field(default_factory=dict)

    def number(self, name: str) -> int:
        """The number of `name`, a new one the first time."""
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = len(self.names)
            self.names.append(name)
        return number
