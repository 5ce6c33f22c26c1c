"""Tables of `show`: overview, details, counts and balance of bridges and queues, and how values read."""

import io
from dataclasses import fields, replace
from typing import Any

import pytest

from vpnrouter.bridges.status import BridgeStatus
from vpnrouter.cli._format import (
    cell,
)
from vpnrouter.cli._listing import Listing, Spec
from vpnrouter.cli._tables import (
    BRIDGES,
    CLIENTS,
    QUEUES,
    SUBSCRIPTIONS,
    VPNS,
    BridgeTables,
    ConnectorTables,
    halves,
    is_balanced,
    is_stuck,
)
from vpnrouter.management.answers.rows import row_of
from vpnrouter.management.display import BRIDGE, CLIENT, MSG_VPN, QUEUE, Display, Form
from vpnrouter.management.msg_vpns import status_of
from vpnrouter.management.status.clients import ClientStatus, SubscriptionStatus
from vpnrouter.management.status.msg_vpns import MsgVpnStatus
from vpnrouter.management.status.queues import QueueStatus
from vpnrouter.text import camel

COUNTS = {
    "dataRxMsgCount": 10,
    "deliveredRxMsgCount": 6,
    "discardedRx": {"loop-detected": 3},
    "discardedRxMsgCount": 3,
    "rxInFlightMsgCount": 1,
    "offeredTxMsgCount": 9,
    "dataTxMsgCount": 4,
    "discardedTx": {},
    "discardedTxMsgCount": 0,
    "txInFlightMsgCount": 5,
}


def test_the_balance() -> None:
    """Each direction is what came minus what went, was discarded and is in flight."""
    assert [half.difference for half in halves(COUNTS)] == [0, 0]
    assert is_balanced(COUNTS)
    assert not is_balanced(COUNTS | {"rxInFlightMsgCount": 0})
    assert not is_balanced(COUNTS | {"discardedRx": {"loop-detected": 2}}), "a reason is missing"


@pytest.mark.parametrize(
    ("spec", "kind"),
    [(VPNS, MsgVpnStatus), (CLIENTS, ClientStatus), (BRIDGES, BridgeStatus), (QUEUES, QueueStatus)],
    ids=["message VPN", "client", "bridge", "queue"],
)
def test_every_count_of_show_stats_is_one_of_the_status(spec: Spec, kind: Any) -> None:
    """What a line of `show --stats` counts is an attribute of the status class."""
    counted = {name for _, *both in spec.stats for name in both} | {spec.reasons}
    assert counted - {""} <= {camel(field.name) for field in fields(kind)}


@pytest.mark.parametrize(
    ("display", "row", "text"),
    [
        *(
            (CLIENT["uptime"], {"connected": True, "uptime": seconds}, text)
            for seconds, text in [
                (0, "00:00:00"),
                (61, "00:01:01"),
                (86_399, "23:59:59"),
                (356_521, "4d 03:02:01"),
            ]
        ),
        (CLIENT["uptime"], {"connected": False, "uptime": 61}, "-"),
        *(
            (BRIDGE["lastForwarded"], {"lastRxAgeMs": rx, "lastTxAgeMs": tx}, text)
            for rx, tx, text in [
                (-1, -1, "never"),
                (0, -1, "0.0 s ago"),
                (-1, 2_149, "2.1 s ago"),
                (59_000, 70_000, "59.0 s ago"),
                (120_999, 3_600_000, "00:02:00 ago"),
            ]
        ),
        *(
            (QUEUE["msgSpoolUsage"], {"msgSpoolUsage": size}, text)
            for size, text in [(0, "0.0"), (1, "<0.1"), (60_000, "0.1"), (10_000_000, "10.0")]
        ),
        *(
            (QUEUE["oldestMsgAgeMs"], {"oldestMsgAgeMs": age}, text)
            for age, text in [(-1, "-"), (1_250, "1.2 s"), (61_000, "00:01:01")]
        ),
        (QUEUE["maxMsgSpoolUsage"], {"maxMsgSpoolUsage": 0}, "last"),
        (MSG_VPN["maxConnectionCount"], {"maxConnectionCount": 0}, "any"),
        (MSG_VPN["bridgeCount"], {}, "0"),
    ],
)
def test_how_values_are_written(display: Display, row: dict[str, int], text: str) -> None:
    """Durations, ages, sizes and bounds; what an earlier router does not report counts as 0."""
    assert cell(display, row) == text


def test_output_for_programs_is_not_folded() -> None:
    """Where there is no terminal, a row is one line however long its names are."""
    file = io.StringIO()
    row = COUNTS | {"bridgeName": "b" * 150, "msgVpnName": "[bold]v[/bold]:smile:"}
    BridgeTables(file).balance([row])
    lines = file.getvalue().splitlines()
    assert len(lines) == 4
    assert "b" * 150 in lines[1]
    assert "[bold]v[/bold]:smile:" in lines[2]
    assert "\x1b" not in file.getvalue()


