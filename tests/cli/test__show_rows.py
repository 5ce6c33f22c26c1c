"""What is asked of a router, and what is taken of its answers."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

import pytest

from vpnrouter.cli._show_rows import RowQuery, What, rows_of
from vpnrouter.errors import OperationError
from vpnrouter.management.client import ManagementClient


@pytest.fixture
def client(recorded: Any) -> Iterator[ManagementClient]:
    """A client of a router with 250 clients in VPN blue."""
    rows = [{"clientName": f"c{number:03}", "msgVpnName": "blue"} for number in range(250)]
    recorded.answers |= {
        "/vpnrouter/v1/clients": rows,
        "/SEMP/v2/monitor/msgVpns/blue/clients": rows[:3],
        "/SEMP/v2/monitor/msgVpns": [{"msgVpnName": "blue"}, {"msgVpnName": "red"}],
        "/SEMP/v2/monitor/msgVpns/blue": {"msgVpnName": "blue"},
        "/vpnrouter/v1/msgVpns/blue/matches": [{"name": "b", "msgVpnName": "blue"}],
        "/vpnrouter/v1/msgVpns/red/matches": [{"name": "r", "msgVpnName": "red"}],
        "/vpnrouter/v1/subscriptions": [{"name": "b", "msgVpnName": "blue"}],
        "/vpnrouter/v1/msgVpns/blue/subscriptions": [{"name": "b", "msgVpnName": "blue"}],
        "/vpnrouter/v1/events": [{"event": "E", "eventId": 7}],
    }
    with ManagementClient(recorded.url) as made:
        yield made


def names(client: ManagementClient, *asked: Any) -> list[str]:
    """Names of the rows."""
    what = asked[0]
    return [row[what.key] for row in rows_of(client, RowQuery(*asked))]


def test_all_pages(client: ManagementClient, recorded: Any) -> None:
    """All of many clients, a page at a time."""
    assert len(names(client, What.CLIENTS)) == 250
    assert len(recorded.asked) == 3


def test_no_more_than_wanted(client: ManagementClient, recorded: Any) -> None:
    """A bound is told to the router, and pages beyond are not asked for."""
    assert names(client, What.CLIENTS, "", "", "", 2) == ["c000", "c001"]
    assert [each[1] for each in recorded.asked] == ["/vpnrouter/v1/clients?count=2"]


def test_of_one_msg_vpn(client: ManagementClient) -> None:
    """Those of the VPN."""
    assert names(client, What.CLIENTS, "", "blue") == ["c000", "c001", "c002"]
    assert names(client, What.VPNS, "", "red") == ["red"]


def test_the_router_looks_for_a_name(client: ManagementClient, recorded: Any) -> None:
    """A pattern is a condition of the request; a name with a comma is looked for here."""
    assert names(client, What.CLIENTS, "c00*") == [f"c00{number}" for number in range(10)]
    assert "where=clientName==c00*" in unquote(recorded.asked[0][1])
    recorded.asked.clear()
    with pytest.raises(OperationError, match=r"^there is no client a,b$"):
        names(client, What.CLIENTS, "a,b")
    assert "where" not in recorded.asked[0][1]


def test_a_misspelt_name(client: ManagementClient) -> None:
    """Of what there are few all names are told."""
    with pytest.raises(OperationError, match=r"no message VPN bleu; there are: blue, red$"):
        names(client, What.VPNS, "bleu")
    with pytest.raises(OperationError, match=r"no subscription of x in message VPN blue$"):
        names(client, What.SUBSCRIPTIONS, "x", "blue")


def test_who_gets_a_topic(client: ManagementClient) -> None:
    """Matches of one message VPN, or of all one after the other."""
    assert names(client, What.SUBSCRIPTIONS, "", "red", "a/b") == ["r"]
    assert names(client, What.SUBSCRIPTIONS, "", "", "a/b") == ["b", "r"]


def test_events(client: ManagementClient) -> None:
    """Events by the field's name."""
    assert names(client, What.EVENTS, "E*") == ["E"]
