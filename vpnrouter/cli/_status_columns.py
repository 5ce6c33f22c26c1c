"""Message VPNs, clients and subscriptions as tables: which columns they have, and what counts."""

from typing import Final

from vpnrouter.cli._listing import Column, Spec
from vpnrouter.cli._printed import Row, duration, shown

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


def _count(title: str, name: str) -> Column:
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
        _count("Clients", "msgVpnConnections"),
        _of("maxConnectionCount"),
        _count("Subscriptions", "subscriptionCount"),
        _of("maxSubscriptionCount"),
        _count("Bridges", "bridgeCount"),
        _count("Rx messages", "rxMsgCount"),
        _count("Tx messages", "txMsgCount"),
        _count("Discarded", "discardedMsgCount"),
    ),
    wide=(
        _count("Rx bytes", "rxByteCount"),
        _count("Tx bytes", "txByteCount"),
        _count("Rx rate", "rxMsgRate"),
        _count("Tx rate", "txMsgRate"),
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
        _count("Subscriptions", "subscriptionCount"),
        Column("Uptime", lambda row: duration(row["uptime"]) if row["connected"] else _NONE),
    ),
    wide=(
        _text("Client id", "clientId"),
        _text("Client profile", "clientProfileName"),
        _text("ACL profile", "aclProfileName"),
        _flag("Clean", "cleanSession"),
        _count("Keepalive", "keepalive"),
        _text("TLS", "tlsVersion"),
        _count("Flows", "bindCount"),
        _count("Rx messages", "rxMsgCount"),
        _count("Tx messages", "txMsgCount"),
        _count("Rx discards", "rxDiscardedMsgCount"),
        _count("Tx discards", "txDiscardedMsgCount"),
        _count("Waiting bytes", "outboxBytes"),
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
        _count("QoS", "qos"),
    ),
    wide=(
        _text("Syntax", "syntax"),
        _text("Share", "shareName"),
        _text("Selector", "selector"),
    ),
)
