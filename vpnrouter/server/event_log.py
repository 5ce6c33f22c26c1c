"""The events of a running router: raised by the core and the edge, written, published, kept for the API."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, final

import trio

from vpnrouter.core.barrier import TASK
from vpnrouter.events import limits, table
from vpnrouter.events.log import EventLog
from vpnrouter.events.rate import RateLimit
from vpnrouter.management.event_source import EventStatus
from vpnrouter.server.event_publisher import EventPublisher
from vpnrouter.server.event_sampler import LOOK_S, EventSampler
from vpnrouter.server.log_writer import LogWriter
from vpnrouter.server.narrate import log_to
from vpnrouter.server.stderr_log import StderrLog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from vpnrouter.config.router import RouterConfig
    from vpnrouter.core.router import Router
    from vpnrouter.events.event import Event
    from vpnrouter.server.host import Host
    from vpnrouter.server.management import BridgeSource
    from vpnrouter.server.vpn_meters import VpnMeters


@final
class RouterEvents:
    """The event log of one router, an EventSource and Audit of its API.

    Made in the router's own task, before anything is started: the tasks inherit the log (narrate.py).
    `follow(config)` says where the configuration in force is, once it can change.
    """

    def __init__(
        self, router: Router, config: RouterConfig, writer: LogWriter | None = None
    ) -> None:
        self.log = EventLog(router.name, time.time_ns)
        self._router = router
        self._config: Callable[[], RouterConfig] = lambda: config
        self._stderr = StderrLog(router.name, writer or LogWriter(), lambda: config.logging)
        self.publisher = EventPublisher(router, self._config)
        self.publisher.watch()
        self.log.listeners += [self._stderr, self.publisher]
        self._denials = RateLimit(limits.EVENT_DENIALS)
        router.plane.events = self.log
        barrier = router.plane.barrier
        self.log.on_fault = lambda error: barrier.caught(error, TASK, "event log", "", "one event")
        log_to(self.log)

    def follow(self, config: Callable[[], RouterConfig]) -> None:
        """Ask `config` for the configuration in force from now on."""
        self._config = config
        self._stderr.settings = lambda: config().logging
        self.publisher.config = config

    async def run(
        self,
        host: Host,
        bridges: Callable[[], Iterable[tuple[tuple[str, str], BridgeSource]]],
        meters: VpnMeters,
    ) -> None:
        """Watch thresholds, publish, and write what waits, for ever."""
        sampler = EventSampler(self.log, self._router, self._config, bridges, meters)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.publisher.run, host)
            while True:
                self.publisher.watch()
                await sampler.look()
                self._stderr.tick(time.time_ns())
                await trio.sleep(LOOK_S)

    def stopping(self) -> None:
        """The router stops: what can be written is written."""
        self.log.raise_event(table.SHUTDOWN, text="stopping")
        self._stderr.tick(time.time_ns())

    # -- EventSource -----------------------------------------------------------------------------

    def last_event_id(self) -> int:
        """See EventSource.last_event_id."""
        return self.log.last_event_id

    def events(
        self, after: int, most: int, sees: Callable[[str], bool] | None = None
    ) -> Sequence[EventStatus]:
        """See EventSource.events."""
        return [_status(event) for event in self.log.after(after, most, sees)]

    def newest_events(
        self, most: int, sees: Callable[[str], bool] | None = None
    ) -> Sequence[EventStatus]:
        """See EventSource.newest_events."""
        return [_status(event) for event in self.log.newest(most, sees)]

    # -- Audit -----------------------------------------------------------------------------------

    def acted(self, who: str, what: str, msg_vpn: str = "") -> None:
        """See Audit.acted."""
        self.log.raise_event(table.ACTION, msg_vpn, who, f"{_user(who)}: {what}")

    def denied(self, peer: str, why: str) -> None:
        """See Audit.denied."""
        if not self._denials.admits(table.LOGIN_DENIED.name, time.time_ns()):
            return
        before = sum(self._denials.suppressed().values())
        more = f"; {before:,} more before" if before else ""
        self.log.raise_event(table.LOGIN_DENIED, "", peer, f"login from {peer} failed: {why}{more}")


def _user(who: str) -> str:
    return f"user {who}" if who else "somebody on this machine"


def _status(event: Event) -> EventStatus:
    kind = event.kind
    return EventStatus(
        event_id=event.event_id,
        time_ns=event.time_ns,
        level=kind.level_name,
        scope=kind.scope,
        event=kind.name,
        msg_vpn_name=event.msg_vpn,
        name=event.name,
        text=event.text,
        area=kind.area,
    )
