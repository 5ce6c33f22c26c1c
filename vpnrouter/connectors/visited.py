"""Says in a user property of MQTT 5 which message VPNs a message has visited, so that it goes round nowhere.

    vpnrouter-path: R1/blue mqtt://broker:1883 R2/red       router and message VPN, or provider; oldest first

A message VPN does not take a message in that has been there, nor one that has visited more places than its connector
allows, and nothing is sent to a provider that has been there. The property is the router's: what a client writes into
it is taken at its word, which costs that message alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote

from vpnrouter import limits
from vpnrouter.settings.connector import MACHINE
from vpnrouter.wire.mqtt.fields import U16_MAX
from vpnrouter.wire.mqtt.user_properties import take_out

if TYPE_CHECKING:
    from collections.abc import Sequence

PATH_NAME: Final = "vpnrouter-path"
"""Name of the property."""

_NAME: Final = PATH_NAME.encode()


def entry_of(place: str, *, carries_path: bool) -> str:
    """Return what a path says of the provider `place` that a message came from.

    Where the provider does not tell where a message has been, one on the router's machine may be beside other routers
    as well: nothing else could stop a message that goes round between them.
    """
    return place if carries_path else place.partition(MACHINE)[0]


def has_visited(path: Sequence[str], place: str, *, carries_path: bool) -> bool:
    """Return whether a path has been at the provider `place`, or may have been where nobody could tell (`entry_of`).

    `carries_path`: the provider is told the path, so that those who get the message know it.
    """
    if place in path:
        return True
    address, on_machine, _ = place.partition(MACHINE)
    if not on_machine:
        return False
    if address in path:
        return True
    if not carries_path:
        for entry in path:
            if entry.startswith(address + MACHINE):
                return True
    return False


def shown(path: Sequence[str]) -> str:
    """Return the value of the property for a path: as many of the last places as a string of MQTT holds."""
    parts: list[str] = []
    room = U16_MAX
    for place in reversed(path):
        part = quote(place, safe="/#:[]")
        room -= len(part) + 1
        if room < 0:
            break
        parts.append(part)
    parts.reverse()
    return " ".join(parts)


def visited(block: bytes) -> tuple[bytes, list[str]]:
    """Return the properties of a message without the path, and the path, [] where there is none.

    What can be no place is left out: neither a link nor the spool could carry it. Raises ProtocolError for properties
    that cannot be read.
    """
    if _NAME not in block:
        return block, []
    rest, found = take_out(block, (PATH_NAME,))
    return rest, places_of(" ".join([text for _, text in found]))


def places_of(text: str) -> list[str]:
    """Return the path that a value of the property says, but for what can be no place."""
    places = [unquote(place) for place in text.split(" ") if place]
    kept = [place for place in places if len(place.encode()) <= limits.LINK_PATH_ENTRY_BYTES]
    return kept[-limits.LINK_PATH_KEPT :]
