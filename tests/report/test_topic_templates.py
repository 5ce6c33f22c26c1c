"""Topics fold into templates where a level holds ids, and only there; whatever the order of the topics."""

from __future__ import annotations

import random
import uuid
from collections import defaultdict
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter.report.topic_templates import (
    ABBREVIATIONS,
    FEW_MESSAGES,
    MACHINE_VALUES,
    MANY_VALUES,
    OUTSTANDING,
    TEXT_VALUES,
    Folded,
    fold,
    look,
)


def named(folded: Folded) -> set[str]:
    """Templates as texts, `*` for a parameter."""
    return {
        "/".join("*" if level is None else level for level in one.levels)
        for one in folded.templates
    }


def word(number: int) -> str:
    """A word of letters for each number below 26 ** 4, none like another."""
    letters = ""
    for _ in range(4):
        number, letter = divmod(number, 26)
        letters += chr(ord("a") + letter)
    return letters


def same(text: str, count: int) -> set[str]:
    """What `text` with numbers from 0 folds to."""
    return named(fold({text.format(number): 1 for number in range(count)}))


@pytest.mark.parametrize(
    ("value", "alike"),
    [
        ("17", "number"),
        ("-3.5", "number"),
        ("٣٤", "number"),
        ("550e8400-e29b-41d4-a716-446655440000", "uuid"),
        ("550e8400e29b41d4", "hex"),
        ("0xdeadbee1", "hex"),
        ("00:1a:2b:3c:4d:5e", "hex"),
        ("x7k2p9", "code"),
        ("2026-03-01", "code"),
        ("10.0.0.1", "code"),
        ("sensor-17", "word with a number"),
        ("OSL", "abbreviation"),
        ("deadbeef", "word"),
        ("status", "word"),
        ("PENDING", "word"),
        ("Ⅳ", "word"),
        ("", "word"),
    ],
)
def test_looks(value: str, alike: str) -> None:
    """Ids of machines are told from words."""
    assert look(value)[0] == alike


@pytest.mark.parametrize(
    "make",
    [
        str,
        lambda number: str(uuid.UUID(int=number << 64)),
        lambda number: f"{number + 0x10000000:08x}",
        lambda number: f"2026-03-{number + 10}",
        lambda number: f"pump-{number}",
    ],
    ids=["numbers", "UUIDs", "hex", "dates", "numbered"],
)
def test_ids_of_machines(make: Callable[[int], str]) -> None:
    """From ten on they are ids, wherever they stand; nine stay."""
    for text in ("order/{}/status", "{}/order", "order/{}"):
        ids = {text.format(make(number)): 1_000_000 for number in range(MACHINE_VALUES)}
        assert named(fold(ids)) == {text.format("*")}
        ids.popitem()
        assert named(fold(ids)) == set(ids)


def test_numbered_words_of_several_patterns() -> None:
    """Names of things that hold a number each are no ids, however many they are below forty."""
    substances = [
        "co2",
        "no2",
        "o3",
        "pm10",
        "pm25x",
        "h2s",
        "so2",
        "nh3",
        "ch4",
        "n2o",
        "voc7",
        "sf6",
    ]
    topics = dict.fromkeys((f"air/{one}" for one in substances), 1)
    assert named(fold(topics)) == set(topics)
    # What is told by a number apart is one pattern.
    assert same("air/probe-{}", MACHINE_VALUES) == {"air/*"}


def test_abbreviations() -> None:
    """Twenty of one length are ids; nineteen, and those of several lengths, are not."""
    codes = ["A" + word(number)[:2].upper() for number in range(ABBREVIATIONS)]
    topics = {f"flights/{code}": 10_000 for code in codes}
    assert named(fold(topics)) == {"flights/*"}
    topics.popitem()
    assert named(fold(topics)) == set(topics)
    assert len(fold({**topics, "flights/LONG": 1}).templates) == ABBREVIATIONS


def test_words_before_the_same_level() -> None:
    """Forty are ids, and what has another level behind stays; thirty-nine stay."""
    topics = {f"user/{word(number)}/profile": 10_000 for number in range(TEXT_VALUES)}
    other = {"user/all/flush": 1, "user/aaaa/flush": 1}
    assert named(fold({**topics, **other})) == {"user/*/profile", *other}
    topics.popitem()
    assert named(fold({**topics, **other})) == {*topics, *other}


