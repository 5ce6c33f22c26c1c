"""Defines the payload and its position in a stream of equal frames. Compiled; runs plain as well.

All frames that one subscriber receives in a scenario have the same length, so a byte at a fixed
place in every frame is a *column* of the stream: one strided slice of a received chunk gives it for
every frame at once. Columns let the receiver check every frame at the speed of C, whether compiled
or not.

Payload, 64 bytes, big-endian:

    0       cycle: number of the message in its publisher's stream to that topic, modulo 251
    1       destination: index of the one subscriber meant, or 255 when all are
    2..3    index of the publisher
    4..7    number of the message (paced runs and probes; 0 at full speed)
    8..15   CLOCK_MONOTONIC nanoseconds at the send call (paced runs; 0 at full speed)
    16..63  filler
"""

from typing import Final

PAYLOAD_BYTES: Final = 64
CYCLE: Final = 251
"""A prime, so that a lost batch of 2**n messages shifts the cycle; a loss of exactly 251 shows in
the count.
"""
PROBE: Final = 255
"""Cycle value of a message sent before the measurement; no measured message has it."""
EVERYBODY: Final = 255
"""Destination value of a message that every subscriber of the scenario gets."""
CYCLE_AT: Final = 0
DESTINATION_AT: Final = 1
PUBLISHER_AT: Final = 2
NUMBER_AT: Final = 4
STAMP_AT: Final = 8
_FILLER: Final = bytes((37 * place + 11) & 0x7F for place in range(16, PAYLOAD_BYTES))


def payload(cycle: int, destination: int, publisher: int, number: int, stamp_ns: int) -> bytes:
    """One payload of `PAYLOAD_BYTES` bytes."""
    return (
        bytes((cycle, destination))
        + publisher.to_bytes(2, "big")
        + number.to_bytes(4, "big")
        + stamp_ns.to_bytes(8, "big")
        + _FILLER
    )


def column_start(column: int, before: int, size: int) -> int:
    """Where in a chunk the first byte of a column stands.

    `before` bytes of the stream came before the chunk; frames are `size` bytes; `column` is in
    0..size-1.
    """
    return (column - before) % size


def column_count(column: int, before: int, size: int) -> int:
    """How many bytes of a column are among the first `before` bytes of the stream."""
    return (before - column + size - 1) // size
