import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter import limits
from vpnrouter.config.parse import parse
from vpnrouter.config.problem import Problem

TAGS = "tags (! and !!) are not allowed; put the value in quotes"


def told(text: str | bytes) -> list[str]:
    """What is wrong with a text, as `LINE:COLUMN message`."""
    problems: list[Problem] = []
    raw = text.encode() if isinstance(text, str) else text
    document = parse(raw, "f", problems)
    assert (document is None) == bool(problems)
    return [f"{one.position.line}:{one.position.column} {one.message}" for one in problems]


def data(text: str) -> object:
    """The data of a text that is accepted."""
    problems: list[Problem] = []
    document = parse(text.encode(), "f", problems)
    assert document is not None, problems
    return document.data


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1\na: 2", ["2:1 key a stands twice"]),
        ("{a: 1, b: {c: 1, c: 2}}", ["1:18 key c stands twice"]),
        ("1: a", ["1:1 a key must be text; put it in quotes"]),
        ("on: a\n~: b", [f"{line}:1 a key must be text; put it in quotes" for line in (1, 2)]),
        ("? [a]\n: b", ["1:3 a key must be text; put it in quotes"]),
        ("a: !!str b", [f"1:4 {TAGS}"]),
        ("a: !x {}", [f"1:4 {TAGS}"]),
        ("!!python/object:os.system {}", [f"1:1 {TAGS}"]),
        ("a: *b", ["1:4 an alias (*) without its anchor (&); put text in quotes"]),
        ("a: &b [*b]", ["1:8 an alias (*) inside its own anchor (&)"]),
        ("a: 1\n---\nb: 2", ["2:1 a second document; one file holds one router"]),
        ("a: @b", ["1:4 not YAML: text must not begin with @ here; put it in quotes"]),
        ("a: %b", ["1:4 not YAML: text must not begin with % here; put it in quotes"]),
        ("a:\n\tb: 1", ["2:1 not YAML: a tab; indent with spaces"]),
        ("a: b: c", ["1:5 not YAML: mapping values are not allowed in this context"]),
        ("a: [1, 2", ["2:1 not YAML: did not find expected ',' or ']'"]),
        ("a: 0b_", ["1:4 not a number; put text in quotes"]),
        ("a: " + "9" * 5000, ["1:4 not a number; put text in quotes"]),
        ("a: {<<: 3}", ["1:9 a merge key (<<) takes a mapping or a list of mappings"]),
        (b"a: caf\xe9", ["1:7 byte 0xe9 is not UTF-8"]),
        (b"a: 1\nb: \x00", ["2:4 character U+0000 is not allowed in YAML"]),
        (b"a: 1\n# \x1b[31m", ["2:3 character U+001B is not allowed in YAML"]),
        ("a: 1".encode("utf-16"), ["1:1 byte 0xff is not UTF-8"]),
    ],
)  # fmt: skip
def test_refused(text: str | bytes, expected: list[str]) -> None:
    """What is not the YAML of a configuration is told with its place."""
    assert told(text) == expected


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "- " * 100_000, "a: {" * 100_000, "{" * 33, "? " * 50_000]
)
def test_deep_nesting(text: str) -> None:
    """Nesting ends in one clear error, however deep it goes on."""
    (only,) = told(text)
    assert "nested deeper than 32 levels" in only


def test_deep_nesting_by_aliases() -> None:
    """Aliases do not get deeper than what may be written out."""
    lines = ["a0: &a0 [1]"] + [f"a{i}: &a{i} [*a{i - 1}]" for i in range(1, 40)]
    assert told("\n".join(lines)) == ["31:6 nested deeper than 32 levels"]


def test_billion_laughs() -> None:
    """A few lines of aliases cannot stand for more values than a large file could."""
    lines = ["a0: &a0 [" + ",".join("1" * 10) + "]"]
    lines += [f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 10)]
    (only,) = told("\n".join(lines))
    assert "more than 1000000 values with all aliases written out" in only


def test_size() -> None:
    """A file may have as many bytes as the bound says, and not one more."""
    comment = b"#" + b" " * (limits.CONFIG_BYTES - 1)
    assert told(comment) == []
    assert told(comment + b" ") == ["1:1 larger than 8388608 bytes"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("# nothing\n", {}),
        ("---\na: 1\n...\n", {"a": 1}),
        ("\ufeffa: 1", {"a": 1}),
        ("a: 2020-01-01", {"a": "2020-01-01"}),
        ("a: ! 7", {"a": "7"}),
        ("a: '7'\nb: \"x\\ny\"\nc: |\n  z\n", {"a": "7", "b": "x\ny", "c": "z\n"}),
        ("x: &x {a: 1, b: 2}\ny: {<<: *x, b: 3}", {"x": {"a": 1, "b": 2}, "y": {"b": 3, "a": 1}}),
        ("x: &x {a: 1}\ny: {<<: [*x, {a: 2, c: 3}]}", {"x": {"a": 1}, "y": {"a": 1, "c": 3}}),
        ("x: &x [1]\ny: *x", {"x": [1], "y": [1]}),
        ("'<<': 1", {"<<": 1}),
        ("ключ: значение", {"ключ": "значение"}),
    ],
)
def test_accepted(text: str, expected: object) -> None:
    """Documents, comments, byte order mark, anchors, aliases and merge keys work."""
    assert data(text) == expected


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=5), PLAIN, max_size=4))
def test_reads_what_the_library_writes(value: dict[str, object]) -> None:
    """Whatever plain data PyYAML writes, it and this parser read alike."""
    text = yaml.safe_dump(value, allow_unicode=True)
    assert data(text) == yaml.safe_load(text)


@given(
    st.binary(max_size=60)
    | st.text(alphabet="ab:-[]{}&*!?|>'\"#%@,\n \t<0.", max_size=60).map(str.encode)
)
def test_any_bytes_are_a_document_or_problems(raw: bytes) -> None:
    """No input makes the parser fail in another way."""
    told(raw)


@pytest.mark.parametrize(
    "text",
    ["password: *hunter2", "password: !hunter2 x", "password: @hunter2", "password: 'hunter2",
     "password: [hunter2", "password: hunter2: x",
     "password: !hun!ter2 hunter2", "password: %hunter2",
     "%hunter2 x", 'password: "hunter2\\q"', "hunter2\npassword: x"],
)  # fmt: skip
def test_secrets_are_not_repeated(text: str) -> None:
    """No message repeats the text: a password may stand there."""
    assert told(text)
    assert "hunter2" not in " ".join(told(text))
