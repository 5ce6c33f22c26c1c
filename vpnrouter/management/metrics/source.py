"""Collects the figures of a running router for metrics."""

from __future__ import annotations

import os
import platform
import resource
import time
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

import trio

from vpnrouter import __version__
from vpnrouter.build_info import build_kind
from vpnrouter.core.guaranteed.endpoint import endpoints_of
from vpnrouter.core.guaranteed.spool import spool_of
from vpnrouter.durations import Durations
from vpnrouter.management.metrics.families import (
    LoopFigures,
    ProcessFigures,
    RouterFigures,
    SpoolFigures,
    TraceFigures,
    UploadFigures,
)
from vpnrouter.management.metrics.queues import CONVERTS, SHOWN, QueueNumbers
from vpnrouter.management.status.msg_vpns import MsgVpnLook
from vpnrouter.settings.kinds import BRIDGE, KINDS, MSG_VPN, QUEUE, Kind, loaded
from vpnrouter.settings.shown import Row, Section, metrics_of
from vpnrouter.units import SECOND_NS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.router import Router
    from vpnrouter.management.live_traces import LiveTraces
    from vpnrouter.management.meters import VpnMeters
    from vpnrouter.management.metrics.families import ListenerFigures
    from vpnrouter.management.server_hooks import ServerHooks
    from vpnrouter.management.status.bridges import Bridges


_OURS: Final = Path("/proc/self")

_PAGE: Final = resource.getpagesize()

_BEGAN_S: Final = time.time()


