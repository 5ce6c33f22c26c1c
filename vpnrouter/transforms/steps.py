"""The steps of a transform: each changes one thing of a message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import mypyc_attr
from typing_extensions import override

from vpnrouter import limits
from vpnrouter.transforms.json_pointer import find, put, take_out

if TYPE_CHECKING:
    from vpnrouter.selectors import Selector
    from vpnrouter.transforms.draft import Draft
    from vpnrouter.transforms.template import Template

ANY_END: Final = "*"
"""Ends the name of a property that stands for all that begin like it."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Step:
    """One step, which changes the messages of which `when` is true, None for all. `shown` is how it is written."""

    __slots__ = ("shown", "when")

    def __init__(self, shown: str, when: Selector | None) -> None:
        self.shown = shown
        self.when = when

    def concerns(self, draft: Draft) -> bool:
        """Return whether the step changes a message."""
        when = self.when
        return when is None or when.matches(draft.properties())

    def change(self, draft: Draft) -> None:
        """Change a message. Raises TransformError where that cannot be done."""
        raise AssertionError(self)


@final
class SetProperty(Step):
    """Sets properties, each to a template's text."""

    __slots__ = ("_values",)

    def __init__(self, shown: str, when: Selector | None, values: dict[str, Template]) -> None:
        super().__init__(shown, when)
        self._values = values

    @override
    def change(self, draft: Draft) -> None:
        most = limits.TRANSFORM_TEXT_BYTES
        more: dict[str, str | None] = {}
        for name, template in self._values.items():
            more[name] = template.value(draft, most)
        draft.set_properties(more)


@final
class RemoveProperty(Step):
    """Takes properties out: those of these names, and those that begin so where a name ends in `*`."""

    __slots__ = ("_beginnings", "_names")

    def __init__(self, shown: str, when: Selector | None, names: list[str]) -> None:
        super().__init__(shown, when)
        self._names = [name for name in names if not name.endswith(ANY_END)]
        self._beginnings = [name[: -len(ANY_END)] for name in names if name.endswith(ANY_END)]

    @override
    def change(self, draft: Draft) -> None:
        gone: dict[str, str | None] = dict.fromkeys(self._names)
        if self._beginnings:
            for name in draft.properties():
                for beginning in self._beginnings:
                    if name.startswith(beginning):
                        gone[name] = None
        draft.set_properties(gone)


@final
class SetTopic(Step):
    """Gives the message another topic."""

    __slots__ = ("_topic",)

    def __init__(self, shown: str, when: Selector | None, topic: Template) -> None:
        super().__init__(shown, when)
        self._topic = topic

    @override
    def change(self, draft: Draft) -> None:
        draft.set_topic(self._topic.value(draft, limits.TOPIC_BYTES))


@final
class SetPriority(Step):
    """Gives the message another priority."""

    __slots__ = ("_priority",)

    def __init__(self, shown: str, when: Selector | None, priority: int) -> None:
        super().__init__(shown, when)
        self._priority = priority

    @override
    def change(self, draft: Draft) -> None:
        draft.set_priority(self._priority)


@final
class SetExpiry(Step):
    """Has the message expire so many seconds from now on."""

    __slots__ = ("_seconds",)

    def __init__(self, shown: str, when: Selector | None, seconds: int) -> None:
        super().__init__(shown, when)
        self._seconds = seconds

    @override
    def change(self, draft: Draft) -> None:
        draft.set_life_time(self._seconds)


@final
class SetPayload(Step):
    """Makes the payload of a template."""

    __slots__ = ("_template",)

    def __init__(self, shown: str, when: Selector | None, template: Template) -> None:
        super().__init__(shown, when)
        self._template = template

    @override
    def change(self, draft: Draft) -> None:
        text = self._template.value(draft, limits.TRANSFORM_JSON_BYTES)
        draft.set_payload(text.encode("utf-8", "replace"))


@final
class TakePayload(Step):
    """Makes the payload what is at a place in it: a text as it is, all else as JSON."""

    __slots__ = ("_tokens",)

    def __init__(self, shown: str, when: Selector | None, tokens: list[str]) -> None:
        super().__init__(shown, when)
        self._tokens = tokens

    @override
    def change(self, draft: Draft) -> None:
        found = find(draft.json(), self._tokens)
        if isinstance(found, str):
            draft.set_payload(found.encode("utf-8", "replace"))
        else:
            draft.set_json(found)


@final
class EditPayload(Step):
    """Sets values in a payload that is JSON, each to a template's text, and takes others out."""

    __slots__ = ("_removed", "_set")

    def __init__(
        self,
        shown: str,
        when: Selector | None,
        values: list[tuple[list[str], Template]],
        removed: list[list[str]],
    ) -> None:
        super().__init__(shown, when)
        self._set = values
        self._removed = removed

    @override
    def change(self, draft: Draft) -> None:
        document = draft.json()
        values = [(tokens, self._value(template, draft)) for tokens, template in self._set]
        for tokens, value in values:
            document = put(document, tokens, value)
        for tokens in self._removed:
            take_out(document, tokens)
        draft.set_json(document)

    def _value(self, template: Template, draft: Draft) -> object:
        pointer = template.json_pointer
        if pointer is not None:
            return find(draft.json(), pointer)
        return template.value(draft, limits.TRANSFORM_JSON_BYTES)
