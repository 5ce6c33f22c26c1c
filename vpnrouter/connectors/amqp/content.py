"""Puts into messages of AMQP where they have been and whose they are, and takes it out again.

Where a message has been is an application property, named as the user property of MQTT 5 that says it (visited.py):
brokers that put messages into the terms of other protocols keep it, and drop annotations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from vpnrouter.connectors.visited import PATH_NAME, places_of, shown
from vpnrouter.core.conversion import (
    from_mqtt,
    properties_of_content,
    readdressed,
    with_application_properties,
)
from vpnrouter.core.message import MQTT
from vpnrouter.wire.amqp import performatives
from vpnrouter.wire.amqp.performatives import SHAPES, Header
from vpnrouter.wire.amqp.sections import HEADER, PROPERTIES, sections

if TYPE_CHECKING:
    from vpnrouter.core.message import Message

_NAME: Final = PATH_NAME.encode()


def taken_path(message: Message) -> list[str]:
    """Take the path out of a message of AMQP; return it, [] where there is none. Raises ProtocolError."""
    content = message.payload
    if _NAME not in content:
        return []
    text = message.text_property(PATH_NAME)
    message.payload = with_application_properties(content, {PATH_NAME: None})
    message.forget_properties()
    return places_of(text)


def outgoing(
    message: Message, own: str, to: str, *, to_queue: bool, readdress: bool, name: str = ""
) -> bytes:
    """Return the content of a message that leaves for a provider, with its path, `own` the last place of it.

    One of MQTT that has no id gets `name` as its id, by which whoever gets it knows it again.

    `to` is its address there, of a queue (`to_queue`) or of a topic. A message that came by AMQP keeps the address that
    its sender gave it, unless the provider goes by that (`readdress`). Raises ProtocolError for a damaged one.
    """
    if message.encoding == MQTT:
        content = from_mqtt(
            message.topic, message.payload, message.block, to, to_queue=to_queue, message_id=name
        )
    else:
        content = message.amqp()
        if readdress:
            content = readdressed(content, to)
    return with_application_properties(content, {PATH_NAME: shown([*message.path, own])})


def bare_of(content: bytes) -> bytes:
    """Return what the sender of a message wrote, which nobody changes on the way (3.2), from its properties on."""
    for section in sections(content):
        if section.code >= PROPERTIES:
            return content[section.start :]
    return b""


def is_named(content: bytes) -> bool:
    """Return whether the sender of a message gave it an id."""
    return properties_of_content(content).message_id is not None


def came_before(message: bytes) -> bool:
    """Return whether a message says that it has been delivered before (3.2.1)."""
    for section in sections(message):
        if section.code != HEADER:
            break
        shape = SHAPES[HEADER]
        fields = performatives.read_fields(shape, message, section.value, section.end)[0]
        return cast(Header, fields).delivery_count > 0
    return False
