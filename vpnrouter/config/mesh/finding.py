"""Findings over several configurations, and where the checks put them."""

from __future__ import annotations

from typing import Literal, NamedTuple, final

from vpnrouter.config.problem import Path, Position
from vpnrouter.config.router import Loaded

Severity = Literal["error", "warning", "note"]


class Finding(NamedTuple):
    """One finding. An error refuses the configuration that it stands in; a warning wants to be looked
    at; a note tells what follows from configurations that are right.
    """

    position: Position
    severity: Severity
    message: str

    def __str__(self) -> str:
        mark = "" if self.severity == "error" else f"{self.severity}: "
        return f"{self.position}: {mark}{self.message}"


@final
class MeshFindings:
    """All findings of one check, in the order in which they were made."""

    __slots__ = ("found",)

    def __init__(self) -> None:
        self.found: list[Finding] = []

    def tell(self, severity: Severity, loaded: Loaded, path: Path, message: str) -> None:
        """A finding about the value at `path`."""
        document = loaded.positions
        self.found.append(
            Finding(document.value_at(path), severity, f"{document.show(path)}: {message}")
        )

    def tell_key(self, severity: Severity, loaded: Loaded, path: Path, message: str) -> None:
        """A finding about the key at the end of `path`."""
        document = loaded.positions
        self.found.append(
            Finding(document.key_at(path), severity, f"{document.show(path)}: {message}")
        )

    def errors(self) -> int:
        """How many errors there are by now."""
        return sum(finding.severity == "error" for finding in self.found)
