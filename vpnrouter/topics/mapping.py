"""Topic mapping: the topics that messages take when they cross a bridge (docs/topic-mapping.md).

The first rule that matches a topic renames it; a topic that no rule matches keeps its name.
"""

from __future__ import annotations

from typing import Final, final

from vpnrouter.errors import TopicError
from vpnrouter.limits import (
    ROUTE_CACHE_TOPIC_BYTES,
    TOPIC_BYTES,
    TOPIC_LEVELS,
    TOPIC_MAPPING_CACHE_ENTRIES,
    TOPIC_MAPPING_RULES,
)
from vpnrouter.topics.algebra import covers, witness
from vpnrouter.topics.grammar import ALL, LITERAL, ONE, PREFIX, Filter, hidden, parse_topic, to_smf
from vpnrouter.topics.mapping_rule import MappingRule, filter_of, quoted

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
        self._known: dict[bytes, bytes] = {}

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
        """The same for a topic as it stands in a message; a known one costs one look.

        Raises TopicError, also when `topic` is not valid.
        """
        known = self._known.get(topic)
        if known is not None:
            return known
        image = self.apply(parse_topic(topic, mqtt=False)).encode("utf-8")
        if len(topic) <= ROUTE_CACHE_TOPIC_BYTES and len(image) <= ROUTE_CACHE_TOPIC_BYTES:
            if len(self._known) >= TOPIC_MAPPING_CACHE_ENTRIES:
                self._known.clear()
            self._known[topic] = image
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
    """Does one of the rules match whatever `filter_` matches?"""
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
