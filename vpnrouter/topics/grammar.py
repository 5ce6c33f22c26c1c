"""The topic grammar: published topics and topic filters in both dialects (docs/topics.md).

    SMF    a/b       a/*/c     a/pre*    a/>       >        #share/GROUP/a/>    #noexport/a/*
    MQTT   a/b       a/+/c     (none)    a/+/#     #        $share/GROUP/a/#
           a//b      a/*/c is literal              a/#      (SMF needs a and a/>)

Text becomes a `Filter` here and is never parsed again. Knows nothing of subscriptions or clients.
"""

from __future__ import annotations

from typing import Final, final

from vpnrouter.errors import TopicError
from vpnrouter.limits import TOPIC_BYTES, TOPIC_LEVELS

LITERAL: Final = 0
"""Level kind: this very text."""
ONE: Final = 1
"""Level kind: any one level (`*`, `+`)."""
PREFIX: Final = 2
"""Level kind: one level that begins with the text (`abc*`)."""
REST: Final = 3
"""Level kind, last only: one or more levels (`>`)."""
ALL: Final = 4
"""Level kind, last only: zero or more levels, so it matches the parent as well (MQTT `#`)."""

SMF: Final = 0
"""Dialect with `*`, `abc*` and `>`."""
MQTT: Final = 1
"""Dialect with `+` and `#`."""

_SMF_SHARE: Final = "#share/"
_MQTT_SHARE: Final = "$share/"
_NOEXPORT: Final = "#noexport/"

QUEUE_PREFIX: Final = "$queue/"
"""Topics that name a queue: what is published there goes to that queue alone."""

_ESCAPED: Final = (("%23", "#"), ("%2B", "+"), ("%2b", "+"), ("%25", "%"))
"""What stands for characters of a name that no topic and filter has within a level (MQTT 5, 4.7.1), and for itself."""

EVENT_PREFIX: Final = "$SYS/LOG/"
"""What only the router publishes to: its events, in the form that an MQTT client can subscribe to."""


@final
class Filter:
    """A parsed topic filter.

    `text` is the filter without exception mark and prefixes, `original` all of it as written.
    `levels[i]` holds a literal level, or the prefix of a PREFIX level without its `*`, and "" for
    the other kinds; `kinds[i]` says which. `share` is the share name or "". `literal` means that
    there is no wildcard.

    Two filters are equal when they match the same topics by the same levels for the same purpose,
    in whichever dialect they were written (TOPIC-33).
    """

    __slots__ = (
        "dialect",
        "exception",
        "kinds",
        "levels",
        "literal",
        "noexport",
        "original",
        "share",
        "text",
    )

    def __init__(
        self,
        text: str,
        dialect: int,
        levels: list[str],
        kinds: list[int],
        original: str,
        share: str = "",
        noexport: bool = False,
        exception: bool = False,
    ) -> None:
        self.text = text
        self.dialect = dialect
        self.levels = levels
        self.kinds = kinds
        self.original = original
        self.share = share
        self.noexport = noexport
        self.exception = exception
        self.literal = True
        for kind in kinds:
            if kind != LITERAL:
                self.literal = False
                break

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Filter):
            return NotImplemented
        return (
            self.levels == other.levels
            and self.kinds == other.kinds
            and self.share == other.share
            and self.noexport == other.noexport
            and self.exception == other.exception
        )

    def __hash__(self) -> int:
        return hash((tuple(self.levels), tuple(self.kinds), self.share))

    def __repr__(self) -> str:
        return f"Filter({self.original!r}, {'MQTT' if self.dialect == MQTT else 'SMF'})"


# -- published topics ------------------------------------------------------------------------------


def parse_topic(
    raw: bytes, max_levels: int = TOPIC_LEVELS, max_bytes: int = TOPIC_BYTES, mqtt: bool = True
) -> str:
    """The text of a published topic. `mqtt` says that an MQTT client published it.

    Raises TopicError (TOPIC-1 to TOPIC-5, TOPIC-8). The text can be matched without another check.
    """
    if not raw:
        raise TopicError("a topic is not empty", "TOPIC-3")
    if len(raw) > max_bytes:
        raise TopicError(f"a topic has at most {max_bytes} bytes, this one {len(raw)}", "TOPIC-4")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise TopicError(f"not UTF-8 at byte {error.start} of the topic", "TOPIC-1") from None
    if "\0" in text:
        raise TopicError("a topic has no NUL character", "TOPIC-2")
    if text.count("/") >= max_levels:
        raise TopicError(f"a topic has at most {max_levels} levels", "TOPIC-5")
    if mqtt and ("+" in text or "#" in text):
        raise TopicError("a topic published by MQTT has no + or #", "TOPIC-8")
    if text.startswith(EVENT_PREFIX):
        raise TopicError(f"topics below {EVENT_PREFIX} are the router's own", "TOPIC-8")
    return text


