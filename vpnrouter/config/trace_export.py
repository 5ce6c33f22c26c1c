"""Where the spans of traced messages go beside the trace files: an OpenTelemetry collector."""

import re
from typing import Annotated, Final, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from vpnrouter import limits
from vpnrouter.config.model import Model, Named
from vpnrouter.config.secret import Secret

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
