"""What a selector matches: the rules of the specification and those of docs/selectors.md."""

import re
import tracemalloc
from pathlib import Path

import pytest

from vpnrouter.core.message import Message
from vpnrouter.selectors import HEADERS, METER, Selector, parse_selector
from vpnrouter.wire.mqtt import Properties, message_block

PAGE = Path(__file__).resolve().parents[2] / "docs" / "selectors.md"

MESSAGE = {
    "JMSType": "car",
    "colour": "blue",
    "weight": "2500",
    "price": "19.90",
    "age": "017",
    "urgent": "True",
    "off": "false",
    "name": "l'été",
    "phone": "12993",
    "empty": "",
    "word": "heavy",
    "one": "1",
    "uno": "1.0",
}

TRUE_OF_MESSAGE = [
    "JMSType = 'car' AND colour = 'blue' AND weight > 2400",
    "name = 'l''été'",
    "weight >= 2500 AND weight <= 2500 AND weight < 2501 AND weight <> 2499",
    "2400 < weight",
    "price > 19.8999 AND price = 1.99E1",
    "weight = 2500.0",
    "age = 17",
    "age BETWEEN 15 AND 19",
    "age NOT BETWEEN 18 AND 20",
    "age BETWEEN one AND weight",
    "colour IN ('red', 'blue')",
    "colour NOT IN ('red', 'Blue')",
    "phone LIKE '12%3' AND colour NOT LIKE 'b_ue_'",
    "missing IS NULL AND colour IS NOT NULL AND empty IS NOT NULL",
    "urgent",
    "urgent = TRUE AND urgent <> FALSE",
    "off = FALSE AND NOT off",
    "urgent = (weight > 1000)",
    "weight + 500 = 3000 AND weight * 2 / 4 - 1 = 1249",
    "7 / 2 = 3 AND 7 / 2.0 = 3.5 AND -7 / 2 = -3",
    "2 + 3 * 4 = 14 AND (2 + 3) * 4 = 20 AND 8 - 4 - 2 = 2 AND 8 / 4 / 2 = 1",
    "-weight = -2500 AND +weight = 2500 AND - -one = 1",
    "one < weight",
    "one <> uno",
    "one <= uno AND one >= uno",
    "NOT colour = 'red' AND NOT (word = 3)",
    "colour = 'red' OR colour = 'green' AND one = 2 OR weight = 2500",
    "TRUE",
    "NOT FALSE",
    "'a' = 'a' AND 'a' <> 'b'",
    "colour = 'blue' OR missing = 1",
    "NOT (missing = 1 AND colour = 'red')",
    "TRUE = (1 = 1)",
    "weight BETWEEN 2000 AND 3000 AND urgent",
]

UNKNOWN_OF_MESSAGE = [
    "missing",
    "missing = 1",
    "missing <> 1",
    "missing = 'a'",
    "missing <> colour",
    "missing = TRUE",
    "missing < 1",
    "missing BETWEEN 1 AND 2",
    "missing NOT BETWEEN 1 AND 2",
    "one BETWEEN missing AND 2",
    "missing IN ('a')",
    "missing NOT IN ('a')",
    "missing LIKE '%'",
    "missing NOT LIKE '%'",
    "missing + 1 = 1",
    "word + 1 = 1",
    "-word <> 1",
    "one / 0 = 1",
    "one / 0 <> 1",
    "1e308 * 10 * one > 0",
    "missing AND urgent",
    "missing OR off",
    "urgent = (missing = 1)",
]

FALSE_OF_MESSAGE = [
    "word = 3",
    "word <> 3",
    "word > 3",
    "word <= 3",
    "word BETWEEN 1 AND 3",
    "word NOT BETWEEN 1 AND 3",
    "word",
    "word = TRUE",
    "word <> TRUE",
    "word < weight",
    "urgent = 1",
    "colour = 'Blue'",
    "Colour IS NOT NULL",
    "weight = '2500.0'",
    "colour LIKE 'blu'",
    "missing AND off",
]


@pytest.mark.parametrize("text", TRUE_OF_MESSAGE)
def test_true(text: str) -> None:
    """It matches, and its opposite does not."""
    assert parse_selector(text).matches(MESSAGE)
    assert not parse_selector(f"NOT ({text})").matches(MESSAGE)


@pytest.mark.parametrize("text", FALSE_OF_MESSAGE)
def test_false(text: str) -> None:
    """It does not match, and its opposite does."""
    assert not parse_selector(text).matches(MESSAGE)
    assert parse_selector(f"NOT ({text})").matches(MESSAGE)


@pytest.mark.parametrize("text", UNKNOWN_OF_MESSAGE)
def test_unknown(text: str) -> None:
    """Neither it nor its opposite matches."""
    assert not parse_selector(text).matches(MESSAGE)
    assert not parse_selector(f"NOT ({text})").matches(MESSAGE)


