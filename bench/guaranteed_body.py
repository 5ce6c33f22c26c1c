"""Defines the body of guaranteed messages: publisher and number, so that lost, doubled or reordered ones show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

BODY_BYTES: Final = 256
KEY_BYTES: Final = 8
"""A payload begins with its key: publisher and sequence number as one big-endian number."""
FILLER: Final = bytes(97 + place % 23 for place in range(BODY_BYTES - KEY_BYTES))
TOPIC: Final = "spool/bench"
QUEUE: Final = "bench"

Keys = npt.NDArray[np.uint64]
_SEQUENCE_BITS: Final = 40


def keys(publisher: int, first: int, count: int) -> Keys:
    """The keys of `count` messages of a publisher, from number `first` on."""
    base = (publisher << _SEQUENCE_BITS) + first
    return np.arange(base, base + count, dtype=np.uint64)


def faults(sent: dict[int, int], taken: Sequence[Keys]) -> list[str]:
    """What is wrong with what the consumers got: nothing may be missing, doubled, strange or late.

    `sent` is the number of acknowledged messages of each publisher, `taken` what each consumer got,
    in its order. A consumer has to see each publisher's messages in rising order.
    """
    found: list[str] = []
    every = np.concatenate(taken) if taken else np.empty(0, dtype=np.uint64)
    once = np.unique(every)
    if doubled := len(every) - len(once):
        found.append(f"{doubled} messages consumed more than once")
    # An empty array of its own: there may be no publisher at all.
    wanted = [keys(publisher, 0, count) for publisher, count in sorted(sent.items())]
    expected = np.concatenate(wanted) if wanted else np.empty(0, dtype=np.uint64)
    if missing := len(np.setdiff1d(expected, once, assume_unique=True)):
        found.append(f"{missing} acknowledged messages never consumed")
    if strange := len(np.setdiff1d(once, expected, assume_unique=True)):
        found.append(f"{strange} messages consumed that nobody sent")
    late = sum(_late(got) for got in taken)
    if late:
        found.append(f"{late} messages consumed out of order")
    return found


def _late(got: Keys) -> int:
    """Messages that came after a later one of their publisher."""
    publishers = got >> np.uint64(_SEQUENCE_BITS)
    late = 0
    for publisher in np.unique(publishers):
        own = got[publishers == publisher]
        late += int(np.count_nonzero(own[1:] <= own[:-1]))
    return late
