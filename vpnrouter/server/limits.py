"""Bounds of what a running router keeps besides messages; docs/limits.md lists them with the others."""

from typing import Final

EDITOR_DOCUMENTS: Final = 16
"""Earlier configurations that a router can be told to return to. Beyond: the oldest is forgotten."""

EDITOR_BYTES: Final = 16_777_216
"""Bytes of all of these, packed; one of 1,000 queues takes some 10 kB. Beyond: the oldest is forgotten."""

EDITOR_LINES_TOLD: Final = 100
"""Lines in the log about one change of the configuration by the management API. Beyond: their number is
told; who asked gets all of them."""
