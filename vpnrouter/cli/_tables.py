"""What `show` prints of its kinds of objects, and `queue browse` of messages: which attributes, in which order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TextIO

from rich.table import Table

from vpnrouter.cli._format import RenderBuffer, Row, cell
from vpnrouter.cli._grid import Column
from vpnrouter.cli._listing import Balanced, Listing, Spec
from vpnrouter.management.display import (
    BRIDGE,
    CLIENT,
    CONNECTOR,
    MSG,
    MSG_VPN,
    QUEUE,
    SUBSCRIPTION,
    Form,
    chosen,
)

_COUNTS: Final = (
    ("messages", "rxMsgCount", "txMsgCount"),
    ("message bytes", "rxByteCount", "txByteCount"),
)

_RATES: Final = (
    ("messages a second", "rxMsgRate", "txMsgRate"),
    ("bytes a second", "rxByteRate", "txByteRate"),
    ("messages a second, average", "averageRxMsgRate", "averageTxMsgRate"),
    ("bytes a second, average", "averageRxByteRate", "averageTxByteRate"),
)

_DISCARDED: Final = ("discarded", "rxDiscardedMsgCount", "txDiscardedMsgCount")

_CLIENT_STYLES: Final = {"away": "dim", "slow": "yellow"}

VPNS: Final = Spec(
    title=lambda row: f"Message VPN {row['msgVpnName']}: {row['state']}",
    columns=chosen(
        MSG_VPN,
        *("msgVpnName", "enabled", "state", "msgVpnConnections", "maxConnectionCount"),
        *("subscriptionCount", "maxSubscriptionCount", "bridgeCount", "rxMsgCount", "txMsgCount"),
        "discardedMsgCount",
    ),
    leaving=chosen(
        MSG_VPN,
        *("enabled", "maxSubscriptionCount", "maxConnectionCount", "bridgeCount"),
        *("subscriptionCount", "rxMsgCount", "txMsgCount"),
    ),
    wide=chosen(MSG_VPN, "rxByteCount", "txByteCount", "rxMsgRate", "txMsgRate", "discarded"),
    stats=(*_COUNTS, *_RATES, _DISCARDED, ("discarded in all", "discardedMsgCount", "")),
    reasons="discarded",
    style=lambda row: None if row["state"] == "up" else "dim",
)

CLIENTS: Final = Spec(
    title=lambda row: (
        f"Client {row['clientName']} in message VPN {row['msgVpnName']}:"
        f" {CLIENT['state'].value(row)}"
    ),
    columns=chosen(
        CLIENT,
        *("clientName", "msgVpnName", "clientUsername", "clientAddress", "platform", "state"),
        *("subscriptionCount", "uptime"),
    ),
    leaving=chosen(
        CLIENT,
        *("platform", "subscriptionCount", "uptime", "clientUsername", "clientAddress"),
        "msgVpnName",
    ),
    wide=chosen(
        CLIENT,
        *("clientId", "clientProfileName", "aclProfileName", "cleanSession", "keepalive"),
        *("tlsVersion", "bindCount", "rxMsgCount", "txMsgCount"),
        *("rxDiscardedMsgCount", "txDiscardedMsgCount", "outboxBytes", "memoryBytes"),
    ),
    stats=(*_COUNTS, _DISCARDED, ("waiting bytes", "", "outboxBytes")),
    reasons="discarded",
    style=lambda row: _CLIENT_STYLES.get(CLIENT["state"].value(row)),
)

SUBSCRIPTIONS: Final = Spec(
    title=lambda row: (
        f"Subscription {row['subscriptionTopic']} of {row['holder']} {row['name']}"
        f" in message VPN {row['msgVpnName']}"
    ),
    columns=chosen(SUBSCRIPTION, "subscriptionTopic", "holder", "name", "msgVpnName", "qos"),
    leaving=chosen(SUBSCRIPTION, "qos", "msgVpnName", "holder"),
    wide=chosen(SUBSCRIPTION, "clientUsername", "syntax", "shareName", "selector"),
)

CONNECTORS: Final = Spec(
    title=lambda row: (
        f"Connector {row['connectorName']} in message VPN {row['msgVpnName']}: {row['state']}"
    ),
    columns=chosen(
        CONNECTOR,
        *("connectorName", "msgVpnName", "state", "provider", "protocol", "linkCount", "uptime"),
        *("waitingMsgCount", "failure"),
    ),
    leaving=chosen(
        CONNECTOR,
        *("protocol", "linkCount", "uptime", "waitingMsgCount", "provider", "msgVpnName"),
    ),
    wide=chosen(
        CONNECTOR,
        *("enabled", "rxMsgCount", "txMsgCount", "discardedMsgCount", "memoryBytes"),
        *("failedAttempts", "troubles"),
    ),
    stats=(*_COUNTS, *_RATES, ("waiting", "", "waitingMsgCount")),
    style=lambda row: {"up": None, "disabled": "dim"}.get(row["state"], "yellow"),
)

HEALTH_COLOURS: Final = {
    "up": "green",
    "down": "bold red",
    "paused": "yellow",
    "stalled": "red",
    "unbound": "red",
    "incomplete": "yellow",
    "msg-vpn-disabled": "dim",
    "disabled": "dim",
}

BRIDGES: Final = Spec(
    title=lambda row: (
        f"Bridge {row['bridgeName']} in message VPN {row['msgVpnName']}: {row['health']}"
        + (f" ({row['inboundFailureReason']})" if row["inboundFailureReason"] else "")
    ),
    columns=chosen(
        BRIDGE,
        *("bridgeName", "msgVpnName", "remoteMsgVpnName", "remoteRouterName", "direction"),
        *("enabled", "inboundState", "outboundState", "queue", "uptime", "health"),
        "lastForwarded",
    ),
    leaving=chosen(
        BRIDGE,
        *("enabled", "direction", "outboundState", "inboundState", "lastForwarded", "queue"),
        *("uptime", "remoteRouterName", "remoteMsgVpnName", "msgVpnName"),
    ),
    wide=chosen(
        BRIDGE,
        *("establisher", "remoteAddress", "clientName", "maxTtl", "encrypted", "compressed"),
        *("dataRxMsgCount", "dataTxMsgCount", "discardedRxMsgCount", "discardedTxMsgCount"),
        *("failureCount", "failureReason"),
    ),
    stats=(
        ("messages", "dataRxMsgCount", "dataTxMsgCount"),
        ("message bytes", "dataRxByteCount", "dataTxByteCount"),
        ("control frames", "controlRxMsgCount", "controlTxMsgCount"),
        ("control bytes", "controlRxByteCount", "controlTxByteCount"),
        ("of these login frames", "loginRxMsgCount", "loginTxMsgCount"),
        ("all frames", "rxMsgCount", "txMsgCount"),
        ("all bytes", "rxByteCount", "txByteCount"),
        ("frames a second", "rxMsgRate", "txMsgRate"),
        ("bytes a second", "rxByteRate", "txByteRate"),
        ("frames a second, average", "averageRxMsgRate", "averageTxMsgRate"),
        ("bytes a second, average", "averageRxByteRate", "averageTxByteRate"),
        ("discarded", "discardedRxMsgCount", "discardedTxMsgCount"),
    ),
    style=lambda row: HEALTH_COLOURS.get(row["health"]) if row["health"] != "up" else None,
)

QUEUES: Final = Spec(
    title=lambda row: (
        f"Queue {row['queueName']} in message VPN {row['msgVpnName']}: {row['msgCount']:,} messages"
    ),
    columns=chosen(
        QUEUE,
        *("queueName", "msgVpnName", "endpointType", "accessType", "ingressEnabled"),
        *("egressEnabled", "msgCount", "maxSpooledMsgCount", "msgSpoolUsage", "maxMsgSpoolUsage"),
        *("txUnackedMsgCount", "bindCount", "lost", "oldestMsgAgeMs"),
    ),
    leaving=chosen(
        QUEUE,
        *("accessType", "ingressEnabled", "egressEnabled", "endpointType", "txUnackedMsgCount"),
        *("maxMsgSpoolUsage", "oldestMsgAgeMs", "maxSpooledMsgCount", "msgSpoolUsage"),
        "msgVpnName",
    ),
    wide=chosen(
        QUEUE,
        *("durable", "owner", "permission", "maxBindCount", "maxRedeliveryCount", "maxTtl"),
        *("deadMsgQueue", "spooledMsgCount", "ackedMsgCount", "redeliveredMsgCount"),
        *("highestMsgId", "replayState"),
    ),
    stats=(
        ("there when the router started", "recoveredMsgCount", ""),
        ("spooled", "spooledMsgCount", ""),
        ("acknowledged", "ackedMsgCount", ""),
        ("moved", "movedMsgCount", ""),
        ("deleted", "deletedMsgCount", ""),
        ("redelivered", "redeliveredMsgCount", ""),
        ("consumers let in", "bindSuccessCount", ""),
        ("consumers asked", "bindRequestCount", ""),
    ),
    style=lambda row: "yellow" if is_stuck(row) else None,
)


MSGS: Final = Spec(
    columns=chosen(
        MSG,
        *("msgId", "topic", "contentSize", "priority", "redeliveryCount", "spooledTime"),
        *("expiryTime", "publisherId"),
    ),
    leaving=chosen(MSG, "publisherId", "expiryTime", "priority", "redeliveryCount", "contentSize"),
)


class Half(NamedTuple):
    """One direction of a bridge's balance: what came in, and what became of it."""

    direction: str
    incoming: int
    outgoing: int
    discarded: Mapping[str, int]
    discarded_count: int
    in_flight: int

    @property
    def difference(self) -> int:
        """Messages not accounted for, 0 for none."""
        return self.incoming - self.outgoing - self.discarded_count - self.in_flight


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


