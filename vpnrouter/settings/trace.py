"""Routing traces: where they are written, which messages are traced, where spans go."""

from __future__ import annotations

import re
from typing import Final, Literal
from urllib.parse import urlsplit

from vpnrouter import limits
from vpnrouter.settings import names
from vpnrouter.settings.schema import (
    Effect,
    Secret,
    Settings,
    Text,
    TopicSyntax,
    attribute,
    group,
)


class TraceFilter(Settings, held=False):
    """Which published messages it looks at, and how many of them are traced. What is left out, or empty,
    fits everything.
    """

    trace_filter_name: str = attribute(
        None, text=names.TRACE_FILTER, examples=("alarms",), required=True
    )
    """Name of the filter, for people."""

    enabled: bool = attribute(True)
    """Whether the filter is looked at."""

    subscriptions: tuple[str, ...] = attribute((), examples=("alarm/>",))
    """Topic filters; a message's topic has to match one of them."""

    topic_syntax: TopicSyntax = attribute("smf")
    """Dialect of the subscriptions: smf has * and >, mqtt has + and #."""

    msg_vpns: tuple[str, ...] = attribute((), text=names.MSG_VPN, examples=("blue",))
    """Message VPNs in which the message is published."""

    client_usernames: tuple[str, ...] = attribute(
        (), text=names.CLIENT_USERNAME, examples=("sensors",)
    )
    """Client usernames of its publisher."""

    client_names: tuple[str, ...] = attribute(
        (), text=Text(1, limits.TRACE_CLIENT_NAME_LENGTH), examples=("sensor-*",)
    )
    """Client names of its publisher; one that ends in * fits all that begin alike."""

    sample: float = attribute(1.0, least=0.0, most=1.0)
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


class Otlp(Settings):
    """Spans of traced messages, sent by OTLP over HTTP. Needs the extra `otel`: pip install '.[otel]'."""

    enabled: bool = attribute(False)
    """Whether spans are sent."""

    endpoint: str = attribute("http://127.0.0.1:4318/v1/traces", check=_check_endpoint)
    """URL of the collector, with the path."""

    headers: dict[str, Secret] = attribute(
        {}, named=Text(1, 128, _check_header), examples=("authorization",)
    )
    """Headers of each request by name; a value is text, {env: NAME} or {file: PATH}."""

    timeout_s: int = attribute(10, least=1, most=300)
    """Seconds in which a request must have succeeded, repetitions included; else its spans are lost."""

    max_queue: int = attribute(limits.OTLP_QUEUE_ROWS, least=1_000, most=10_000_000)
    """Trace events that may wait for a slow collector; further ones make no spans, and are counted."""

    def check(self) -> None:
        """Raise ValueError for a header that would not be one."""
        for name, secret in self.headers.items():
            if not _VALUE.fullmatch(secret.reveal()):
                # Never the value itself.
                raise ValueError(
                    f"the value of header {name} has characters that a header must not"
                )


class Rotation(Settings):
    """When a trace file is completed and the next one begun: at whichever comes first."""

    max_bytes: int = attribute(limits.TRACE_FILE_BYTES, least=1_048_576, most=1 << 40)
    """Bytes of one file."""

    max_rows: int = attribute(4_000_000, least=1, most=100_000_000)
    """Rows of one file."""

    max_seconds: int = attribute(60, least=1, most=86_400)
    """Seconds that a file stays open, so the time until readers see its rows."""


class Retention(Settings):
    """When completed trace files are removed; 0 keeps them for ever."""

    max_days: int = attribute(0, least=0, most=36_500)
    """Days that a file is kept."""

    max_bytes: int = attribute(0, least=0, most=1 << 60)
    """Bytes of all this router's files together; the oldest go first."""


_CONTAINER: Final = re.compile(r"[A-Za-z0-9$][A-Za-z0-9_.-]*")
"""A bucket or container. What a store allows beyond it is the store's to say."""

_PATH: Final = re.compile(r"[^\x00-\x20\x7f\\]*")
"""What stands below it: no blanks and no control characters."""

UPLOAD_SCHEMES: Final = ("s3", "gs", "abfs", "abfss", "file")


def _check_upload_url(text: str) -> str:
    """Check where files go. No message repeats the URL: it may have a password in it."""
    if len(text) > limits.LOCATION_LENGTH:
        raise ValueError(
            f"the URL has {len(text)} characters, at most {limits.LOCATION_LENGTH} are allowed"
        )
    scheme, found, rest = text.partition("://")
    if not found or scheme not in UPLOAD_SCHEMES:
        raise ValueError("the URL begins with s3://, gs://, abfs://, abfss:// or file:///")
    if "?" in rest or "#" in rest:
        raise ValueError("the URL has no part after ? or #; options are attributes of their own")
    where, _, path = rest.partition("/")
    name, at, account = where.partition("@")
    if ":" in where or (at and not scheme.startswith("abfs")):
        raise ValueError(
            "credentials and ports do not belong into the URL; give access_key, secret_key, endpoint"
        )
    if not _PATH.fullmatch(path) or ".." in path.split("/"):
        raise ValueError("the path of the URL has no blanks, no \\ and no ..")
    if scheme == "file":
        if where or not path:
            raise ValueError("the URL of a directory is file:///PATH")
        return text
    if not _CONTAINER.fullmatch(name):
        raise ValueError("the URL names no bucket, as in s3://BUCKET/PATH")
    if scheme.startswith("abfs") and not _CONTAINER.fullmatch(account):
        raise ValueError("the URL names no account, as in abfss://CONTAINER@ACCOUNT/PATH")
    return text


