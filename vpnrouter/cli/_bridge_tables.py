"""Bridges as tables: overview, detail, counts and rates, and the balance."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TextIO

from rich.table import Table

from vpnrouter.cli._printed import (
    Collected,
    Row,
    add_rate_columns,
    console_for,
    duration,
    printer_for,
    rate_cells,
    shown,
    words,
)

__all__ = ["Row", "Tables", "console_for", "duration", "shown", "words"]

_NONE: Final = "-"

HEALTH_COLOURS: Final = {
    "up": "green",
    "down": "bold red",
    "stalled": "red",
    "unbound": "red",
    "incomplete": "yellow",
    "msg-vpn-disabled": "dim",
    "disabled": "dim",
}

_COUNTS: Final = (
    ("messages", "data{}MsgCount"),
    ("message bytes", "data{}ByteCount"),
    ("control frames", "control{}MsgCount"),
    ("control bytes", "control{}ByteCount"),
    ("of these login frames", "login{}MsgCount"),
    ("all frames", "{}MsgCount"),
    ("all bytes", "{}ByteCount"),
    ("frames a second", "{}MsgRate"),
    ("bytes a second", "{}ByteRate"),
    ("frames a second, average", "average{}MsgRate"),
    ("bytes a second, average", "average{}ByteRate"),
    ("discarded", "discarded{}MsgCount"),
)


class Half(NamedTuple):
    """One direction of a bridge's balance: what came in, and what became of it."""

    direction: str
    came: int
    went: int
    discarded: Mapping[str, int]
    discarded_count: int
    in_flight: int

    @property
    def difference(self) -> int:
        """Messages not accounted for, 0 for none."""
        return self.came - self.went - self.discarded_count - self.in_flight


def halves(row: Row) -> tuple[Half, Half]:
    """Both directions of a bridge's balance."""
    return (
        Half(
            "received",
            row["dataRxMsgCount"],
            row["deliveredRxMsgCount"],
            row["discardedRx"],
            row["discardedRxMsgCount"],
            row["rxInFlightMsgCount"],
        ),
        Half(
            "offered",
            row["offeredTxMsgCount"],
            row["dataTxMsgCount"],
            row["discardedTx"],
            row["discardedTxMsgCount"],
            row["txInFlightMsgCount"],
        ),
    )


def is_balanced(row: Row) -> bool:
    """Whether every message of the bridge is accounted for, by name."""
    return all(
        half.difference == 0 and half.discarded_count == sum(half.discarded.values())
        for half in halves(row)
    )


class Tables:
    """Prints bridges of the management API to `file`."""

    def __init__(self, file: TextIO | Collected) -> None:
        self._console = printer_for(file)

    is_balanced = staticmethod(is_balanced)

    def overview(self, rows: Sequence[Row], *, wide: bool = False) -> None:
        """One line a bridge."""
        columns = (*_COLUMNS, *(_WIDE_COLUMNS if wide else ()))
        table = Table(box=None, pad_edge=False)
        for title, _ in columns:
            table.add_column(title, overflow="fold")
        add_rate_columns(table, rows)
        for row in rows:
            table.add_row(
                *(cell(row) for _, cell in columns),
                *rate_cells(row),
                style=HEALTH_COLOURS.get(row["health"]) if row["health"] != "up" else None,
            )
        self._console.print(table)

    def detail(self, rows: Sequence[Row]) -> None:
        """All attributes of each bridge and its remote message VPNs."""
        for row in rows:
            self._title(row)
            table = Table(box=None, show_header=False, pad_edge=False)
            table.add_row("  last forwarded", last_forwarded(row))
            for name, value in row.items():
                if name != "remotes":
                    table.add_row(f"  {words(name)}", shown(value))
            self._console.print(table)
            for remote in row["remotes"]:
                where = f"{remote['remoteMsgVpnName']} at {remote['remoteMsgVpnLocation']}"
                self._console.print(f"  remote message VPN {where}")
                inner = Table(box=None, show_header=False, pad_edge=False)
                for name, value in remote.items():
                    inner.add_row(f"    {words(name)}", shown(value))
                self._console.print(inner)
            self._console.print()

    def stats(self, rows: Sequence[Row]) -> None:
        """Counts, rates and discards by reason of each bridge."""
        for row in rows:
            self._title(row)
            table = Table("", "received", "sent", box=None, pad_edge=False)
            for column in table.columns[1:]:
                column.justify = "right"
            for label, name in _COUNTS:
                table.add_row(
                    f"  {label}", *(f"{_count(row, name, way):,}" for way in ("Rx", "Tx"))
                )
            for reason in sorted({*row["discardedRx"], *row["discardedTx"]}):
                received = row["discardedRx"].get(reason, 0)
                sent = row["discardedTx"].get(reason, 0)
                table.add_row(f"    {reason}", f"{received:,}", f"{sent:,}")
            self._console.print(table)
            self._console.print()

    def balance(self, rows: Sequence[Row]) -> None:
        """Received = delivered + discarded + in flight, and offered = sent + discarded + in flight."""
        table = Table(box=None, pad_edge=False)
        for title in ("Bridge", "VPN", "", ""):
            table.add_column(title, overflow="fold")
        for title in ("delivered/sent", "discarded", "in flight", "difference"):
            table.add_column(title, justify="right")
        table.add_column("discards by reason", overflow="fold")
        for row in rows:
            for half in halves(row):
                table.add_row(
                    row["bridgeName"],
                    row["msgVpnName"],
                    half.direction,
                    f"{half.came:,}",
                    f"{half.went:,}",
                    f"{half.discarded_count:,}",
                    f"{half.in_flight:,}",
                    f"{half.difference:,}",
                    shown(half.discarded),
                    style="bold red" if half.difference else None,
                )
        self._console.print(table)
        wrong = sum(not is_balanced(row) for row in rows)
        said = f"{wrong} of {len(rows)} bridges do not" if wrong else f"all {len(rows)} bridges"
        self._console.print(f"{said} balance")

    def _title(self, row: Row) -> None:
        said = f"Bridge {row['bridgeName']} in message VPN {row['msgVpnName']}: {row['health']}"
        if row["inboundFailureReason"]:
            said += f" ({row['inboundFailureReason']})"
        self._console.print(said, style=HEALTH_COLOURS.get(row["health"]))


