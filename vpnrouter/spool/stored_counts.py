"""What a store held, in a file beside its tables: it tells what is lost when a table is.

The router writes the file once a minute and at a clean stop, at no cost per message. It is not synced, and a start
needs nothing of it: one that is missing or damaged is as good as none. Its first line has a checksum of what follows
(CRC-32, decimal), the sequence number of the store's last change then, and the time (seconds since 1970). Each further
line is a JSON array: what is counted, the message VPN, the name of the endpoint or "", its number or 0, how many, and
the kind of the endpoint.
"""

from __future__ import annotations

import json
import os
import zlib
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

COUNTS: Final = "COUNTS"
"""The file in the store's directory."""

MESSAGES: Final = "messages"
SESSIONS: Final = "MQTT sessions"
SESSION_MESSAGES: Final = "messages of MQTT sessions"
RETAINED: Final = "retained messages"

_FRESH: Final = "COUNTS.new"


class Counted(NamedTuple):
    """How `many` of something a message VPN had; of messages `endpoint`, its `number` and its `kind` (-1: unknown)."""

    what: str
    msg_vpn: str
    endpoint: str
    number: int
    many: int
    kind: int = -1


class StoredCounts(NamedTuple):
    """Counts as of the store's change `sequence`, at `taken_s` (seconds since 1970)."""

    sequence: int
    taken_s: int
    rows: list[Counted]


def encode_counts(rows: Iterable[Counted]) -> bytes:
    """Return the lines of these counts."""
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def write_counts(directory: Path, sequence: int, taken_s: int, lines: bytes) -> None:
    """Let the store have these counts, in the place of earlier ones. Raises OSError."""
    fresh = directory / _FRESH
    # Whatever has taken that name, such as a pipe, is not opened.
    fresh.unlink(missing_ok=True)
    how = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with os.fdopen(os.open(fresh, how, 0o666), "wb") as file:
        rest = b"%d %d\n" % (sequence, taken_s) + lines
        file.write(b"%d " % zlib.crc32(rest) + rest)
    fresh.replace(directory / COUNTS)


def read_counts(directory: Path) -> StoredCounts | None:
    """Return the counts of a store, or None where it has none that are sound. `COUNTS` must be a regular file."""
    try:
        stored, _, rest = (directory / COUNTS).read_bytes().partition(b" ")
        if int(stored) != zlib.crc32(rest):
            return None
        head, *lines = rest.splitlines()
        sequence, taken_s = map(int, head.split())
        return StoredCounts(sequence, taken_s, [Counted(*json.loads(line)) for line in lines])
    except (OSError, ValueError, TypeError):
        return None