_NUMBER: Final = Form.NUMBER

BRIDGE_BALANCE: Final = (
    Column("Bridge", Form.NAME),
    Column("VPN", Form.NAME, 4),
    Column("", Form.STATE),
    Column("", _NUMBER),
    Column("delivered/sent", _NUMBER),
    Column("discarded", _NUMBER, 3),
    Column("in flight", _NUMBER, 2),
    Column("difference", _NUMBER),
    Column("discards by reason", Form.COUNTS, 1),
)


class BridgeTables(Listing):
    """Prints bridges of the management API to `file`."""

    def __init__(self, file: TextIO | RenderBuffer) -> None:
        super().__init__(file, BRIDGES)

    is_balanced = staticmethod(is_balanced)

    def title(self, row: Row) -> None:
        """Name, message VPN, health and the reason for it, in the colour of the health."""
        self._console.print(BRIDGES.title(row), style=HEALTH_COLOURS.get(row["health"]))

    def detail(self, rows: Sequence[Row]) -> None:
        """All attributes of each bridge and its remote message VPNs."""
        for row in rows:
            self.title(row)
            last = BRIDGE["lastForwarded"]
            self.attributes({last.title.lower(): cell(last, row), **row})
            for remote in row["remotes"]:
                where = f"{remote['remoteMsgVpnName']} at {remote['remoteMsgVpnLocation']}"
                self._console.print(f"  remote message VPN {where}")
                self.attributes(remote, indent="    ")
            self._console.print()

    def add_reasons(self, table: Table, row: Row) -> None:
        """Discards of both directions by reason."""
        received, sent = row["discardedRx"], row["discardedTx"]
        for reason in sorted({*received, *sent}):
            counts = (received.get(reason, 0), sent.get(reason, 0))
            table.add_row(f"    {reason}", *(f"{count:,}" for count in counts))

    def balance(self, rows: Sequence[Row]) -> None:
        """Received = delivered + discarded + in flight, and offered = sent + discarded + in flight."""
        self.print_balance(
            BRIDGE_BALANCE,
            [
                Balanced(
                    (row["bridgeName"], row["msgVpnName"], half.direction),
                    (
                        *(half.incoming, half.outgoing, half.discarded_count, half.in_flight),
                        half.difference,
                    ),
                    half.discarded,
                )
                for row in rows
                for half in halves(row)
            ],
        )
        self.print_verdict([is_balanced(row) for row in rows], "bridges")


