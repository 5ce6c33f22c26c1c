"""Throw bytes at the link codec: garbage, and good frames with something changed.

    python fuzz/link.py --seconds 60 --seed 1

The only exception allowed is ProtocolError with a known close code. Anything else ends the run with
the input in hexadecimal, exit 1. What decodes must encode and decode to the same again.
"""

import argparse
import random
import sys
import time
from collections.abc import Callable

from vpnrouter import limits
from vpnrouter.errors import ProtocolError
from vpnrouter.wire.link import codes, encode, frames
from vpnrouter.wire.link.decode import Frame, decode, link_frame_at

_ENCODERS: dict[type, Callable[..., bytes]] = {
    frames.Hello: encode.hello,
    frames.Welcome: encode.welcome,
    frames.Challenge: encode.challenge,
    frames.Proof: encode.proof,
    frames.Refuse: encode.refuse,
    frames.Close: encode.close,
    frames.Heartbeat: encode.heartbeat,
    frames.Subscribe: encode.subscribe,
    frames.Unsubscribe: encode.unsubscribe,
    frames.Subscribed: encode.subscribed,
    frames.Direct: encode.message,
    frames.Bind: encode.bind,
    frames.Bound: encode.bound,
    frames.Unbind: encode.unbind,
    frames.Unbound: encode.unbound,
    frames.Guaranteed: encode.guaranteed_message,
    frames.Ack: encode.ack,
    frames.Forget: encode.forget,
    frames.Reject: encode.reject,
    frames.Settled: encode.settled,
}


def seeds() -> list[bytes]:
    """One good frame of each type."""
    secret = "x" * 6
    extension = frames.Extension(
        ["edge/blue", "core/red"],
        3,
        trace_high=1,
        trace_low=2,
        message_id=3,
        trace_flags=1,
        origin_router="edge",
        origin_vpn="blue",
        origin_ts_ns=5,
        retain=True,
        expiry_ms=60_000,
    )
    properties = bytes.fromhex("0101 020000003c 2600016b000176")
    message = frames.Direct(b"a/b", properties, b"payload", extension)
    accepted = {b"s" * 16: [(7, 1), (9, 300)], b"t" * 16: [(1 << 63, 2)]}
    return [
        encode.bind(
            frames.Bind(1, "q", 255, accepted=accepted, selector="a = 1", lanes=1, on_reject=2)
        ),
        encode.bound(frames.Bound(1, 0, 7, 100, b"s" * 16)),
        encode.unbind(frames.Unbind(7, 0x88, "503 Queue Shutdown")),
        encode.unbound(frames.Unbound(7)),
        encode.guaranteed_message(frames.Guaranteed(7, 9, 3, 4, message)),
        encode.ack(frames.Ack(7, 255, [(1, 255), (1000, 1)])),
        encode.forget(frames.Forget(7, [(1, 255)])),
        encode.reject(frames.Reject(7, 9, 0x97, "503 Spool Over Quota", 2)),
        encode.settled(frames.Settled(7, 9, 1)),
        encode.hello(frames.Hello("core", "b", "red", "blue", password=secret, heartbeat_ms=1000)),
        encode.hello(
            frames.Hello("core", "b", "red", "blue", scheme=frames.SCRAM, nonce=b"n" * 24)
        ),
        encode.challenge(frames.Challenge(b"m" * 24, b"s" * 16, 15_000)),
        encode.proof(frames.Proof(b"p" * 32)),
        encode.welcome(frames.Welcome("edge", "blue", "c", signature=b"s" * 32)),
        encode.welcome(frames.Welcome("edge", "blue", "core/red/b", max_frame=1_000_000)),
        encode.refuse(frames.Refuse(codes.NOT_AUTHORIZED, "403 Permission Denied", 5)),
        encode.close(frames.Close(codes.NORMAL, "Bridge Shutdown")),
        encode.heartbeat(frames.Heartbeat(77, answer=True)),
        encode.subscribe(frames.Subscribe(1, [(1, "a/>"), (8, "b/*")])),
        encode.unsubscribe(frames.Unsubscribe(2, ["a/>", "b/*"])),
        encode.subscribed(frames.Subscribed(2, [0, 0x8F], "400 Subscription Parse Error")),
        encode.message(frames.Direct(b"a/b", properties, b"payload")),
        encode.message(message),
    ]


def change(raw: bytes, draw: random.Random) -> bytes:
    """Flip, cut, double or insert a few bytes, the frame's length right half of the time."""
    data = bytearray(raw)
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(data)) if data else 0
        match draw.randrange(5):
            case 0:
                data[at : at + 1] = bytes((draw.randrange(256),))
            case 1:
                del data[at : at + draw.randint(1, 8)]
            case 2:
                data[at:at] = draw.randbytes(draw.randint(1, 8))
            case 3:
                data[at:at] = data[at : at + draw.randint(1, 16)]
            case _:
                data[at : at + 1] = bytes((draw.choice((0, 1, 0x7F, 0x80, 0xFF)),))
    if len(data) > 2 and draw.random() < 0.5:
        body = min(len(data) - 2, 127)
        data[1] = body
        del data[2 + body :]
    return bytes(data)


def check(data: bytes) -> int:
    """Read frames off `data` until it ends or breaks; returns how many there were."""
    pos = count = 0
    while pos < len(data):
        length = link_frame_at(data, pos, len(data), limits.LINK_HANDSHAKE_BYTES)
        if not length:
            break
        frame: Frame = decode(data, pos, length)
        encoder = _ENCODERS.get(type(frame))
        if encoder is not None:
            once = encoder(frame)
            again = encoder(decode(once, 0, len(once)))
            if once != again:
                raise AssertionError("encoding is not stable")
        pos += length
        count += 1
    return count


def main() -> int:
    """Run until the time is over; 0 when nothing was found."""
    parser = argparse.ArgumentParser(description="Fuzz the link codec.")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    good = seeds()
    runs = decoded = refused = 0
    end = time.monotonic() + options.seconds
    while time.monotonic() < end:
        for _ in range(200):
            if draw.random() < 0.2:
                data = draw.randbytes(draw.randint(0, 64))
            else:
                data = b"".join(change(draw.choice(good), draw) for _ in range(draw.randint(1, 3)))
            runs += 1
            try:
                decoded += check(data)
            except ProtocolError as error:
                refused += 1
                if error.reason_code not in codes.REASONS:
                    print(f"unknown code {error.reason_code}: {data.hex()}", file=sys.stderr)
                    return 1
            except Exception as error:  # noqa: BLE001 - finding these is the purpose
                print(f"{type(error).__name__}: {error}: {data.hex()}", file=sys.stderr)
                return 1
    print(f"link: {runs} inputs, {decoded} frames decoded, {refused} refused, seed {options.seed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
