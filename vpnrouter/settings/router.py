"""What holds for the router as a whole."""

from __future__ import annotations

import re
from typing import Final

from vpnrouter import limits
from vpnrouter.settings import names
from vpnrouter.settings.allowed_location import check_allowed_location
from vpnrouter.settings.schema import Effect, Settings, attribute

_UMASK: Final = re.compile("^0[0-7][0-7]$")


def _check_umask(text: str) -> str:
    if not _UMASK.fullmatch(text):
        raise ValueError(f"String should match pattern '{_UMASK.pattern}'")
    return text


# What the router is, is set up once.
class Router(Settings, effect=Effect.RESTART, held=False):
    """What holds for the router as a whole."""

    name: str = attribute(None, text=names.ROUTER, examples=("edge",), required=True)
    """Name of this router, unique among all routers that bridges connect."""

    data_dir: str = attribute("./data", text=names.PATH, file=True)
    """Directory for what must outlive a restart. Two routers must not share one."""

    umask: str = attribute("077", check=_check_umask)
    """Permissions, in octal, that nobody gets on what the router writes: spool, backups, traces. "077": its
    owner alone; "027": its group may read. The overlay is its owner's in any case."""

    @property
    def file_mask(self) -> int:
        """`umask` as a number."""
        return int(self.umask, 8)


# It is checked when a bridge is dialled.
class RouterBridging(Settings, effect=Effect.IN_PLACE, held=False):
    """Bridges of the router as a whole."""

    allowed_locations: tuple[str, ...] = attribute(
        (),
        check=check_allowed_location,
        longest=limits.ALLOWED_LOCATIONS,
        examples=("10.0.0.0/8:55555",),
    )
    """Where bridges and connectors may connect to that came by the management API into a message VPN of which a user
    limited by msg_vpns is admin: networks, hosts, or *.DOMAIN, with :PORT or :PORT-PORT. Without any: all but
    loopback, link-local, unspecified and multicast addresses, which only a network here allows. What stands
    in this file is always allowed."""
