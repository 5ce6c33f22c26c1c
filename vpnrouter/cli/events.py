"""`vpnrouter events`: what happened at a running router, and what happens."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from time import sleep
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.text import Text

from vpnrouter.cli._format import folded
from vpnrouter.cli._output import print_lines
from vpnrouter.cli._router_access import DEFAULT_URL, CaFile, PasswordFile, Url, User, connect
from vpnrouter.limits import EVENTS_PAGE
from vpnrouter.text import ascii_json

if TYPE_CHECKING:
    from vpnrouter.management.client import ManagementClient


LEVELS: Final = ("debug", "info", "notice", "warning", "error")
"""From the least grave to the gravest."""

_STYLES: Final = {"warning": "yellow", "error": "bold red", "debug": "dim"}


def weighs(row: Mapping[str, Any], least: str) -> bool:
    """Whether an event is of level `least` or above. An unknown level counts as above."""
    level = row["level"]
    return level not in LEVELS or LEVELS.index(level) >= LEVELS.index(least)


def line_of(row: Mapping[str, Any], room: int | None = None) -> Text:
    """`2026-01-31T12:00:00.123Z warning VPN_BRIDGING_LINK_DOWN blue/from-edge: connection refused`; in lines of
    `room` columns if it is given.
    """
    time_ns = row["timeNs"]
    moment = datetime.fromtimestamp(time_ns // 1_000_000_000, UTC)
    place = "/".join(filter(None, (row["msgVpnName"], row["name"])))
    words = [
        f"{moment:%Y-%m-%dT%H:%M:%S}.{time_ns // 1_000_000 % 1_000:03}Z",
        f"{row['level']:<7}",
        row["event"] or row["scope"],
        f"{place}:" if place else "",
        row["text"],
    ]
    return Text(folded(" ".join(filter(None, words)), room, "  "), _STYLES.get(row["level"], ""))


def json_line_of(row: Mapping[str, Any]) -> str:
    """All attributes, on one line."""
    return ascii_json(row)


COUNT: Final = 20


class Level(StrEnum):
    """Levels of events, by rising weight."""

    DEBUG = "debug"
    INFO = "info"
    NOTICE = "notice"
    WARNING = "warning"
    ERROR = "error"


def command(
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with what happens, until ^C.")
    ] = False,
    msg_vpn: Annotated[str, typer.Option(metavar="VPN", help="Only those of this VPN.")] = "",
    level: Annotated[Level, typer.Option(help="Only of this level and above.")] = Level.DEBUG,
    count: Annotated[
        int, typer.Option(min=0, max=EVENTS_PAGE, help="Events of the past to show.")
    ] = COUNT,
    interval: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="Between two looks.")
    ] = 1.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")] = False,
    url: Url = DEFAULT_URL,
    user: User = "",
    password_file: PasswordFile = None,
    ca_file: CaFile = None,
) -> None:
    """Show the newest events of a running router: connects and disconnects, bridges that go up and down,
    queues that fill, changes of its configuration.

    Exit code 0, also by ^C; 1 when there is no answer.
    """
    from vpnrouter.cli._format import console_for
    from vpnrouter.cli.events import json_line_of, line_of, weighs

    console = console_for(sys.stdout)
    with connect(url, user, password_file, ca_file) as client:
        try:
            for row in _events(client, count, msg_vpn, interval if follow else 0.0):
                if not weighs(row, level):
                    continue
                if as_json:
                    print_lines(json_line_of(row))
                else:
                    console.print(line_of(row, console.room), soft_wrap=True)
        except KeyboardInterrupt:
            return


def _events(
    client: ManagementClient, count: int, msg_vpn: str, interval_s: float
) -> Iterator[dict[str, Any]]:
    """The newest events, and, where `interval_s` is not 0, those that follow without end."""
    last = 0
    for row in client.events(max(count, 1), msg_vpn=msg_vpn):
        last = row["eventId"]
        if count:
            yield row
    while interval_s:
        rows = client.events(EVENTS_PAGE, last, msg_vpn)
        for row in rows:
            last = row["eventId"]
            yield row
        if len(rows) == EVENTS_PAGE:
            continue
        if not rows:
            last = _begun_anew(client, last, msg_vpn)
        sleep(interval_s)


def _begun_anew(client: ManagementClient, last: int, msg_vpn: str) -> int:
    """The id behind which to go on: that of a router which was restarted begins at 1 again."""
    newest = client.events(1, msg_vpn=msg_vpn)
    return 0 if newest and newest[-1]["eventId"] < last else last
