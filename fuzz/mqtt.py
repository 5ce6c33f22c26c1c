"""Fuzz driver of the MQTT codec: mutated golden packets and random bytes.

    python fuzz/mqtt.py [--seconds 60] [--seed N]

The only exception received bytes may cause is ProtocolError, with a reason code of the standard.
What decodes must encode and decode to the same again. A stream fed whole and byte by byte must
agree. Fuzzes the vpnrouter that Python finds: the installed build, or the sources with PYTHONPATH=.
Prints the seed first, so that a finding can be repeated; exits 1 on a finding and shows its bytes.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
from pathlib import Path

import yaml

from vpnrouter.errors import ProtocolError
from vpnrouter.wire.mqtt.burst import PublishCounter
from vpnrouter.wire.mqtt.decode import decode, protocol_level
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.fields import frame_at, read_varint, varint
from vpnrouter.wire.mqtt.publish_block import (
    payload_format_holds,
    publish_block_with,
    split_publish_properties,
)
from vpnrouter.wire.mqtt.reason import REASON_NAMES

DATA = (
    Path(__file__).resolve().parent.parent / "tests" / "conformance" / "data" / "mqtt_packets.yaml"
)
MAX_PACKET = 1 << 20


class Finding(Exception):
    """A rule of the codec is broken."""


def seeds() -> list[bytes]:
    """The frames of the golden packets, good and bad ones."""
    cases = yaml.safe_load(DATA.read_text(encoding="utf-8"))
    return [bytes.fromhex(case["hex"]) for case in cases]


def mutated(draw: random.Random, frame: bytes) -> bytes:
    """A frame with a few bytes changed, dropped, doubled or brought in from nowhere."""
    out = bytearray(frame)
    for _ in range(draw.choice((1, 1, 1, 2, 3, 6))):
        at = draw.randrange(len(out) + 1)
        match draw.randrange(6):
            case 0 if at < len(out):
                out[at] = draw.randrange(256)
            case 1 if at < len(out):
                out[at] ^= 1 << draw.randrange(8)
            case 2:
                del out[at : at + draw.randrange(1, 4)]
            case 3:
                out[at:at] = draw.randbytes(draw.randrange(1, 5))
            case 4:
                stop = at + draw.randrange(1, 12)
                out[at:at] = out[at:stop]
            case _:
                out[at:at] = draw.choice((b"\x00", b"\xff", b"\x7f", b"\x80", b"\x00\x00", b"+"))
    return bytes(out)


def with_length(draw: random.Random, frame: bytes) -> bytes:
    """The frame with its length field made true, so that the body is reached."""
    if len(frame) < 2:
        return frame
    body = frame[2:]
    first = draw.randrange(256) if draw.randrange(20) == 0 else frame[0]
    return bytes((first,)) + varint(len(body)) + body


def refused(error: ProtocolError) -> None:
    """Check what a refusal says."""
    if error.reason_code not in REASON_NAMES or error.reason_code < 0x80:
        raise Finding(f"reason code 0x{error.reason_code:02x}")
    if not str(error).startswith("MQTT"):
        raise Finding(f"message without a clause: {error}")


def try_decode(frame: bytes, level: int) -> bool:
    """Decode one frame; True when it was a packet."""
    protocol_level(frame, 0, len(frame))
    try:
        packet = decode(frame, 0, len(frame), level)
    except ProtocolError as error:
        refused(error)
        return False
    again = encode(packet, level)
    if decode(again, 0, len(again), level) != packet:
        raise Finding(f"{packet!r} does not come back from {again.hex()}")
    return True


def try_block(raw: bytes) -> None:
    """Split a property block and put it together again."""
    try:
        block, alias, expiry_s = split_publish_properties(raw, 0, len(raw))
    except ProtocolError as error:
        refused(error)
        return
    payload_format_holds(block, raw)
    left = -1 if expiry_s < 0 else expiry_s // 2
    kept = unprefixed(publish_block_with(block, left))
    whole = unprefixed(publish_block_with(block, left, alias, (1, 128)))
    if split_publish_properties(whole, 0, len(whole)) != (kept, alias, left):
        raise Finding("a block put together does not split again")


def unprefixed(field: bytes) -> bytes:
    """The block in a length-prefixed property field."""
    length, start = read_varint(field, 0, len(field))
    if start + length != len(field):
        raise Finding("a property field is not as long as it says")
    return field[start:]


def scan(stream: bytes, chunk: int) -> tuple[list[bytes], int]:
    """The frames of a stream in pieces of `chunk` bytes, and the reason code that ended it or 0."""
    found: list[bytes] = []
    buffer = b""
    for start in range(0, len(stream), chunk):
        buffer += stream[start : start + chunk]
        try:
            while size := frame_at(buffer, 0, len(buffer), MAX_PACKET):
                found.append(buffer[:size])
                buffer = buffer[size:]
        except ProtocolError as error:
            refused(error)
            return found, error.reason_code
    return found, 0


def try_stream(stream: bytes, level: int) -> None:
    """Feed a stream whole and byte by byte, to framing and to the counter."""
    whole = scan(stream, len(stream) or 1)
    if whole != scan(stream, 1):
        raise Finding("framing differs between whole and byte by byte")
    counter = PublishCounter(level, stamps=True, max_packet=MAX_PACKET)
    try:
        counter.feed(stream)
    except ProtocolError as error:
        refused(error)
        return
    if counter.total + counter.others != len(whole[0]) or whole[1]:
        raise Finding("the counter and framing disagree")
    if len(counter.stamp_list) != counter.total:
        raise Finding("not one stamp for each message")


def one_round(draw: random.Random, frames: list[bytes]) -> tuple[bytes, int, int]:
    """One input through everything; returns it, its level, and 1 when it decoded, else 0."""
    level = draw.choice((4, 5))
    kind = draw.randrange(10)
    if kind == 0:
        raw = draw.randbytes(draw.randrange(40))
    else:
        raw = mutated(draw, draw.choice(frames))
        if kind < 8:
            raw = with_length(draw, raw)
    accepted = 0
    try:
        accepted = int(try_decode(raw, level))
        try_block(raw[draw.randrange(len(raw) + 1) :])
        try_stream(raw + draw.choice(frames) + draw.choice(frames), level)
    except Exception:
        print(f"finding: level {level}, bytes {raw.hex()}", file=sys.stderr)
        raise
    return raw, level, accepted


def main() -> int:
    """Run for the time asked; 0 when nothing was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    seed = random.SystemRandom().getrandbits(32) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    draw = random.Random(seed)
    frames = seeds()
    deadline = time.monotonic() + options.seconds
    rounds = 0
    accepted = 0
    while time.monotonic() < deadline:
        try:
            raw, _, decoded = one_round(draw, frames)
        except Exception:  # noqa: BLE001
            traceback.print_exc()
            return 1
        rounds += 1
        accepted += decoded
        if decoded and len(frames) < 5_000 and draw.randrange(50) == 0:
            frames.append(raw)
    print(f"{rounds} inputs, {accepted} of them packets, no finding")
    return 0


if __name__ == "__main__":
    sys.exit(main())
