"""Maps the topics of messages that cross a bridge (docs/topic-mapping.md).

A rule has a filter and a template: literal text and captures of the filter's wildcards. `*` and `+` capture a level,
`abc*` what follows `abc`, `>` and `#` the remaining levels. The template puts the captures into the new topic, as in
`site1/{1}`, `x-{2}/{1}` or `{{literal braces}}/{1}`.

Rules are parsed once. The first rule that matches a topic renames it; a topic that no rule matches keeps its name.
"""

from __future__ import annotations

from typing import Final, final

from vpnrouter.errors import TopicError
from vpnrouter.limits import (
    MAPPED_TOPIC_BYTES,
    TOPIC_BYTES,
    TOPIC_LEVELS,
    TOPIC_MAPPING_RULES,
)
from vpnrouter.topics.algebra import covers, witness
from vpnrouter.topics.cache import RememberedTopics
from vpnrouter.topics.grammar import (
    ALL,
    LITERAL,
    MQTT,
    ONE,
    PREFIX,
    REST,
    SMF,
    Filter,
    hidden,
    match_levels,
    parse_filter,
    parse_topic,
    to_smf,
)

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
        """Whether the level is one capture and nothing else."""
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


_UNKNOWN: Final = -1
"""In place of a capture: an image level that no single capture makes."""

_MARKS: Final = ("$", "#P2P", "#")
"""Beginnings that a new topic has only where the old one has them: what stands under them is the
router's own, and no mapping is a way in."""

_SHOWN: Final = 60
"""Characters of a text that stand in an error."""


@final
class MappingRule:
    """A rule, made by vpnrouter/topics/mapping.py or by `inverse`.

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
        """Return the new topic for `topic`, whose levels are `levels`; None when the rule does not match it.

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
        """Return the rule that maps each topic made by this one back. Raises TopicError where there is none."""
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
        """Narrow `levels` and `kinds` so that the image matches from its open end, `index`, on.

        False when it never does.
        """
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
    """Whether a new topic or first level begins with a mark that the old one does not begin with."""
    for mark in _MARKS:  # noqa: SIM110 (compiled: no generator expressions)
        if image.startswith(mark) and not topic.startswith(mark):
            return True
    return False


def quoted(text: str) -> str:
    """`text` as it stands in an error: on one line, and not too long."""
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "...")


_PREFIX_WORDS: Final = ("#share", "#noexport")
"""First levels that a filter's text cannot hold: there they would be a prefix of it."""