def _check_upload_endpoint(text: str) -> str:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise ValueError("an endpoint is http://HOST:PORT, or https") from None
    if len(text) > limits.LOCATION_LENGTH or parts.username is not None:
        raise ValueError("an endpoint is http://HOST:PORT, or https, without credentials")
    known = parts.scheme in {"http", "https"} and parts.hostname and port != 0
    if not known or parts.path.strip("/") or parts.query or parts.fragment:
        raise ValueError("an endpoint is http://HOST:PORT, or https, without a path")
    return text


_KEY: Final = Text(0, limits.PASSWORD_BYTES)


class Upload(Settings, held=False):
    """Completed files, shipped to an object store or a mounted directory, in the same layout as here."""

    enabled: bool = attribute(True)
    """Whether files are uploaded."""

    url: str = attribute(
        None,
        text=Text(1, limits.LOCATION_LENGTH, _check_upload_url),
        examples=("s3://traces/mesh",),
        required=True,
    )
    """Where to: s3://BUCKET/PATH, gs://BUCKET/PATH, abfss://CONTAINER@ACCOUNT/PATH, file:///DIRECTORY."""

    endpoint: str | None = attribute(
        None,
        text=Text(1, limits.LOCATION_LENGTH, _check_upload_endpoint),
        examples=("http://minio.example.org:9000",),
    )
    """Address of the store, where it is not the one of its vendor: http://HOST:PORT, or https."""

    region: str | None = attribute(
        None, text=Text(1, limits.TRACE_UPLOAD_REGION_LENGTH), examples=("eu-central-1",)
    )
    """Region of an S3 bucket; left out, that of the environment."""

    access_key: Secret | None = attribute(None, text=_KEY)
    """Access key of S3: text, {env: NAME} or {file: PATH}; left out, the environment's own credentials."""

    secret_key: Secret | None = attribute(None, text=_KEY)
    """Secret key of S3, or account key of Azure: text, {env: NAME} or {file: PATH}."""

    timeout_s: int = attribute(30, least=1, most=300)
    """Seconds that a store may be silent in a request; then the upload has failed and is repeated."""

    max_pending_bytes: int = attribute(limits.TRACE_UPLOAD_PENDING_BYTES, least=0, most=1 << 60)
    """Bytes not uploaded yet that `retention` has to leave; beyond, it removes the oldest, which are lost."""

    def check(self) -> None:
        """Raise ValueError for options that the kind of store does not have."""
        scheme = self.url.partition("://")[0]
        if scheme == "s3":
            return
        if self.region is not None or self.access_key is not None:
            raise ValueError("region and access_key are for s3:// alone")
        if self.secret_key is not None and not scheme.startswith("abfs"):
            raise ValueError(f"a store of {scheme}:// has no secret_key")
        if self.endpoint is not None and scheme == "file":
            raise ValueError("a directory has no endpoint")


# What writes files is set up once.
class Trace(Settings, effect=Effect.RESTART, held=False):
    """Routing traces as Parquet files: DIRECTORY/date=YYYY-MM-DD/router=NAME/part-*.parquet."""

    enabled: bool = attribute(True)
    """Whether messages are traced."""

    directory: str = attribute(
        None, text=names.PATH, file=True, examples=("./traces",), required=True
    )
    """Directory of the trace files; several routers may share one."""

    sample: float = attribute(0.01, least=0.0, most=1.0)
    """Share of messages that are traced, decided where a message first enters a router."""

    always: tuple[Literal["discard", "reject"], ...] = attribute(("discard", "reject"))
    """What is told of messages that are not traced too, added up each second: discard, reject."""

    filters: tuple[TraceFilter, ...] = attribute(
        (), items=TraceFilter, longest=limits.TRACE_FILTERS
    )
    """Other shares for some topics or clients; the first filter that fits decides, else `sample`."""

    traceparent: Literal["honour", "ignore"] = attribute("honour")
    """What an MQTT 5 message that comes with a W3C trace context does: with honour it is traced under its
    trace id if its sampled flag is set."""

    emit_traceparent: bool = attribute(False)
    """Whether traced messages that came without one leave with a `traceparent`, to MQTT 5 clients."""

    rotation: Rotation = group(Rotation)
    """When the next file is begun."""

    retention: Retention = group(Retention)
    """When files are removed."""

    otlp: Otlp = group(Otlp)
    """Spans of traced messages for an OpenTelemetry collector."""

    upload: Upload | None = group(Upload, optional=True)
    """Where completed files are shipped to; left out, they stay here."""
