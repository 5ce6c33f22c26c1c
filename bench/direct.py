"""Compares our router with mosquitto and nats-server, Direct messages: `python -m bench.direct`."""

from __future__ import annotations

import argparse
import gc
import os
import signal
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

from rich.console import Console

from bench import IS_COMPILED
from bench.compile import compile_hot
from bench.echo import Echo
from bench.machine import cores, notes
from bench.mochi import Mochi
from bench.mosquitto import Mosquitto
from bench.nats import NatsServer
from bench.ours import Vpnrouter
from bench.products import Product
from bench.results import Report, disturbance, numbers, table, write
from bench.rounds import alternate
from bench.scenarios import SCENARIOS, Row, Scenario
from bench.show import show
from bench.throughput import SHAPES

KIND = "direct"
QUIET_SHARE = 0.05
"""Share of the broker's core that others may have before the figures are called disturbed."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, prints, writes; 0 unless nothing could be measured."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser().parse_args(words)
    if not IS_COMPILED and not options.uncompiled and compile_hot():
        # The modules are chosen when the package is imported: begin again.
        command = [sys.executable, "-m", "bench.direct", "--uncompiled", *words]
        os.execv(sys.executable, command)  # noqa: S606 (no shell is meant)
    signal.signal(signal.SIGTERM, _stop)
    console = Console()
    router = Vpnrouter(options.router_command)
    every: list[Product] = [router, Mosquitto(), NatsServer(), Mochi()]
    warnings = []
    products = []
    for product in every:
        if product.name not in options.brokers:
            continue
        if reason := product.missing():
            warnings.append(f"left out: {reason}")
        else:
            products.append(product)
    if router in products and not router.is_compiled():
        warnings.append("OUR ROUTER IS NOT THE COMPILED BUILD: its figures say little")
    pinned = cores()
    if pinned is None:
        warnings.append("fewer than two cores: broker and generator share one, nothing is pinned")
    else:
        os.sched_setaffinity(0, {pinned[1]})
    for text in warnings:
        console.print(f"! {text}", markup=False)
    report = Report(
        kind=KIND,
        started=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        machine=notes(),
        settings={
            "rounds": options.rounds,
            "seconds": options.seconds,
            "broker_core": pinned[0] if pinned else None,
            "generator_core": pinned[1] if pinned else None,
            "generator_compiled": IS_COMPILED,
            "window_bytes": {shape.name: shape.window_bytes for shape in SHAPES},
        },
        versions={product.name: product.version() for product in products},
        warnings=warnings,
    )
    chosen = [scenario for scenario in SCENARIOS if scenario.name in options.only]
    gc.disable()  # nothing here makes cycles that matter, and a collection would be a pause
    try:
        for scenario in chosen:
            _measure(console, report, scenario, products, options, pinned[0] if pinned else None)
    finally:
        if report.scenarios:
            console.print(f"written: {write(report)}", soft_wrap=True)
    return 0 if report.scenarios else 1


def _measure(
    console: Console,
    report: Report,
    scenario: Scenario,
    products: Sequence[Product],
    options: argparse.Namespace,
    core: int | None,
) -> None:
    contenders: list[Product] = []
    for product in products:
        if not isinstance(product, Vpnrouter):
            fits = scenario.access in product.accesses and (product.bridges or not scenario.bridged)
            contenders += [product] if fits and not scenario.only_ours else []
        elif scenario.variants is not None:
            contenders += scenario.variants(product)
        else:
            contenders.append(product)
    echo = Echo()
    if scenario.floor and not echo.missing():
        contenders.append(echo)
    if not contenders:
        console.print(f"{scenario.name}: nobody to measure")
        return

    def told(name: str, row: Row) -> None:
        metric, heading, divisor = scenario.columns[0]
        value = numbers(row).get(metric)
        text = f"{value / divisor:,.3f} {heading}" if value is not None else "no figure"
        faults = row["faults"]
        marks = " ! " + "; ".join(faults) if isinstance(faults, list) and faults else ""
        console.print(f"  {scenario.name} {name}: {text}{marks}", markup=False, highlight=False)
        gc.collect()

    def measure(product: Product) -> Row:
        return scenario.measure(product, core, options.seconds)

    rows = alternate(contenders, options.rounds, measure, lambda product: product.name, told)
    figures = table(scenario, rows)
    report.scenarios[scenario.name] = figures
    show(console, scenario, figures)
    if (share := disturbance(figures)) > QUIET_SHARE:
        text = f"{scenario.name}: disturbed, others had up to {share:.0%} of the broker's core"
        report.warnings.append(text)
        console.print(f"! {text}", markup=False)


def _stop(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)


def _parser() -> argparse.ArgumentParser:
    names = [scenario.name for scenario in SCENARIOS]
    brokers = ["ours", "mosquitto", "nats", "mochi"]
    parser = argparse.ArgumentParser(prog="python -m bench.direct", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="alternating rounds (default: 5)")
    parser.add_argument("--seconds", type=float, default=3.0, help="timed interval (default: 3)")
    parser.add_argument("--only", type=_choice(names), default=names, help=f"of {','.join(names)}")
    parser.add_argument(
        "--brokers", type=_choice(brokers), default=brokers, help=f"of {','.join(brokers)}"
    )
    parser.add_argument(
        "--router-command",
        default="",
        help="our router, without `run CONFIG` (default: this environment's)",
    )
    parser.add_argument(
        "--uncompiled", action="store_true", help="do not compile the generator's hot modules first"
    )
    return parser


class _choice:  # noqa: N801 (argparse shows the name of a type in its errors)
    """A comma-separated selection of known names."""

    def __init__(self, known: Sequence[str]) -> None:
        self.known = known

    def __call__(self, text: str) -> list[str]:
        chosen = text.split(",")
        if unknown := [name for name in chosen if name not in self.known]:
            raise argparse.ArgumentTypeError(
                f"{', '.join(unknown)} is not of {', '.join(self.known)}"
            )
        return chosen


if __name__ == "__main__":
    sys.exit(main())
