"""A message while the steps of a transform change it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.core import conversion
from vpnrouter.core.guaranteed.message_record import DMQ_ELIGIBLE, PARTITION_KEY, read_headers
from vpnrouter.core.message import AMQP, DEFAULT_PRIORITY, PRIORITY, wants_deliver_to_one
from vpnrouter.errors import ProtocolError, TransformError
from vpnrouter.units import SECOND_NS
from vpnrouter.wire.mqtt.properties import with_user_properties
from vpnrouter.wire.mqtt.user_properties import take_out

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vpnrouter.core.message import Message

_UNREAD: Final = object()
"""Instead of a payload that was not read as JSON."""


JSON_SHIFT: Final = 3
"""So many bytes of JSON, as a power of two, cost what one value of AMQP does."""


@final
class Content:
    """What steps may change of a message, as it is now."""

    __slots__ = (
        "_block",
        "_dmq_eligible",
        "_expires_ns",
        "_lane",
        "_payload",
        "_priority",
        "_topic",
    )

    def __init__(self, message: Message) -> None:
        self._topic = message.topic
        self._payload = message.payload
        self._block = message.block
        self._expires_ns = message.expires_ns
        self._priority = message.priority
        self._lane = message.lane
        self._dmq_eligible = message.dmq_eligible

    def give_back(self, message: Message) -> None:
        """Have a message be again as it was."""
        message.topic = self._topic
        message.payload = self._payload
        message.block = self._block
        message.expires_ns = self._expires_ns
        message.priority = self._priority
        message.lane = self._lane
        message.dmq_eligible = self._dmq_eligible
        message.deliver_to_one = wants_deliver_to_one(self._block) if self._block else False
        message.forget_forms()


@final
class Draft:
    """`message` is changed in place: it has to belong to whoever changes it alone. `now_ns` is monotonic time."""

    __slots__ = ("_json", "message", "now_ns")

    def __init__(self, message: Message, now_ns: int) -> None:
        self.message = message
        self.now_ns = now_ns
        self._json: object = _UNREAD

    # -- what it says ----------------------------------------------------------------------------

    @property
    def topic(self) -> str:
        """Its topic."""
        return self.message.topic.decode("utf-8", "replace")

    def properties(self) -> dict[str, object]:
        """Return its properties, as selectors see them. Raises TransformError for damaged ones."""
        try:
            return self.message.properties()
        except ProtocolError as error:
            raise TransformError(f"its properties cannot be read: {error}") from error

    def property_text(self, name: str) -> str:
        """Return a property as text. Raises TransformError where it is not there."""
        value = self.properties().get(name)
        text = value if isinstance(value, str) else conversion.text_of(value)
        if text is None:
            raise TransformError(f"it has no property {name}")
        return text

    def payload(self) -> bytes:
        """Return its payload, of AMQP the body as MQTT clients get it."""
        return self.message.mqtt().payload

    def text(self) -> str:
        """Return its payload as text. Raises TransformError where it is none."""
        try:
            return self.payload().decode()
        except UnicodeDecodeError:
            raise TransformError("its payload is no text in UTF-8") from None

    def json(self) -> object:
        """Return its payload, which is JSON. Raises TransformError where it is not, or is too large for that."""
        found = self._json
        if found is not _UNREAD:
            return found
        payload = self.payload()
        if len(payload) > limits.TRANSFORM_JSON_BYTES:
            raise TransformError(
                f"its payload is larger than the {limits.TRANSFORM_JSON_BYTES:,} bytes that are read as JSON"
            )
        try:
            found = json.loads(payload)
        except (ValueError, RecursionError) as error:
            what = "nested too deeply" if isinstance(error, RecursionError) else "no JSON"
            raise TransformError(f"its payload is {what}") from None
        conversion.MEASURE.add(len(payload) >> JSON_SHIFT)
        self._json = found
        return found

    # -- changes ---------------------------------------------------------------------------------

    def set_topic(self, topic: str) -> None:
        """Give it another topic."""
        self.message.topic = topic.encode("utf-8", "replace")
        self._changed()

    def set_properties(self, more: Mapping[str, str | None]) -> None:
        """Give it these properties in the place of those of the same names; None takes one out. Raises TransformError
        for what no message can have.
        """
        for name, text in more.items():
            if (
                text is not None
                and len(text.encode("utf-8", "replace")) > limits.TRANSFORM_TEXT_BYTES
            ):
                raise TransformError(f"property {name} would be too long")
        message = self.message
        try:
            if message.encoding == AMQP:
                message.payload = conversion.with_application_properties(message.payload, more)
            else:
                block, _ = take_out(message.block, list(more))
                pairs = [(name, text) for name, text in more.items() if text is not None]
                message.block = with_user_properties(block, pairs)
        except (ProtocolError, ValueError) as error:
            raise TransformError(f"its properties cannot be changed: {error}") from error
        self._changed()
        if message.encoding != AMQP:
            self._read_headers(more)

    def _read_headers(self, changed: Mapping[str, str | None]) -> None:
        """Have the message be what its properties say, some of which were changed or taken out."""
        message = self.message
        if PRIORITY in changed:
            message.priority = DEFAULT_PRIORITY
        if DMQ_ELIGIBLE in changed:
            message.dmq_eligible = True
        if PARTITION_KEY in changed:
            message.lane = 0
        message.deliver_to_one = wants_deliver_to_one(message.block)
        read_headers(message)

    def set_priority(self, priority: int) -> None:
        """Give it another priority."""
        if self.message.encoding != AMQP:
            self.set_properties({PRIORITY: str(priority)})
        self.message.priority = priority
        self._changed()

    def set_life_time(self, seconds: int) -> None:
        """Have it expire in so many seconds."""
        self.message.expires_ns = self.now_ns + seconds * SECOND_NS
        self._changed()

    def set_payload(self, payload: bytes) -> None:
        """Give it another payload. Raises TransformError for a message whose body cannot be found."""
        message = self.message
        if message.encoding == AMQP:
            try:
                payload = conversion.with_body(message.payload, payload)
            except ProtocolError as error:
                raise TransformError(f"its body cannot be found: {error}") from error
        message.payload = payload
        self._json = _UNREAD
        self._changed()

    def set_json(self, document: object) -> None:
        """Give it a payload that is JSON."""
        payload = written(document).encode("utf-8", "replace")
        conversion.MEASURE.add(len(payload) >> JSON_SHIFT)
        self.set_payload(payload)
        self._json = document

    def _changed(self) -> None:
        self.message.forget_forms()


def written(document: object) -> str:
    """Return a document as JSON. Raises TransformError for numbers that JSON has not."""
    try:
        return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (ValueError, RecursionError):
        raise TransformError("the changed payload is nothing that JSON can say") from None