OUTCOMES: Final = ("delivered", "duplicate", "returned", "deadLetter", "discarded", "inFlight")
"""What becomes of the messages of a connector's link, as the counts of its row begin."""


def difference(link: Row) -> int:
    """Messages of a connector's link that are not accounted for, 0 for none."""
    found: int = link["msgCount"] - sum(link[f"{name}MsgCount"] for name in OUTCOMES)
    return found


CONNECTOR_BALANCE: Final = (
    Column("Connector", Form.NAME),
    Column("VPN", Form.NAME, 8),
    Column("Link", Form.NAME),
    Column("State", Form.STATE, 7),
    Column("messages", _NUMBER),
    Column("delivered", _NUMBER),
    Column("duplicates", _NUMBER, 2),
    Column("returned", _NUMBER, 3),
    Column("dead letters", _NUMBER, 6),
    Column("discarded", _NUMBER, 5),
    Column("in flight", _NUMBER, 4),
    Column("difference", _NUMBER),
    Column("discards by reason", Form.COUNTS, 1),
)


class ConnectorTables(Listing):
    """Prints connectors of the management API to `file`."""

    def __init__(self, file: TextIO | RenderBuffer) -> None:
        super().__init__(file, CONNECTORS)

    @staticmethod
    def is_balanced(row: Row) -> bool:
        """Whether every message of each link is accounted for."""
        return not any(map(difference, row["links"]))

    def title(self, row: Row) -> None:
        """Name, message VPN and state, in the colour of the state."""
        style = None if CONNECTORS.style is None else CONNECTORS.style(row)
        self._console.print(CONNECTORS.title(row), style=style)

    def detail(self, rows: Sequence[Row]) -> None:
        """All attributes of each connector and of its links."""
        for row in rows:
            self.title(row)
            self.attributes({name: value for name, value in row.items() if name != "links"})
            for link in row["links"]:
                self._console.print(f"  link {link['linkName']}: {link['state']}")
                self.attributes(link, indent="    ")
            self._console.print()

    def balance(self, rows: Sequence[Row]) -> None:
        """Messages = delivered + duplicates + returned + dead letters + discarded + in flight, for each link."""
        self.print_balance(
            CONNECTOR_BALANCE,
            [
                Balanced(
                    (row["connectorName"], row["msgVpnName"], link["linkName"], link["state"]),
                    (
                        link["msgCount"],
                        *(link[f"{name}MsgCount"] for name in OUTCOMES),
                        difference(link),
                    ),
                    link["discards"],
                )
                for row in rows
                for link in row["links"]
            ],
        )
        self.print_verdict([self.is_balanced(row) for row in rows], "connectors")


