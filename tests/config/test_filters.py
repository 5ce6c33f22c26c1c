import pytest

from vpnrouter.config.checks.message_vpns import FilterRules, check_filters
from vpnrouter.config.parse import parse
from vpnrouter.config.problem_list import ProblemList


def check(texts: list[str], rules: FilterRules) -> list[str]:
    """The problems of a list of filters, each as `INDEX message`."""
    lines = "\n".join(f"- {text!r}" for text in texts)
    document = parse(lines.encode(), "f", [])
    assert document is not None
    found = ProblemList(document, document)
    parsed = check_filters(found, [((index,), text) for index, text in enumerate(texts)], rules)
    errors = sum(problem.severity == "error" for problem in found.problems)
    assert len(parsed) == len(texts) - errors
    return [f"{problem.position.line - 1} {problem.message}" for problem in found.problems]


@pytest.mark.parametrize(
    ("texts", "rules", "part"),
    [
        (["a//b"], FilterRules("smf"), "(TOPIC-15); with topic_syntax: mqtt it would be a filter"),
        (["a/#/b"], FilterRules("mqtt"), "(TOPIC-20); with topic_syntax: smf it would be a filter"),
        ([""], FilterRules("mqtt"), "a topic filter is not empty (TOPIC-3)"),
        (["a/b/c"], FilterRules("smf", max_levels=2), "at most 2 levels (TOPIC-5)"),
        (["abcd"], FilterRules("smf", max_bytes=3), "at most 3 bytes"),
        (["!a"], FilterRules("smf"), "a leading ! is literal here"),
        (["a/*", "b", "a/*"], FilterRules("smf"), "2 [2]: the same filter stands at f:1:3"),
        (["a/>", "a/b"], FilterRules("smf"), "1 [1]: adds nothing: a/> at f:1:3 covers it"),
        (["a/b", "a/#"], FilterRules("mqtt"), "0 [0]: adds nothing: a/# at f:2:3 covers it"),
    ],
)  # fmt: skip
def test_told(texts: list[str], rules: FilterRules, part: str) -> None:
    """What does not parse, stands twice or adds nothing is told."""
    (only,) = check(texts, rules)
    assert part in only


@pytest.mark.parametrize(
    ("texts", "rules"),
    [
        (["a/*", "a/b/c", "b/>"], FilterRules("smf")),
        (["orders/>", "!orders/test"], FilterRules("smf", exceptions=True)),
        ([">", "#share/g/a"], FilterRules("smf")),
        ([">", "#noexport/a"], FilterRules("smf")),
        ([">", "$client-username/x"], FilterRules("smf")),
    ],
)
def test_not_told(texts: list[str], rules: FilterRules) -> None:
    """Filters for different messages or purposes are left alone."""
    assert check(texts, rules) == []


def test_long_lists_are_not_compared_pairwise() -> None:
    """Beyond the bound on pairs only equal filters are told, so that `run` starts in time."""
    texts = [">", *(f"t/{number}" for number in range(222)), "t/5"]
    assert len([one for one in check(texts, FilterRules("smf")) if "adds nothing" in one]) == 222
    texts.insert(1, "t/one/more")
    (only,) = check(texts, FilterRules("smf"))
    assert "the same filter stands at" in only
