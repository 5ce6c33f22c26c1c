"""Shows the progress of the demonstration on stderr, and claims its output directory."""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from io import TextIOBase
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from vpnrouter.errors import OperationError

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID


MARKER: Final = ".vpnrouter-demo"
"""File that says that a directory may be overwritten by the next demonstration."""

TRACES: Final = "traces"
REPORT: Final = "report"
ROUTERS: Final = "routers"


@contextlib.contextmanager
def claimed(folder: Path) -> Iterator[Path]:
    """Clear the directory of what an earlier run left, and lock it until the block ends.

    Raises:
        OperationError: something else is in it, another demonstration uses it, or it cannot be made.
    """
    try:
        held = _claim(folder)
    except OSError as error:
        raise OperationError(f"cannot use {folder}: {error.strerror or error}") from error
    with held:
        yield folder.resolve()


def _claim(folder: Path) -> TextIOBase:
    marker = folder / MARKER
    if folder.exists() and not marker.is_file() and any(folder.iterdir()):
        raise OperationError(
            f"{folder} holds something other than an earlier demo: choose another --output"
        )
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as undo:
        lock_file = undo.enter_context(marker.open("a", encoding="utf-8"))
        try:
            fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OperationError(f"another demo is running in {folder}") from None
        for name in (TRACES, REPORT, ROUTERS):
            if (folder / name).exists():
                shutil.rmtree(folder / name)
        (folder / ROUTERS).mkdir()
        undo.pop_all()
    return lock_file


LINE_S: Final = 5.0
"""Seconds between two lines about the same thing where no terminal shows bars."""

PUBLISHED: Final = "published"


class ProgressReporter(Protocol):
    """Shows the progress of the demonstration."""

    def stage(self, what: str) -> None:
        """Begin the stage `what`."""

    def counts(self, published: Mapping[str, int], received: Mapping[str, int]) -> None:
        """Show how many messages have left each publisher and reached each subscriber."""


class LineReporter:
    """Shows progress in lines, for a pipe or a file."""

    def __init__(self, due: Mapping[str, int]) -> None:
        self._due = due
        self._last_s = time.monotonic()
        self._last = 0

    def stage(self, what: str) -> None:
        """Print the stage as a line on stderr."""
        print(f"demo: {what}", file=sys.stderr, flush=True)

    def counts(self, published: Mapping[str, int], received: Mapping[str, int]) -> None:
        """Print the totals and the rate as a line, at most every LINE_S seconds."""
        now_s = time.monotonic()
        if now_s - self._last_s < LINE_S:
            return
        left = sum(published.values())
        rate = (left - self._last) / (now_s - self._last_s)
        arrived = sum(received.values())
        self.stage(
            f"published {left:,} of {self._due[PUBLISHED]:,} ({rate:,.0f}/s), received {arrived:,}"
        )
        self._last, self._last_s = left, now_s


class BarReporter:
    """Shows progress on a terminal: a bar for what is published and one for each subscriber."""

    def __init__(self, display: RichProgress, due: Mapping[str, int]) -> None:
        self._display = display
        self._bars: dict[str, TaskID] = {}
        self._due = due

    def stage(self, what: str) -> None:
        """Print the stage above the bars."""
        self._display.console.print(what, markup=False, highlight=False)

    def counts(self, published: Mapping[str, int], received: Mapping[str, int]) -> None:
        """Move the bars to these counts; the first call adds the bars."""
        if not self._bars:
            self._bars = {
                name: self._display.add_task(name, total=total) for name, total in self._due.items()
            }
        for name, done in {PUBLISHED: sum(published.values()), **received}.items():
            self._display.update(self._bars[name], completed=done)


@contextlib.contextmanager
def progress_reporter(due: Mapping[str, int]) -> Iterator[ProgressReporter]:
    """Show progress until the block ends; `due` are the totals, PUBLISHED and those by subscriber."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn
    from rich.progress import Task as Bar
    from rich.text import Text

    class Rate(ProgressColumn):
        """Messages a second."""

        def render(self, task: Bar) -> Text:
            rate = task.finished_speed or task.speed
            return Text("" if rate is None else f"{rate:>9,.0f}/s")

    console = Console(stderr=True)
    if not console.is_terminal:
        yield LineReporter(due)
        return
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        Rate(),
        console=console,
    ) as display:
        yield BarReporter(display, due)
