"""Units in which the router counts: nanoseconds of time, bytes of size."""

from typing import Final

MILLISECOND_NS: Final = 1_000_000
SECOND_NS: Final = 1_000_000_000
DAY_NS: Final = 86_400 * SECOND_NS

MINUTE_S: Final = 60
HOUR_S: Final = 3_600
DAY_S: Final = 86_400

MEGABYTE: Final = 1_000_000
"""Bytes. Attributes that the field counts in MB mean this."""
