"""Writes the results of a bench: one JSON file with every row, and one line of Markdown."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bench.percentiles import median_of
from bench.scenarios import Goal, Row, Scenario

SCHEMA = "vpnrouter-bench/1"
DIRECTORY = Path(__file__).resolve().parent / "results"


@dataclass
class Verdict:
    """A goal beside what was measured; `value` is None when one side is missing."""

    text: str
    metric: str
    value: float | None
    met: bool | None


@dataclass
class Table:
    """One scenario's figures."""

    title: str
    rows: dict[str, list[Row]]
    """Every round of every contender, as measured."""
    medians: dict[str, dict[str, float]]
    ratios: dict[str, float]
    """Ours divided by the other's, medians of the first column."""
    ratios_per_core: dict[str, float]
    """The same of deliveries per second of the brokers' processor time, where this is known."""
    goals: list[Verdict]
    faults: dict[str, list[str]]
    """Texts that put a contender's figures in doubt, with the round they come from."""
    notes: dict[str, list[str]] = field(default_factory=dict)
    """Texts that explain a contender's figures, with the round they come from."""


@dataclass
class Report:
    """One run of a bench."""

    kind: str
    started: str
    machine: Mapping[str, str | int]
    settings: Mapping[str, object]
    versions: Mapping[str, str]
    warnings: list[str]
    scenarios: dict[str, Table] = field(default_factory=dict)
    schema: str = SCHEMA


def numbers(row: Row) -> dict[str, float]:
    """The numeric fields of a row."""
    return {
        name: float(value)
        for name, value in row.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }


def table(scenario: Scenario, rows: dict[str, list[Row]]) -> Table:
    """Medians, ratios and verdicts of one scenario's rows."""
    medians = {name: median_of([numbers(row) for row in taken]) for name, taken in rows.items()}
    return Table(
        title=scenario.title,
        rows=rows,
        medians=medians,
        ratios=_ratios(medians, scenario.columns[0][0]),
        ratios_per_core=_ratios(medians, "rate_per_core"),
        goals=[verdict(goal, medians) for goal in scenario.goals],
        faults={name: found for name, taken in rows.items() if (found := _texts(taken, "faults"))},
        notes={name: found for name, taken in rows.items() if (found := _texts(taken, "notes"))},
    )


def _ratios(medians: Mapping[str, Mapping[str, float]], metric: str) -> dict[str, float]:
    ours = medians.get("ours", {}).get(metric)
    if ours is None:
        return {}
    return {
        name: ours / values[metric]
        for name, values in medians.items()
        if name != "ours" and values.get(metric)
    }


def verdict(goal: Goal, medians: Mapping[str, Mapping[str, float]]) -> Verdict:
    """The goal's value and whether it is met."""
    value = medians.get(goal.contender, {}).get(goal.metric)
    if value is not None and goal.versus is not None:
        other = medians.get(goal.versus, {}).get(goal.metric)
        # What is not above zero on both sides (a difference lost in noise) has no meaningful ratio.
        value = value / other if other and other > 0 and value > 0 else None
    return Verdict(goal.text(), goal.metric, value, None if value is None else goal.holds(value))


def disturbance(figures: Table) -> float:
    """The largest median share of the broker's core that other processes had."""
    return max((values.get("others_busy", 0.0) for values in figures.medians.values()), default=0.0)


def _texts(rows: Sequence[Row], kind: str) -> list[str]:
    found = []
    for number, row in enumerate(rows, 1):
        texts = row.get(kind)
        if isinstance(texts, list):
            found += [f"round {number}: {text}" for text in texts]
    return found


def summary_line(report: Report) -> str:
    """One row of results/summary.md."""
    cells = []
    for name, figures in report.scenarios.items():
        ratios = ", ".join(f"{ratio:.2f} × {other}" for other, ratio in figures.ratios.items())
        mark = " (faults)" if figures.faults else ""
        cells.append(f"{name}: {ratios or 'no peer'}{mark}")
    return f"- {report.started} {report.kind}: " + "; ".join(cells) + "\n"


def write(report: Report, directory: Path = DIRECTORY) -> Path:
    """Writes KIND-STARTED.json and appends to summary.md; returns the JSON file's path."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{report.kind}-{report.started.replace(':', '').replace('-', '')}.json"
    scratch = path.with_suffix(".tmp")
    scratch.write_text(json.dumps(asdict(report), indent=1) + "\n", encoding="utf-8")
    scratch.replace(path)
    with (directory / "summary.md").open("a", encoding="utf-8") as summary:
        summary.write(summary_line(report))
    return path
