from dataclasses import dataclass, fields

import pytest

from vpnrouter.bridges.status import BridgeStatus, RemoteStatus
from vpnrouter.management.responses import camel, names_of, row_of, schema_of

FIELD_NAMES = """
    averageRxByteRate averageRxMsgRate averageTxByteRate averageTxMsgRate boundToQueue clientName
    compressed controlRxByteCount controlRxMsgCount controlTxByteCount controlTxMsgCount
    dataRxByteCount dataRxMsgCount dataTxByteCount dataTxMsgCount discardedRxMsgCount
    discardedTxMsgCount encrypted establisher inboundFailureReason inboundState localInterface
    localQueueName loginRxMsgCount loginTxMsgCount outboundState remoteAddress remoteMsgVpnName
    remoteRouterName rxByteCount rxByteRate rxMsgCount rxMsgRate ttlExceededEventRaised
    txByteCount txByteRate txMsgCount txMsgRate uptime msgVpnName bridgeName
    bridgeVirtualRouter
"""
"""Attributes of a bridge that the field's monitoring has, as scripts spell them."""


@pytest.mark.parametrize(
    ("name", "shown"),
    [("uptime", "uptime"), ("msg_vpn_name", "msgVpnName"), ("last_rx_age_ms", "lastRxAgeMs")],
)
def test_camel(name: str, shown: str) -> None:
    """The first word stays small, the others begin with a capital."""
    assert camel(name) == shown


def test_a_bridge_has_the_names_of_the_field() -> None:
    """Every attribute that scripts know is there under its name."""
    assert set(names_of(BridgeStatus)) >= set(FIELD_NAMES.split())


def test_objects_inside_are_no_attributes() -> None:
    """A bridge's row holds all its plain attributes and not its remotes, which have a path of their own."""
    plain = {camel(field.name) for field in fields(BridgeStatus)} - {"remotes"}
    assert set(names_of(BridgeStatus)) == plain


def test_rows_and_schema() -> None:
    """Values come back by name, and the schema tells their types."""
    remote = RemoteStatus("far", "h:1", 2, enabled=True, up=False)
    row = row_of(remote)
    assert (row["remoteMsgVpnName"], row["connectOrder"], row["up"]) == ("far", 2, False)
    properties = schema_of(RemoteStatus)["properties"]
    assert isinstance(properties, dict)
    assert properties.keys() == row.keys()
    assert properties["up"] == {"type": "boolean"}


def test_numbers_by_name() -> None:
    """Counts by reason are an object in the row."""

    @dataclass(frozen=True, slots=True)
    class Counted:
        lost_rx: dict[str, int]

    assert row_of(Counted({"why": 3})) == {"lostRx": {"why": 3}}
