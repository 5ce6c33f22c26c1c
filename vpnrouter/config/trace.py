"""Routing traces: where they are written, how many messages are traced, how long files are kept."""

from typing import Annotated, Literal

from pydantic import Field

from vpnrouter import limits
from vpnrouter.config.model import Many, Model
from vpnrouter.config.names import FilePath
from vpnrouter.config.trace_export import Otlp
from vpnrouter.config.trace_filter import TraceFilter


class Rotation(Model):
    """When a trace file is completed and the next one begun: at whichever comes first."""

    max_bytes: Annotated[int, Field(ge=1_048_576, le=1 << 40)] = limits.TRACE_FILE_BYTES
    """Bytes of one file."""

    max_rows: Annotated[int, Field(ge=1, le=100_000_000)] = 4_000_000
    """Rows of one file."""

    max_seconds: Annotated[int, Field(ge=1, le=86_400)] = 60
    """Seconds that a file stays open, so the time until readers see its rows."""


class Retention(Model):
    """When completed trace files are removed; 0 keeps them for ever."""

    max_days: Annotated[int, Field(ge=0, le=36_500)] = 0
    """Days that a file is kept."""

    max_bytes: Annotated[int, Field(ge=0, le=1 << 60)] = 0
    """Bytes of all this router's files together; the oldest go first."""


class Trace(Model):
    """Routing traces as Parquet files: DIRECTORY/date=YYYY-MM-DD/router=NAME/part-*.parquet."""

    enabled: bool = True
    """Whether messages are traced."""

    directory: Annotated[FilePath, Field(examples=["./traces"])]
    """Directory of the trace files; several routers may share one."""

    sample: Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)] = 0.01
    """Share of messages that are traced, decided where a message first enters a router."""

    always: Many[Literal["discard", "reject"]] = ("discard", "reject")
    """What is told of messages that are not traced too, added up each second: discard, reject."""

    filters: Annotated[Many[TraceFilter], Field(max_length=limits.TRACE_FILTERS)] = ()
    """Other shares for some topics or clients; the first filter that fits decides, else `sample`."""

    traceparent: Literal["honour", "ignore"] = "honour"
    """What an MQTT 5 message that comes with a W3C trace context does: with honour it is traced under its
    trace id if its sampled flag is set."""

    emit_traceparent: bool = False
    """Whether traced messages that came without one leave with a `traceparent`, to MQTT 5 clients."""

    rotation: Rotation = Field(default_factory=Rotation)
    """When the next file is begun."""

    retention: Retention = Field(default_factory=Retention)
    """When files are removed."""

    otlp: Otlp = Field(default_factory=Otlp)
    """Spans of traced messages for an OpenTelemetry collector."""
