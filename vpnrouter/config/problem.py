"""Findings: what is wrong or doubtful, where, and how bad."""

from typing import Literal, NamedTuple


class Position(NamedTuple):
    """A place in a file; line and column begin at 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Problem(NamedTuple):
    """One finding. An error refuses the configuration, a warning does not."""

    position: Position
    severity: Literal["error", "warning"]
    message: str

    def __str__(self) -> str:
        mark = "warning: " if self.severity == "warning" else ""
        return f"{self.position}: {mark}{self.message}"


Path = tuple[str | int, ...]
"""The keys and list indexes that lead from the top of a document to a value."""


def show_path(path: Path) -> str:
    """`("msg_vpns", "blue", "queues", 0)` as `msg_vpns.blue.queues[0]`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text
