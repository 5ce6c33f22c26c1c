"""Runs the contenders in alternating rounds: each once a round, another one first each time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Contender = TypeVar("Contender")
Row = dict[str, object]


def order(contenders: Sequence[Contender], number: int) -> list[Contender]:
    """The contenders in the order of round `number`."""
    first = number % len(contenders) if contenders else 0
    return [*contenders[first:], *contenders[:first]]


def alternate(
    contenders: Sequence[Contender],
    rounds: int,
    measure: Callable[[Contender], Row],
    name_of: Callable[[Contender], str],
    told: Callable[[str, Row], None],
) -> dict[str, list[Row]]:
    """Rows by contender. What goes wrong with one of them is a fault in its row, and the rest goes
    on.
    """
    rows: dict[str, list[Row]] = {name_of(contender): [] for contender in contenders}
    for number in range(rounds):
        for contender in order(contenders, number):
            try:
                row = measure(contender)
            except (OSError, RuntimeError, ValueError, TypeError) as error:
                row = {"faults": [f"failed: {type(error).__name__}: {error}"]}
            rows[name_of(contender)].append(row)
            told(name_of(contender), row)
    return rows
