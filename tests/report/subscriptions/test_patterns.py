"""The regular expressions that Spark builds from filters agree with the router's own matching."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from vpnrouter.report.subscriptions.held import (
    DIALECTS,
    bare,
    literal,
    pattern,
    wild_first,
)
from vpnrouter.topics.grammar import LITERAL, parse_filter
from vpnrouter.topics.oracle import oracle_matches

TEXTS = [
    "a",
    "ab",
    "abc",
    "b",
    "$x",
    "#P",
    "#P2P",
    "#P2Pz",
    "é",
    "a.b",
    "(a|b)",
    "x\n",
    "\\E",
    "\\Qa",
]
SMF_LEVELS = [*TEXTS, "*", "*", "a*", "ab*", "#P*", "$*", "+", "#", ">", "**", "*a", "\\E*", ".*"]
MQTT_LEVELS = [*[text for text in TEXTS if "#" not in text], "", "+", "+", "*", ">", "a*"]
TOPIC_LEVELS = [*TEXTS, "", "*", ">", "+", "a*", "zz", "a\nb", "😀"]


def joined(levels: list[str], end: str) -> str:
    """Levels and perhaps an open end."""
    return "/".join([*levels, end] if end else levels)


def some(levels: list[str]) -> st.SearchStrategy[list[str]]:
    """One to three levels."""
    return st.lists(st.sampled_from(levels), min_size=1, max_size=3)


FILTERS = st.one_of(
    st.tuples(st.builds(joined, some(SMF_LEVELS), st.sampled_from(["", ">"])), st.just("smf")),
    st.tuples(
        st.builds(joined, some(MQTT_LEVELS), st.sampled_from(["", "#"])).filter(bool),
        st.just("mqtt"),
    ),
    st.sampled_from([(">", "smf"), ("#", "mqtt"), ("/#", "mqtt")]),
)
TOPICS = st.lists(st.sampled_from(TOPIC_LEVELS), min_size=1, max_size=4).map("/".join).filter(bool)


def sides(
    spark: SparkSession, filters: list[tuple[str, str]], topics: list[str]
) -> list[dict[str, Any]]:
    """What Spark says of each filter with each topic, in one job."""
    text = bare(F.col("filter"), F.col("syntax"))
    frame = spark.createDataFrame(
        list(enumerate(filters)), "at int, one struct<filter:string,syntax:string>"
    )
    known = frame.select("at", "one.filter", "one.syntax").withColumn("text", text)
    text, syntax = F.col("text"), F.col("syntax")
    built = known.select(
        "at",
        literal(text, syntax).alias("literal"),
        wild_first(text, syntax).alias("wild_first"),
        pattern(text, syntax).alias("pattern"),
    )
    topic_frame = spark.createDataFrame([(topics,)], "topics array<string>")
    rows = (
        built.crossJoin(topic_frame)
        .select(
            "at",
            "literal",
            "wild_first",
            F.transform("topics", lambda topic: F.rlike(topic, F.col("pattern"))).alias("fits"),
        )
        .orderBy("at")
    )
    return [row.asDict() for row in rows.collect()]


@pytest.mark.parametrize("_", [None])
@settings(
    max_examples=4,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.large_base_example,
        HealthCheck.data_too_large,
    ],
)
@given(
    filters=st.lists(FILTERS, min_size=150, max_size=300, unique=True),
    topics=st.lists(TOPICS, min_size=150, max_size=300, unique=True),
)
def test_pattern_is_the_oracle(
    spark: SparkSession, _: None, filters: list[tuple[str, str]], topics: list[str]
) -> None:
    """Each of many filters finds exactly the topics that it matches; so do the shortcuts."""
    rows = sides(spark, filters, topics)
    assert len(rows) == len(filters)
    for (text, syntax), row in zip(filters, rows, strict=True):
        expected = [oracle_matches(text, DIALECTS[syntax], topic) for topic in topics]
        differ = [
            topic for topic, a, b in zip(topics, expected, row["fits"], strict=True) if a != b
        ]
        assert not differ, (text, syntax, differ)
        parsed = parse_filter(text, DIALECTS[syntax])
        if parsed.text == text:
            assert row["literal"] == parsed.literal, text
            assert row["wild_first"] == (parsed.kinds[0] != LITERAL), text


PREFIXED = [
    ("$share/g/a/+", "mqtt", "a/+"),
    ("$share/a/b", "smf", "$share/a/b"),
    ("#share/g/a/>", "smf", "a/>"),
    ("#noexport/#share/g/a/*", "smf", "a/*"),
    ("#noexport/a", "smf", "a"),
    ("!a/b", "smf", "a/b"),
    ("!a/b", "mqtt", "!a/b"),
    ("$share", "mqtt", "$share"),
    ("#share", "smf", "#share"),
]


def test_prefixes_play_no_part(spark: SparkSession) -> None:
    """What stands before the filter is taken off as the parser does."""
    frame = spark.createDataFrame(PREFIXED, "filter string, syntax string, text string")
    for row in frame.select("*", bare(F.col("filter"), F.col("syntax")).alias("bare")).collect():
        assert row["bare"] == row["text"], row
        parsed = parse_filter(
            row["filter"], DIALECTS[row["syntax"]], exceptions=row["syntax"] == "smf"
        )
        assert parsed.text == row["text"], row
