"""Declares what the API needs of sockets, links and threads of the server."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from vpnrouter.core.guaranteed.spool import spool_of
from vpnrouter.durations import Histogram
from vpnrouter.settings.kinds import BRIDGE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from vpnrouter.bridges.driver import BridgeDriver
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.router import Router
    from vpnrouter.durations import Durations
    from vpnrouter.management.metrics.families import ListenerFigures
    from vpnrouter.settings.kinds import Kind


def _nothing() -> None:
    """Do nothing: in memory nothing waits for a socket."""


def _peer(connection: Connection) -> tuple[str, str]:
    return connection.peer, ""


def _no_accepts() -> tuple[int, int]:
    return 0, 0


def _no_commits() -> tuple[Histogram, int]:
    return Histogram((), (0,), 0.0), 0


class RunningKind(Protocol):
    """The running objects of one kind."""

    @property
    def running(self) -> Sequence[Any]:
        """The objects, in the order of the configuration; they may change while the router runs."""

    def items(self) -> list[tuple[str, str, Any]]:
        """Return the message VPN and the name of each object, and the object."""

    def look(self, one: Any) -> Any:  # noqa: ANN401 - what the status class of the kind reads
        """Return an object as its status class reads it."""

    def sample(self, now_ns: int) -> None:
        """Note the counts that rates are made from, at `now_ns` (monotonic)."""


@dataclass(kw_only=True, slots=True)
class ServerHooks:
    """The defaults are those of a router in memory, without sockets and bridges of its own."""

    bridges: Sequence[BridgeDriver] = ()
    """The router's own bridges; they may change while it runs."""
    objects: Mapping[Kind, RunningKind] = field(default_factory=dict)
    """The running objects of each kind."""
    flush: Callable[[], None] = _nothing
    """Hands what stands in outboxes to their sockets."""
    transport: Callable[[Connection], tuple[str, str]] = _peer
    """Address of the peer and TLS version ("" for none) of a connection."""
    accepts: Callable[[], tuple[int, int]] = _no_accepts
    """Connections that were refused for a bound of their listener, and failures to accept one."""
    listeners: Callable[[], Iterable[ListenerFigures]] = tuple
    """The listeners for clients and bridges that are open."""
    certificates: Callable[[], Mapping[str, int]] = dict
    """Until when the certificate of each listener with TLS is valid, in seconds since 1970."""
    commits: Callable[[], tuple[Histogram, int]] = _no_commits
    """How long commits of the spool took, and how many failed."""
    turns: Callable[[], Mapping[str, Durations]] = dict
    """How long turns of the event loop took, by kind of work."""
    stopping: bool = False

    def take_objects(self, objects: Mapping[Kind, RunningKind]) -> None:
        """Show these running objects."""
        self.objects = objects
        self.bridges = objects[BRIDGE].running

    def unready(self, router: Router) -> str:
        """Return why the router does not serve, "" where it does.

        A router whose spool cannot be written refuses each guaranteed message: whoever shares clients out should turn
        to another one. The reason names no file, because whoever asks has not logged in.
        """
        if self.stopping:
            return "the router stops"
        spool = spool_of(router.context)
        if spool is not None and spool.down:
            return "the message spool cannot be written; guaranteed messages are refused"
        return ""
