"""Numbers, times and texts as people read them."""

from datetime import UTC, datetime
from typing import Final

from vpnrouter.text import printable

NONE: Final = "–"
"""Stands where there is no value."""

_BYTES: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_TIMES: Final = ((1_000, "µs"), (1_000_000, "ms"), (1_000_000_000, "s"))
_COUNTS: Final = ((1_000_000_000, "G"), (1_000_000, "M"), (10_000, "k"))


def count(value: int | None) -> str:
    """12345 as "12,345"."""
    return NONE if value is None else f"{value:,}"


def short_count(value: int | None) -> str:
    """12345 as "12.3k", for tight places; exact below 10,000."""
    if value is None:
        return NONE
    for least, unit in _COUNTS:
        if value >= least:
            scaled = value / (1_000 if unit == "k" else least)
            return f"{scaled:.1f}{unit}" if scaled < 100 else f"{scaled:.0f}{unit}"
    return f"{value:,}"


def size(value: int | None) -> str:
    """Bytes with a binary unit, three digits: 12345 as "12.1 KiB"."""
    if value is None:
        return NONE
    scaled = float(value)
    unit = 0
    while abs(scaled) >= 1024 and unit < len(_BYTES) - 1:
        scaled /= 1024
        unit += 1
    if unit == 0:
        return f"{value} B"
    return f"{scaled:.{2 if abs(scaled) < 10 else 1 if abs(scaled) < 100 else 0}f} {_BYTES[unit]}"


def duration(value: int | None) -> str:
    """Nanoseconds, three digits in the unit that fits: 305000 as "305 µs", 90 s as "1 min 30 s"."""
    if value is None:
        return NONE
    magnitude = abs(value)
    if magnitude < 1_000:
        return f"{value} ns"
    if magnitude >= 60_000_000_000:
        return _long_duration(magnitude // 1_000_000_000, negative=value < 0)
    # 999.6 µs would read as 1e+03: from there on it is a millisecond.
    unit_ns, unit = next((pair for pair in _TIMES if magnitude < 999.5 * pair[0]), _TIMES[-1])
    return f"{value / unit_ns:.3g} {unit}"


def moment(value: int | None) -> str:
    """Nanoseconds since 1970 as a UTC time of second precision."""
    if value is None:
        return NONE
    try:
        return datetime.fromtimestamp(value // 1_000_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        # A router with a broken clock may write any number.
        return f"{value} ns"


def share(value: float) -> str:
    """0.0125 as "1.25 %"."""
    return f"{value * 100:.3g} %"


def decimal(value: float | None) -> str:
    """A number that may have a fraction: 1234567.8 as "1,234,568", 12.345 as "12.35"."""
    if value is None:
        return NONE
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.4g}"


def visible(text: str | None) -> str:
    """`text` made printable, so that no name can disturb its line."""
    return NONE if text is None else printable(text)


def _long_duration(seconds: int, *, negative: bool) -> str:
    days, rest = divmod(seconds, 86_400)
    hours, rest = divmod(rest, 3_600)
    minutes, left = divmod(rest, 60)
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (left, "s")]
    while parts[0][0] == 0:
        parts.pop(0)
    text = " ".join(f"{number} {unit}" for number, unit in parts[:2])
    return f"-{text}" if negative else text
