"""Queues as tables: overview, detail, counts and discards, and the balance."""

from collections.abc import Sequence
from typing import Final, TextIO

from rich.table import Table

from vpnrouter.cli._printed import (
    Collected,
    Row,
    add_rate_columns,
    duration,
    printer_for,
    rate_cells,
    shown,
    words,
)

MEGABYTE: Final = 1_000_000

_NONE: Final = "-"

_COUNTS: Final = (
    ("there when the router started", "recoveredMsgCount"),
    ("spooled", "spooledMsgCount"),
    ("acknowledged", "ackedMsgCount"),
    ("moved", "movedMsgCount"),
    ("deleted", "deletedMsgCount"),
    ("redelivered", "redeliveredMsgCount"),
    ("consumers let in", "bindSuccessCount"),
    ("consumers asked", "bindRequestCount"),
)


_WIDE_COLUMNS: Final = (
    ("Durable", "durable"),
    ("Owner", "owner"),
    ("Permission", "permission"),
    ("Max binds", "maxBindCount"),
    ("Max redelivery", "maxRedeliveryCount"),
    ("Max TTL", "maxTtl"),
    ("Dead message queue", "deadMsgQueue"),
    ("Spooled", "spooledMsgCount"),
    ("Acknowledged", "ackedMsgCount"),
    ("Redelivered", "redeliveredMsgCount"),
    ("Highest id", "highestMsgId"),
    ("Replay", "replayState"),
)


class QueueTables:
    """Prints rows of the management API to `file`."""

    def __init__(self, file: TextIO | Collected) -> None:
        self._console = printer_for(file)

    @staticmethod
    def is_balanced(row: Row) -> bool:
        """Whether every message of the queue is accounted for."""
        return not row["imbalance"]

    def overview(self, rows: Sequence[Row], *, wide: bool = False) -> None:
        """One line a queue."""
        table = Table(box=None, pad_edge=False)
        for title in ("Queue", "VPN", "Type", "Access", "In", "Out"):
            table.add_column(title, overflow="fold")
        for title in ("Messages", "MB", "of MB", "Unacked", "Consumers", "Lost", "Oldest"):
            table.add_column(title, justify="right")
        for title, _ in _WIDE_COLUMNS if wide else ():
            table.add_column(title, overflow="fold")
        add_rate_columns(table, rows)
        for row in rows:
            table.add_row(
                row["queueName"],
                row["msgVpnName"],
                row["endpointType"],
                row["accessType"],
                "on" if row["ingressEnabled"] else "off",
                "on" if row["egressEnabled"] else "off",
                f"{row['msgCount']:,}",
                megabytes(row["msgSpoolUsage"]),
                quota(row),
                f"{row['txUnackedMsgCount']:,}",
                f"{row['bindCount']:,}",
                f"{sum(row['discarded'].values()) + sum(row['refused'].values()):,}",
                age(row["oldestMsgAgeMs"]),
                *(shown(row[name]) for _, name in (_WIDE_COLUMNS if wide else ())),
                *rate_cells(row),
                style="yellow" if is_stuck(row) else None,
            )
        self._console.print(table)

    def detail(self, rows: Sequence[Row]) -> None:
        """All attributes of each queue."""
        for row in rows:
            self._title(row)
            table = Table(box=None, show_header=False, pad_edge=False)
            for name, value in row.items():
                table.add_row(f"  {words(name)}", shown(value))
            self._console.print(table)
            self._console.print()

    def stats(self, rows: Sequence[Row]) -> None:
        """What went through each queue, and what it lost or did not take, by reason."""
        for row in rows:
            self._title(row)
            table = Table(box=None, show_header=False, pad_edge=False)
            for label, name in _COUNTS:
                table.add_row(f"  {label}", f"{row[name]:,}")
            for label, name in (("lost", "discarded"), ("not taken", "refused")):
                for reason, count in sorted(row[name].items()):
                    table.add_row(f"  {label}: {reason}", f"{count:,}")
            table.columns[1].justify = "right"
            self._console.print(table)
            self._console.print()

    def balance(self, rows: Sequence[Row]) -> None:
        """Recovered + spooled = acknowledged + lost + moved + deleted + in the queue."""
        table = Table(box=None, pad_edge=False)
        for title in ("Queue", "VPN"):
            table.add_column(title, overflow="fold")
        for title in ("came", "acknowledged", "lost", "moved", "deleted", "there", "difference"):
            table.add_column(title, justify="right")
        for row in rows:
            numbers = (
                row["recoveredMsgCount"] + row["spooledMsgCount"],
                row["ackedMsgCount"],
                sum(row["discarded"].values()),
                row["movedMsgCount"],
                row["deletedMsgCount"],
                row["msgCount"],
                row["imbalance"],
            )
            table.add_row(
                row["queueName"],
                row["msgVpnName"],
                *(f"{number:,}" for number in numbers),
                style=None if self.is_balanced(row) else "bold red",
            )
        self._console.print(table)
        wrong = sum(not self.is_balanced(row) for row in rows)
        said = f"{wrong} of {len(rows)} queues do not" if wrong else f"all {len(rows)} queues"
        self._console.print(f"{said} balance")

    def _title(self, row: Row) -> None:
        self._console.print(
            f"Queue {row['queueName']} in message VPN {row['msgVpnName']}: {row['msgCount']:,} messages"
        )


def is_stuck(row: Row) -> bool:
    """Whether messages wait and nobody takes them."""
    return row["msgCount"] > 0 and (not row["bindCount"] or not row["egressEnabled"])


def megabytes(size: int) -> str:
    """Bytes as megabytes; what is not nothing is not shown as nothing."""
    return f"{size / MEGABYTE:,.1f}" if not 0 < size < MEGABYTE // 20 else "<0.1"


def quota(row: Row) -> str:
    """The quota in megabytes; `last` for a last value queue."""
    return f"{row['maxMsgSpoolUsage']:,}" if row["maxMsgSpoolUsage"] else "last"


def age(milliseconds: int) -> str:
    """`1.2 s`, or hours, minutes and seconds."""
    if milliseconds < 0:
        return _NONE
    return (
        f"{milliseconds / 1_000:.1f} s"
        if milliseconds < 60_000
        else duration(milliseconds // 1_000)
    )
