"""One rule of a topic mapping: a filter, and what the topics it matches become.

What the wildcards of the filter match is captured in order: `*` and `+` a level, `abc*` what follows
`abc`, `>` and `#` the remaining levels. The template puts the captures into the new topic. The rules
for users stand in docs/topic-mapping.md.
"""

from __future__ import annotations

from typing import Final, final

from vpnrouter.errors import TopicError
from vpnrouter.limits import TOPIC_BYTES, TOPIC_LEVELS
from vpnrouter.topics.grammar import (
    ALL,
    LITERAL,
    ONE,
    PREFIX,
    REST,
    SMF,
    Filter,
    hidden,
    match_levels,
)
from vpnrouter.topics.mapping_template import TemplateLevel

_UNKNOWN: Final = -1
"""In place of a capture: an image level that no single capture makes."""

_MARKS: Final = ("$", "#P2P", "#")
"""Beginnings that a new topic has only where the old one has them: what stands under them is the
router's own, and no mapping is a way in."""

_SHOWN: Final = 60
"""Characters of a text that stand in an error."""


@final
class MappingRule:
    """A rule, made by vpnrouter/topics/mapping_parse.py or by `inverse`.

    `filter` matches the topics it renames. `image` matches at least the topics it makes, and no
    others where the rule has an inverse. `label` names it in errors.
    """

    __slots__ = ("_image_captures", "_template", "_wild", "filter", "image", "label")

    def __init__(self, filter_: Filter, template: list[TemplateLevel], label: str) -> None:
        self.filter = filter_
        self.label = label
        self._template = template
        # The levels of the filter that are captured.
        self._wild = [index for index, kind in enumerate(filter_.kinds) if kind != LITERAL]
        levels: list[str] = []
        kinds: list[int] = []
        captures: list[int] = []
        for index, level in enumerate(template):
            kind, capture = self._image_level(level, index == len(template) - 1)
            levels.append("" if kind in (REST, ALL) else level.texts[0])
            kinds.append(kind)
            captures.append(capture)
            if kind in (REST, ALL):
                break
        self.image = filter_of(levels, kinds)
        self._image_captures = captures

    def __repr__(self) -> str:
        return f"<{self.label}>"

    def apply(self, topic: str, levels: list[str]) -> str | None:
        """What `topic`, whose levels are `levels`, becomes; None when the rule does not match it.

        Raises TopicError when it would become no valid topic.
        """
        filter_ = self.filter
        if not match_levels(filter_.levels, filter_.kinds, levels):
            return None
        captured: list[str] = []
        for index in self._wild:
            if filter_.kinds[index] in (REST, ALL):
                captured.append("/".join(levels[index:]))
            else:
                captured.append(levels[index][len(filter_.levels[index]) :])
        none_left = filter_.kinds[-1] == ALL and len(levels) < len(filter_.kinds)
        made: list[str] = []
        size = 0
        for level in self._template:
            if none_left and level.alone() and level.captures[0] == len(captured) - 1:
                continue  # no levels were captured, so none stand here
            parts = [level.texts[0]]
            for number, capture in enumerate(level.captures):
                parts.append(captured[capture])
                parts.append(level.texts[number + 1])
                size += len(captured[capture])
                if size > TOPIC_BYTES:
                    # A capture may be used often: stop before its copies fill the memory.
                    raise self._no_topic(topic, f"one of more than {TOPIC_BYTES} bytes", "TOPIC-4")
            made.append("".join(parts))
        image = "/".join(made)
        self._check_image(topic, image)
        return image

    def pull_back(self, filter_: Filter) -> Filter | None:
        """A filter that matches at least the topics which become one that `filter_` matches.

        It matches nothing that the rule's own filter does not. None when there are no such topics.
        """
        image, levels, kinds = self.image, list(self.filter.levels), list(self.filter.kinds)
        if image.kinds[0] == LITERAL and hidden(image.levels[0]) and filter_.kinds[0] != LITERAL:
            return None
        for index, kind in enumerate(image.kinds):
            if kind in (REST, ALL):
                if not self._pull_rest(index, filter_, levels, kinds):
                    return None
                break
            if index >= len(filter_.kinds):
                return None
            wanted = filter_.kinds[index]
            if wanted in (REST, ALL):
                break
            if not self._pull_level(index, wanted, filter_.levels[index], levels, kinds):
                return None
        else:
            beyond = filter_.kinds[len(image.kinds) :]
            if beyond and beyond != [ALL]:
                return None
        if kinds[0] in (LITERAL, PREFIX):
            if self.filter.kinds[0] != LITERAL and hidden(levels[0]):
                return None
            wanted = filter_.kinds[0]
            if wanted == LITERAL and kinds[0] == LITERAL and forged(filter_.levels[0], levels[0]):
                return None
        return filter_of(levels, kinds)

    def inverse(self) -> MappingRule:
        """The rule that leads each topic which this one made back to where it came from.

        Raises TopicError that says why there is none.
        """
        used = [0] * len(self._wild)
        for level in self._template:
            for capture in level.captures:
                used[capture] += 1
        for capture, times in enumerate(used):
            if times != 1:
                many = f"uses {{{capture + 1}}} {times} times" if times else "drops what it matched"
                raise self._no_inverse(f"wildcard {capture + 1} must be used once, and to {many}")
        for index, level in enumerate(self._template):
            if level.captures and (
                index >= len(self.image.kinds) or self._image_captures[index] == _UNKNOWN
            ):
                raise self._no_inverse(
                    f"where {level.written()!r} in level {index + 1} of to ends cannot be told:"
                    " a capture ends its level, and that of several levels is the last level alone"
                )
        first = self.filter.levels[0]
        if hidden(first) and self.image.kinds[0] != LITERAL:
            raise self._no_inverse(f"no wildcard would match the way back to {quoted(first)}")
        if forged(first, self.image.levels[0]):
            raise self._no_inverse(f"no other topic may become one that begins with {first[0]}")
        template: list[TemplateLevel] = []
        wild = 0
        for index, kind in enumerate(self.filter.kinds):
            text = self.filter.levels[index]
            if kind == LITERAL:
                template.append(TemplateLevel([text], []))
            else:
                place = self._image_captures.index(wild)
                number = [at for at in self._image_captures[:place] if at != _UNKNOWN]
                template.append(TemplateLevel([text, ""], [len(number)]))
                wild += 1
        return MappingRule(self.image, template, f"inverse of {self.label}")

    def _image_level(self, level: TemplateLevel, last: bool) -> tuple[int, int]:
        """Kind of the image level that a level of the template makes, and the capture it holds."""
        if not level.captures:
            return LITERAL, _UNKNOWN
        for capture in level.captures:
            kind = self.filter.kinds[self._wild[capture]]
            if kind in (REST, ALL):
                return (kind, capture) if last and level.alone() else (ALL, _UNKNOWN)
        ends = len(level.captures) == 1 and not level.texts[1]
        return (PREFIX if level.texts[0] else ONE), level.captures[0] if ends else _UNKNOWN

    def _pull_level(
        self, index: int, wanted: int, text: str, levels: list[str], kinds: list[int]
    ) -> bool:
        """Narrow `levels` and `kinds` so that image level `index` matches; False: it never does."""
        kind, own, capture = (
            self.image.kinds[index],
            self.image.levels[index],
            self._image_captures[index],
        )
        if kind == LITERAL:
            return own == text if wanted == LITERAL else own.startswith(text)
        if not text.startswith(own):
            # A shorter prefix is satisfied by the image's own; the text of a ONE is "".
            return wanted != LITERAL and own.startswith(text)
        if capture != _UNKNOWN and (wanted == LITERAL or len(text) > len(own)):
            place = self._wild[capture]
            levels[place] = self.filter.levels[place] + text[len(own) :]
            kinds[place] = wanted
        return True

    def _pull_rest(self, index: int, filter_: Filter, levels: list[str], kinds: list[int]) -> bool:
        """The same where the open end of the image stands at `index`."""
        tail = filter_.kinds[index:]
        if self._image_captures[index] == _UNKNOWN or tail == [ALL]:
            return True
        if not tail and (self.image.kinds[index] == REST or len(kinds) == 1):
            return False
        levels[-1:] = filter_.levels[index:]
        kinds[-1:] = tail
        return True

    def _check_image(self, topic: str, image: str) -> None:
        if not image:
            raise self._no_topic(topic, "an empty one", "TOPIC-3")
        if image.count("/") >= TOPIC_LEVELS:
            raise self._no_topic(topic, f"one of more than {TOPIC_LEVELS} levels", "TOPIC-5")
        if len(image) * 4 > TOPIC_BYTES and len(image.encode("utf-8")) > TOPIC_BYTES:
            raise self._no_topic(topic, f"one of more than {TOPIC_BYTES} bytes", "TOPIC-4")
        if forged(image, topic):
            raise self._no_topic(topic, f"one that begins with {image[0]}", "TOPIC-23")

    def _no_topic(self, topic: str, what: str, clause: str) -> TopicError:
        return TopicError(f"{self.label}: the topic {quoted(topic)} would become {what}", clause)

    def _no_inverse(self, why: str) -> TopicError:
        return TopicError(f"{self.label} has no inverse: {why}")


def filter_of(levels: list[str], kinds: list[int]) -> Filter:
    """A filter of these levels; its text shows what they are and need not be one to parse."""
    parts: list[str] = []
    for index, kind in enumerate(kinds):
        ending = ""
        if kind in (ONE, PREFIX):
            ending = "*"
        elif kind != LITERAL:
            ending = ">" if kind == REST else "#"
        parts.append(levels[index] + ending)
    text = "/".join(parts)
    return Filter(text, SMF, levels, kinds, text)


def forged(image: str, topic: str) -> bool:
    """Does a new topic or first level begin with a mark that the old one does not begin with?"""
    for mark in _MARKS:  # noqa: SIM110 (compiled: no generator expressions)
        if image.startswith(mark) and not topic.startswith(mark):
            return True
    return False


def quoted(text: str) -> str:
    """`text` as it stands in an error: on one line, and not too long."""
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "...")