STATUS = QueueStatus(
    msg_vpn_name="blue",
    queue_name="orders[1]",
    max_msg_spool_usage=5_000,
    msg_count=1_234,
    msg_spool_usage=2_500_000,
    spooled_msg_count=2_000,
    acked_msg_count=756,
    moved_msg_count=3,
    discarded={"max-ttl-expired": 7},
    refused={"max-msg-size-exceeded": 2},
    oldest_msg_age_ms=3_725_000,
)


@pytest.mark.parametrize(
    ("changes", "stuck"),
    [
        ({}, True),
        ({"bind_count": 1}, False),
        ({"bind_count": 1, "egress_enabled": False}, True),
        ({"msg_count": 0}, False),
    ],
)
def test_stuck(changes: dict[str, Any], stuck: bool) -> None:
    """Messages that nobody takes are to be seen at once."""
    assert is_stuck(row_of(replace(STATUS, **changes))) is stuck


SPEC = Spec(
    title=lambda row: f"Thing {row['name']}",
    columns=(
        Display("Name", of=("name",)),
        Display("Count", Form.NUMBER, of=("count",)),
    ),
    wide=(Display("More", of=("more",)),),
    stats=(("messages", "rx", "tx"), ("waiting", "", "waits"), ("of later", "later", "later")),
    reasons="discarded",
)


def test_detail_and_stats() -> None:
    """All attributes; counts both ways, what this router does not tell left out, reasons by name."""
    file = io.StringIO()
    listing = Listing(file, SPEC)
    row = {"name": "a", "rx": 1_000, "tx": 2, "waits": 3, "discarded": {"loop": 4}}
    listing.detail([row])
    listing.stats([row])
    said = [tuple(line.split()) for line in file.getvalue().splitlines()]
    assert ("Thing", "a") in said
    assert ("messages", "1,000", "2") in said
    assert ("waiting", "3") in said
    assert ("discarded:", "loop", "4") in said
    assert not [line for line in said if line[:2] == ("of", "later")]


CLIENT = ClientStatus("blue", "c[1]", "ann", platform="MQTT 5", uptime=61, tx_msg_count=1_234)
SUBSCRIPTION = SubscriptionStatus(
    "blue",
    "a/#",
    syntax="mqtt",
    holder="client",
    name="c[1]",
    qos=1,
    share_name="g",
    selector="",
    client_username="ann",
)


def lines(spec: Spec, row: Any, how: str = "overview", **given: Any) -> list[list[str]]:
    """Words of what is printed of one row."""
    file = io.StringIO()
    getattr(Listing(file, spec), how)([row], **given)
    return [line.split() for line in file.getvalue().splitlines() if line.strip()]


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({}, "connected"),
        ({"connected": False}, "away"),
        ({"slowSubscriber": True}, "slow"),
    ],
)
def test_a_client(changes: dict[str, Any], state: str) -> None:
    """Name, who it is, and its state."""
    _, words = lines(CLIENTS, row_of(CLIENT) | changes, wide=True)
    assert words[:3] == ["c[1]", "blue", "ann"]
    assert state in words


def test_counts_of_a_client() -> None:
    """Sent messages stand under sent."""
    assert ["messages", "0", "1,234"] in lines(CLIENTS, row_of(CLIENT), "stats")


def test_a_subscription() -> None:
    """Its topic and who holds it."""
    _, words = lines(SUBSCRIPTIONS, row_of(SUBSCRIPTION), wide=True)
    assert words == ["a/#", "client", "c[1]", "blue", "1", "ann", "mqtt", "g", "-"]


def test_a_msg_vpn(here: Any) -> None:
    """Clients and subscriptions with their bounds."""
    status = status_of(here.context, "blue")
    assert status is not None
    row = row_of(status)
    _, words = lines(VPNS, row, wide=True)
    assert words[:3] == ["blue", "enabled", "up"]
    assert lines(VPNS, row, "detail")[0] == ["Message", "VPN", "blue:", "up"]
    assert lines(VPNS, row, "stats")


LINK = {
    "linkName": "in",
    "state": "held",
    "stateReason": "503 Spool Over Quota",
    "msgCount": 10,
    "deliveredMsgCount": 4,
    "duplicateMsgCount": 1,
    "returnedMsgCount": 1,
    "deadLetterMsgCount": 1,
    "discardedMsgCount": 1,
    "inFlightMsgCount": 2,
    "discards": {"msg-too-big": 1},
}
CONNECTOR = {"connectorName": "there", "msgVpnName": "blue", "state": "up", "links": [LINK]}


@pytest.mark.parametrize(("delivered", "told"), [(4, "all 1 connectors balance"), (3, "1 of 1")])
def test_balance_of_connectors(delivered: int, told: str) -> None:
    """Each link has a row with what became of its messages; one that is missing is told."""
    row = {**CONNECTOR, "links": [{**LINK, "deliveredMsgCount": delivered}]}
    out = io.StringIO()
    tables = ConnectorTables(out)
    tables.balance([row])
    assert told in out.getvalue()
    assert "msg-too-big" in out.getvalue()
    assert tables.is_balanced(row) == (delivered == 4)
    tables.detail([row])
    assert "link in: held" in out.getvalue()
    assert "503 Spool Over Quota" in out.getvalue()
