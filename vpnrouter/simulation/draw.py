"""Stamps the templates out: the trace rows of one stretch of time, for all streams at once.

No loop runs over messages or rows. Times follow the parents level by level, so all rows behind one bridge
share what a message lost on it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from vpnrouter.simulation.plan import Plan
from vpnrouter.simulation.templates import State

SECOND_NS: Final = 1_000_000_000
_SPREAD_OF_SIZES: Final = 4
_LEAST_BYTES: Final = 8


@dataclass(frozen=True)
class Rows:
    """Trace rows; arrays of equal length.

    `row` is the template's row, `topic` the topic's number (-1: none), `message` the message's number from 0
    among all of the simulation (-1: concerns none). Times are by the router's own clock.
    """

    row: NDArray[np.int32]
    topic: NDArray[np.int32]
    message: NDArray[np.int64]
    origin: NDArray[np.int32]
    ts_ns: NDArray[np.int64]
    since_ns: NDArray[np.int64]
    origin_ts_ns: NDArray[np.int64]
    size_bytes: NDArray[np.int64]

    def at(self, which: NDArray[np.int64]) -> "Rows":
        """These rows, in this order."""
        return Rows(*(column[which] for column in vars(self).values()))

    def __len__(self) -> int:
        return len(self.row)


class Press:
    """Everything that is drawn, as arrays, and the random numbers.

    Args:
        plan: what is drawn.
        counts: messages of each of its streams.
        start_ns: when the simulation begins, nanoseconds since 1970.
        rng: where all draws come from.

    `rows` are all that there will be.
    """

    def __init__(
        self, plan: Plan, counts: NDArray[np.int64], start_ns: int, rng: np.random.Generator
    ) -> None:
        templates, streams = plan.templates, plan.streams
        # Streams of one profile stand together, so that their times are found in one call.
        order = np.argsort([each.profile for each in streams], kind="stable")
        streams = [streams[at] for at in order]
        self._counts = counts[order]
        self._profiles = plan.profiles
        self._profile = np.array([each.profile for each in streams], np.int32)
        self._topic = np.array([each.topic for each in streams], np.int32)
        self._mean_bytes = np.array([each.mean_bytes for each in streams], np.float32)
        template = np.array([each.template for each in streams], np.int64)
        self._first = np.array(templates.first, np.int32)[template]
        self._length = np.array(templates.length, np.int32)[template]
        self._router = np.array(templates.router, np.int32)
        self._up = np.array(templates.up, np.int32)
        self._entry = np.array(templates.entry, np.int32)
        self._depth = np.array(templates.depth, np.int8)
        self._base = np.array(templates.base_ns, np.float32)
        self._spread = np.array(templates.spread_ns, np.float32)
        self._ramp = np.array(templates.ramp_ns, np.float32)
        self._ramps = bool(self._ramp.any())
        self._clocks_ns = plan.clocks_ns
        self._start_ns = start_ns
        self._seconds = plan.seconds
        self._rng = rng
        self._drawn = 0
        self._done = np.zeros(len(streams), np.int64)
        self.rows = int((self._counts * self._length).sum()) + len(plan.states)
        self._states = sorted(plan.states, key=lambda each: each.at_s)

    def draw(self, end_s: float) -> tuple[Rows, NDArray[np.int64]]:
        """The rows of all messages that come in before `end_s` and are not drawn yet, and the order of
        them by router, then time.
        """
        messages = self._messages(end_s)
        if end_s >= self._seconds:
            states, self._states = self._states, []
        else:
            states = [each for each in self._states if each.at_s < end_s]
            self._states = self._states[len(states) :]
        rows = _joined(messages, self._state_rows(states))
        # One sort of one number each: router above, time below, to 2 µs for simulations of years.
        at = ((rows.ts_ns - self._start_ns) >> 11) + (1 << 40)
        key = (self._router[rows.row].astype(np.int64) << 46) + at
        return rows, np.argsort(key, kind="stable")

    def _messages(self, end_s: float) -> Rows:
        upto = np.zeros_like(self._counts)
        for number in np.unique(self._profile):
            mine = self._profile == number
            share = (
                1.0
                if end_s >= self._seconds
                else float(self._profiles[number].before(np.array([end_s]))[0])
            )
            upto[mine] = np.floor(self._counts[mine] * share)
        new = upto - self._done
        stream = np.repeat(np.arange(len(new), dtype=np.int32), new)
        total = len(stream)
        starts = np.cumsum(new) - new
        place = np.arange(total) - np.repeat(starts - self._done, new)
        self._done = upto
        share = (place + self._rng.random(total)) / self._counts[stream]
        at_s = np.empty(total)
        begin = 0
        for number, many in zip(*_runs(self._profile[stream]), strict=True):
            at_s[begin : begin + many] = self._profiles[number].times(share[begin : begin + many])
            begin += many
        size = self._mean_bytes[stream] * self._rng.standard_gamma(
            _SPREAD_OF_SIZES, total, dtype=np.float32
        )
        bytes_ = np.maximum((size / _SPREAD_OF_SIZES).astype(np.int64), _LEAST_BYTES)
        first = self._drawn
        self._drawn += total
        return self._stamp(stream, (at_s * SECOND_NS).astype(np.int64), bytes_, first)

    def _stamp(
        self,
        stream: NDArray[np.int32],
        at_ns: NDArray[np.int64],
        size: NDArray[np.int64],
        first: int,
    ) -> Rows:
        many = self._length[stream]
        starts = (np.cumsum(many, dtype=np.int64) - many).astype(np.int64)
        message = np.repeat(np.arange(len(stream), dtype=np.int32), many)
        place = np.arange(len(message), dtype=np.int32)
        row = (self._first[stream] - starts.astype(np.int32))[message] + place
        came_ns = at_ns[message]
        delay = self._rng.standard_exponential(len(row), dtype=np.float32)
        delay *= self._spread[row]
        delay += self._base[row]
        if self._ramps:
            late = (came_ns / (self._seconds * SECOND_NS)).astype(np.float32)
            delay += self._ramp[row] * late * late
        ts = came_ns.copy()
        up = self._up[row]
        depth = self._depth[row]
        for level in range(1, int(depth.max(initial=0)) + 1):
            mine = np.flatnonzero(depth == level)
            ts[mine] = ts[mine - up[mine]] + delay[mine].astype(np.int64)
        since = ts - ts[place - self._entry[row]]
        router = self._router[row]
        origin = self._router[self._first[stream]]
        return Rows(
            row=row,
            topic=self._topic[stream][message],
            message=first + message.astype(np.int64),
            origin=origin[message],
            ts_ns=ts + (self._clocks_ns[router] + self._start_ns),
            since_ns=since,
            origin_ts_ns=(at_ns + self._clocks_ns[origin] + self._start_ns)[message],
            size_bytes=size[message],
        )

    def _state_rows(self, states: Sequence[State]) -> Rows:
        row = np.array([each.row for each in states], np.int32)
        at_ns = (np.array([each.at_s for each in states]) * SECOND_NS).astype(np.int64)
        none = np.full(len(states), -1, np.int64)
        return Rows(
            row=row,
            topic=np.array([each.topic for each in states], np.int32),
            message=none,
            origin=none.astype(np.int32),
            ts_ns=at_ns + (self._clocks_ns[self._router[row]] + self._start_ns),
            since_ns=none,
            origin_ts_ns=none,
            size_bytes=none,
        )


def _joined(one: Rows, other: Rows) -> Rows:
    if not len(other):
        return one
    pairs = zip(vars(one).values(), vars(other).values(), strict=True)
    return Rows(*(np.concatenate(pair) for pair in pairs))


def _runs(values: NDArray[np.int32]) -> tuple[list[int], list[int]]:
    """The values of an ordered array, each once, and how often it stands."""
    found, counts = np.unique(values, return_counts=True)
    return found.tolist(), counts.tolist()