def test_keeps_its_text() -> None:
    """As it was written, for those who list selectors."""
    selector = parse_selector(" a  = 1 ")
    assert selector.text == " a  = 1 "
    assert repr(selector) == "Selector(' a  = 1 ')"
    assert type(selector) is Selector


def test_headers_are_those_that_messages_bring() -> None:
    """The names that selectors know and those that a message's properties have are the same."""
    named = [("subject", "s"), ("message-id", "m"), ("creation-time", "1")]
    properties = Properties(
        content_type="t", response_topic="r", correlation_data=b"c", user_properties=named
    )
    block = message_block(properties)
    found = Message(b"a/b", b"x", block).properties()
    assert found.keys() == HEADERS | dict(named).keys()


def examples() -> list[str]:
    """The selectors in the blocks of the page."""
    blocks = re.findall(r"^```sql\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def test_page_has_examples() -> None:
    """The test below has something to read."""
    assert len(examples()) > 5


@pytest.mark.parametrize("text", examples())
def test_examples_of_the_page_are_selectors(text: str) -> None:
    """What users copy is accepted."""
    assert parse_selector(text).names


SHAPES = {
    "terms": " OR ".join(["a=1"] * 300),
    "names": " OR ".join(f"{chr(0x4E00 + number)}=1" for number in range(300)),
    "sums": "a=" + "+".join("a" * 700),
    "signs": "a=" + "+".join(["-1"] * 700),
    "ranges": " AND ".join(["a BETWEEN 1 AND 2"] * 200),
    "a list": "a IN (" + ",".join(f"'{chr(0x4E00 + number)}'" for number in range(700)) + ")",
    "pieces": "a LIKE '" + "".join(f"%{chr(0x4E00 + number)}" for number in range(700)) + "'",
    "gaps": "a LIKE '%" + "".join(f"_{chr(0x4E00 + number)}" for number in range(700)) + "%'",
    "a long text": "a = '" + "x" * 7_000 + "'",
    "absence": " OR ".join(["a IS NULL"] * 200),
    "flags": " OR ".join(["NOT a"] * 300),
}


@pytest.mark.parametrize("text", SHAPES.values(), ids=SHAPES)
def test_memory_is_told(text: str) -> None:
    """A selector takes no more memory than it says, and not many times less."""
    most = 5
    tracemalloc.start()
    try:
        kept = [parse_selector(f"{text} OR b = {number}") for number in range(most)]
        taken = tracemalloc.get_traced_memory()[0] / most
    finally:
        tracemalloc.stop()
    assert kept[0].memory / 8 < taken < kept[0].memory * 1.3


LONGEST = "x" * 65_535

LOOKS = {
    "one pattern": ("a LIKE '%x%'", True),
    "two patterns": ("a LIKE '%x%' AND a LIKE '%x_x%'", True),
    "three patterns": ("a LIKE '%x%' AND a LIKE '%x_x%' AND a LIKE '%x%'", False),
    "three with a beginning": ("a LIKE 'x%' AND a LIKE 'xx%' AND a LIKE '%x%'", True),
    "three with NOT": ("a LIKE '%x%' AND a LIKE '%x_x%' AND a NOT LIKE '%y%'", False),
    "one denied": ("a LIKE '%x%' AND a LIKE '%x_x%' AND NOT a LIKE '%x%'", True),
    "a long pattern": (f"a LIKE '%{'x_' * 32}%'", False),
    "an equal property": ("a = b", True),
    "many equal ones": (" AND ".join(["a = b"] * 200), False),
    "many others": (" AND ".join(["a <> c"] * 200), True),
}


@pytest.mark.parametrize(("text", "holds"), LOOKS.values(), ids=LOOKS)
def test_much_to_look_at_is_false(text: str, holds: bool) -> None:
    """A comparison is false where an evaluation has looked at too much, and each evaluation begins anew."""
    selector = parse_selector(text)
    for _ in range(3):
        assert selector.matches({"a": LONGEST, "b": LONGEST[1:] + "x", "c": "x"}) is holds


def work_of(text: str, value: str, times: int = 1) -> int:
    """What evaluations count as, in parts of a turn."""
    selector = parse_selector(text)
    METER.work()
    for _ in range(times):
        selector.matches({"a": value})
    return METER.work()


def test_cost_is_counted() -> None:
    """It grows with what LIKE looks at and with the selector, and costs next to nothing where both are short."""
    assert work_of("a = 'x'", "x", 100) < 100
    assert work_of("a LIKE '%x_y%'", "x" * 20, 100) < 200
    assert 1_000 < work_of("a LIKE '%x_y%'", LONGEST) < 10_000
    assert work_of("a LIKE 'y%'", LONGEST) < 10
    assert work_of(" OR ".join(["a = 1"] * 800), "x") > 100
    assert parse_selector("a LIKE '%x%' OR b LIKE '_%' OR NOT (c LIKE '%y_%')").looks == 2
