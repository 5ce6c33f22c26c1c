"""Compares our router with brokers that store, guaranteed messages: `python -m bench.guaranteed`."""

from __future__ import annotations

import argparse
import gc
import os
import signal
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

from rich.console import Console

from bench import IS_COMPILED, guaranteed_disk
from bench.compile import compile_hot
from bench.guaranteed_products import Store
from bench.guaranteed_stores import NAMES, by_name
from bench.guaranteed_throughput import PUBLISHERS
from bench.guaranteed_trials import TRIALS, Trial
from bench.machine import cores, notes
from bench.ours import Vpnrouter
from bench.results import Report, disturbance, numbers, table, write
from bench.rounds import alternate
from bench.scenarios import Row
from bench.show import show

KIND = "guaranteed"
QUIET_SHARE = 0.05
"""Share of the broker's core that others may have before the figures are called disturbed."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, prints, writes; 0 unless nothing could be measured."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser().parse_args(words)
    if not IS_COMPILED and not options.uncompiled and compile_hot():
        # The modules are chosen when the package is imported: begin again.
        command = [sys.executable, "-m", "bench.guaranteed", "--uncompiled", *words]
        os.execv(sys.executable, command)  # noqa: S606 (no shell is meant)
    signal.signal(signal.SIGTERM, _stop)
    console = Console()
    warnings = [text for text in [guaranteed_disk.warning()] if text]
    stores: dict[str, Store] = {}
    for name in options.brokers:
        store = by_name(name, options.router_command)
        if reason := store.missing():
            warnings.append(f"left out: {reason}")
            continue
        stores[name] = store
        if isinstance(store, Vpnrouter) and not store.is_compiled():
            warnings.append("OUR ROUTER IS NOT THE COMPILED BUILD: its figures say little")
    pinned = None if options.unpinned else cores()
    if pinned is None:
        warnings.append("nothing is pinned: broker and generator share all cores")
    else:
        os.sched_setaffinity(0, {pinned[1]})
    for text in dict.fromkeys(warnings):
        console.print(f"! {text}", markup=False)
    for name, store in stores.items():
        console.print(f"{name} syncs {store.syncs}", markup=False, highlight=False)
    report = Report(
        kind=KIND,
        started=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        machine={**notes(), "file_system": guaranteed_disk.file_system()},
        settings={
            "rounds": options.rounds,
            "seconds": options.seconds,
            "messages": options.messages,
            "publishers": PUBLISHERS,
            "window": {name: store.window for name, store in stores.items()},
            "ahead": {name: store.ahead for name, store in stores.items()},
            "broker_core": pinned[0] if pinned else None,
            "generator_core": pinned[1] if pinned else None,
            "syncs": {name: store.syncs for name, store in stores.items()},
        },
        versions={name: store.version() for name, store in stores.items()},
        warnings=list(dict.fromkeys(warnings)),
    )
    gc.disable()  # nothing here makes cycles that matter, and a collection would be a pause
    try:
        for trial in TRIALS:
            if trial.name in options.only or (not options.only and not trial.long):
                _measure(console, report, trial, stores, options, pinned[0] if pinned else None)
    finally:
        if report.scenarios:
            console.print(f"written: {write(report)}", soft_wrap=True)
    return 0 if report.scenarios else 1


def _measure(
    console: Console,
    report: Report,
    trial: Trial,
    stores: dict[str, Store],
    options: argparse.Namespace,
    core: int | None,
) -> None:
    contenders = [name for name in stores if name in trial.stores]
    if not contenders:
        console.print(f"{trial.name}: nobody to measure")
        return
    if trial.disk:
        contenders.append(guaranteed_disk.NAME)

    def told(name: str, row: Row) -> None:
        metric, heading, divisor = trial.figures.columns[0]
        value = numbers(row).get(metric)
        text = f"{value / divisor:,.3f} {heading}" if value is not None else "no figure"
        faults = row["faults"]
        marks = " ! " + "; ".join(faults) if isinstance(faults, list) and faults else ""
        console.print(f"  {trial.name} {name}: {text}{marks}", markup=False, highlight=False)
        gc.collect()

    def measure(name: str) -> Row:
        if name == guaranteed_disk.NAME:
            return guaranteed_disk.fdatasync(options.seconds)
        return trial.measure(stores[name], core, options.seconds, options.messages)

    rows = alternate(contenders, options.rounds, measure, str, told)
    figures = table(trial.figures, rows)
    report.scenarios[trial.name] = figures
    show(console, trial.figures, figures)
    if (share := disturbance(figures)) > QUIET_SHARE:
        text = f"{trial.name}: disturbed, others had up to {share:.0%} of the broker's core"
        report.warnings.append(text)
        console.print(f"! {text}", markup=False)


def _stop(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)


def _parser() -> argparse.ArgumentParser:
    names = [trial.name for trial in TRIALS]
    parser = argparse.ArgumentParser(prog="python -m bench.guaranteed", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="alternating rounds (default: 3)")
    parser.add_argument("--seconds", type=float, default=5.0, help="timed interval (default: 5)")
    parser.add_argument(
        "--only", type=_choice(names), default=[], help=f"of {','.join(names)} (default: no memory)"
    )
    parser.add_argument(
        "--brokers", type=_choice(NAMES), default=list(NAMES), help=f"of {','.join(NAMES)}"
    )
    parser.add_argument(
        "--messages", type=int, default=0, help="waiting messages, for a quick look (default: all)"
    )
    parser.add_argument(
        "--router-command",
        default="",
        help="our router, without `run CONFIG` (default: this environment's)",
    )
    parser.add_argument("--unpinned", action="store_true", help="bind nothing to a core")
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
