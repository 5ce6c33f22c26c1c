"""The models of routing traces: where they are written, which messages are traced, where spans go."""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from vpnrouter import limits
from vpnrouter.config.model import (
    ClientUsernameName,
    FilePath,
    Many,
    Model,
    MsgVpnName,
    Named,
    TraceFilterName,
)
from vpnrouter.config.secrets import Secret
from vpnrouter.settings.schema import TopicSyntax


class TraceFilter(Model):
    """Which published messages it looks at, and how many of them are traced. What is left out, or empty,
    fits everything.
    """

    trace_filter_name: Annotated[TraceFilterName, Field(examples=["alarms"])]
    """Name of the filter, for people."""

    enabled: bool = True
    """Whether the filter is looked at."""

    subscriptions: Many[str] = Field(default=(), examples=["alarm/>"])
    """Topic filters; a message's topic has to match one of them."""

    topic_syntax: TopicSyntax = "smf"
    """Dialect of the subscriptions: smf has * and >, mqtt has + and #."""

    msg_vpns: Many[MsgVpnName] = Field(default=(), examples=["blue"])
    """Message VPNs in which the message is published."""

    client_usernames: Many[ClientUsernameName] = Field(default=(), examples=["sensors"])
    """Client usernames of its publisher."""

    client_names: Many[
        Annotated[str, Field(min_length=1, max_length=limits.TRACE_CLIENT_NAME_LENGTH)]
    ] = Field(default=(), examples=["sensor-*"])
    """Client names of its publisher; one that ends in * fits all that begin alike."""

    sample: Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)] = 1.0
    """Share of these messages that are traced."""


_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
"""RFC 9110, 5.6.2, with a bound."""

_VALUE: Final = re.compile(r"[\x21-\x7e\x80-\xff]([\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?")
"""RFC 9110, 5.5."""


def _check_endpoint(text: str) -> str:
    if len(text) > limits.LOCATION_LENGTH:
        raise ValueError(
            f"the address has {len(text)} characters, at most {limits.LOCATION_LENGTH} are allowed"
        )
    if not text.isascii() or any(character <= " " for character in text):
        raise ValueError("an address of a collector has no blanks and no letters beyond ASCII")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise ValueError("an address of a collector is http://HOST:PORT/PATH") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname or port == 0:
        raise ValueError("an address of a collector is http://HOST:PORT/PATH, or https")
    if parts.username is not None or parts.password is not None:
        raise ValueError("a name and password do not belong into the address; give a header")
    if parts.fragment:
        raise ValueError("an address of a collector has no part after #")
    return text


def _check_header(text: str) -> str:
    if not _TOKEN.fullmatch(text):
        raise ValueError("a header's name is 1 to 128 letters, digits and !#$%&'*+.^_`|~-")
    return text


NO_SDK: Final = (
    "trace.otlp needs the OpenTelemetry SDK: pip install '.[otel]' in vpnrouter's source, or set"
    " trace.otlp.enabled: false"
)


def has_sdk() -> bool:
    """Whether what sends spans is installed here. Nothing of it is loaded but packages that hold others."""
    # Imported late: few routers send spans.
    from importlib.util import find_spec

    try:
        return None not in map(
            find_spec, ("opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http")
        )
    except (ImportError, ValueError):
        return False


class Otlp(Model):
    """Spans of traced messages, sent by OTLP over HTTP. Needs the extra `otel`: pip install '.[otel]'."""

    enabled: bool = False
    """Whether spans are sent."""

    endpoint: Annotated[str, AfterValidator(_check_endpoint)] = "http://127.0.0.1:4318/v1/traces"
    """URL of the collector, with the path."""

    headers: Named[Annotated[str, AfterValidator(_check_header)], Secret] = Field(
        default_factory=dict, examples=["authorization"]
    )
    """Headers of each request by name; a value is text, {env: NAME} or {file: PATH}."""

    timeout_s: Annotated[int, Field(ge=1, le=300)] = 10
    """Seconds in which a request must have succeeded, repetitions included; else its spans are lost."""

    max_queue: Annotated[int, Field(ge=1_000, le=10_000_000)] = limits.OTLP_QUEUE_ROWS
    """Trace events that may wait for a slow collector; further ones make no spans, and are counted."""

    @model_validator(mode="after")
    def _values(self) -> Self:
        for name, secret in self.headers.items():
            if not _VALUE.fullmatch(secret.reveal()):
                # Never the value itself.
                raise ValueError(
                    f"the value of header {name} has characters that a header must not"
                )
        return self


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
