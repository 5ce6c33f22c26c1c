"""Long texts on a terminal: lines end between parts, words and levels, not within a name."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from rich.cells import cell_len

from vpnrouter.cli._format import folded
from vpnrouter.cli._tables import BridgeTables
from vpnrouter.cli._topology import RouterView, draw
from vpnrouter.cli.events import line_of

FOLDED: dict[str, tuple[str, int | None, str, list[str]]] = {
    "short": ("bridge from-blue", 16, "", ["bridge from-blue"]),
    "no terminal": ("a " * 500, None, "", ["a " * 500]),
    "parts": (
        "bridge from-blue, ready-in-sync, both ways, 12 messages/s", 40, "  ",
        ["bridge from-blue, ready-in-sync,", "  both ways, 12 messages/s"],
    ),
    "words": (
        "the login was refused because nobody knows it", 24, "",
        ["the login was refused", "because nobody knows it"],
    ),
    "levels": (
        "plants/hall-17/lines/commands/sensor-00001", 24, "",
        ["plants/hall-17/lines/", "commands/sensor-00001"],
    ),
    "list": ("a.example,b.example,c.example", 20, "", ["a.example,b.example,", "c.example"]),
    "one word": ("x" * 30, 12, " ", ["x" * 12, " " + "x" * 11, " " + "x" * 7]),
    "at the edge": ("12345678 rest", 8, "", ["12345678", "rest"]),
    "wide letters": ("路由器 消息 总线 桥接", 10, "", ["路由器", "消息 总线", "桥接"]),
    "control characters": ("a\x1b[2Jb\nc", 80, "", ["a\\x1b[2Jb\\nc"]),
}  # fmt: skip


@pytest.mark.parametrize("case", FOLDED)
def test_long_texts_are_folded(case: str) -> None:
    """Behind commas, blanks, then slashes; further lines are indented, and none is wider than the room."""
    text, room, indent, lines = FOLDED[case]
    found = folded(text, room, indent).split("\n")
    assert found == lines
    assert room is None or all(cell_len(one) <= room for one in found)


class Screen(io.StringIO):
    """A file that is a terminal."""

    def isatty(self) -> bool:
        """It is one."""
        return True


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """A terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")
    return Screen()


def bridge(number: int) -> dict[str, Any]:
    """A row of a bridge with long names, that is down for a long reason."""
    return {
        "bridgeName": f"from-headquarters-of-plant-{number:02}",
        "msgVpnName": "plants-of-the-north",
        "remoteRouterName": f"site-{number:02}.example.org",
        "remoteMsgVpnName": "headquarters-and-logistics",
        "health": "down",
        "inboundState": "not-ready-wait-next",
        "inboundFailureReason": "the remote router refused the login: 401 Unauthorized, no such client username",
        "outboundState": "ready",
        "localQueueName": "",
        "dataRxMsgCount": 0,
        "rxMsgRate": 1_234_567,
        "remotes": [
            {
                "up": False,
                "enabled": True,
                "connectOrder": 1,
                "queueBinding": "to-the-plants-of-the-north",
            }
        ],
    }


WORD = re.compile(r"[\w.-]{3,}")


def test_a_topology_breaks_no_name(screen: Screen) -> None:
    """Fifty bridges at 80 columns: each name and word is whole on one line."""
    vpn = {
        "msgVpnName": "plants-of-the-north",
        "msgVpnConnections": 1_000,
        "subscriptionCount": 2_348,
    }
    rows = [bridge(number) for number in range(50)]
    router = RouterView("edge.example.org", "http://127.0.0.1:8080", [vpn | {"state": "up"}], rows)
    draw(screen, [router])
    lines = screen.getvalue().splitlines()
    assert max(map(cell_len, lines)) <= 80
    seen = {word for one in lines for word in WORD.findall(one)}
    wanted = {
        word
        for row in rows
        for value in row.values()
        if isinstance(value, str)
        for word in WORD.findall(value)
    }
    assert wanted - {"down", "ready"} <= seen


def test_details_break_no_name(screen: Screen) -> None:
    """A long reason and a long list of an attribute, at 80 columns."""
    row = {name: value for name, value in bridge(7).items() if name != "remotes"}
    row["remoteHosts"] = ",".join(f"host-{number:02}.example.org:55555" for number in range(9))
    BridgeTables(screen).attributes(row)
    lines = screen.getvalue().splitlines()
    assert max(map(cell_len, lines)) <= 80
    text = " ".join(lines)
    for word in (*WORD.findall(row["inboundFailureReason"]), *row["remoteHosts"].split(",")):
        assert word in text, word


def test_an_event_breaks_no_name() -> None:
    """Its further lines are indented."""
    row = {
        "timeNs": 1_767_225_600 * 10**9,
        "level": "warning",
        "event": "VPN_BRIDGING_LINK_DOWN",
        "scope": "vpn",
        "msgVpnName": "plants-of-the-north",
        "name": "from-headquarters-of-plant-07",
        "text": "the remote router refused the login: no such client username, next attempt in 30 s",
    }
    lines = line_of(row, 80).plain.split("\n")
    assert len(lines) > 1
    assert all(cell_len(one) <= 80 for one in lines)
    assert all(one.startswith("  ") for one in lines[1:])
    words = {word for one in lines for word in WORD.findall(one)}
    assert words == set(WORD.findall(line_of(row).plain))
