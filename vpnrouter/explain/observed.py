"""What is known of running routers beside their configurations, for a mesh in memory to be in the same state."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

Place = tuple[str, str, str]
"""Router, message VPN, and the name of a bridge, client or connector there."""


@final
@dataclass(frozen=True, slots=True)
class SeenConnector:
    """A connector of a running router: the address of its `provider` that is in use and the `protocol` spoken there,
    "" where that is not known. `why` it is down, "" for one that is up; `links` are states and reasons by name.
    """

    provider: str
    protocol: str
    why: str
    links: dict[str, tuple[str, str]]


@final
@dataclass(slots=True)
class Observed:
    """The state of some routers.

    `down` says why a bridge is down now, `stalled` why one that is up holds back its guaranteed messages. `routers`
    are the names of those that run elsewhere: their files are not here, and `usernames` says as whom the clients of
    bridges that show a certificate have logged in.
    """

    routers: set[str] = field(default_factory=set)
    down: dict[Place, str] = field(default_factory=dict)
    stalled: dict[Place, str] = field(default_factory=dict)
    connectors: dict[Place, SeenConnector] = field(default_factory=dict)
    usernames: dict[Place, str] = field(default_factory=dict)
