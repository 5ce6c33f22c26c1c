"""Collects the problems that checks find in one document, or in those of a mesh."""

import pathlib
from typing import final

from vpnrouter import limits
from vpnrouter.config.parse import Document
from vpnrouter.config.problem import Path, Problem, Severity
from vpnrouter.config.router import Loaded


@final
class ProblemList:
    """Problems of one document. `document` fits the configuration under check.

    `file_document` is the document of the file: it still holds objects that were dropped
    because something in them is wrong, so that a reference to such an object is not called dangling
    as well.
    """

    __slots__ = ("document", "file_document", "filter_pairs", "problems")

    def __init__(self, document: Document, file_document: Document) -> None:
        self.document = document
        self.file_document = file_document
        self.problems: list[Problem] = []
        self.filter_pairs: int = limits.CONFIG_FILTER_PAIRS

    def error(self, path: Path, message: str) -> None:
        """Add an error about the value at `path`."""
        self.problems.append(
            Problem(self.document.value_at(path), "error", f"{self.document.show(path)}: {message}")
        )

    def warning(self, path: Path, message: str) -> None:
        """Add a warning about the value at `path`."""
        self.problems.append(
            Problem(
                self.document.value_at(path), "warning", f"{self.document.show(path)}: {message}"
            )
        )

    def key_error(self, path: Path, message: str) -> None:
        """Add an error about the key at the end of `path`."""
        self.problems.append(
            Problem(self.document.key_at(path), "error", f"{self.document.show(path)}: {message}")
        )

    def key_warning(self, path: Path, message: str) -> None:
        """Add a warning about the key at the end of `path`."""
        self.problems.append(
            Problem(self.document.key_at(path), "warning", f"{self.document.show(path)}: {message}")
        )

    def is_configured(self, path: Path) -> bool:
        """Return whether the file holds something at `path`, or something that is no mapping where that would be:
        this is told already.
        """
        return self.file_document.has(path) or not self.file_document.has_room(path)

    def is_whole(self, path: Path) -> bool:
        """Return whether nothing directly in the value at `path` was dropped, so that what is absent was
        never written.
        """
        return self.document.is_whole(path)

    def is_unwritten(self, path: Path) -> bool:
        """Return whether what is absent at `path` was never written, and is not absent because it, or what would
        hold it, was dropped.
        """
        return self.document.is_unwritten(path)

    def readable(self, path: Path, file: str | None) -> None:
        """Add an error about `path` if the file that it names cannot be read."""
        if file is None:
            return
        try:
            with pathlib.Path(file).open("rb"):
                pass
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not a path"
            self.error(path, f"cannot read {file}: {reason}")


@final
class MeshProblems:
    """All problems of one mesh, in the order in which they were made."""

    __slots__ = ("problems",)

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def add(self, severity: Severity, loaded: Loaded, path: Path, message: str) -> None:
        """Add a problem with the value at `path`."""
        document = loaded.positions
        self.problems.append(
            Problem(document.value_at(path), severity, f"{document.show(path)}: {message}")
        )

    def add_key(self, severity: Severity, loaded: Loaded, path: Path, message: str) -> None:
        """Add a problem with the key at the end of `path`."""
        document = loaded.positions
        self.problems.append(
            Problem(document.key_at(path), severity, f"{document.show(path)}: {message}")
        )

    def errors(self) -> int:
        """Return the number of errors so far."""
        return sum(problem.severity == "error" for problem in self.problems)