def test_words_at_the_end() -> None:
    """They are ids where each has few messages; commands that are sent again and again are none, until they are
    two hundred.
    """
    names = [f"do/{word(number)}" for number in range(MANY_VALUES)]
    few = names[:TEXT_VALUES]
    assert named(fold(dict.fromkeys(few, FEW_MESSAGES))) == {"do/*"}
    assert named(fold(dict.fromkeys(few, FEW_MESSAGES + 1))) == set(few)
    assert named(fold(dict.fromkeys(names, 1_000_000))) == {"do/*"}
    assert named(fold(dict.fromkeys(names[1:], 1_000_000))) == set(names[1:])


def test_words_before_anything() -> None:
    """Two hundred with as many levels behind are ids, though what follows is different for each."""
    topics = {f"{word(number)}/{word(number + 9_000)}": 1_000 for number in range(MANY_VALUES)}
    assert named(fold(topics)) == {"*/*"}
    topics.popitem()
    assert named(fold(topics)) == set(topics)


def test_a_word_with_most_of_the_topics_is_a_name() -> None:
    """Beside hundreds of words, one below which far more topics are is no id."""
    topics = {f"{word(number)}/{word(number + 9_000)}": 1_000 for number in range(1_000)}
    topics |= {f"order/{number}": 1 for number in range(OUTSTANDING * 2)}
    assert named(fold(topics)) == {"*/*", "order/*"}


def test_neighbours_make_a_place() -> None:
    """Values count together below equal levels, where a parameter is equal to all it stands for."""
    topics = {f"site/{site}/line/{line}": 1 for site in range(30) for line in (site % 3, site % 12)}
    assert named(fold(topics)) == {"site/*/line/*"}
    apart = {f"site/{word(site)}/line/{line}": 1 for site in range(4) for line in range(9)}
    assert named(fold(apart)) == set(apart)


def test_empty_and_guarded_levels_stay() -> None:
    """An empty level is a level; `$SYS` and `#P2P` are no ids, their lower levels may be."""
    topics = {f"/{number}//x/": 1 for number in range(50)}
    assert named(fold(topics)) == {"/*//x/"}
    guarded = {f"${word(number)}/a": 1 for number in range(300)}
    guarded |= {f"#P2P{number}/a": 1 for number in range(300)}
    assert named(fold(guarded)) == set(guarded)
    assert same("$SYS/clients/{}", 50) == {"$SYS/clients/*"}
    assert same("#P2P/v:edge/{}", 50) == {"#P2P/v:edge/*"}
    assert same("x/#P2P{}", 50) == {"x/*"}
    assert fold({}) == fold({})
    assert named(fold({"/": 1, "//": 1, " ": 1})) == {"/", "//", " "}


def test_a_parameter_tells_what_it_stands_for() -> None:
    """How many values, the busiest of them, and what they look like."""
    topics = {f"order/{number}/status": number for number in range(1, 31)}
    (template,) = fold({**topics, "order/x7k2p9/status": 5}).templates
    (parameter,) = template.parameters
    assert (template.topics, template.messages) == (31, sum(range(31)) + 5)
    assert (parameter.level, parameter.values) == (2, 31)
    assert (parameter.examples, parameter.looks) == (("30", "29", "28"), ("code", "number"))


_LEVELS = st.one_of(
    st.sampled_from(["a", "b", "", "$x", "#P2P", "{x}", "né", "\x00", "OSL"]),
    st.integers(0, 25).map(str),
    st.integers(0, 25).map(lambda number: f"pump-{number}"),
    st.integers(0, 80).map(word),
    st.integers(0, 40).map(lambda number: word(number)[:3].upper()),
    st.integers(0, 25).map(lambda number: str(uuid.UUID(int=number << 64))),
)


