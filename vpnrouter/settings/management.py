"""Users of the management API."""

from __future__ import annotations

from typing import Literal

from vpnrouter import limits
from vpnrouter.settings import names
from vpnrouter.settings.schema import Effect, Password, Settings, Text, attribute


# Asked at each request.
class User(Settings, effect=Effect.IN_PLACE, held=False):
    """One user of the management API."""

    password: Password = attribute(
        None,
        text=Text(0, limits.PASSWORD_BYTES),
        examples=("change-me",),
        hashed=True,
        required=True,
    )
    """The user's password: text, {env: NAME}, {file: PATH} or a hash from `vpnrouter
    hash-password`."""

    role: Literal["admin", "read-only"] = attribute("read-only")
    """admin may change, read-only may look."""

    msg_vpns: tuple[str, ...] | None = attribute(None, text=names.MSG_VPN)
    """Message VPNs that the user sees; without this key all of them and the router itself."""


class Management(Settings, held=False):
    """Who may use the management API."""

    users: dict[str, User] = attribute({}, named=names.USER, items=User, examples=("operator",))
    """Users by name. Without any, the API serves loopback addresses only, to everybody there."""
