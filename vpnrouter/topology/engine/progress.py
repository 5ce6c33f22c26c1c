"""Tells whoever waits for a report how far it is."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Final, Protocol

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

_POLL_S: Final = 0.25


class Progress(Protocol):
    """What a report calls while it works; `tasks` comes from another thread than `stage`."""

    def stage(self, name: str) -> None:
        """A new part of the work begins."""

    def tasks(self, done: int, total: int) -> None:
        """Of the tasks that Spark knows of at the moment, so many are done."""


class Quiet:
    """A Progress that says nothing."""

    def stage(self, name: str) -> None:
        """Say nothing."""

    def tasks(self, done: int, total: int) -> None:
        """Say nothing."""


@contextlib.contextmanager
def watched(spark: SparkSession, progress: Progress) -> Iterator[None]:
    """While the block runs, report the tasks of Spark's active stages a few times a second."""
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
