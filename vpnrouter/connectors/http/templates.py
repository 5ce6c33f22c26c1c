"""Makes the path and the header values of requests of messages: texts with placeholders.

    /orders/{1}?line={2}      {1}, {2} … are what the wildcards of the link's source matched
    {topic} {property:line}   in headers: of the message

What a message says is encoded for its place, so that it can neither begin another header nor leave the path that the
configuration names.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, final
from urllib.parse import quote

from vpnrouter import limits
from vpnrouter.text import split_placeholders
from vpnrouter.topics.grammar import ALL, LITERAL, REST, match_levels
from vpnrouter.wire.http1 import is_field_value

if TYPE_CHECKING:
    from vpnrouter.topics.grammar import Filter

_PLAIN: Final = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*")
"""What may stand in a path and query as it is (RFC 3986, 3.3 and 3.4)."""

_LEVEL: Final = "!$'()*,:@~"
"""What a level of a topic may have in a path as it is, besides letters, digits, dots, hyphens and underlines."""

_IN_HEADER: Final = " !\"#$&'()*+,/:;<=>?@[\\]^`{|}~"
"""What a header value has as it is, besides letters, digits, dots, hyphens and underlines. Not %, which begins what is
encoded."""

_DOTS: Final = (".", "..")
"""Segments by which a path would lead elsewhere (RFC 3986, 5.2.4)."""

TOPIC: Final = "topic"
MESSAGE_ID: Final = "message_id"
CORRELATION: Final = "correlation_data"
PROPERTY: Final = "property:"
"""Placeholders of header values."""

_KNOWN: Final = (TOPIC, MESSAGE_ID, CORRELATION)

OWN_HEADERS: Final = frozenset(
    {
        "authorization",
        "connection",
        "content-length",
        "expect",
        "host",
        "http2-settings",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers that a link cannot set: they belong to the connection, or have keys of their own."""


def header_text(value: str) -> str:
    """Return what a header has for a value of a message: what it cannot carry is percent-encoded, in UTF-8."""
    text = quote(value[: limits.HTTP_VALUE_BYTES], safe=_IN_HEADER, errors="replace")
    if len(text) > limits.HTTP_VALUE_BYTES:
        cut = text[: limits.HTTP_VALUE_BYTES]
        # Not in the middle of an encoded character.
        mark = cut.rfind("%", limits.HTTP_VALUE_BYTES - 2)
        text = cut if mark < 0 else cut[:mark]
    return text.strip(" ")


@final
class Values:
    """What placeholders of header values stand for, of one message; `properties` are its user properties."""

    __slots__ = ("correlation", "message_id", "properties", "topic")

    def __init__(self, topic: str, message_id: str, correlation: bytes | None) -> None:
        self.topic = topic
        self.message_id = message_id
        self.correlation = correlation or b""
        self.properties: dict[str, str] = {}

    def of(self, name: str) -> str:
        """Return the value of a placeholder, "" where the message has none."""
        if name == TOPIC:
            return self.topic
        if name == MESSAGE_ID:
            return self.message_id
        if name == CORRELATION:
            return self.correlation.decode("utf-8", "replace")
        return self.properties.get(name[len(PROPERTY) :], "")


@final
class HeaderTemplate:
    """The value of a header: literals and placeholders in turn."""

    __slots__ = ("parts",)

    def __init__(self, parts: list[str]) -> None:
        self.parts = parts

    def value(self, values: Values) -> str:
        """Return the value for a message, "" where nothing is left of it."""
        parts = self.parts
        if len(parts) == 1:
            return parts[0]
        made: list[str] = []
        for index, part in enumerate(parts):
            made.append(header_text(values.of(part)) if index % 2 else part)
        return "".join(made)[: limits.HTTP_VALUE_BYTES].strip(" ")


