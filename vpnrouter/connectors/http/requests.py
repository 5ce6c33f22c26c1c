"""Writes the requests of one link: what is the same for all of them, for those of a topic, and for one message.

What a message says goes into a request encoded or not at all (templates.py).
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.connectors.http.templates import HeaderTemplate, Values, header_text
from vpnrouter.topics.cache import RememberedTopics
from vpnrouter.wire.http1 import is_field_value
from vpnrouter.wire.mqtt.fields import varint
from vpnrouter.wire.mqtt.properties import Properties, decode_properties
from vpnrouter.wire.mqtt.reason import PUBLISH

if TYPE_CHECKING:
    from vpnrouter.connectors.settings import RequestSettings
    from vpnrouter.core.message import Message

CONTENT_TYPE: Final = "content-type"
MESSAGE_TOPIC: Final = "message-topic"
IDEMPOTENCY_KEY: Final = "idempotency-key"
TRACEPARENT: Final = "traceparent"
USER_AGENT: Final = "user-agent"

BINARY: Final = "application/octet-stream"
TEXT: Final = "text/plain; charset=utf-8"
"""Content types of a message that says none; the second one says that it is text."""

_BINARY_LINE: Final = f"Content-Type: {BINARY}\r\n".encode()
_NONE: Final = Properties()


def properties_of(block: bytes) -> Properties:
    """Return the properties of a message of MQTT. Raises ProtocolError where they cannot be read."""
    if not block:
        return _NONE
    field = varint(len(block)) + block
    return decode_properties(field, 0, len(field), PUBLISH)[0]


@final
class RequestWriter:
    """Writes requests as `request` says, to the server `authority` (HOST:PORT), with the value `authorization`, "" for
    none. `identity` is that of the store and link, by which a message is known again.
    """

    __slots__ = ("_common", "_identity", "_made", "_names", "_request", "_topics")

    def __init__(
        self, request: RequestSettings, authority: str, authorization: str, identity: str
    ) -> None:
        self._request = request
        self._identity = identity
        lines = [f"Host: {authority}"]
        if authorization:
            lines.append(f"Authorization: {authorization}")
        self._names: set[str] = set()
        # Headers that differ from message to message.
        self._made: list[tuple[str, HeaderTemplate]] = []
        for name, template in request.headers:
            self._names.add(name.lower())
            if len(template.parts) > 1:
                self._made.append((name, template))
            elif template.parts[0]:
                lines.append(f"{name}: {template.parts[0]}")
        if USER_AGENT not in self._names:
            lines.append("User-Agent: vpnrouter")
        self._common = "\r\n".join(lines)
        self._topics: RememberedTopics[bytes] = RememberedTopics(limits.MAPPED_TOPIC_BYTES)

    def head_for(self, topic: bytes) -> bytes:
        """Return the beginning of the requests for a topic, b"" where it has no path at the server."""
        known = self._topics.answers.get(topic)
        if known is None:
            known = self._head_for(topic.decode("utf-8", "replace"))
            self._topics.keep(topic, known, len(known))
        return known

    def _head_for(self, topic: str) -> bytes:
        request = self._request
        path = request.path.target(topic)
        if not path:
            return b""
        text = f"{request.method} {path} HTTP/1.1\r\n{self._common}\r\n"
        if MESSAGE_TOPIC not in self._names:
            text += f"Message-Topic: {header_text(topic)}\r\n"
        return text.encode("ascii", "replace")

    def request(
        self,
        head: bytes,
        message: Message,
        properties: Properties,
        topic: bytes,
        message_id: int,
        trace: str = "",
    ) -> bytes:
        """Return a request up to its body: `head` is that for its topic; `trace` the traceparent, "" for none.

        `message` is in the terms of MQTT.
        """
        parts = [head]
        names = self._names
        if CONTENT_TYPE not in names:
            parts.append(_content_type(properties))
        if message_id and IDEMPOTENCY_KEY not in names:
            parts.append(f'Idempotency-Key: "{self.identifier(message_id)}"\r\n'.encode())
        if trace and TRACEPARENT not in names:
            parts.append(f"traceparent: {trace}\r\n".encode())
        if self._made:
            parts.append(self._own_headers(properties, topic, message_id))
        parts.append(b"Content-Length: %d\r\n\r\n" % len(message.payload))
        return b"".join(parts)

    def identifier(self, message_id: int) -> str:
        """Return what names a message of the link, the same for each try, "" for a Direct one."""
        return f"{self._identity}-{message_id}" if message_id else ""

    def _own_headers(self, properties: Properties, topic: bytes, message_id: int) -> bytes:
        values = Values(
            topic.decode("utf-8", "replace"),
            self.identifier(message_id),
            properties.correlation_data,
        )
        for name, text in properties.user_properties:
            # Of a repeated one the first counts, as for selectors.
            values.properties.setdefault(name, text)
        lines: list[str] = []
        for name, template in self._made:
            value = template.value(values)
            if value:
                lines.append(f"{name}: {value}\r\n")
        return "".join(lines).encode("ascii", "replace")


def identity_of(store_id: bytes, msg_vpn: str, link: str) -> str:
    """Return what names a link of a router's store: two links send the same message to one server each for itself."""
    return f"{store_id.hex()}-{zlib.crc32(f'{msg_vpn}/{link}'.encode()):08x}"


def _content_type(properties: Properties) -> bytes:
    said = properties.content_type
    if said and len(said) <= limits.HTTP_VALUE_BYTES and is_field_value(said):
        return f"Content-Type: {said}\r\n".encode()
    if properties.payload_format_indicator == 1:
        return f"Content-Type: {TEXT}\r\n".encode()
    return _BINARY_LINE
