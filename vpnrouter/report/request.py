"""What a report is asked for."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from vpnrouter.report.change.configured import Configured
from vpnrouter.report.engine.session import SparkSettings
from vpnrouter.report.output import FORMATS
from vpnrouter.report.planning.questions import NONE, Questions
from vpnrouter.report.traces.span import Span
from vpnrouter.report.traces.storage import is_uri


@dataclass(frozen=True, kw_only=True)
class ReportRequest:
    """What to report on.

    `traces` are places of directories and single files, `output` is the place of the report (`traces.storage`); `span`
    is the time to report on, `against` another one to compare it with; `mesh` is what is configured. `questions` are
    for the table `what_if`. `formats` are of FORMATS and LAKEHOUSE; `catalog` is that of Iceberg tables, `NAME` or
    `NAME.NAMESPACE`, where it is not the report's own. `asyncapi` is the place of the AsyncAPI documents; without one
    there are none. `incremental`: digests of days are kept in the output, and those of days that have changed are made
    anew.
    """

    traces: Sequence[str]
    output: str
    spark: SparkSettings = field(default_factory=SparkSettings)
    span: Span = field(default_factory=Span)
    against: Span | None = None
    mesh: Configured | None = None
    questions: Questions = NONE
    formats: frozenset[str] = FORMATS
    catalog: str = ""
    asyncapi: str | None = None
    incremental: bool = False

    @property
    def is_here(self) -> bool:
        """Whether all traces can be read without Spark."""
        return not self.spark.connect and not any(map(is_uri, self.traces))
