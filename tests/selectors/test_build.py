"""From the parsed tree to conditions: names, depth, the forms with NOT."""

import pytest

from vpnrouter.errors import SelectorError
from vpnrouter.limits import SELECTOR_DEPTH
from vpnrouter.selectors.build import parse_selector


def test_names_are_those_of_properties() -> None:
    """Each identifier once, headers among them; strings and keywords are none."""
    text = "a = 'no' AND (b + c > 1 OR NOT d) AND \"e-f\" IN ('no') AND JMSType LIKE 'no' AND a = 1"
    assert parse_selector(text).names == {"a", "b", "c", "d", "e-f", "JMSType"}


def deep(kind: str, levels: int) -> str:
    """A selector with as many levels of one kind."""
    match kind:
        case "brackets":
            return "(" * levels + "a" + ")" * levels
        case "not":
            return "NOT " * levels + "a"
        case "signs":
            return "- " * levels + "a = 1"
        case _:
            return "NOT (" * (levels // 2) + "a" + ")" * (levels // 2)


@pytest.mark.parametrize("kind", ["brackets", "not", "signs", "both"])
def test_depth_is_bounded(kind: str) -> None:
    """SELECTOR_DEPTH levels are evaluated; more, up to thousands, are refused with one line."""
    parse_selector(deep(kind, SELECTOR_DEPTH)).matches({"a": "1"})
    for levels in (SELECTOR_DEPTH + 2, 1_500):
        with pytest.raises(SelectorError, match="expected at most 32 brackets, NOT and signs"):
            parse_selector(deep(kind, levels))


def test_chains_are_not_deep() -> None:
    """A thousand terms or conditions beside one another nest nothing."""
    assert parse_selector("a = " + "+".join("1" * 1_000)).matches({"a": "1000"})
    assert parse_selector(" OR ".join(["a"] * 1_000)).matches({"a": "true"})


@pytest.mark.parametrize("text", ["JMSPriority > 4", "a AND JMSTimestamp = 1", '"JMSFoo" = 1'])
def test_header_that_messages_do_not_have(text: str) -> None:
    """A name of the JMS that stands for nothing here is refused, not silently missing."""
    with pytest.raises(SelectorError, match="expected one of the headers JMSCorrelationID, "):
        parse_selector(text)


def test_other_names_of_jms_are_properties() -> None:
    """JMSX and JMS_ begin names of properties (3.5.9, 3.5.10); lower case is anybody's."""
    assert parse_selector("JMSXGroupID = 'g'").matches({"JMSXGroupID": "g"})
    assert parse_selector("JMS_Acme = 'g' AND jmsType = 'h'").matches(
        {"JMS_Acme": "g", "jmsType": "h"}
    )


def test_escape_is_one_character() -> None:
    """Neither none nor two; the position is the escape's."""
    for escape in ("", "ab"):
        with pytest.raises(SelectorError, match=r"^position 19: expected one character"):
            parse_selector(f"x LIKE 'a' ESCAPE '{escape}'")
    assert parse_selector("x LIKE 'a''%' ESCAPE ''''").matches({"x": "a%"})
