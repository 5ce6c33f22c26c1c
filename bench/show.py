"""Prints tables for readers, by rich."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table as RichTable

from bench.results import Table
from bench.scenarios import Scenario


def show(console: Console, scenario: Scenario, figures: Table) -> None:
    """One scenario: medians, ratios, goals, faults."""
    grid = RichTable(title=f"{scenario.name}: {scenario.title}", title_justify="left")
    grid.add_column("broker")
    for _, heading, _ in scenario.columns:
        grid.add_column(heading, justify="right")
    grid.add_column("ours is", justify="right")
    for name, medians in figures.medians.items():
        cells = [
            f"{medians[metric] / divisor:,.3f}" if metric in medians else "-"
            for metric, _, divisor in scenario.columns
        ]
        ratio = figures.ratios.get(name)
        per_core = figures.ratios_per_core.get(name)
        factor = f"{ratio:.2f} ×" if ratio is not None else ""
        factor += f" ({per_core:.2f} × per CPU s)" if per_core is not None else ""
        mark = " !" if name in figures.faults else ""
        grid.add_row(name + mark, *cells, factor)
    console.print(grid)
    for goal in figures.goals:
        if goal.met is None or goal.value is None:
            console.print(f"  goal {goal.metric} {goal.text}: not measured")
        else:
            console.print(
                f"  goal {goal.metric} {goal.text}: {goal.value:.3g}, "
                + ("met" if goal.met else "MISSED")
            )
    for name, texts in figures.notes.items():
        for text in texts:
            console.print(f"  {name}, {text}", markup=False)
    for name, texts in figures.faults.items():
        for text in texts[:5]:
            console.print(f"  ! {name}, {text}", markup=False)