@st.composite
def _topics(draw: st.DrawFn) -> dict[str, int]:
    """Topics of a few families, so that places have anything from one value to hundreds."""
    rng = random.Random(draw(st.integers(0, 1 << 32)))
    makers: list[Callable[[], str]] = [
        lambda: str(rng.randrange(30)),
        lambda: word(rng.randrange(400)),
        lambda: f"pump-{rng.randrange(15)}",
        lambda: f"{word(rng.randrange(50))[:3].upper()}",
        lambda: rng.choice(["a", "b", "", "$x", "#P2P/1"]),
    ]
    topics: dict[str, int] = {}
    for shape in draw(
        st.lists(st.lists(st.sampled_from(makers), min_size=1, max_size=4), max_size=4)
    ):
        for _ in range(draw(st.sampled_from([1, 15, 60, 500]))):
            topics["/".join(maker() for maker in shape)] = rng.choice([1, 1, 3, 500])
    topics |= draw(
        st.dictionaries(
            st.lists(_LEVELS, min_size=1, max_size=5).map("/".join).filter(bool),
            st.integers(0, 1_000),
            max_size=60,
        )
    )
    return topics


@given(_topics(), st.randoms(use_true_random=False))
def test_any_topics(topics: dict[str, int], rng: random.Random) -> None:
    """Each topic fits its template, nothing is lost, few values stay, and the order does not matter."""
    folded = fold(topics)
    pairs = list(zip(topics, folded.numbers, strict=True))
    assert len({one.levels for one in folded.templates}) == len(folded.templates)
    values: dict[tuple[str | None, ...], set[str]] = defaultdict(set)
    of_template: dict[int, list[str]] = defaultdict(list)
    for topic, number in pairs:
        levels = folded.templates[number].levels
        parts = topic.split("/")
        assert len(parts) == len(levels)
        assert all(level in {None, part} for level, part in zip(levels, parts, strict=True))
        assert all(part for level, part in zip(levels, parts, strict=True) if level is None)
        assert levels[0] is not None or not parts[0].startswith(("$", "#P2P"))
        of_template[number].append(topic)
        for at, part in enumerate(parts):
            values[levels[: at + 1]].add(part)
    assert all(len(found) >= MACHINE_VALUES for place, found in values.items() if place[-1] is None)
    for number, one in enumerate(folded.templates):
        mine = of_template[number]
        assert (one.topics, one.messages) == (len(mine), sum(topics[topic] for topic in mine))
        open_levels = [at + 1 for at, level in enumerate(one.levels) if level is None]
        assert [parameter.level for parameter in one.parameters] == open_levels
        for parameter in one.parameters:
            found = {topic.split("/")[parameter.level - 1] for topic in mine}
            assert parameter.values == len(found)
            assert set(parameter.examples) <= found
    mixed = list(topics.items())
    rng.shuffle(mixed)
    again = fold(dict(mixed))
    assert again.templates == folded.templates
    assert dict(zip(dict(mixed), again.numbers, strict=True)) == dict(pairs)


def test_deep_and_long_topics() -> None:
    """128 levels, and levels of 60,000 characters, are folded as any others."""
    deep = {"/".join([str(number)] * 128): 1 for number in range(MACHINE_VALUES)}
    assert named(fold(deep)) == {"/".join("*" * 128)}
    alone = {"/".join([word(number)] * 128): 1 for number in range(2_000)}
    assert len(fold(alone).templates) == 1
    long = {f"x/{word(number) * 15_000}/y": 1 for number in range(TEXT_VALUES)}
    assert named(fold(long)) == {"x/*/y"}


@pytest.mark.slow
def test_a_million_and_a_half() -> None:
    """1.4 million topics fold into what made them."""
    rng = random.Random(1)
    topics = {f"order/{uuid.UUID(int=rng.getrandbits(128))}/status": 1 for _ in range(800_000)}
    topics |= {
        f"plant/{number % 50}/line-{number % 41}/machine/{number}": 3 for number in range(300_000)
    }
    topics |= {f"{word(number)}/{word(number * 7 % 400_000)}": 1 for number in range(300_000)}
    assert len(topics) == 1_400_000
    folded = fold(topics)
    assert named(folded) == {"order/*/status", "plant/*/*/machine/*", "*/*"}
    assert [one.topics for one in folded.templates] == [800_000, 300_000, 300_000]
