"""Tables on terminals of several widths: each row is one line, whose columns leave or are cut in an order."""

import io
import re
from collections.abc import Callable
from typing import Any, Final

import pytest
from rich.cells import cell_len

from vpnrouter.cli import app
from vpnrouter.cli._format import cell
from vpnrouter.cli._listing import Listing, Spec
from vpnrouter.cli._tables import (
    BRIDGES,
    CLIENTS,
    CONNECTORS,
    MSGS,
    QUEUES,
    SUBSCRIPTIONS,
    VPNS,
    BridgeTables,
    ConnectorTables,
    QueueTables,
)
from vpnrouter.management.answers.rows import row_of
from vpnrouter.management.status.clients import ClientStatus, SubscriptionStatus
from vpnrouter.management.status.queues import QueueStatus

WIDTHS: Final = (80, 120, 200)


class Screen(io.StringIO):
    """A file that is a terminal."""

    def isatty(self) -> bool:
        """It is one."""
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Screen]:
    """`terminal(width)` gives a terminal of so many columns."""

    def made(width: int) -> Screen:
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setenv("TERM", "xterm")
        return Screen()

    return made


def vpn(number: int) -> dict[str, Any]:
    """A message VPN of a site."""
    return {
        "msgVpnName": f"plant-{number}", "enabled": number % 7 > 0, "state": "up" if number % 7 else "down",
        "msgVpnConnections": 1_000 * number, "maxConnectionCount": 100_000, "subscriptionCount": 12_345 * number,
        "maxSubscriptionCount": 500_000, "bridgeCount": number, "rxMsgCount": 1_234_567 * number,
        "txMsgCount": 7_654_321, "discardedMsgCount": 99, "rxByteCount": 10**9, "txByteCount": 10**9,
        "rxMsgRate": 1_000, "txMsgRate": 1_000, "discarded": {"transmit-congestion": 99, "no-subscription-match": 7},
    }  # fmt: skip


def client(number: int) -> dict[str, Any]:
    """A client; each tenth one is the session of one that is away, each hundredth another router's bridge."""
    name = f"plant-{number % 9}/line-{number % 17}/sensor-{number:05}"
    if not number % 100:
        name = f"#bridge/site-{number // 100:03}/plant-{number % 9}/from-headquarters"
    return row_of(
        ClientStatus(
            *(f"plant-{number % 9}", name, f"sensor-{number % 9}", name),
            client_address=f"192.0.2.{number % 255}:{40_000 + number}",
            platform="MQTT 3.1.1",
            connected=number % 10 > 0,
            uptime=100_000 + number,
            subscription_count=number,
        )
    )


def subscription(number: int) -> dict[str, Any]:
    """A subscription of a client."""
    topic = f"plants/{number % 9}/lines/{number % 17}/commands/sensor-{number:05}/#"
    name = f"plant-{number % 9}-sensor-{number:05}"
    return row_of(
        SubscriptionStatus(
            f"plant-{number % 9}",
            topic,
            syntax="mqtt",
            holder="client",
            name=name,
            qos=1,
            share_name="",
            selector="",
            client_username="ann",
        )
    )


def queue(number: int) -> dict[str, Any]:
    """A queue; each twentieth one is the topic endpoint of a long name."""
    name = f"orders-{number:04}"
    if not number % 20:
        name = f"#topic-endpoint/maintenance-of-machines-of-hall-{number:04}"
    return row_of(
        QueueStatus(
            msg_vpn_name=f"plant-{number % 9}",
            queue_name=name,
            endpoint_type="queue" if number % 20 else "topic-endpoint",
            max_msg_spool_usage=5_000,
            msg_count=number * 4_321,
            msg_spool_usage=number * 1_000_000,
            oldest_msg_age_ms=3_725_000,
            discarded={"max-ttl-expired": number},
        )
    )