def process_figures() -> ProcessFigures:
    """Return the figures of this moment. It reads three files of /proc: some 60 µs."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    virtual = resident = threads = 0
    began_s = _BEGAN_S
    try:
        pages = (_OURS / "statm").read_text(encoding="ascii").split()
        virtual, resident = int(pages[0]) * _PAGE, int(pages[1]) * _PAGE
        # The name of the process, which may hold anything, ends with the last parenthesis.
        fields = (_OURS / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        threads = int(fields[17])
        ticks = os.sysconf("SC_CLK_TCK")
        age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / ticks
        began_s = time.time() - age_s
    except (OSError, ValueError, IndexError, AttributeError):
        pass
    return ProcessFigures(
        cpu_seconds=used.ru_utime + used.ru_stime,
        resident_size=resident,
        virtual_size=virtual,
        open_descriptors=_open_descriptors(),
        most_descriptors=most if most != resource.RLIM_INFINITY else 0,
        threads=threads,
        run_delay=_run_delay_s(),
        start_time=round(began_s, 1),
    )


def _run_delay_s() -> float:
    try:
        # The process's own file is that of its main thread: time on a processor, time ready without one, turns.
        return int((_OURS / "schedstat").read_text(encoding="ascii").split()[1]) / SECOND_NS
    except (OSError, ValueError, IndexError):
        return 0.0


def _open_descriptors() -> int:
    place = _OURS / "fd"
    try:
        # Linux 6.2 and later say it at once; listing ten thousand takes milliseconds.
        return place.stat().st_size or sum(1 for _ in place.iterdir())
    except OSError:
        return 0


OBJECTS: Final[dict[Kind, Section]] = {
    kind: section
    for kind in sorted(KINDS, key=lambda each: each.metrics_most)
    if kind.status
    for section in [metrics_of(loaded(kind.status), CONVERTS)]
    if section.families
}
"""What the page has of the objects of each kind, in its order."""

MSG_VPNS: Final = OBJECTS[MSG_VPN]
BRIDGES: Final = OBJECTS[BRIDGE]

PERIOD_S: Final = 0.5
"""Seconds between two looks at what only shows over time."""


class _Seen(NamedTuple):
    """What a thing showed last."""

    thing: object
    counts: tuple[object, ...]


@final
class Figures:
    """The numbers of a running router for metrics; `keep` is to run beside it. Used in the router's own thread.

    Iterators may be left for a while between two rows, while the router goes on: what is gone meanwhile is
    left out.
    """

    def __init__(
        self,
        router: Router,
        bridges: Bridges,
        meters: VpnMeters,
        traces: LiveTraces,
        edge: ServerHooks,
    ) -> None:
        self._router = router
        self._bridges = bridges
        self._meters = meters
        self._traces = traces
        self._edge = edge
        spool = spool_of(router.context)
        self._queues = None if spool is None else QueueNumbers(spool)
        # Those that are not, or not only, what runs of the configuration: clients make queues, peers have bridges.
        self._own: dict[Kind, Callable[[Callable[[str], bool]], Iterator[Row]]] = {
            MSG_VPN: self.msg_vpns,
            BRIDGE: self.bridges,
            QUEUE: self.queues,
        }
        self._lag = Durations()
        self._began_s = time.monotonic()
        self._last: dict[tuple[str, ...], _Seen] = {}

    async def keep(self) -> None:
        """Record twice a second how late the event loop is and what the newest message is, for ever."""
        while True:
            if self._queues is not None:
                self._queues.look()
            due_s = trio.current_time() + PERIOD_S
            await trio.sleep_until(due_s)
            self._lag.add(int((trio.current_time() - due_s) * 1e9))

    # -- the router as a whole -------------------------------------------------------------------

    def router(self) -> RouterFigures:
        """Return the figures of the router as a whole."""
        router = self._router
        refused, errors = self._edge.accepts()
        info = {
            "version": __version__,
            "build": build_kind(),
            "python": platform.python_version(),
        }
        return RouterFigures(
            info=info,
            ready=int(not self._edge.unready(router)),
            uptime=round(time.monotonic() - self._began_s, 3),
            connections=sum(len(vpn.publishers) for vpn in router.vpns.values()),
            protocol_errors=router.protocol_errors,
            logins_refused=router.logins_refused,
            accepts_refused=refused,
            accept_errors=errors,
            faults=dict(router.context.barrier.counts),
            strangers=router.pre_login_limits.strangers,
            logins_waiting=len(router.verifications),
            strangers_refused=dict(router.pre_login_limits.refused),
            publishers_held=router.context.backpressure.holds,
            publishers_held_time=router.context.backpressure.held_ns / SECOND_NS,
            loop_lag=self._lag.histogram(),
        )

    def process(self) -> ProcessFigures:
        """Return the figures of the process."""
        return process_figures()

    def loop(self) -> Iterator[LoopFigures]:
        """Yield how long the turns of each kind of work took; nothing where the router does not drive itself."""
        for work, durations in sorted(self._edge.turns().items()):
            yield LoopFigures(work=work, turns=durations.histogram())

    def spool(self) -> SpoolFigures | None:
        """Return the figures of the message spool; None where guaranteed messaging is off."""
        spool = spool_of(self._router.context)
        if spool is None:
            return None
        commits, failed = self._edge.commits()
        return SpoolFigures(
            up=int(not spool.down),
            messages_size=spool.taken,
            max_messages_size=spool.max_usage,
            unit_size=spool.ledger.pending_bytes,
            segments=len(spool.ledger),
            commits=commits,
            failed_commits=failed,
            troubles=spool.store_failures,
            damaged=spool.damaged,
        )

    def traces(self) -> TraceFigures | None:
        """Return the figures of routing traces; None where nothing is traced."""
        status = self._traces.status()
        if status is None:
            return None
        return TraceFigures(
            rows=status.recorded,
            dropped={reason: count for reason, count in status.dropped.items() if count},
            files=status.files,
            size=status.size_bytes,
            removed_files=status.removed,
            tails=self._traces.tails,
        )

    def trace_uploads(self) -> UploadFigures | None:
        """Return the figures of the uploads of trace files; None where none are uploaded."""
        status = self._traces.status()
        uploads = None if status is None else status.uploads
        if uploads is None:
            return None
        return UploadFigures(
            files=uploads.files,
            size=uploads.size_bytes,
            pending=uploads.pending,
            pending_size=uploads.pending_bytes,
            failures=uploads.failures,
            lost=uploads.lost,
            lost_size=uploads.lost_bytes,
        )

    def listeners(self) -> Iterator[ListenerFigures]:
        """Return the listeners for clients and bridges that are open, in the order of the configuration."""
        return iter(self._edge.listeners())

    # -- what message VPNs have ------------------------------------------------------------------

    def rows(self, kind: Kind, sees: Callable[[str], bool]) -> Iterator[Row]:
        """Return the figures of each object of a kind in the message VPNs whose names `sees` is true for."""
        own = self._own.get(kind)
        if own is not None:
            return own(sees)
        return (OBJECTS[kind].row(one) for one in self._looks(kind, sees))

    def _looks(self, kind: Kind, sees: Callable[[str], bool]) -> Iterator[Any]:
        """Yield what the status class of a kind reads of each object; one that has others below has their looks."""
        if kind.parent is not None and not kind.is_of_vpn:
            for above in self._looks(kind.parent, sees):
                yield from getattr(above, kind.key)
            return
        objects = self._edge.objects.get(kind)
        for msg_vpn, _, one in objects.items() if objects is not None else ():
            if objects is not None and sees(msg_vpn):
                yield objects.look(one)

    def msg_vpns(self, sees: Callable[[str], bool]) -> Iterator[Row]:
        """Yield the figures of each message VPN whose name `sees` is true for."""
        for name, vpn in list(self._router.vpns.items()):
            if sees(name):
                row = MSG_VPNS.row(MsgVpnLook(vpn, self._meters))
                yield self._steady(("msg_vpn", vpn.name), vpn, MSG_VPNS, row)

    def bridges(self, sees: Callable[[str], bool]) -> Iterator[Row]:
        """Yield the figures of each bridge in those message VPNs, counted since the start of the router."""
        now = self._bridges.now()
        for key in [key for key in self._last if key[0] == "bridge" and key[1:] not in now]:
            del self._last[key]
        for (msg_vpn, name), source in now.items():
            if sees(msg_vpn):
                # Those of the API begin anew when an operator clears them.
                look = source.look(time.monotonic_ns(), whole=True)
                look.oldest_s = self._age
                yield self._steady(("bridge", msg_vpn, name), source, BRIDGES, BRIDGES.row(look))

    def _age(self, endpoints: Iterable[Endpoint]) -> float | None:
        """Return the seconds that the oldest message waits, None without one; it reads no message, since there may be
        many queues.
        """
        numbers = self._queues
        if numbers is None:
            return None
        ages = [numbers.oldest_s(endpoint) for endpoint in endpoints if endpoint.spooled_count]
        return max(ages, default=None)

    def _steady(self, key: tuple[str, ...], thing: object, section: Section, row: Row) -> Row:
        """Return the row of an object, with no count below its last one that must not fall."""
        counts: tuple[object, ...] = itemgetter(*section.falling)(row)
        risen = self._rising(key, thing, counts)
        if risen is counts:
            return row
        kept = dict(zip(section.falling, risen, strict=True))
        return tuple([kept.get(place, value) for place, value in enumerate(row)])

    def queues(self, sees: Callable[[str], bool]) -> Iterator[Row]:
        """Yield the figures of each queue, topic endpoint and parking lot in those message VPNs."""
        numbers = self._queues
        if numbers is None:
            return
        for name, vpn in list(self._router.vpns.items()):
            if not sees(name):
                continue
            for (kind, _), endpoint in list(endpoints_of(vpn).items()):
                if kind in SHOWN and not endpoint.deleted:
                    yield numbers.of(endpoint)

    def _rising(
        self, key: tuple[str, ...], thing: object, counts: tuple[object, ...]
    ) -> tuple[object, ...]:
        """Return the counts of an object, none below its last one."""
        last = self._last.get(key)
        if last is not None and last.thing is thing and last.counts != counts:
            counts = tuple(
                higher(before, now) for before, now in zip(last.counts, counts, strict=True)
            )
        self._last[key] = _Seen(thing, counts)
        return counts


def higher(before: object, now: object) -> object:
    """Return the higher of two counts, of each of two pairs, or of each reason."""
    if isinstance(before, int) and isinstance(now, int):
        return max(before, now)
    if isinstance(before, tuple) and isinstance(now, tuple):
        return tuple([higher(old, new) for old, new in zip(before, now, strict=True)])
    if isinstance(before, dict) and isinstance(now, dict) and before:
        return {key: max(before.get(key, 0), now.get(key, 0)) for key in before | now}
    return now
