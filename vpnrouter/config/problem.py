"""Problems of configurations, each with its place in a file and its severity."""

from typing import Literal, NamedTuple


class Position(NamedTuple):
    """A place in a file; line and column begin at 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


Severity = Literal["error", "warning", "note"]


class Problem(NamedTuple):
    """One problem. An error refuses the configuration; a warning wants to be looked at; a note says what
    follows from configurations that are right.
    """

    position: Position
    severity: Severity
    message: str

    def __str__(self) -> str:
        mark = "" if self.severity == "error" else f"{self.severity}: "
        return f"{self.position}: {mark}{self.message}"


Path = tuple[str | int, ...]
"""The keys and list indexes that lead from the top of a document to a value."""


def show_path(path: Path) -> str:
    """Return `("msg_vpns", "blue", "queues", 0)` as `msg_vpns.blue.queues[0]`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text
