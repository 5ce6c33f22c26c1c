"""The stretches that people cut time into."""

from typing import Final

_SECOND_NS: Final = 1_000_000_000
_MILLISECOND_NS: Final = 1_000_000
_WIDTHS: Final = tuple(
    [count * _MILLISECOND_NS for count in (1, 2, 5, 10, 20, 50, 100, 200, 500)]
    + [count * _SECOND_NS for count in (1, 2, 5, 10, 15, 30)]
    + [count * 60 * _SECOND_NS for count in (1, 2, 5, 10, 15, 30)]
    + [count * 3_600 * _SECOND_NS for count in (1, 2, 3, 6, 12, 24, 48, 7 * 24, 30 * 24)]
)
"""Stretches that people count time in."""


def width_for(span_ns: int, most: int = 60) -> int:
    """The shortest usual stretch, in nanoseconds, that cuts `span_ns` into at most `most`.

    The longest one, 30 days, where none does.
    """
    return next((width for width in _WIDTHS if span_ns <= width * most), _WIDTHS[-1])
