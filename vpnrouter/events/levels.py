"""How grave an event is, from `debug` to `error`."""

from __future__ import annotations

from typing import Final

DEBUG: Final = 0
INFO: Final = 1
NOTICE: Final = 2
WARNING: Final = 3
ERROR: Final = 4

NAMES: Final = ("debug", "info", "notice", "warning", "error")
"""By level, as configuration, log lines and management API have them."""

TOPIC_NAMES: Final = ("DEBUG", "INFO", "NOTICE", "WARN", "ERROR")
"""By level, as the field's topics of events have them."""
