"""Frames that Spark keeps while a block runs."""

from __future__ import annotations

import gc
from types import TracebackType
from typing import Final, Self

from pyspark import StorageLevel
from pyspark.sql import DataFrame


class KeptFrames:
    """Has Spark keep frames from their first use on, in memory and on disk, and releases them when the block ends.

    `small`: the frames are, and what is derived from one partition needs no shuffle.
    """

    __slots__ = ("_frames", "_small")

    def __init__(self, *, small: bool = False) -> None:
        self._small: Final = small
        self._frames: Final[list[DataFrame]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for frame in self._frames:
            frame.unpersist()
        self._frames.clear()
        # Python's handles of Java's objects are in cycles. Java keeps the plan of a query, and tables that it sent to
        # all tasks (a megabyte each), until Python has collected them; by itself it does so after many reports.
        gc.collect()

    def keep(self, frame: DataFrame) -> DataFrame:
        """Return a frame whose rows Spark keeps once they were made."""
        kept = (frame.coalesce(1) if self._small else frame).persist(StorageLevel.MEMORY_AND_DISK)
        self._frames.append(kept)
        return kept
