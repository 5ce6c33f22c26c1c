"""Tells the providers of connectors from message VPNs in the paths of messages: `mqtt://broker:1883>edge/blue>core/red`.

A router's name has no colon, so that no message VPN looks like a provider. Steps to a provider and from one are no
bridges.
"""

from __future__ import annotations

import re
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

STEP: Final = ">"
"""What parts the places of a path."""

_PROVIDER: Final = "[a-z]+://"
_IS_PROVIDER: Final = re.compile(_PROVIDER)
_UP_TO_LAST: Final = f"^(.*>)?{_PROVIDER}[^>]*>"
_PROVIDERS: Final = f"(^|>)({_PROVIDER}[^>]*(>|$))+"
"""Providers that follow each other, with what parts them from message VPNs."""


def is_provider(place: str) -> bool:
    """Return whether a place of a path is a provider."""
    return _IS_PROVIDER.match(place) is not None


def came_by_connector(path: Column) -> Column:
    """Return whether a path ends at a provider, so that no bridge brought the message. Never null."""
    return F.coalesce(F.substring_index(path, STEP, -1).rlike(f"^{_PROVIDER}"), F.lit(False))


def since_provider(path: Column) -> Column:
    """Return the part of a path behind its last provider: its first place is where the message entered."""
    return F.regexp_replace(path, _UP_TO_LAST, "")


def has_provider(path: Column) -> Column:
    """Return whether a provider is in the path; null for a path that is null."""
    return path.rlike(f"(^|>){_PROVIDER}")


def message_vpns(way: Column) -> Column:
    """Return the message VPNs of a way, in order."""
    return F.filter(F.split(way, STEP), lambda place: ~place.rlike(f"^{_PROVIDER}"))


def bridges_on(way: Column) -> Column:
    """Return how many bridges a way has: steps from a message VPN to the next one."""
    # Each row of message VPNs between providers has one bridge less than members.
    rows = F.filter(F.split(way, _PROVIDERS), lambda row: row != "")
    return F.aggregate(
        rows, F.lit(0), lambda sum_, row: sum_ + F.size(F.split(row, STEP)) - F.lit(1)
    )
