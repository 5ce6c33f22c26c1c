"""The users of the management API."""

from typing import Annotated, Literal

from pydantic import Field

from vpnrouter.config.model import Many, Model, Named
from vpnrouter.config.names import MsgVpnName, UserName
from vpnrouter.config.secret import Password


class User(Model):
    """One user of the management API."""

    password: Annotated[Password, Field(examples=["change-me"])]
    """The user's password: text, {env: NAME}, {file: PATH} or a hash from `vpnrouter
    hash-password`."""

    role: Literal["admin", "read-only"] = "read-only"
    """admin may change, read-only may look."""

    msg_vpns: Many[MsgVpnName] | None = None
    """Message VPNs that the user sees; without this key all of them and the router itself."""


class Management(Model):
    """Who may use the management API."""

    users: Named[UserName, User] = Field(default_factory=dict, examples=["operator"])
    """Users by name. Without any, the API serves loopback addresses only, to everybody there."""
