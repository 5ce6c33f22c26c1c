"""Bounds of the topology report and of what it keeps in memory; docs/limits.md lists them with the router's."""

from typing import Final

REPORT_DRIVER_MEMORY: Final = "1400m"
"""Heap of the Java process behind a report; with what Java needs beside it the driver stays below 2 GiB.
Beyond: Spark spills to disk, and where it cannot, the report ends with an error."""

REPORT_SHUFFLE_PARTITIONS: Final = 8
"""Partitions of a small report's groupings; a larger one takes one per million trace rows, see below."""

REPORT_SHUFFLE_PARTITIONS_MOST: Final = 400
"""Most partitions of a report's groupings, reached at 400 million rows. Beyond: partitions grow,
Spark spills."""

REPORT_TOPICS: Final = 1_000
"""Rows of the report's table of busiest topics. Beyond: the less busy topics are left out, and the page says
how many rows stand for how many topics."""

REPORT_DISCARDS: Final = 1_000
"""Rows of the report's table of discards by reason and place. Beyond: the rarest are left out and the totals,
which are counted apart, still hold them."""

REPORT_PAGE_ROWS: Final = 200
"""Rows of one table on the report page; more makes the page slow to open. Beyond: the page shows the first
ones and names the file that has all."""

REPORT_DAMAGED_FILES: Final = 16
"""Damaged files that a report sets aside after Spark stumbled over them, each time starting afresh. Beyond:
the report ends with an error that names the last one."""