def name_meant(written: str) -> str:
    """The name of a queue or topic endpoint that a topic or filter writes with `%23`, `%2B` and `%25`."""
    for code, meant in _ESCAPED:
        written = written.replace(code, meant)
    return written


def queue_topic(name: str) -> str:
    """The topic that names a queue, with what stands for characters that no topic has."""
    if "#" in name or "+" in name or name_meant(name) != name:
        name = name.replace("%", "%25").replace("#", "%23").replace("+", "%2B")
    return QUEUE_PREFIX + name


def hidden(level: str) -> bool:
    """True when a first level hides its topic from first-level wildcards (TOPIC-23, TOPIC-24)."""
    return level.startswith(("$", "#P2P"))


def match_levels(
    levels: list[str], kinds: list[int], topic: list[str], guarded: bool = True
) -> bool:
    """True when the pattern matches the levels of one topic. Takes a filter's `levels` and `kinds`.

    `guarded` False lets first-level wildcards match what is hidden from subscriptions, as denials do.
    """
    count = len(topic)
    if guarded and kinds[0] != LITERAL and hidden(topic[0]):
        return False
    index = 0
    for kind in kinds:
        if kind == ALL:
            return True
        if index >= count:
            return False
        if kind == REST:
            return True
        if kind == LITERAL:
            if levels[index] != topic[index]:
                return False
        elif kind == PREFIX and not topic[index].startswith(levels[index]):
            return False
        index += 1
    return index == count


# -- filters ---------------------------------------------------------------------------------------


def parse_filter(
    text: str,
    dialect: int,
    *,
    max_levels: int = TOPIC_LEVELS,
    max_bytes: int = TOPIC_BYTES,
    exceptions: bool = False,
) -> Filter:
    """A filter in `dialect` (SMF or MQTT) with its prefixes.

    `exceptions` says that a leading `!` marks a subscription exception here (queue subscriptions);
    elsewhere it is literal. `max_bytes` bounds the whole text, `max_levels` the filter without
    prefixes.

    Raises TopicError with the clause that is broken.
    """
    _check_text(text, max_bytes)
    rest = text
    exception = exceptions and rest.startswith("!")
    if exception:
        rest = rest[1:]
    noexport = dialect == SMF and rest.startswith(_NOEXPORT)
    if noexport:
        rest = rest[len(_NOEXPORT) :]
    share = ""
    if rest.startswith(_MQTT_SHARE if dialect == MQTT else _SMF_SHARE):
        # The prefixes have the same length in both dialects.
        share, slash, rest = rest[len(_SMF_SHARE) :].partition("/")
        _check_share(share, slash, dialect)
        if dialect == SMF and rest.startswith((_NOEXPORT, _SMF_SHARE)):
            raise TopicError("#noexport comes before #share, each once", "TOPIC-28")
    elif noexport and rest.startswith(_NOEXPORT):
        raise TopicError("#noexport comes before #share, each once", "TOPIC-28")
    if exception and (noexport or share):
        raise TopicError("a subscription exception has no #noexport and no share name", "TOPIC-30")
    if not rest:
        raise TopicError("a topic filter is not empty", "TOPIC-3")
    levels = rest.split("/")
    if len(levels) > max_levels:
        raise TopicError(f"a topic filter has at most {max_levels} levels", "TOPIC-5")
    kinds = _mqtt_kinds(levels) if dialect == MQTT else _smf_kinds(levels)
    return Filter(rest, dialect, levels, kinds, text, share, noexport, exception)