@final
class TopicMapping:
    """Rules in order. Raises TopicError for more than TOPIC_MAPPING_RULES of them."""

    __slots__ = ("_known", "rules")

    def __init__(self, rules: list[MappingRule]) -> None:
        if len(rules) > TOPIC_MAPPING_RULES:
            raise TopicError(
                f"a topic mapping has at most {TOPIC_MAPPING_RULES} rules, this one {len(rules)}"
            )
        self.rules = rules
        self._known: RememberedTopics[bytes] = RememberedTopics(MAPPED_TOPIC_BYTES)

    def apply(self, topic: str) -> str:
        """The new topic of a valid `topic` (text from `parse_topic`).

        Raises TopicError when the rule that matches makes no valid topic of it.
        """
        levels = topic.split("/")
        for rule in self.rules:
            image = rule.apply(topic, levels)
            if image is not None:
                return image
        return topic

    def apply_bytes(self, topic: bytes) -> bytes:
        """The new topic of a `topic` given as UTF-8, as it stands in a message; recent results are kept.

        Raises TopicError, also when `topic` is not valid.
        """
        known = self._known.answers.get(topic)
        if known is not None:
            return known
        image = self.apply(parse_topic(topic, mqtt=False)).encode("utf-8")
        self._known.keep(topic, image, len(image))
        return image

    def inverse(self) -> TopicMapping:
        """The mapping that leads back: `inverse().apply(apply(topic)) == topic`.

        It promises this for each topic that a rule matches and `apply` accepts, unless the topic
        begins with `#` and its image does not: then the way back raises TopicError, as every way to
        such a topic does. Of topics that no rule matches it promises nothing.

        Raises TopicError that names the rule without an inverse, or the two rules that make the
        same topic, and says why.
        """
        rules = self.rules
        back: list[MappingRule] = []
        for index, rule in enumerate(rules):
            back.append(rule.inverse())
            for earlier in rules[:index]:
                pulled = rule.pull_back(earlier.image)
                if pulled is None or _shadowed(pulled, rules[:index]):
                    continue
                topic = witness(rule.image, earlier.image)
                example = "the same topics" if topic is None else f"the topic {quoted(topic)}"
                raise TopicError(
                    f"{rule.label} has no inverse beside {earlier.label}: both can make {example}"
                )
        return TopicMapping(back)

    def sources(self, filter_: Filter) -> list[str]:
        """Filters (`*` `>` dialect) over old topics, for those whose new topic matches `filter_`.

        Together they match all of these, and perhaps more: whoever uses them tests the new topic as
        well. Share name, #noexport and exception mark of `filter_` play no part and do not come
        back. A filter here that begins with `!` means a literal one.

        Raises TopicError when `filter_` itself cannot be written in that dialect.
        """
        found: list[Filter] = []
        for index, rule in enumerate(self.rules):
            pulled = rule.pull_back(filter_)
            if pulled is None or _shadowed(pulled, self.rules[:index]):
                continue
            # Wildcards may need more bytes than what they match, so a filter can be too long.
            if len(pulled.text.encode("utf-8")) + len(pulled.levels) > TOPIC_BYTES:
                pulled = rule.filter
            _add(pulled, found)
        if not _shadowed(filter_, self.rules):
            _add(filter_, found)
        texts: list[str] = []
        for pulled in found:
            for text in smf_texts(pulled):
                if text not in texts:
                    texts.append(text)
        return texts


def directed(rules: list[MappingRule], directions: list[str]) -> tuple[TopicMapping, TopicMapping]:
    """The mappings for what comes in and for what goes out, of rules "in", "out" or "both".

    What is "both" holds as written on the way in, and the other way round on the way out. Raises
    TopicError when that has no inverse, or for too many rules.
    """
    inward: list[MappingRule] = []
    outward: list[MappingRule] = []
    both: list[MappingRule] = []
    for rule, direction in zip(rules, directions, strict=True):
        if direction != "out":
            inward.append(rule)
        if direction == "out":
            outward.append(rule)
        elif direction == "both":
            both.append(rule)
            outward.append(rule.inverse())
    TopicMapping(both).inverse()
    return TopicMapping(inward), TopicMapping(outward)


def smf_texts(filter_: Filter) -> list[str]:
    """Filters in `*` `>` dialect that together match at least what `filter_` matches.

    They match no more than that unless a literal level cannot be written in that dialect: an empty
    one, one that ends in `*`, a last `>`. Levels beyond TOPIC_LEVELS match no topic and are left
    out. Raises TopicError when nothing can be written.
    """
    levels, kinds = list(filter_.levels), list(filter_.kinds)
    last = len(kinds) - 1
    for index, kind in enumerate(filter_.kinds):
        level = levels[index]
        if kind != LITERAL:
            continue
        ends = index == last or (index == last - 1 and kinds[last] == ALL)
        if level.endswith("*") or (index == 0 and level in _PREFIX_WORDS):
            levels[index] = level[:-1]
            kinds[index] = PREFIX if level[:-1] else ONE
        elif not level or (level == ">" and ends):
            levels[index] = ""
            kinds[index] = ONE
    if filter_.kinds[0] == LITERAL and kinds[0] != LITERAL and hidden(filter_.levels[0]):
        raise TopicError(
            f"a filter that begins with {quoted(filter_.levels[0])} cannot be asked for", "TOPIC-31"
        )
    texts: list[str] = []
    for text in to_smf(filter_of(levels, kinds)):
        if len(text.encode("utf-8")) > TOPIC_BYTES:
            raise TopicError(f"a topic filter has at most {TOPIC_BYTES} bytes", "TOPIC-4")
        if text.count("/") < TOPIC_LEVELS:
            texts.append(text)
    return texts