def bridge(number: int) -> dict[str, Any]:
    """A bridge; each ninth one is another router's, each seventh down."""
    down = not number % 7
    name = f"from-plant-{number:02}"
    if not number % 9:
        name = f"#bridge/site-{number:02}/plant-{number:02}/from-headquarters"
    state = "not-ready-wait-next" if down else "ready-in-sync"
    return {
        "bridgeName": name, "msgVpnName": "headquarters", "remoteMsgVpnName": f"plant-{number:02}",
        "remoteRouterName": f"site-{number:02}.example.org", "enabled": True, "inboundState": state,
        "outboundState": "not-applicable", "boundToQueue": not down, "remoteQueueStandby": False,
        "remotes": [{"queueBinding": "to-headquarters"}], "uptime": 0 if down else 356_521,
        "health": "down" if down else "up", "lastRxAgeMs": 120_999, "lastTxAgeMs": -1, "establisher": "local",
        "remoteAddress": "192.0.2.7:55555", "clientName": "#bridge/hq/headquarters/from-plant",
        "maxTtl": 8, "encrypted": True, "compressed": False, "dataRxMsgCount": 1_234_567, "dataTxMsgCount": 0,
        "discardedRxMsgCount": 3, "discardedTxMsgCount": 0, "failureCount": number,
        "inboundFailureReason": "cannot connect to 192.0.2.7:55555: No route to host" if down else "",
        "outboundFailureReason": "", "deliveredRxMsgCount": 1_234_564, "discardedRx": {"loop-detected": 3},
        "rxInFlightMsgCount": 0, "offeredTxMsgCount": 0, "discardedTx": {}, "txInFlightMsgCount": 0,
    }  # fmt: skip


LINK: Final = {
    "linkName": "measurements-in", "state": "down", "stateReason": "", "msgCount": 10, "deliveredMsgCount": 4,
    "duplicateMsgCount": 1, "returnedMsgCount": 1, "deadLetterMsgCount": 1, "discardedMsgCount": 1,
    "inFlightMsgCount": 2, "discards": {"msg-too-big": 1},
}  # fmt: skip


def connector(number: int) -> dict[str, Any]:
    """A connector that is down."""
    return {
        "connectorName": f"measurements-of-plant-{number:02}", "msgVpnName": "headquarters", "state": "waiting",
        "provider": f"mqtts://broker-{number:02}.plants.example.org:8883", "protocol": "MQTT 5", "uptime": 0,
        "waitingMsgCount": 1_234, "failure": f"cannot connect to broker-{number:02}: Connection refused",
        "enabled": True, "rxMsgCount": 1, "txMsgCount": 2, "discardedMsgCount": 3, "memoryBytes": 4,
        "failedAttempts": 5, "links": [LINK],
    }  # fmt: skip


def msg(number: int) -> dict[str, Any]:
    """A message in a queue."""
    return {
        "msgId": 10**17 + number, "topic": f"plants/{number % 9}/orders/of/customers/{number:06}",
        "contentSize": 1_000 * number, "priority": 4, "redeliveryCount": 0, "spooledTime": 1_795_316_400,
        "expiryTime": 0, "publisherId": f"plant-{number % 9}/line-{number % 17}/sensor-{number:05}",
    }  # fmt: skip


KINDS: Final = {
    "vpns": (VPNS, vpn, 20),
    "clients": (CLIENTS, client, 1_000),
    "subscriptions": (SUBSCRIPTIONS, subscription, 1_000),
    "queues": (QUEUES, queue, 300),
    "bridges": (BRIDGES, bridge, 50),
    "connectors": (CONNECTORS, connector, 5),
    "messages": (MSGS, msg, 50),
}

TITLES: Final = {
    ("vpns", 80): "VPN State Clients Subs Bridges Rx msgs Tx msgs Discarded",
    ("clients", 80): "Client VPN Address State",
    ("clients", 120): "Client VPN Username Address State Subs Uptime",
    ("subscriptions", 80): "Topic Holder Name VPN QoS",
    ("queues", 80): "Queue VPN Msgs MB Flows Lost",
    ("queues", 120): "Queue VPN Msgs of MB of MB Flows Lost Oldest",
    ("bridges", 80): "Bridge VPN Remote VPN Health",
    ("bridges", 120): "Bridge VPN Remote VPN Router Queue Uptime Health",
    ("connectors", 80): "Connector VPN State Failure",
    ("connectors", 120): "Connector VPN State Provider Protocol Links Uptime Wait Failure",
    ("messages", 80): "Message Topic Bytes Prio Again Spooled",
}
"""Columns that have room."""


