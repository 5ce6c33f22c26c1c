"""How far a report is: told to whoever shows it, while Spark works."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Final, Protocol

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from vpnrouter.report.engine.remote import is_beside

_POLL_S: Final = 0.25


class Progress(Protocol):
    """Receives the progress of a report; `tasks` is called from another thread than `stage`."""

    def stage(self, name: str) -> None:
        """Begin a part of the work."""

    def tasks(self, done: int, total: int) -> None:
        """Show how many of Spark's known tasks are done."""


class NoProgress:
    """A Progress that shows nothing."""

    def stage(self, name: str) -> None:
        """Do nothing."""

    def tasks(self, done: int, total: int) -> None:
        """Do nothing."""


@contextlib.contextmanager
def watched(spark: SparkSession, progress: Progress) -> Iterator[None]:
    """Report the tasks of Spark's active stages a few times a second while the block runs; a Spark Connect server does
    not tell them.
    """
    if not is_beside(spark):
        yield
        return
    finished = threading.Event()

    def poll() -> None:
        tracker = spark.sparkContext.statusTracker()
        while not finished.wait(_POLL_S):
            # Spark's own failure is told where the work waits for it.
            with contextlib.suppress(Py4JError, PySparkException, OSError, EOFError):
                stages = [tracker.getStageInfo(at) for at in tracker.getActiveStageIds()]
                known = [stage for stage in stages if stage is not None]
                if known:
                    progress.tasks(
                        sum(stage.numCompletedTasks for stage in known),
                        sum(stage.numTasks for stage in known),
                    )

    thread = threading.Thread(target=poll, name="spark progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        finished.set()
        thread.join()
