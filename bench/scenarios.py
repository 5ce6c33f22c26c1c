"""Lists the measurements, their products, and their targets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from bench import idle, latency, throughput, varied
from bench.ours import Vpnrouter
from bench.processes import crowd
from bench.products import Access, Product

Row = dict[str, object]
"""Numbers by name, and `faults`: a list of texts, empty when the numbers can be believed."""


@dataclass(frozen=True)
class Goal:
    """`contender`'s metric, divided by that of `versus` where one is named, is at least or at most
    a value.
    """

    metric: str
    at_least: float | None = None
    at_most: float | None = None
    versus: str | None = None
    contender: str = "ours"

    def holds(self, value: float) -> bool:
        """Whether a value or a ratio meets the goal."""
        return (self.at_least is None or value >= self.at_least) and (
            self.at_most is None or value <= self.at_most
        )

    def text(self) -> str:
        """For people: `≥ 3 × nats`."""
        sign, bound = ("≥", self.at_least) if self.at_least is not None else ("≤", self.at_most)
        return f"{sign} {bound:g} × {self.versus}" if self.versus else f"{sign} {bound:g}"


@dataclass(frozen=True)
class Scenario:
    """One table of the report. `columns` are (field of a row, heading, divisor) to show."""

    name: str
    title: str
    measure: Callable[[Product, int | None, float], Row]
    columns: tuple[tuple[str, str, float], ...]
    goals: tuple[Goal, ...] = ()
    only_ours: bool = False
    access: Access = Access.PLAIN
    """A broker without this way in is left out."""
    bridged: bool = False
    """Whether two brokers are bridged. One without bridges is left out."""
    floor: bool = False
    """Whether a C program that only sends back is measured beside the brokers."""
    variants: Callable[[Vpnrouter], Sequence[Vpnrouter]] | None = None
    """Where our router takes part under several settings: makes them from the one given."""


def _flood(
    shape: throughput.Shape, *, bridged: bool = False
) -> Callable[[Product, int | None, float], Row]:
    def measure(product: Product, core: int | None, seconds: float) -> Row:
        start = product.bridged if bridged else product.single
        with start(core) as site:
            return _per_core(throughput.run(site, shape, seconds))

    return measure


def _varied(
    load: varied.Load, access: Access = Access.PLAIN, *, bridged: bool = False
) -> Callable[[Product, int | None, float], Row]:
    def measure(product: Product, core: int | None, seconds: float) -> Row:
        with product.bridged(core) if bridged else product.single(core, access) as site:
            return _per_core(varied.run(site, load, seconds))

    return measure


def _per_core(run: throughput.Run) -> Row:
    row: Row = dict(vars(run))
    # What a whole core would have done: comparable when others use the broker's core meanwhile.
    row["rate_per_core"] = run.rate / run.broker_busy if run.broker_busy > 0 else 0.0
    row["cpu_seconds_per_million"] = run.broker_busy / run.rate * 1e6 if run.rate else 0.0
    return row


def _wide_latency(product: Product, core: int | None, seconds: float) -> Row:
    with product.single(core) as site:
        return latency.run(site, latency.WIDE, seconds)


def _crowded_latency(product: Product, core: int | None, seconds: float) -> Row:
    with product.single(core) as site, crowd():
        return latency.run(site, latency.WIDE, seconds)


def _bridge_latency(product: Product, core: int | None, seconds: float) -> Row:
    with product.bridged(core) as site:
        return latency.run_across(site, latency.ACROSS_RATE, seconds)


_LATENCY = (
    ("p50_us", "p50 µs", 1.0),
    ("p99_us", "p99 µs", 1.0),
    ("p999_us", "p99.9 µs", 1.0),
    ("generator_lag_p99_us", "generator's lag p99 µs", 1.0),
    ("run_delay", "ready without a core", 1.0),
    ("steal", "stolen by the host", 1.0),
    ("broker_busy", "broker busy", 1.0),
    ("others_busy", "others on its core", 1.0),
)

_IDLE = (
    ("bytes_per_connection", "KiB each", 1024.0),
    ("bytes_per_subscribed_connection", "KiB each with one subscription", 1024.0),
    ("connects_per_second", "connects/s", 1.0),
)


def _idle(access: Access) -> Callable[[Product, int | None, float], Row]:
    def run(product: Product, core: int | None, _seconds: float) -> Row:
        with product.single(core, access) as site:
            return idle.run(site)

    return run


def _start(product: Product, core: int | None, _seconds: float) -> Row:
    with product.single(core) as site:
        return {"ready_seconds": site.start_seconds[0], "faults": []}


def _traced(router: Vpnrouter) -> list[Vpnrouter]:
    command = " ".join(router.command)
    return [
        Vpnrouter(command, 0.0, "ours 0 %"),
        Vpnrouter(command, 0.01, "ours 1 %"),
        Vpnrouter(command, 1.0, "ours 100 %"),
    ]


_RATE = (
    ("rate", "M msg/s", 1e6),
    ("rate_per_core", "M per CPU s", 1e6),
    ("cpu_seconds_per_million", "CPU s per M", 1.0),
    ("broker_busy", "broker busy", 1.0),
    ("others_busy", "others on its core", 1.0),
    ("generator_busy", "generator busy", 1.0),
)
BRIDGE = replace(throughput.ONE_TO_ONE, name="bridge")

SCENARIOS = (
    Scenario(
        "one-to-one",
        "1 publisher → 1 subscriber, 64 B",
        _flood(throughput.ONE_TO_ONE),
        _RATE,
        (Goal("rate", at_least=3, versus="nats"), Goal("rate", at_least=12, versus="mosquitto")),
    ),
    Scenario(
        "many",
        "100 publishers → 100 subscribers, 1,000 topics, 64 B",
        _flood(throughput.MANY),
        _RATE,
        (Goal("rate", at_least=2.5, versus="nats"),),
    ),
    Scenario(
        "fanout",
        "1 publisher → 50 subscribers of one topic, 64 B",
        _flood(throughput.FANOUT),
        _RATE,
        (Goal("rate", at_least=3, versus="nats"),),
    ),
    Scenario(
        "in-turn",
        "1 → 1, 1,000 topics in turn, 64 B, a wildcard",
        _varied(varied.IN_TURN),
        _RATE,
        (Goal("rate_per_core", at_least=6, versus="nats"),),
    ),
    Scenario(
        "at-random",
        "1 → 1, 1,000 topics at random, 64 to 512 B, a wildcard",
        _varied(varied.AT_RANDOM),
        _RATE,
        (
            Goal("rate", at_least=3.5, versus="nats"),
            Goal("rate_per_core", at_least=4, versus="nats"),
        ),
    ),
    Scenario(
        "many-at-random",
        "100 → 100, 1,000 topics at random, 64 to 512 B",
        _varied(varied.MANY_AT_RANDOM),
        _RATE,
        (Goal("rate_per_core", at_least=4, versus="nats"),),
    ),
    Scenario(
        "16-kib",
        "1 → 1, 16 KiB",
        _varied(varied.LARGE),
        _RATE,
        (
            Goal("rate", at_least=1.2, versus="nats"),
            Goal("rate_per_core", at_least=1.2, versus="nats"),
        ),
    ),
    Scenario("256-kib", "1 → 1, 256 KiB", _varied(varied.HUGE), _RATE),
    *(
        Scenario(
            f"{access}{suffix}",
            f"{title}, {what}",
            _varied(load, access),
            _RATE,
            goals,
            access=access,
        )
        for access, title, goals in (
            (Access.TLS, "TLS, 1 → 1", (Goal("rate", at_least=2, versus="nats"),)),
            (
                Access.WEBSOCKET,
                "MQTT over WebSocket, 1 → 1",
                (Goal("rate", at_least=2, versus="mosquitto"),),
            ),
            (Access.PROPERTIES, "MQTT 5 with properties, 1 → 1", ()),
        )
        for suffix, what, load in (
            ("", "one topic, 64 B", varied.ONE_TOPIC),
            ("-at-random", "1,000 topics at random, 64 to 512 B", varied.AT_RANDOM),
        )
    ),
    *(
        Scenario(
            f"bridge-{name}",
            f"two bridged brokers on one core, 1 → 1, {what}",
            _varied(load, bridged=True),
            _RATE,
            goals,
            bridged=True,
        )
        for name, what, load, goals in (
            (
                "in-turn",
                "1,000 topics in turn, 64 B",
                varied.IN_TURN,
                (Goal("rate", at_least=3, versus="nats"),),
            ),
            ("at-random", "1,000 topics at random, 64 to 512 B", varied.AT_RANDOM, ()),
            ("16-kib", "16 KiB", varied.LARGE, ()),
            ("256-kib", "256 KiB", varied.HUGE, ()),
        )
    ),
    Scenario(
        "latency",
        "200 + 200 connections, 10,000 msg/s in all",
        _wide_latency,
        _LATENCY,
        (Goal("p99_us", at_most=1, versus="nats"), Goal("p99_us", at_most=3, versus="C echo")),
        floor=True,
    ),
    Scenario(
        "latency-crowded",
        "200 + 200 connections, 10,000 msg/s in all, beside a process of lowest priority on each core",
        _crowded_latency,
        _LATENCY,
        (Goal("p50_us", at_most=1, versus="nats"),),
        floor=True,
    ),
    Scenario(
        "bridge",
        "two bridged brokers on one core, 1 → 1, 64 B",
        _flood(BRIDGE, bridged=True),
        _RATE,
        (
            Goal("rate", at_least=5, versus="mosquitto"),
            Goal("rate", at_least=10, versus="mosquitto"),
            Goal("rate", at_least=2, versus="nats"),
        ),
        bridged=True,
    ),
    Scenario(
        "bridge-latency",
        "the same at 1,000 msg/s",
        _bridge_latency,
        (
            ("p50_us", "p50 µs", 1.0),
            ("p99_us", "p99 µs", 1.0),
            ("added_p50_us", "added p50 µs", 1.0),
            ("added_p99_us", "added p99 µs", 1.0),
            ("broker_busy", "brokers busy", 1.0),
            ("others_busy", "others on their core", 1.0),
        ),
        (Goal("added_p99_us", at_most=1, versus="nats"),),
        bridged=True,
    ),
    Scenario(
        "idle",
        "10,000 idle connections",
        _idle(Access.PLAIN),
        _IDLE,
        (Goal("bytes_per_connection", at_most=8192),),
    ),
    Scenario(
        "idle-tls",
        "10,000 idle connections, TLS",
        _idle(Access.TLS),
        _IDLE,
        (Goal("bytes_per_connection", at_most=0.5, versus="nats"),),
        access=Access.TLS,
    ),
    Scenario(
        "start",
        "from exec to usable",
        _start,
        (("ready_seconds", "seconds", 1.0),),
        (Goal("ready_seconds", at_most=0.7),),
    ),
    Scenario(
        "trace",
        "1 → 1 at three trace samples",
        _flood(throughput.ONE_TO_ONE),
        _RATE,
        (Goal("rate", at_least=0.95, versus="ours 0 %", contender="ours 1 %"),),
        only_ours=True,
        variants=_traced,
    ),
)