def _check_text(text: str, max_bytes: int) -> None:
    if not text:
        raise TopicError("a topic filter is not empty", "TOPIC-3")
    size = len(text)
    if not text.isascii():
        try:
            size = len(text.encode("utf-8"))
        except UnicodeEncodeError as error:
            raise TopicError(
                f"not UTF-8 at character {error.start} of the filter", "TOPIC-1"
            ) from None
    if size > max_bytes:
        raise TopicError(
            f"a topic filter has at most {max_bytes} bytes, this one {size}", "TOPIC-4"
        )
    if "\0" in text:
        raise TopicError("a topic filter has no NUL character", "TOPIC-2")


def _check_share(share: str, slash: str, dialect: int) -> None:
    if not share or not slash:
        raise TopicError("a shared subscription has a share name and a filter", "TOPIC-27")
    for wildcard in "+#" if dialect == MQTT else "*>":
        if wildcard in share:
            raise TopicError(f"a share name has no {wildcard}", "TOPIC-27")


def _mqtt_kinds(levels: list[str]) -> list[int]:
    """Kinds of the levels of an MQTT filter; blanks the wildcard levels in `levels`."""
    kinds: list[int] = []
    last = len(levels) - 1
    for index, level in enumerate(levels):
        kind = LITERAL
        if level == "+":
            kind = ONE
        elif level == "#" and index == last:
            kind = ALL
        elif "#" in level:
            raise TopicError("# stands alone in the last level", "TOPIC-20")
        elif "+" in level:
            raise TopicError("+ stands alone in its level", "TOPIC-18")
        if kind != LITERAL:
            levels[index] = ""
        kinds.append(kind)
    return kinds


def _smf_kinds(levels: list[str]) -> list[int]:
    """Kinds of the levels of an SMF filter; leaves in `levels` what `Filter.levels` is to hold."""
    kinds: list[int] = []
    last = len(levels) - 1
    for index, level in enumerate(levels):
        kind = LITERAL
        if not level:
            raise TopicError("an SMF filter has no empty level", "TOPIC-15")
        if level.endswith("*"):
            levels[index] = level[:-1]
            kind = PREFIX if len(level) > 1 else ONE
        elif level == ">" and index == last:
            levels[index] = ""
            kind = REST
        kinds.append(kind)
    return kinds


# -- from one dialect to the other -----------------------------------------------------------------


def to_smf(filter_: Filter) -> list[str]:
    """The SMF filters that together match the same topics, prefixes included (TOPIC-31).

    Empty when there are none: a literal of the filter would be a wildcard, or a level is empty.
    """
    prefix = "!" if filter_.exception else ""
    prefix += _NOEXPORT if filter_.noexport else ""
    if filter_.share:
        if "*" in filter_.share or ">" in filter_.share:
            return []
        prefix += f"{_SMF_SHARE}{filter_.share}/"
    parts: list[str] = []
    for index, kind in enumerate(filter_.kinds):
        level = filter_.levels[index]
        if kind == LITERAL:
            if not level or level.endswith("*"):
                return []
            parts.append(level)
        elif kind in (ONE, PREFIX):
            parts.append(level + "*")
        elif kind == REST or index == 0:
            parts.append(">")
        else:
            if parts[-1] == ">":
                return []
            parent = "/".join(parts)
            return [prefix + parent, f"{prefix}{parent}/>"]
    if filter_.kinds[-1] == LITERAL and parts[-1] == ">":
        return []
    return [prefix + "/".join(parts)]


def to_mqtt(filter_: Filter) -> str | None:
    """The MQTT filter that matches the same topics, prefixes included (TOPIC-32).

    None when there is none: `abc*`, `#noexport`, `+` or `#` in a literal, or too long.
    """
    if filter_.noexport or "+" in filter_.share or "#" in filter_.share:
        return None
    parts: list[str] = []
    for index, kind in enumerate(filter_.kinds):
        level = filter_.levels[index]
        if kind == PREFIX or "+" in level or "#" in level:
            return None
        if kind == LITERAL:
            parts.append(level)
        elif kind == ONE:
            parts.append("+")
        elif kind == REST and index > 0:
            parts.append("+/#")
        else:
            parts.append("#")
    text = "/".join(parts)
    if text.count("/") >= TOPIC_LEVELS or (text.startswith(_MQTT_SHARE) and not filter_.share):
        return None
    if filter_.share:
        text = f"{_MQTT_SHARE}{filter_.share}/{text}"
    if filter_.exception:
        text = "!" + text
    return None if len(text.encode("utf-8")) > TOPIC_BYTES else text
