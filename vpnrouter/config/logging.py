"""What the router writes to stderr: form, levels, and how much of one kind."""

from typing import Annotated, Literal

from pydantic import Field

from vpnrouter.config.model import Model
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
