"""What the management API asks of a router's configuration, and how it has it changed."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from vpnrouter.config.change import Change
from vpnrouter.config.document import Plain
from vpnrouter.config.problem import Position, Problem
from vpnrouter.config.router import RouterConfig

ConfigPath = tuple[str | int, ...]
"""Keys and list indexes from the top of a document."""


@dataclass(frozen=True, slots=True)
class Examined:
    """What a document would do to the router. `changes` is empty where `problems` has an error."""

    problems: tuple[Problem, ...]
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Edited:
    """What a change did: a line for each difference, and the digest of what is in force now."""

    lines: tuple[str, ...]
    digest: str


class Editor(Protocol):
    """The configuration of a running router: the person's file and, over it, what was changed by the API.

    Called in the router's own thread. Changes are made one at a time, in the order they were asked for.
    """

    def config(self) -> RouterConfig:
        """The configuration in force."""

    def document(self) -> Plain:
        """It as plain data, as written in file and overlay; secrets stand in it. Not to be changed."""

    def position(self, path: ConfigPath) -> Position:
        """Where the part at `path` is written, the overlay's places included."""

    def positions(self) -> Iterable[tuple[ConfigPath, Position]]:
        """Every part of the document and where it is written. May be walked in a thread."""

    def files(self) -> tuple[str, str]:
        """The paths of the person's file and of the overlay, which need not exist."""

    def digest(self) -> str:
        """Hexadecimal digest of the document in force: another document, another digest."""

    def overlay(self) -> Plain:
        """What lies over the file: a merge patch (RFC 7396), {} for nothing."""

    async def examine(self, document: Plain) -> Examined:
        """What it would take to put `document` into force; nothing changes."""

    async def edit(self, change: Callable[[Plain], None], who: str, expected: str = "") -> Edited:
        """Change a copy of the document by `change`, check it as `check` does, write the overlay, put it
        into force. `who` is told in the log. `expected` is the digest that must be in force, "" for any.

        Raises ConfigError where the result is refused, with every problem; OperationError where it cannot
        be applied or written, or where `expected` is not in force; and what `change` raises. Nothing has
        changed then.
        """

    async def return_to(self, digest: str, who: str) -> Edited:
        """Put an earlier document into force, one of the last that were; raises like `edit`."""
