"""What the digests sum up, in one wording."""

from pyspark.sql import Column
from pyspark.sql import functions as F


def stands_for() -> Column:
    """How many trace rows a row counts as: one, or as many messages as it says."""
    return F.coalesce(F.col("count"), F.lit(1).cast("long"))


def counted() -> Column:
    """The digest column `count`."""
    return F.sum(stands_for()).alias("count")


def weighed() -> Column:
    """The digest column `weight`: null when the weight of one row is not known."""
    known = F.count("weight") == F.count(F.lit(1))
    return F.when(known, F.sum("weight")).alias("weight")


def payload() -> Column:
    """The digest column `bytes`."""
    return F.coalesce(F.sum(F.col("size_bytes") * stands_for()), F.lit(0)).alias("bytes")


def stretch_of(time_ns: Column, width_ns: int) -> Column:
    """The begin of the stretch of `width_ns` since 1970 in which a time lies."""
    return time_ns - F.pmod(time_ns, F.lit(width_ns))
