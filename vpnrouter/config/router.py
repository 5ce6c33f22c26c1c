"""The model of one router's whole configuration, its event log and the users of its management API."""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

from pydantic import Field, field_validator

from vpnrouter import limits
from vpnrouter.config.listeners import Listener
from vpnrouter.config.locations import RouterBridging
from vpnrouter.config.model import FilePath, Many, Model, MsgVpnName, Named, RouterName, UserName
from vpnrouter.config.msg_vpn import MsgVpn
from vpnrouter.config.parse import Document
from vpnrouter.config.problem import Problem
from vpnrouter.config.secrets import Password
from vpnrouter.config.settings_models import GuaranteedMsging
from vpnrouter.config.trace import Trace
from vpnrouter.limits import EVENT_LINES_A_SECOND

LevelName = Literal["debug", "info", "notice", "warning", "error"]
AreaLevel = Literal["default", "debug", "info", "notice", "warning", "error"]


class Levels(Model):
    """The least grave events that are written, by area; default leaves it to `level`."""

    system: AreaLevel = "default"
    """The router itself: start, stop, listeners, spool."""

    vpn: AreaLevel = "default"
    """Message VPNs: state, bounds, rates."""

    client: AreaLevel = "default"
    """Clients: logins, logouts, refusals; info shows each one."""

    bridge: AreaLevel = "default"
    """Bridges, own ones and those of other routers."""

    queue: AreaLevel = "default"
    """Queues and topic endpoints."""

    management: AreaLevel = "default"
    """The management API: refused logins, actions."""

    config: AreaLevel = "default"
    """Reloads, and changes through the management API."""

    trace: AreaLevel = "default"
    """Routing traces and spans."""


class Logging(Model):
    """The log on stderr. All of it can be changed while the router runs."""

    format: Literal["readable", "json"] = "readable"
    """readable: lines for people; json: one object a line, with time, level and names."""

    level: LevelName = "notice"
    """The least grave events that are written."""

    levels: Levels = Field(default_factory=Levels)
    """Other levels for some areas."""

    rate_limit: Annotated[int, Field(ge=0, le=1_000_000)] = EVENT_LINES_A_SECOND
    """Lines a second of events of one name; those beyond are counted, and told a second later. 0
    does not limit."""


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


class Router(Model):
    """What holds for the router as a whole."""

    name: Annotated[RouterName, Field(examples=["edge"])]
    """Name of this router, unique among all routers that bridges connect."""

    data_dir: FilePath = "./data"
    """Directory for what must outlive a restart. Two routers must not share one."""

    umask: Annotated[str, Field(pattern="^0[0-7][0-7]$")] = "077"
    """Permissions, in octal, that nobody gets on what the router writes: spool, backups, traces. "077": its
    owner alone; "027": its group may read. The overlay is its owner's in any case."""

    @property
    def file_mask(self) -> int:
        """`umask` as a number."""
        return int(self.umask, 8)


class RouterConfig(Model):
    """The configuration of one router: one YAML file."""

    router: Router
    """The router itself."""

    listeners: Many[Listener] = ()
    """Addresses that the router answers on."""

    guaranteed_msging: GuaranteedMsging = Field(default_factory=GuaranteedMsging)
    """Guaranteed messaging of the router as a whole."""

    bridging: RouterBridging = Field(default_factory=RouterBridging)
    """Bridges of the router as a whole."""

    trace: Annotated[Trace | None, Field(examples=[{}])] = None
    """Routing traces; without this block nothing is traced."""

    logging: Logging = Field(default_factory=Logging)
    """The log on stderr."""

    management: Management = Field(default_factory=Management)
    """Who may use the management API."""

    msg_vpns: Named[MsgVpnName, MsgVpn] = Field(default_factory=dict, examples=["blue"])
    """Message VPNs by name."""

    @field_validator("msg_vpns", mode="before")
    @classmethod
    def _not_too_many(cls, value: object) -> object:
        if isinstance(value, dict) and len(value) > limits.MSG_VPNS:
            raise ValueError(f"{len(value)} message VPNs, at most {limits.MSG_VPNS} are allowed")
        return value


class Loaded(NamedTuple):
    """A configuration that is accepted. `positions` tells where each part of it stands: in the
    file, or in the overlay over it.

    `base` is the file by itself, `overlay` what lies over it; None where nothing does.
    """

    config: RouterConfig
    positions: Document
    warnings: tuple[Problem, ...]
    base: Document | None = None
    overlay: Document | None = None
