"""The right-hand side of a topic mapping: literal text and captures (docs/topic-mapping.md).

site1/{1}      x-{2}/{1}      {{literal braces}}/{1}
"""

from __future__ import annotations

from typing import Final, final

from vpnrouter.errors import TopicError
from vpnrouter.limits import TOPIC_BYTES, TOPIC_LEVELS
from vpnrouter.topics.grammar import MQTT

WILDCARDS: Final = "*>+#"
"""Of either dialect, so that nobody takes a literal for a wildcard."""
_NUMBER_DIGITS: Final = len(str(TOPIC_LEVELS))


@final
class TemplateLevel:
    """One level: `texts[0]`, capture `captures[0]`, `texts[1]`, capture `captures[1]`, and so on.

    `texts` has one entry more than `captures`; captures count from 0 here and from 1 in text.
    """

    __slots__ = ("captures", "texts")

    def __init__(self, texts: list[str], captures: list[int]) -> None:
        self.texts = texts
        self.captures = captures

    def alone(self) -> bool:
        """Is the level one capture and nothing else?"""
        return len(self.captures) == 1 and not self.texts[0] and not self.texts[1]

    def written(self) -> str:
        """The level as it is written in a template."""
        text = escape(self.texts[0])
        for index, capture in enumerate(self.captures):
            text += f"{{{capture + 1}}}{escape(self.texts[index + 1])}"
        return text


def escape(text: str) -> str:
    """Literal text as it is written in a template: `{` becomes `{{`, `}` becomes `}}`."""
    return text.replace("{", "{{").replace("}", "}}")


def parse_template(text: str, dialect: int, count: int, note: str = "") -> list[TemplateLevel]:
    """The levels of a template beside a filter in `dialect` with `count` wildcards.

    `note` is said where there are too few of them.

    Raises TopicError that begins with "to" and says what is wrong at which character, from 1.
    """
    _check_text(text)
    levels: list[TemplateLevel] = []
    texts: list[str] = []
    captures: list[int] = []
    literal: list[str] = []
    index = 0
    while index < len(text):
        char = text[index]
        place = f"at character {index + 1}"
        index += 1
        if char == "/":
            texts.append("".join(literal))
            levels.append(TemplateLevel(texts, captures))
            texts, captures, literal = [], [], []
        elif char not in "{}":
            if char in WILDCARDS:
                raise TopicError(f"to has the wildcard character {char} {place}")
            literal.append(char)
        elif text.startswith(char, index):
            literal.append(char)
            index += 1
        elif char == "}":
            raise TopicError(f"to has a }} without its {{ {place}; a literal one is written }}}}")
        else:
            end = text.find("}", index)
            if end < 0:
                raise TopicError(
                    f"to has a {{ without its }} {place}; a literal one is written {{{{"
                )
            captures.append(_capture(text[index:end], count, place, note))
            texts.append("".join(literal))
            literal = []
            index = end + 1
    texts.append("".join(literal))
    levels.append(TemplateLevel(texts, captures))
    _check_levels(levels, dialect)
    return levels


def _check_text(text: str) -> None:
    if not text:
        raise TopicError("to is empty", "TOPIC-3")
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError as error:
        raise TopicError(f"to is not UTF-8 at character {error.start + 1}", "TOPIC-1") from None
    if size > TOPIC_BYTES:
        raise TopicError(f"to has at most {TOPIC_BYTES} bytes, this one {size}", "TOPIC-4")
    if "\0" in text:
        raise TopicError(f"to has a NUL at character {text.index(chr(0)) + 1}", "TOPIC-2")


def _capture(digits: str, count: int, place: str, note: str) -> int:
    """The capture that `{digits}` names, from 0."""
    if not (digits.isascii() and digits.isdigit()) or (digits.startswith("0") and digits != "0"):
        raise TopicError(f"to has braces without a number {place}; a literal {{ is written {{{{")
    # Python refuses to read numbers of some thousand digits.
    if len(digits) <= _NUMBER_DIGITS and 1 <= int(digits) <= count:
        return int(digits) - 1
    shown = digits if len(digits) <= _NUMBER_DIGITS else digits[:_NUMBER_DIGITS] + "..."
    wildcards = "1 wildcard" if count == 1 else f"{count or 'no'} wildcards"
    raise TopicError(f"to names {{{shown}}} {place}, but from has {wildcards}{note}")


def _check_levels(levels: list[TemplateLevel], dialect: int) -> None:
    if len(levels) > TOPIC_LEVELS:
        raise TopicError(f"to has at most {TOPIC_LEVELS} levels", "TOPIC-5")
    if dialect == MQTT:
        return
    for number, level in enumerate(levels):
        if not level.captures and not level.texts[0]:
            raise TopicError(f"to has an empty level, level {number + 1}", "TOPIC-15")
