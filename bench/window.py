"""Limits how far publishing may be ahead of what was received. Compiled; runs plain as well."""

from typing import Final, final

QUANTUM: Final = 512
"""Messages for which there must be room before anything is published: no dribble of tiny segments.
"""


@final
class Window:
    """How many messages may be on their way.

    Each receiver gets one message in `share` of all that are published (1: everything). `frames` is
    how far publishing may be ahead of the slowest receiver, in frames of that receiver. With a share of 0, where
    receivers get different numbers of messages, it is how far publishing may be ahead of all of them together.
    """

    __slots__ = ("frames", "quantum", "share", "written_off")

    def __init__(self, frames: int, share: int) -> None:
        self.frames = frames
        self.share = share
        self.written_off = 0
        self.quantum = max(1, min(QUANTUM, frames * max(1, share) // 4))

    def room(self, published: int, slowest: int) -> int:
        """Messages that may be published now; `slowest` is the received count of the slowest
        receiver.
        """
        return (self.frames + slowest) * max(1, self.share) + self.written_off - published

    def write_off(self, published: int, slowest: int) -> int:
        """Gives up what is on its way and opens the window again; returns the messages given up."""
        gone = published - slowest * max(1, self.share) - self.written_off
        self.written_off += gone
        return gone
