"""Figures as findings say them in a sentence."""

from typing import Final

_MINUTE_S: Final = 60
_HOUR_S: Final = 3_600


def counted(count: int, noun: str, plural: str = "") -> str:
    """`1 message`, `2,000 messages`; `plural` where an s does not make one."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {plural or noun + 's'}"


def lasting(seconds: float) -> str:
    """A duration, given in seconds, with a unit that fits: `250 ms`, `12.5 s`, `3.0 minutes`."""
    if seconds < 1:
        return f"{seconds * 1_000:.0f} ms"
    if seconds < 2 * _MINUTE_S:
        return f"{seconds:.1f} s"
    if seconds < 2 * _HOUR_S:
        return f"{seconds / _MINUTE_S:.1f} minutes"
    return f"{seconds / _HOUR_S:.1f} hours"


def percent(share: float) -> str:
    """A share of 1.0: `12.5 %`."""
    return f"{share * 100:.1f} %"
