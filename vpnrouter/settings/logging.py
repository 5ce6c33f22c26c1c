"""The log on stderr."""

from __future__ import annotations

from typing import Literal

from vpnrouter import limits
from vpnrouter.settings.schema import Effect, Settings, attribute, group

LevelName = Literal["debug", "info", "notice", "warning", "error"]
AreaLevel = Literal["default", "debug", "info", "notice", "warning", "error"]


class Levels(Settings):
    """The least grave events that are written, by area; default leaves it to `level`."""

    system: AreaLevel = attribute("default")
    """The router itself: start, stop, listeners, spool."""

    vpn: AreaLevel = attribute("default")
    """Message VPNs: state, bounds, rates."""

    client: AreaLevel = attribute("default")
    """Clients: logins, logouts, refusals; info shows each one."""

    bridge: AreaLevel = attribute("default")
    """Bridges, own ones and those of other routers."""

    queue: AreaLevel = attribute("default")
    """Queues and topic endpoints."""

    management: AreaLevel = attribute("default")
    """The management API: refused logins, actions."""

    config: AreaLevel = attribute("default")
    """Reloads, and changes through the management API."""

    trace: AreaLevel = attribute("default")
    """Routing traces and spans."""


# The next line is written under what holds then.
class Logging(Settings, effect=Effect.IN_PLACE, held=False):
    """The log on stderr. All of it can be changed while the router runs."""

    format: Literal["readable", "json"] = attribute("readable")
    """readable: lines for people; json: one object a line, with time, level and names."""

    level: LevelName = attribute("notice")
    """The least grave events that are written."""

    levels: Levels = group(Levels)
    """Other levels for some areas."""

    rate_limit: int = attribute(limits.EVENT_LINES_A_SECOND, least=0, most=1_000_000)
    """Lines a second of events of one name; those beyond are counted, and told a second later. 0
    does not limit."""