def _shadowed(filter_: Filter, rules: list[MappingRule]) -> bool:
    """Whether one of the rules matches every topic that `filter_` matches."""
    for rule in rules:  # noqa: SIM110 (compiled: no generator expressions)
        if covers(rule.filter, filter_):
            return True
    return False


def _add(filter_: Filter, found: list[Filter]) -> None:
    """Put a filter into `found` in place of those that it covers.

    None there covers it, since an earlier rule would then match all that it matches.
    """
    found[:] = [other for other in found if not covers(filter_, other)]
    found.append(filter_)


_FROM_BYTES: Final = TOPIC_BYTES - TOPIC_LEVELS
"""Bytes of a rule's filter: in `*` `>` dialect an empty level is asked for by a `*`, which is one
byte more, and the text still fits."""


def parse_rule(source: str, to: str, dialect: int = SMF) -> MappingRule:
    """The rule that `from: source` and `to: to` describe, both in `dialect` (SMF or MQTT).

    Raises TopicError of one line that names the rule, what is wrong with it, and where.
    """
    label = f"topic mapping from {quoted(source)} to {quoted(to)}"
    return _rule(source, to, dialect, label)


def add_prefix(prefix: str, dialect: int = SMF) -> MappingRule:
    """The rule that puts the levels of `prefix` before a topic; a slash at its end says no more.

    Raises TopicError.
    """
    label = f"topic mapping add_prefix {quoted(prefix)}"
    levels = _prefix_levels(prefix, label)
    return _rule("#" if dialect == MQTT else ">", escape(levels) + "/{1}", dialect, label)


def strip_prefix(prefix: str, dialect: int = SMF) -> MappingRule:
    """The rule that takes the levels of `prefix` from the topics below it; the prefix itself stays.

    Raises TopicError.
    """
    label = f"topic mapping strip_prefix {quoted(prefix)}"
    levels = _prefix_levels(prefix, label)
    if dialect == MQTT:
        return _rule(levels + "/+/#", "{1}/{2}", dialect, label)
    return _rule(levels + "/>", "{1}", dialect, label)


def _rule(source: str, to: str, dialect: int, label: str) -> MappingRule:
    try:
        filter_ = parse_filter(source, dialect, max_bytes=_FROM_BYTES, exceptions=True)
    except TopicError as error:
        raise TopicError(f"{label}: from: {error}", error.clause) from None
    if filter_.exception or filter_.share or filter_.noexport:
        raise TopicError(f"{label}: from has no exception mark, share name or #noexport")
    first = filter_.levels[0]
    if filter_.kinds[0] == PREFIX and hidden(first):
        raise TopicError(f"{label}: from: {quoted(first + '*')} matches no topic", "TOPIC-23")
    if filter_.kinds[0] == LITERAL and hidden(first) and first.endswith("*"):
        raise TopicError(
            f"{label}: from: a first level {quoted(first)} cannot be asked for", "TOPIC-31"
        )
    count = len([kind for kind in filter_.kinds if kind != LITERAL])
    try:
        template = parse_template(to, dialect, count, _note(source, dialect))
    except TopicError as error:
        raise TopicError(f"{label}: {error}", error.clause) from None
    if forged(template[0].texts[0], first):
        raise TopicError(f"{label}: to begins with $ where from does not", "TOPIC-23")
    return MappingRule(filter_, template, label)


def _note(source: str, dialect: int) -> str:
    """What to say of a missing wildcard when `source` looks like the other dialect's."""
    for level in source.split("/"):
        if dialect == MQTT and (level.endswith("*") or level == ">"):
            return " (in mqtt syntax * and > are none)"
        if dialect == SMF and level in {"+", "#"}:
            return " (in smf syntax + and # are none)"
    return ""


def _prefix_levels(prefix: str, label: str) -> str:
    """The prefix without the slash at its end."""
    for wildcard in WILDCARDS:
        if wildcard in prefix:
            place = prefix.index(wildcard) + 1
            raise TopicError(
                f"{label}: a prefix has no wildcard character, this one {wildcard}"
                f" at character {place}"
            )
    levels = prefix.removesuffix("/")
    if not levels:
        raise TopicError(f"{label}: a prefix has a level that is not empty", "TOPIC-3")
    return levels
