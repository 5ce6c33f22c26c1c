"""What a link or a bridge changes of the messages that it carries."""

from __future__ import annotations

from typing import Literal

from vpnrouter import limits
from vpnrouter.settings.failures import Failures
from vpnrouter.settings.schema import LONGEST, Settings, Text, attribute, group

OnTransformError = Literal["dead-letter", "pass", "stop"]

_NAME = Text(1, 256)
_TEXT = Text(0, limits.TRANSFORM_TEXT_BYTES)


class EditPayload(Settings, held=False):
    """What a step changes in a payload that is JSON. Places are JSON pointers (RFC 6901), such as /site/name."""

    set: dict[str, str] = attribute({}, named=Text(0, 1_000), text=_TEXT)
    """Values by their places. A value is a text with placeholders; one that is {json:POINTER} alone is copied as it is,
    with its kind."""

    remove: tuple[str, ...] = attribute((), text=Text(1, 1_000))
    """Places whose values are taken out; one that is not there is no fault."""


class TransformStep(Settings, held=False):
    """One step: `when`, and exactly one of the others."""

    when: str | None = attribute(None)
    """Condition on the message as the steps before have left it, SQL-92 as in JMS. Without it the step changes each
    message."""

    set_property: dict[str, str] = attribute({}, named=_NAME, text=_TEXT)
    """Properties by name, each a text with placeholders: user properties of MQTT, application properties of AMQP."""

    remove_property: tuple[str, ...] = attribute((), text=_NAME)
    """Names of properties that are taken out; one that ends in * stands for all that begin so."""

    topic: str | None = attribute(None, text=_TEXT, examples=("plant/{topic}",))
    """The topic, with placeholders."""

    priority: int | None = attribute(None, least=0, most=9)
    """The priority."""

    expiry: int | None = attribute(None, least=1, most=LONGEST)
    """Seconds that the message lives from now on."""

    payload: str | None = attribute(None, text=_TEXT)
    """The payload, with placeholders."""

    payload_at: str | None = attribute(None, text=Text(0, 1_000))
    """A JSON pointer: the payload becomes what is there, a text as it is, all else as JSON."""

    edit_payload: EditPayload | None = group(EditPayload, optional=True)
    """What is changed in a payload that is JSON."""

    @property
    def kinds(self) -> list[str]:
        """What the step does: the names of its attributes that say so."""
        said = {
            "set_property": bool(self.set_property),
            "remove_property": bool(self.remove_property),
            "topic": self.topic is not None,
            "priority": self.priority is not None,
            "expiry": self.expiry is not None,
            "payload": self.payload is not None,
            "payload_at": self.payload_at is not None,
            "edit_payload": self.edit_payload is not None,
        }
        return [name for name, is_said in said.items() if is_said]

    def check(self) -> None:
        """Raise ValueError where it does nothing, or several things."""
        kinds = self.kinds
        if len(kinds) != 1:
            raise ValueError(
                "a step has exactly one of set_property, remove_property, topic, priority, expiry, payload, payload_at"
                f" and edit_payload{', not ' + ' and '.join(kinds) if kinds else ''}"
            )


class Transforming(Failures):
    """A link or a bridge that may change what it carries."""

    transform: tuple[TransformStep, ...] = attribute(
        (), items=TransformStep, longest=limits.TRANSFORM_STEPS, held=None, ours=True
    )
    """Steps that change each message, in turn, after the target has given it its topic."""

    on_transform_error: OnTransformError = attribute("dead-letter", held=None, ours=True)
    """What is done with a message that a step cannot change. dead-letter: it is given up; pass: it goes on as it came;
    stop: it stays, and nothing comes behind it."""
