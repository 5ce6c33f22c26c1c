"""Message VPNs, clients, subscriptions, bridges and queues as tables: overview, detail, counts, and the balance."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TextIO

from rich.table import Table

from vpnrouter.cli._format import (
    RenderBuffer,
    Row,
    add_rate_columns,
    console_for,
    duration,
    printer_for,
    rate_cells,
    shown,
    words,
)
from vpnrouter.cli._listing import Column, Spec
from vpnrouter.units import MEGABYTE

_NONE: Final = "-"

_TRAFFIC: Final = (
    ("messages", "rxMsgCount", "txMsgCount"),
    ("message bytes", "rxByteCount", "txByteCount"),
    ("messages a second", "rxMsgRate", "txMsgRate"),
    ("bytes a second", "rxByteRate", "txByteRate"),
    ("messages a second, average", "averageRxMsgRate", "averageTxMsgRate"),
    ("bytes a second, average", "averageRxByteRate", "averageTxByteRate"),
    ("discarded", "rxDiscardedMsgCount", "txDiscardedMsgCount"),
)


def _text(title: str, name: str) -> Column:
    return Column(title, lambda row: str(row[name]) or _NONE)


def _number(title: str, name: str) -> Column:
    return Column(title, lambda row: f"{row.get(name, 0):,}", right=True)


def _flag(title: str, name: str) -> Column:
    return Column(title, lambda row: shown(bool(row[name])))


def _of(most: str) -> Column:
    """A count with its bound, the more telling the nearer they are."""
    return Column("of", lambda row: f"{row[most]:,}" if row[most] else "any", right=True)


def _client_state(row: Row) -> str:
    if not row["connected"]:
        return "away"
    return "slow" if row["slowSubscriber"] else "connected"


def _client_style(row: Row) -> str | None:
    return {"away": "dim", "slow": "yellow"}.get(_client_state(row))


VPNS: Final = Spec(
    title=lambda row: f"Message VPN {row['msgVpnName']}: {row['state']}",
    columns=(
        _text("VPN", "msgVpnName"),
        Column("Admin", lambda row: "enabled" if row["enabled"] else "disabled"),
        _text("State", "state"),
        _number("Clients", "msgVpnConnections"),
        _of("maxConnectionCount"),
        _number("Subscriptions", "subscriptionCount"),
        _of("maxSubscriptionCount"),
        _number("Bridges", "bridgeCount"),
        _number("Rx messages", "rxMsgCount"),
        _number("Tx messages", "txMsgCount"),
        _number("Discarded", "discardedMsgCount"),
    ),
    wide=(
        _number("Rx bytes", "rxByteCount"),
        _number("Tx bytes", "txByteCount"),
        _number("Rx rate", "rxMsgRate"),
        _number("Tx rate", "txMsgRate"),
        Column("Discards by reason", lambda row: shown(row["discarded"])),
    ),
    stats=(*_TRAFFIC, ("discarded in all", "discardedMsgCount", "")),
    reasons="discarded",
    style=lambda row: None if row["state"] == "up" else "dim",
)

CLIENTS: Final = Spec(
    title=lambda row: (
        f"Client {row['clientName']} in message VPN {row['msgVpnName']}: {_client_state(row)}"
    ),
    columns=(
        _text("Client", "clientName"),
        _text("VPN", "msgVpnName"),
        _text("Username", "clientUsername"),
        _text("Address", "clientAddress"),
        _text("Platform", "platform"),
        Column("State", _client_state),
        _number("Subscriptions", "subscriptionCount"),
        Column("Uptime", lambda row: duration(row["uptime"]) if row["connected"] else _NONE),
    ),
    wide=(
        _text("Client id", "clientId"),
        _text("Client profile", "clientProfileName"),
        _text("ACL profile", "aclProfileName"),
        _flag("Clean", "cleanSession"),
        _number("Keepalive", "keepalive"),
        _text("TLS", "tlsVersion"),
        _number("Flows", "bindCount"),
        _number("Rx messages", "rxMsgCount"),
        _number("Tx messages", "txMsgCount"),
        _number("Rx discards", "rxDiscardedMsgCount"),
        _number("Tx discards", "txDiscardedMsgCount"),
        _number("Waiting bytes", "outboxBytes"),
    ),
    stats=(*_TRAFFIC, ("waiting bytes", "", "outboxBytes")),
    reasons="discarded",
    style=_client_style,
)

SUBSCRIPTIONS: Final = Spec(
    title=lambda row: (
        f"Subscription {row['subscriptionTopic']} of {row['holder']} {row['name']}"
        f" in message VPN {row['msgVpnName']}"
    ),
    columns=(
        _text("Topic", "subscriptionTopic"),
        _text("Holder", "holder"),
        _text("Name", "name"),
        _text("VPN", "msgVpnName"),
        _number("QoS", "qos"),
    ),
    wide=(
        _text("Syntax", "syntax"),
        _text("Share", "shareName"),
        _text("Selector", "selector"),
    ),
)


__all__ = ["Row", "Tables", "console_for", "duration", "shown", "words"]


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

    def __init__(self, file: TextIO | RenderBuffer) -> None:
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


_QUEUE_COUNTS: Final = (
    ("there when the router started", "recoveredMsgCount"),
    ("spooled", "spooledMsgCount"),
    ("acknowledged", "ackedMsgCount"),
    ("moved", "movedMsgCount"),
    ("deleted", "deletedMsgCount"),
    ("redelivered", "redeliveredMsgCount"),
    ("consumers let in", "bindSuccessCount"),
    ("consumers asked", "bindRequestCount"),
)


_WIDE_QUEUE_COLUMNS: Final = (
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

    def __init__(self, file: TextIO | RenderBuffer) -> None:
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
        for title, _ in _WIDE_QUEUE_COLUMNS if wide else ():
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
                *(shown(row[name]) for _, name in (_WIDE_QUEUE_COLUMNS if wide else ())),
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
            for label, name in _QUEUE_COUNTS:
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