def parse_header(text: str) -> HeaderTemplate:
    """Return the template of a header value. Raises ValueError that says what is wrong with it."""
    parts = split_placeholders(text)
    for index, part in enumerate(parts):
        if index % 2:
            named = part in _KNOWN or (part.startswith(PROPERTY) and part != PROPERTY)
            if not named:
                known = ", ".join([f"{{{name}}}" for name in _KNOWN])
                raise ValueError(f"has {{{part}}}, which is none of {known}, {{property:NAME}}")
        elif not is_field_value("x" + part + "x"):
            raise ValueError("has a character that a header cannot carry")
    if len(parts) == 1 and parts[0] != parts[0].strip(" "):
        raise ValueError("begins or ends with a space")
    if len(text) > limits.HTTP_VALUE_BYTES:
        raise ValueError(f"has more than {limits.HTTP_VALUE_BYTES:,} characters")
    return HeaderTemplate(parts)


@final
class PathTemplate:
    """The path and query of requests: `texts[0]`, capture `captures[0]`, `texts[1]` and so on.

    `filter` is that of the link's source. Without captures and texts the path is the topic of the message.
    """

    __slots__ = ("_captures", "_filter", "_texts", "_wild", "base")

    def __init__(self, base: str, filter_: Filter, texts: list[str], captures: list[int]) -> None:
        self.base = base
        self._filter = filter_
        self._texts = texts
        self._captures = captures
        # The levels of the filter that are captured.
        self._wild = [index for index, kind in enumerate(filter_.kinds) if kind != LITERAL]

    def target(self, topic: str) -> str:
        """Return path and query for a message on `topic`; "" where there is none: it is too long, or would lead to
        another path.
        """
        levels = topic.split("/")
        if not self._texts:
            made = _encoded(levels, "/")
        else:
            captured = self._captured(levels)
            if captured is None:
                return ""
            parts = [self._texts[0]]
            query = "?" in self._texts[0]
            for index, capture in enumerate(self._captures):
                parts.append(_encoded(captured[capture], "%2F" if query else "/"))
                text = self._texts[index + 1]
                parts.append(text)
                query = query or "?" in text
            made = "".join(parts)
        if not made.startswith("/"):
            made = "/" + made
        target = self.base + made
        if len(target) > limits.HTTP_TARGET_BYTES:
            return ""
        for segment in made.partition("?")[0].split("/"):
            if segment in _DOTS:
                return ""
        return target

    def _captured(self, levels: list[str]) -> list[list[str]] | None:
        """Return the levels that each wildcard of the source matched, None where it does not match."""
        filter_ = self._filter
        captured: list[list[str]] = []
        if not self._captures:
            return captured
        if not match_levels(filter_.levels, filter_.kinds, levels):
            # Out of a queue: no wildcard takes a topic that begins with $ (MQTT-4.7.2-1).
            return None
        for index in self._wild:
            if filter_.kinds[index] in (REST, ALL):
                captured.append(levels[index:])
            else:
                captured.append([levels[index][len(filter_.levels[index]) :]])
        return captured


def _encoded(levels: list[str], between: str) -> str:
    return between.join([quote(level, safe=_LEVEL, errors="replace") for level in levels])


def parse_path(base: str, filter_: Filter, text: str) -> PathTemplate:
    """Return the template of path and query beside a source. Raises ValueError that says what is wrong with it."""
    if not text:
        raise ValueError("is empty")
    count = len([kind for kind in filter_.kinds if kind != LITERAL])
    texts: list[str] = []
    captures: list[int] = []
    for index, part in enumerate(split_placeholders(text)):
        if index % 2:
            if not (part.isascii() and part.isdigit() and len(part) < 4):
                raise ValueError(f"has {{{part}}}, which is no number of a wildcard")
            if not 1 <= int(part) <= count:
                have = f"the source has {count}" if count else "the source has none"
                raise ValueError(f"names wildcard {{{part}}}, but {have}")
            captures.append(int(part) - 1)
        elif _PLAIN.fullmatch(part) is None:
            raise ValueError("has a character that a path cannot have as it is: percent-encode it")
        else:
            texts.append(part)
    if len(captures) == 0:
        for segment in text.partition("?")[0].split("/"):
            if segment in _DOTS:
                raise ValueError("has a segment . or ..")
    return PathTemplate(base, filter_, texts, captures)


def as_topic(base: str, filter_: Filter) -> PathTemplate:
    """Return the template whose path is the topic of the message."""
    return PathTemplate(base, filter_, [], [])
