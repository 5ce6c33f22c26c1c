"""Lists the measurements of guaranteed messages, their brokers, and their targets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bench import guaranteed_backlog as backlog
from bench import guaranteed_beside as beside
from bench import guaranteed_latency as latency
from bench import guaranteed_throughput as throughput
from bench.guaranteed_products import Store
from bench.guaranteed_stores import SYNCED
from bench.products import Product, directory
from bench.scenarios import Goal, Row, Scenario

BACKLOG = 1_000_000
LONG_BACKLOG = 5_000_000


@dataclass(frozen=True)
class Trial:
    """One table of the report and who takes part."""

    figures: Scenario
    """Heading, columns and goals."""
    measure: Callable[[Store, int | None, float, int], Row]
    """Broker, its core, seconds, waiting messages (0: the trial's own number)."""
    stores: tuple[str, ...]
    long: bool = False
    """Runs only when it is named."""
    disk: bool = False
    """The disk itself takes part."""

    @property
    def name(self) -> str:
        """What `--only` calls it."""
        return self.figures.name


def _elsewhere(product: Product, _core: int | None, _seconds: float) -> Row:
    raise AssertionError(product)  # a trial has its own way to measure


def _queue(consumers: int) -> Callable[[Store, int | None, float, int], Row]:
    def measure(store: Store, core: int | None, seconds: float, _count: int) -> Row:
        with directory(store.name) as folder, store.start(folder, core) as running:
            store.prepare(running.publish_to, consumers)
            return throughput.run(store, running, core, seconds, consumers)

    return measure


def _latency(store: Store, core: int | None, seconds: float, _count: int) -> Row:
    with directory(store.name) as folder, store.start(folder, core) as running:
        store.prepare(running.publish_to, 1)
        return latency.run(store, running, seconds)


def _bridge(store: Store, core: int | None, seconds: float, _count: int) -> Row:
    with (
        directory(store.name) as near,
        directory(store.name) as far,
        store.linked(near, far, core) as running,
    ):
        return throughput.run(store, running, core, seconds)


def _beside(store: Store, core: int | None, seconds: float, _count: int) -> Row:
    with directory(store.name) as folder, store.start(folder, core) as running:
        return beside.run(store, running, core, seconds)


def _drain(store: Store, core: int | None, _seconds: float, count: int) -> Row:
    return backlog.drain(store, core, count or BACKLOG)


def _restart(store: Store, core: int | None, _seconds: float, count: int) -> Row:
    return backlog.restart(store, core, count or BACKLOG)


def _memory(store: Store, core: int | None, _seconds: float, count: int) -> Row:
    return backlog.memory(store, core, count or LONG_BACKLOG)


_SHARES = (
    ("broker_busy", "broker", 1.0),
    ("generator_busy", "gener.", 1.0),
    ("others_busy", "others", 1.0),
)
_RATE = (
    ("rate", "k/s", 1e3),
    ("accepted_rate", "acked k/s", 1e3),
    ("flush_rate", "flush/s", 1.0),
    *_SHARES,
)
_QUEUES = ("ours", "mosquitto", "nats", "rabbitmq", "rabbitmq-classic")
_LINKS = ("ours", "mosquitto", "mosquitto-qos2", "rabbitmq", "rabbitmq-classic")
_ENOUGH = (Goal("rate", at_least=80_000), Goal("rate", at_least=6, versus=SYNCED))


def _table(
    name: str, title: str, columns: tuple[tuple[str, str, float], ...], *goals: Goal
) -> Scenario:
    return Scenario(name, title, _elsewhere, columns, goals)


TRIALS = (
    Trial(
        _table("throughput", "8 publishers, 1 queue, 1 consumer, 256 bytes", _RATE, *_ENOUGH),
        _queue(1),
        _QUEUES,
    ),
    Trial(
        _table("throughput-8", "8 publishers, 1 queue, 8 consumers, 256 bytes", _RATE, *_ENOUGH),
        _queue(8),
        _QUEUES,
    ),
    Trial(
        _table(
            "latency",
            "publish to acknowledgement, one at a time, µs",
            (("p50_us", "p50", 1.0), ("p99_us", "p99", 1.0), ("count", "messages", 1.0)),
            Goal("p50_us", at_most=2, versus="disk"),
        ),
        _latency,
        _QUEUES,
        disk=True,
    ),
    Trial(
        _table(
            "bridge",
            "8 publishers, queue, guaranteed link to a second broker, queue, 1 consumer",
            _RATE,
            Goal("rate", at_least=30_000),
            Goal("rate", at_least=5, versus=SYNCED),
        ),
        _bridge,
        _LINKS,
    ),
    Trial(
        _table(
            "drain",
            "1,000,000 waiting messages, 1 consumer, in order",
            (
                ("rate", "k/s", 1e3),
                ("filled_rate", "filled k/s", 1e3),
                *_SHARES,
            ),
            Goal("rate", at_least=100_000),
        ),
        _drain,
        _QUEUES,
    ),
    Trial(
        _table(
            "beside",
            "Direct 1→1, 64 bytes, beside a saturated guaranteed flow",
            (
                ("share", "share", 1.0),
                ("alone_rate", "alone M/s", 1e6),
                ("beside_rate", "beside M/s", 1e6),
                ("guaranteed_rate", "guar. k/s", 1e3),
                *_SHARES[:2],
            ),
            Goal("share", at_least=0.6),
        ),
        _beside,
        ("ours", "mosquitto", "nats"),
    ),
    Trial(
        _table(
            "restart",
            "start with 1,000,000 waiting messages",
            (
                ("ready_seconds", "ready s", 1.0),
                ("killed_seconds", "after kill s", 1.0),
                ("lost", "lost", 1.0),
                ("stop_seconds", "to stop s", 1.0),
                ("resident_mib", "resident MiB", 1.0),
            ),
            Goal("ready_seconds", at_most=5),
            Goal("killed_seconds", at_most=5),
            Goal("lost", at_most=0),
        ),
        _restart,
        _QUEUES,
    ),
    Trial(
        _table(
            "memory",
            "5,000,000 waiting messages",
            (
                ("resident_mib", "resident MiB", 1.0),
                ("empty_mib", "before", 1.0),
                ("disk_mib", "files", 1.0),
                ("filled_rate", "filled k/s", 1e3),
            ),
            Goal("resident_mib", at_most=400),
        ),
        _memory,
        _QUEUES,
        long=True,
    ),
)
