from typing import Any

import pytest

from vpnrouter.tui.widgets.topology_map import LABEL, arrow_line, heads, topology_of


def vpn(name: str) -> dict[str, Any]:
    """A message VPN's row."""
    return {"msgVpnName": name}


def bridge(vpn: str, name: str, remote: tuple[str, str], **more: Any) -> dict[str, Any]:
    """A bridge's row, that receives only."""
    row = {
        "msgVpnName": vpn, "bridgeName": name, "remoteRouterName": remote[0],
        "remoteMsgVpnName": remote[1], "outboundBridgeName": "", "remoteAddress": "198.51.100.1:1",
        "inboundState": "ready-in-sync", "outboundState": "not-applicable", "health": "up",
        "rxMsgRate": 0, "txMsgRate": 0, "remotes": [],
    }  # fmt: skip
    return row | more


def drawn(rows: list[Any], width: int = 80, first: int = 0) -> list[str]:
    """The map of two routers as text."""
    found = topology_of([("edge", vpn("blue")), ("core", vpn("red"))], rows)
    lines = [
        *heads(found, width, first),
        *(arrow_line(found, a, width, first) for a in found.arrows),
    ]
    return ["".join(piece for piece, _ in line).rstrip() for line in lines]


def test_arrows_lead_where_messages_go() -> None:
    """A bridge receives where it is configured; one that shares its connection goes both ways."""
    lines = drawn(
        [
            ("edge", bridge("blue", "a", ("core", "red"), rxMsgRate=5)),
            ("core", bridge("red", "b", ("edge", "blue"))),
            ("edge", bridge("blue", "c", ("core", "red"), outboundState="ready", rxMsgRate=2_000)),
        ]
    )
    assert lines[0].split() == ["edge", "core"]
    assert lines[1].split() == ["bridge", "blue", "red"]
    a, b, c = (line[LABEL:].strip() for line in lines[2:])
    assert a[0] == "◄"
    assert a[-1] == "┤"
    assert " 5/s " in a
    assert (b[0], b[-1]) == ("├", "►")
    assert "─" in b
    assert (c[0], c[-1]) == ("◄", "►")
    assert "═" in c


def test_many_message_vpns_scroll() -> None:
    """Columns keep their width; what is left of the first one is cut off."""
    vpns = [("r", vpn(f"v{number:02}")) for number in range(30)]
    row = bridge("v00", "a", ("r", "v29"), rxMsgRate=1)
    found = topology_of(vpns, [("r", row)])
    for first in (0, 10, 29):
        head = "".join(piece for piece, _ in heads(found, 80, first)[1])
        assert head.split()[1] == f"v{first:02}"
        line = "".join(piece for piece, _ in arrow_line(found, found.arrows[0], 80, first))
        assert len(line) == 80
        assert "━" in line


@pytest.mark.parametrize(
    ("first", "here", "there", "more", "ends"),
    [
        (0, "v00", "v29", {}, ("◄", "━")),
        (0, "v29", "v00", {}, ("├", "►")),
        (0, "v00", "v29", {"outboundState": "ready"}, ("◄", "►")),
        (10, "v00", "v29", {}, ("◄", "━")),
        (10, "v29", "v00", {}, ("━", "►")),
        (27, "v29", "v00", {}, ("━", "►")),
        (10, "v00", "v01", {}, ("«", "«")),
        (0, "v28", "v29", {}, ("»", "»")),
    ],
)
def test_heads_of_arrows_whose_ends_are_out_of_sight(
    first: int, here: str, there: str, more: dict[str, str], ends: tuple[str, str]
) -> None:
    """At the edge of the screen, so that every arrow says where its messages go."""
    vpns = [("r", vpn(f"v{number:02}")) for number in range(30)]
    row = bridge(here, "a", ("r", there), rxMsgRate=1, **more)
    found = topology_of(vpns, [("r", row)])
    line = "".join(piece for piece, _ in arrow_line(found, found.arrows[0], 80, first))[LABEL:]
    drawn = line.replace("│", "").strip()
    assert (drawn[0], drawn[-1]) == ends


def test_lines_are_as_wide_as_the_screen() -> None:
    """Whatever the names hold."""
    row = bridge("blue", "名前" * 10, ("core", "red"))
    assert all(len(line) <= 80 for line in drawn([("edge", row)]))