def direction(row: Row) -> str:
    """`bi` where the remote's bridge shares the connection, else `uni`."""
    both = row["inboundState"] != "not-applicable" and row["outboundState"] != "not-applicable"
    return "bi" if both else "uni"


def queue(row: Row) -> str:
    """Whether the bridge is bound to its queue or stands by there; `-` where it has none."""
    if row["boundToQueue"]:
        return "standby" if row["remoteQueueStandby"] else "bound"
    return "unbound" if any(remote["queueBinding"] for remote in row["remotes"]) else _NONE


def last_forwarded(row: Row) -> str:
    """How long ago a message last crossed, in either direction."""
    ages = [age for age in (row["lastRxAgeMs"], row["lastTxAgeMs"]) if age >= 0]
    if not ages:
        return "never"
    least = min(ages)
    return f"{least / 1_000:.1f} s ago" if least < 60_000 else f"{duration(least // 1_000)} ago"


def _count(row: Row, name: str, way: str) -> int:
    filled = name.format(way)
    return int(row[filled[0].lower() + filled[1:]])


_COLUMNS: Final[tuple[tuple[str, Callable[[Row], str]], ...]] = (
    ("Bridge", lambda row: str(row["bridgeName"])),
    ("VPN", lambda row: str(row["msgVpnName"])),
    ("Remote VPN", lambda row: row["remoteMsgVpnName"] or _NONE),
    ("Remote router", lambda row: row["remoteRouterName"] or _NONE),
    ("Direction", direction),
    ("Admin", lambda row: "enabled" if row["enabled"] else "disabled"),
    ("Inbound", lambda row: str(row["inboundState"])),
    ("Outbound", lambda row: str(row["outboundState"])),
    ("Queue", queue),
    ("Uptime", lambda row: duration(row["uptime"]) if row["uptime"] else _NONE),
    ("Health", lambda row: str(row["health"])),
    ("Last forwarded", last_forwarded),
)

_WIDE_COLUMNS: Final[tuple[tuple[str, Callable[[Row], str]], ...]] = (
    ("Establisher", lambda row: row["establisher"] or _NONE),
    ("Remote address", lambda row: row["remoteAddress"] or _NONE),
    ("Client", lambda row: row["clientName"] or _NONE),
    ("Max TTL", lambda row: str(row["maxTtl"])),
    ("TLS", lambda row: "yes" if row["encrypted"] else "no"),
    ("Compressed", lambda row: "yes" if row["compressed"] else "no"),
    ("Rx messages", lambda row: f"{row['dataRxMsgCount']:,}"),
    ("Tx messages", lambda row: f"{row['dataTxMsgCount']:,}"),
    ("Rx discards", lambda row: f"{row['discardedRxMsgCount']:,}"),
    ("Tx discards", lambda row: f"{row['discardedTxMsgCount']:,}"),
    ("Failures", lambda row: f"{row['failureCount']:,}"),
    ("Reason", lambda row: row["inboundFailureReason"] or row["outboundFailureReason"] or _NONE),
)
