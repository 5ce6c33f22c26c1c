"""The clauses of the topic grammar: every implementation against the cases in data/topics.yaml."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from vpnrouter.errors import TopicError
from vpnrouter.topics.algebra import matches
from vpnrouter.topics.cache import RouteCache
from vpnrouter.topics.grammar import (
    MQTT,
    SMF,
    Filter,
    parse_filter,
    parse_topic,
    to_mqtt,
    to_smf,
)
from vpnrouter.topics.oracle import oracle_matches
from vpnrouter.topics.trie import SubscriptionTrie

ROOT = Path(__file__).parents[2]
CASES: list[dict[str, Any]] = yaml.safe_load(
    (ROOT / "tests/conformance/data/topics.yaml").read_text(encoding="utf-8")
)
CLAUSES = re.findall(
    r"^\*\*(TOPIC-\d+)\*\*",
    (ROOT / "docs/topics.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)
DIALECTS = {"smf": SMF, "mqtt": MQTT}
TOPIC_CASES = [case for case in CASES if "topic" in case or "topic_hex" in case]
FILTER_CASES = [case for case in CASES if "filter" in case]
MATCHED = [
    (case["filter"], case["in"], case.get("queue", False), topic, expected)
    for case in FILTER_CASES
    for key, expected in (("matches", True), ("misses", False))
    for topic in case.get(key, ())
]


def text_of(given: str | list[Any]) -> str:
    """A text of a case, long ones spelled out."""
    if isinstance(given, str):
        return given
    unit, times, end = given
    return str(unit) * int(times) + text_of(end)


def name_of(value: Any) -> str:
    """A short test id."""
    return repr(value)[:60].encode("ascii", "backslashreplace").decode()


def filter_of(case: dict[str, Any]) -> Filter:
    """The parsed filter of a case."""
    return parse_filter(
        text_of(case["filter"]), DIALECTS[case["in"]], exceptions=case.get("queue", False)
    )


def test_clauses_are_numbered_in_order() -> None:
    """The page numbers its clauses 1, 2, 3 and so on, none twice."""
    assert [f"TOPIC-{n}" for n in range(1, len(CLAUSES) + 1)] == CLAUSES


def test_every_clause_has_a_case_and_every_case_a_clause() -> None:
    """No clause goes without a case, no case names a clause that is not there."""
    assert {case["clause"] for case in CASES} == set(CLAUSES)


def test_errors_name_clauses_that_exist() -> None:
    """Every clause id in the grammar stands on the page."""
    source = (ROOT / "vpnrouter/topics/grammar.py").read_text(encoding="utf-8")
    assert set(re.findall(r"TOPIC-\d+", source)) <= set(CLAUSES)


@pytest.mark.parametrize("case", TOPIC_CASES, ids=name_of)
def test_published_topic(case: dict[str, Any]) -> None:
    """A topic is accepted as it is, or refused with the clause of the case."""
    raw = (
        bytes.fromhex(case["topic_hex"]) if "topic_hex" in case else text_of(case["topic"]).encode()
    )
    mqtt = case.get("from") != "smf"
    if case["valid"]:
        assert parse_topic(raw, mqtt=mqtt) == raw.decode()
        return
    with pytest.raises(TopicError) as raised:
        parse_topic(raw, mqtt=mqtt)
    assert raised.value.clause == case["clause"]


@pytest.mark.parametrize("case", FILTER_CASES, ids=name_of)
def test_filter(case: dict[str, Any]) -> None:
    """A filter is refused with the clause of the case, or has the fields that the case gives."""
    if not case.get("valid", True):
        with pytest.raises(TopicError) as raised:
            filter_of(case)
        assert raised.value.clause == case["clause"]
        return
    filter_ = filter_of(case)
    assert filter_.original == text_of(case["filter"])
    for field in ("text", "share", "noexport", "exception"):
        if field in case:
            assert getattr(filter_, field) == case[field]
    if "smf" in case:
        assert to_smf(filter_) == case["smf"]
    if "mqtt" in case:
        assert to_mqtt(filter_) == case["mqtt"]


@pytest.mark.parametrize(("given", "dialect", "queue", "topic", "expected"), MATCHED, ids=name_of)
def test_match(given: Any, dialect: str, queue: bool, topic: Any, expected: bool) -> None:
    """Oracle, direct match, trie and cache index agree with the case."""
    filter_ = parse_filter(text_of(given), DIALECTS[dialect], exceptions=queue)
    published = text_of(topic)
    assert oracle_matches(filter_.text, filter_.dialect, published) == expected
    assert matches(filter_, published) == expected
    trie = SubscriptionTrie()
    trie.insert(filter_, "entry")
    assert trie.match(published) == ["entry"] * expected
    assert trie.has_match(published) == expected
    cache = RouteCache()
    cache.put(published.encode(), published, "route")
    assert cache.invalidate(filter_) == expected


@pytest.mark.parametrize("case", [case for case in CASES if "same" in case], ids=name_of)
def test_equal_filters(case: dict[str, Any]) -> None:
    """Filters of one meaning are equal, hash alike and are one pattern to the trie."""
    filters = [parse_filter(text, DIALECTS[dialect]) for text, dialect in case["same"]]
    assert len(set(filters)) == 1
    trie = SubscriptionTrie()
    assert [trie.insert(f, "entry") for f in filters] == [True] + [False] * (len(filters) - 1)


@pytest.mark.parametrize("case", [case for case in CASES if "differ" in case], ids=name_of)
def test_different_filters(case: dict[str, Any]) -> None:
    """Filters of different meaning are different."""
    filters = [parse_filter(text, DIALECTS[dialect]) for text, dialect in case["differ"]]
    assert len(set(filters)) == len(filters)
