"""Throw bytes at the AMQP codec: garbage, and good frames and messages with something changed.

    python -m fuzz.amqp --seconds 60 --seed 1

The only exception allowed is ProtocolError with a known condition. What decodes must encode and decode to the same
again, and a transfer that the short way reads must be what the long way reads.
"""

import argparse
import random
import sys
import time

from fuzz.mqtt import mutated
from vpnrouter.errors import ProtocolError
from vpnrouter.wire.amqp import frames, sasl, sections, types
from vpnrouter.wire.amqp.conditions import CONDITIONS
from vpnrouter.wire.amqp.performatives import (
    Accepted,
    Attach,
    Begin,
    Close,
    Coordinator,
    Declare,
    Detach,
    Discharge,
    Disposition,
    End,
    Error,
    Flow,
    Modified,
    Open,
    Rejected,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    Source,
    Target,
    TransactionalState,
    Transfer,
)
from vpnrouter.wire.amqp.transfers import PlainTransfer
from vpnrouter.wire.amqp.types import Described, Symbol, Typed

_MAX_FRAME = 65_536


def seeds() -> list[bytes]:
    """Good frames of each type, with the values that peers send."""
    error = Error("amqp:not-found", "no such queue", {Symbol("a"): [1, "b", None]})
    selector = Described(Symbol("apache.org:selector-filter:string"), "a = 1")
    unsettled: dict[object, object] = {b"1": Described(0x24, []), "x": Typed(types.UUID, bytes(16))}
    source = Source(
        "queue://q", 2, "never", dynamic=True, filter={Symbol("jms-selector"): selector}
    )
    properties: dict[object, object] = {
        Symbol("product"): "x",
        Symbol("time"): Typed(types.TIMESTAMP, 1),
    }
    performatives = (
        Open("client", "vpn", 65_536, 100, 60_000, properties=properties),
        Begin(None, 0, 2_048, 2_048),
        Attach("link", 0, True, source=source, target=Target("t"), unsettled=unsettled),
        Attach("tx", 1, False, target=Coordinator([Symbol("amqp:local-transactions")])),
        Flow(0, 2_048, 1, 2_048, 0, 0, 1_000, drain=True),
        Disposition(True, 0, 99, True, TransactionalState(b"t", Modified(True))),
        Disposition(True, 3, state=Rejected(error)),
        Detach(0, True, error),
        End(error),
        Close(error),
    )
    message = b"\x00\x53\x70\x45\x00\x53\x73\xc0\x04\x01\xa1\x01a\x00\x53\x75\xa0\x05hello"
    ask = types.write(Described(0x77, None))[:-1]
    transfers = (
        frames.encode(Transfer(0, 7, b"tag", 0, True), 0, payload=message),
        frames.encode(Transfer(1, 300, b"", state=Accepted(), more=True), 1, payload=message),
        frames.encode(Transfer(1, 1), 1, payload=ask),
    )
    login = (
        SaslMechanisms([Symbol(sasl.PLAIN), Symbol(sasl.SCRAM)]),
        SaslInit(sasl.PLAIN, b"\0user\0password"),
        SaslOutcome(sasl.OK),
    )
    return [
        *(frames.encode(one, 1) for one in performatives),
        *transfers,
        *(frames.encode(one, 0, frames.SASL) for one in login),
        frames.encode(Declare()),
        frames.encode(Discharge(b"t", True)),
        frames.EMPTY,
    ]


def resized(raw: bytes) -> bytes:
    """The frame with its size made true, so that the body is reached."""
    return len(raw).to_bytes(4, "big") + raw[4:]


def check(data: bytes) -> int:
    """Read frames off `data` until it ends or breaks; returns how many there were."""
    pos = count = 0
    plain = PlainTransfer()
    while pos < len(data):
        size = frames.frame_at(data, pos, len(data), _MAX_FRAME)
        if not size:
            break
        short = plain.read(data, pos, len(data), _MAX_FRAME)
        frame = frames.decode(data, pos, size)
        if short and (frame.payload, frame.channel, frame.performative.handle) != (
            data[plain.message : plain.end],
            plain.channel,
            plain.handle,
        ):
            raise AssertionError("the short way reads another transfer")
        if isinstance(frame.performative, tuple):
            once = frames.encode(*frame[2:0:-1], frame.kind, frame.payload)
            if frames.encode(*frames.decode(once, 0, len(once))[2:0:-1], frame.kind) != (
                frames.encode(frame.performative, frame.channel, frame.kind)
            ):
                raise AssertionError("encoding is not stable")
        if frame.payload:
            sections.sections(frame.payload)
        pos += size
        count += 1
    return count


def main() -> int:
    """Run until the time is over; 0 when nothing was found."""
    parser = argparse.ArgumentParser(description="Fuzz the AMQP codec.")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    seed = random.SystemRandom().getrandbits(32) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    draw = random.Random(seed)
    good = seeds()
    runs = decoded = refused = 0
    end = time.monotonic() + options.seconds
    while time.monotonic() < end:
        data = draw.randbytes(draw.randint(0, 64))
        if draw.random() < 0.9:
            data = mutated(draw, draw.choice(good))
            if draw.random() < 0.9:
                data = resized(data)
        runs += 1
        try:
            decoded += check(data)
        except ProtocolError as error:
            refused += 1
            if error.reason_code not in CONDITIONS:
                print(f"unknown code {error.reason_code}: {data.hex()}", file=sys.stderr)
                return 1
        except Exception as error:  # noqa: BLE001 - finding these is the purpose
            print(f"{type(error).__name__}: {error}: {data.hex()}", file=sys.stderr)
            return 1
    print(f"{runs} inputs, {decoded} frames decoded, {refused} refused")
    return 0


if __name__ == "__main__":
    sys.exit(main())