QUEUE_BALANCE: Final = (
    Column("Queue", Form.NAME),
    Column("VPN", Form.NAME, 3),
    Column("came", _NUMBER),
    Column("acknowledged", _NUMBER),
    Column("lost", _NUMBER),
    Column("moved", _NUMBER, 1),
    Column("deleted", _NUMBER, 2),
    Column("there", _NUMBER),
    Column("difference", _NUMBER),
)


class QueueTables(Listing):
    """Prints queues of the management API to `file`."""

    def __init__(self, file: TextIO | RenderBuffer) -> None:
        super().__init__(file, QUEUES)

    @staticmethod
    def is_balanced(row: Row) -> bool:
        """Whether every message of the queue is accounted for."""
        return not row["imbalance"]

    def title(self, row: Row) -> None:
        """Name, message VPN and messages, without a colour."""
        self._console.print(QUEUES.title(row))

    def stats(self, rows: Sequence[Row]) -> None:
        """Counts of each queue, and the messages that it lost or refused, by reason."""
        for row in rows:
            self.title(row)
            table = Table(box=None, show_header=False, pad_edge=False)
            for label, name, _ in QUEUES.stats:
                table.add_row(f"  {label}", f"{row[name]:,}")
            for label, name in (("lost", "discarded"), ("not taken", "refused")):
                for reason, count in sorted(row[name].items()):
                    table.add_row(f"  {label}: {reason}", f"{count:,}")
            table.columns[1].justify = "right"
            self._console.print(table)
            self._console.print()

    def balance(self, rows: Sequence[Row]) -> None:
        """Recovered + spooled = acknowledged + lost + moved + deleted + in the queue."""
        self.print_balance(
            QUEUE_BALANCE,
            [
                Balanced(
                    (row["queueName"], row["msgVpnName"]),
                    (
                        row["recoveredMsgCount"] + row["spooledMsgCount"],
                        row["ackedMsgCount"],
                        sum(row["discarded"].values()),
                        row["movedMsgCount"],
                        row["deletedMsgCount"],
                        row["msgCount"],
                        row["imbalance"],
                    ),
                )
                for row in rows
            ],
        )
        self.print_verdict([self.is_balanced(row) for row in rows], "queues")


def is_stuck(row: Row) -> bool:
    """Whether messages wait while no consumer can take them."""
    return row["msgCount"] > 0 and (not row["bindCount"] or not row["egressEnabled"])
