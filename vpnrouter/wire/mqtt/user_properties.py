"""A message's properties by name, as a message selector asks for them."""

from typing import Final

from vpnrouter.wire.mqtt.fields import read_binary, read_string, string, utf8
from vpnrouter.wire.mqtt.packet_type import PUBLISH
from vpnrouter.wire.mqtt.properties import read_number
from vpnrouter.wire.mqtt.property_table import (
    CONTENT_TYPE,
    CORRELATION_DATA,
    RESPONSE_TOPIC,
    USER_PROPERTY,
    rule_for,
)

_DESTINATION: Final = "JMSDestination"
_REPLY_TO: Final = "JMSReplyTo"
_TYPE: Final = "JMSType"
_CORRELATION_ID: Final = "JMSCorrelationID"

_HEADERS: Final = frozenset({_CORRELATION_ID, _DESTINATION, _REPLY_TO, _TYPE})


def selector_properties(topic: bytes, block: bytes) -> dict[str, str]:
    """Name and value of each user property, and under their JMS names parts of the message.

    `block` is as `split_publish_properties` gave it. Of a repeated user property the first counts.
    JMSDestination is the topic, JMSReplyTo the response topic, JMSType the content type,
    JMSCorrelationID the correlation data where these are UTF-8; a user property of such a name is
    left out. Raises ProtocolError as `split_publish_properties` does.
    """
    found = {_DESTINATION: utf8(topic)}
    pos = 0
    end = len(block)
    while pos < end:
        identifier = block[pos]
        pos += 1
        if identifier == USER_PROPERTY:
            name, pos = read_string(block, pos, end)
            text, pos = read_string(block, pos, end)
            if name not in found and name not in _HEADERS:
                found[name] = text
        elif identifier == CONTENT_TYPE:
            found[_TYPE], pos = read_string(block, pos, end)
        elif identifier == RESPONSE_TOPIC:
            found[_REPLY_TO], pos = read_string(block, pos, end)
        elif identifier == CORRELATION_DATA:
            data, pos = read_binary(block, pos, end)
            # Bytes that are no text equal no text: the selector finds no such header.
            try:
                found[_CORRELATION_ID] = data.decode("utf-8")
            except UnicodeDecodeError:
                continue
        else:
            _, pos = read_number(rule_for(identifier, PUBLISH), block, pos, end)
    return found


def with_user_properties(block: bytes, pairs: list[tuple[str, str]]) -> bytes:
    """A message's properties and, behind them, these user properties."""
    parts = [block]
    for name, text in pairs:
        parts.append(bytes((USER_PROPERTY,)))
        parts.append(string(name))
        parts.append(string(text))
    return b"".join(parts)
