"""Figures and texts as the screens show them: narrow, of one width where they stand under each other."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from vpnrouter.limits import TUI_TEXT
from vpnrouter.text import printable

NONE: Final = "-"

_STEPS: Final = ("", "k", "M", "G", "T", "P", "E")


def clean(text: str) -> str:
    """A text that a terminal only draws: whatever a publisher wrote, it commands nothing."""
    return printable(text, TUI_TEXT)


def figure(value: float) -> str:
    """At most five characters: `0`, `999`, `1.2k`, `34k`, `5.6M`."""
    if value < 0:
        return f"-{figure(-value)}"
    step = 0
    while value >= 999.5 and step + 1 < len(_STEPS):
        value /= 1_000
        step += 1
    if step and value < 9.95:
        return f"{value:.1f}{_STEPS[step]}"
    return f"{value:.0f}{_STEPS[step]}"


def rate(value: float) -> str:
    """Messages a second, `-` for none; what is more than none is never shown as none."""
    if value <= 0:
        return NONE
    if value < 0.05:
        return "<0.1"
    return f"{value:.1f}" if value < 0.95 else figure(value)


def size(count: float) -> str:
    """Bytes: `0B`, `999B`, `1.2kB`."""
    return f"{figure(count)}B"


def duration(seconds: float) -> str:
    """At most seven characters: `7s`, `3m12s`, `4h05m`, `12d03h`."""
    whole = max(0, int(seconds))
    minutes, second = divmod(whole, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    if days:
        return f"{days}d{hour:02}h"
    if hours:
        return f"{hours}h{minute:02}m"
    return f"{minute}m{second:02}s" if minute else f"{second}s"


def age(milliseconds: int) -> str:
    """How long ago, `-` for never (negative)."""
    return NONE if milliseconds < 0 else duration(milliseconds / 1_000)


def clock(seconds: float) -> str:
    """`03:12:05` of a time since 1970, UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%H:%M:%S")


def moment(seconds: float) -> str:
    """`2026-11-22 03:12:05` of a time since 1970, UTC; `-` for 0."""
    if not seconds:
        return NONE
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return "beyond 9999"


def shown(value: object) -> str:
    """An attribute's value for people."""
    match value:
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case Mapping():
            return ", ".join(f"{key} {shown(each)}" for key, each in sorted(value.items())) or NONE
        case list() | tuple():
            return ", ".join(shown(each) for each in value) or NONE
        case None:
            return NONE
        case _:
            return str(value) or NONE


def words(name: str) -> str:
    """`inboundFailureReason` → `inbound failure reason`."""
    return re.sub(r"[A-Z]", lambda letter: f" {letter[0].lower()}", name)
