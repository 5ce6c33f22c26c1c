"""Events as lines."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from rich.text import Text

from vpnrouter.cli._printed import line
from vpnrouter.text import ascii_json

LEVELS: Final = ("debug", "info", "notice", "warning", "error")
"""By rising weight."""

_STYLES: Final = {"warning": "yellow", "error": "bold red", "debug": "dim"}


def weighs(row: Mapping[str, Any], least: str) -> bool:
    """Whether an event is of level `least` or above it; a level that is not known is."""
    level = row["level"]
    return level not in LEVELS or LEVELS.index(level) >= LEVELS.index(least)


def line_of(row: Mapping[str, Any]) -> Text:
    """`2026-01-31T12:00:00.123Z warning VPN_BRIDGING_LINK_DOWN blue/from-edge: connection refused`."""
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
    return line(" ".join(filter(None, words)), _STYLES.get(row["level"], ""))


def json_line_of(row: Mapping[str, Any]) -> str:
    """All attributes, on one line."""
    return ascii_json(row)
