"""Texts with placeholders, which a message fills.

{topic} {level:2}         its topic, and one level of that, counted from 1
{property:line}           a user property or application property
{payload} {payload:/a/b}  its payload as text, and what is in it, where it is JSON, at a JSON pointer
{json:/a/b}               the same as JSON: a text with its quotation marks
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.errors import TransformError
from vpnrouter.text import split_placeholders
from vpnrouter.transforms.draft import written
from vpnrouter.transforms.json_pointer import find, parse_pointer

if TYPE_CHECKING:
    from vpnrouter.transforms.draft import Draft

TOPIC: Final = "topic"
LEVEL: Final = "level:"
PROPERTY: Final = "property:"
PAYLOAD: Final = "payload"
AT: Final = "payload:"
JSON: Final = "json:"

KNOWN: Final = "{topic}, {level:N}, {property:NAME}, {payload}, {payload:POINTER}, {json:POINTER}"


@final
class Placeholder:
    """One placeholder: its `kind`, and the property, the number of the level or the pointer that it names."""

    __slots__ = ("kind", "level", "name", "tokens")

    def __init__(self, kind: str, name: str = "") -> None:
        self.kind = kind
        self.name = name
        self.level = int(name) if kind == LEVEL else 0
        self.tokens = parse_pointer(name) if kind in (AT, JSON) else []

    def value(self, draft: Draft) -> str:
        """Return what it stands for. Raises TransformError where the message has no such thing."""
        kind = self.kind
        if kind == TOPIC:
            return draft.topic
        if kind == PROPERTY:
            return draft.property_text(self.name)
        if kind == LEVEL:
            levels = draft.topic.split("/")
            if self.level > len(levels):
                raise TransformError(f"its topic has no level {self.level}")
            return levels[self.level - 1]
        if kind == PAYLOAD:
            return draft.text()
        found = find(draft.json(), self.tokens)
        return found if kind == AT and isinstance(found, str) else written(found)


@final
class Template:
    """`literals[0]`, placeholder 0, `literals[1]` and so on."""

    __slots__ = ("literals", "placeholders")

    def __init__(self, literals: list[str], placeholders: list[Placeholder]) -> None:
        self.literals = literals
        self.placeholders = placeholders

    def value(self, draft: Draft, most: int) -> str:
        """Return the text for a message. Raises TransformError where the message lacks something, or for a text of
        more than `most` characters.
        """
        if not self.placeholders:
            return self.literals[0]
        parts = [self.literals[0]]
        size = 0
        for index, placeholder in enumerate(self.placeholders):
            text = placeholder.value(draft)
            size += len(text)
            if size > most:
                raise TransformError(f"the result is longer than {most:,} characters")
            parts.append(text)
            parts.append(self.literals[index + 1])
        return "".join(parts)

    @property
    def json_pointer(self) -> list[str] | None:
        """The pointer of a template that is one {json:POINTER} and nothing else."""
        placeholders = self.placeholders
        if len(placeholders) != 1 or placeholders[0].kind != JSON or self.literals != ["", ""]:
            return None
        return placeholders[0].tokens

    @property
    def reads_payload(self) -> bool:
        """Whether it looks into the payload."""
        return any(one.kind in (PAYLOAD, AT, JSON) for one in self.placeholders)


def parse_template(text: str) -> Template:
    """Return the template that a text is. Raises ValueError that says what is wrong with it."""
    if len(text) > limits.TRANSFORM_TEXT_BYTES:
        raise ValueError(f"has more than {limits.TRANSFORM_TEXT_BYTES:,} characters")
    literals: list[str] = []
    placeholders: list[Placeholder] = []
    for index, part in enumerate(split_placeholders(text)):
        if index % 2:
            placeholders.append(_placeholder(part))
        else:
            literals.append(part)
    return Template(literals, placeholders)


def _placeholder(text: str) -> Placeholder:
    if text in (TOPIC, PAYLOAD):
        return Placeholder(text)
    for kind in (LEVEL, PROPERTY, AT, JSON):
        name = text[len(kind) :]
        if not text.startswith(kind) or (not name and kind in (LEVEL, PROPERTY)):
            continue
        if kind == LEVEL and not (name.isascii() and name.isdigit() and 0 < int(name[:4]) < 1000):
            break
        return Placeholder(kind, name)
    raise ValueError(f"has {{{text}}}, which is none of {KNOWN}")