def plain(file: io.StringIO) -> list[str]:
    """The lines of a file without their colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", file.getvalue()).splitlines()


def printed(file: io.StringIO, spec: Spec, rows: list[dict[str, Any]], *, wide: bool) -> list[str]:
    """The lines of an overview whose rows come in two blocks."""
    listing = Listing(file, spec)
    listing.overview(rows[: len(rows) // 2], wide=wide)
    listing.overview(rows[len(rows) // 2 :], wide=wide)
    return plain(file)


@pytest.mark.parametrize("wide", [False, True], ids=["", "wide"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_row_is_a_line(
    kind: str, width: int, wide: bool, terminal: Callable[[int], Screen]
) -> None:
    """However narrow the terminal is, a name is whole, or keeps its beginning and its end."""
    spec, make, count = KINDS[kind]
    rows = [make(number) for number in range(1, count + 1)]
    titles, *lines = printed(terminal(width), spec, rows, wide=wide)
    assert len(lines) == count
    assert max(map(cell_len, (titles, *lines))) <= width
    if (kind, width) in TITLES and not wide:
        assert titles.split() == TITLES[kind, width].split()
    first = spec.columns[0]
    for row, line in zip(rows, lines, strict=True):
        name = str(first.value(row))
        head, cut, tail = line.strip().split("  ")[0].partition("…")
        assert name == head or (cut and name.startswith(head) and name.endswith(tail)), line


@pytest.mark.parametrize("wide", [False, True], ids=["", "wide"])
@pytest.mark.parametrize("kind", KINDS)
def test_other_programs_get_everything(kind: str, wide: bool) -> None:
    """All columns under their own titles, and nothing is cut."""
    spec, make, _ = KINDS[kind]
    rows = [make(number) for number in (1, 2, 9, 100)]
    titles, *lines = printed(io.StringIO(), spec, rows, wide=wide)
    columns = spec.columns + (spec.wide if wide else ())
    assert titles.split() == " ".join(column.title for column in columns).split()
    for row, line in zip(rows, lines, strict=True):
        assert "…" not in line
        assert all(cell(column, row) in line for column in columns)


@pytest.mark.parametrize("kind", KINDS)
def test_order_of_leaving(kind: str) -> None:
    """It has columns that are there; the one that names the object never leaves."""
    spec, _, _ = KINDS[kind]
    assert len(set(spec.leaving)) == len(spec.leaving)
    assert set(spec.leaving) <= set(spec.columns[1:])


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    ("tables", "make"),
    [(BridgeTables, bridge), (ConnectorTables, connector), (QueueTables, queue)],
    ids=["bridges", "connectors", "queues"],
)
def test_balances(
    tables: Any, make: Callable[[int], Any], width: int, terminal: Callable[[int], Screen]
) -> None:
    """The difference is always there, and a row is a line."""
    file = terminal(width)
    tables(file).balance([make(number) for number in range(1, 21)])
    titles, *lines, verdict = plain(file)
    assert "difference" in titles
    assert "20" in verdict
    assert len(lines) == (40 if tables is BridgeTables else 20)
    assert max(map(cell_len, lines)) <= width


def test_labels_of_details_are_whole(terminal: Callable[[int], Screen]) -> None:
    """A long value is folded beside them."""
    file = terminal(80)
    row = bridge(7) | {"inboundFailureReason": "cannot connect: " * 10, "remotes": []}
    BridgeTables(file).detail([row])
    lines = plain(file)
    (first,) = [place for place, line in enumerate(lines) if "inbound failure reason" in line]
    assert lines[first + 1].startswith(" " * 24)
    assert max(map(cell_len, lines)) <= 80


@pytest.mark.parametrize(
    ("width", "more", "said"),
    [
        (80, ["--wide"], "columns have no room here; a pipe or --json gives all"),
        (80, [], ""),
        (1_000, ["--wide"], ""),
    ],
)
def test_what_was_asked_for_and_has_no_room_is_told(
    width: int,
    more: list[str],
    said: str,
    served: Any,
    monkeypatch: Any,
    terminal: Any,
    capsys: Any,
) -> None:
    """Once, behind the table, on stderr."""
    file = terminal(width)
    monkeypatch.setattr("sys.stdout", file)
    assert app.run(["show", "clients", *more, "--url", served.url]) == 0
    told = capsys.readouterr().err
    assert said in told
    assert bool(told) == bool(said)
    assert len(plain(file)) == 7, "titles, four clients, two bridges"
