"""Documents: YAML parsed, plain data copied, compared and masked."""

import copy
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter import limits
from vpnrouter.config.document_values import compact, copy_plain, digest_of, mask, same, unmask
from vpnrouter.config.load import read
from vpnrouter.config.model import Model
from vpnrouter.config.model_schema import keys_of, kind_of
from vpnrouter.config.parse import Document, parse
from vpnrouter.config.problem import Position, Problem
from vpnrouter.config.router import RouterConfig
from vpnrouter.config.secrets import Secret

COLON = "is no number with a colon in it: put text in quotes, write a number without colons"
TAGS = "tags (! and !!) are not allowed; put the value in quotes"

NO_KEY_HERE = (
    "a colon where no key can be: the line above lacks its own colon, this line is indented too far, or the text with"
    " the colon needs quotes"
)
NO_BRACKET = "a comma or the closing ] is missing in the text in brackets"


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
        ("a: b: c", [f"1:5 not YAML: {NO_KEY_HERE}"]),
        ("a: [1, 2", [f"2:1 not YAML: {NO_BRACKET} that begins in line 1, column 4"]),
        ("a: 0b_", ["1:4 a: not a number; put text in quotes"]),
        ("a: 12:30", [f"1:4 a: {COLON}"]),
        ("a: 1" + ":59" * 100_000, [f"1:4 a: {COLON}"]),
        ("a: " + "9" * 5000, ["1:4 a: not a number; put text in quotes"]),
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
    ("opening", "times"),
    [("[", 100_000), ("- ", 100_000), ("a: {", 100_000), ("{", 33), ("? ", 50_000)],
)
def test_deep_nesting(opening: str, times: int) -> None:
    """Nesting ends in one clear error, however deep it goes on."""
    (only,) = told(opening * times)
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
    assert f"more than {limits.CONFIG_VALUES} values with all aliases written out" in only


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


TEXT = b"""\
a:
  b: [10, {c: 20}]
  d: x
e: &e {f: 1}
g: *e
"""


def document() -> Document:
    """The document of TEXT."""
    parsed = parse(TEXT, "f", [])
    assert parsed is not None
    return parsed


def test_places() -> None:
    """Every key and every value knows where it stands."""
    doc = document()
    assert doc.key_at(("a", "b")) == Position("f", 2, 3)
    assert doc.value_at(("a", "b")) == Position("f", 2, 6)
    assert doc.value_at(("a", "b", 1)) == Position("f", 2, 11)
    assert doc.value_at(("a", "b", 1, "c")) == Position("f", 2, 15)
    assert doc.value_at(()) == Position("f", 1, 1)


def test_place_of_what_is_not_there() -> None:
    """A path that leads nowhere is told at its deepest part that exists."""
    doc = document()
    assert doc.value_at(("a", "x", "y")) == Position("f", 2, 3)
    assert doc.key_at(("a", "d", "y")) == Position("f", 3, 3)
    assert doc.key_at(("x",)) == Position("f", 1, 1)
    assert doc.value_at(("a", "b", 7)) == Position("f", 2, 6)


def test_place_inside_an_alias() -> None:
    """What an alias brings in stands where it was written, at the anchor."""
    assert document().value_at(("g", "f")) == Position("f", 4, 11)


PLAIN_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=10,
)


@given(PLAIN_VALUES, PLAIN_VALUES)
def test_same_and_digest_say_the_same(one: Any, other: Any) -> None:
    """Two values have one digest exactly if they are the same; a copy has it."""
    assert same(one, other) == (digest_of(one) == digest_of(other))
    assert same(one, copy_plain(one))
    assert same(one, copy.deepcopy(one))


def test_a_copy_shares_nothing() -> None:
    """Not even what was shared before."""
    inner = {"k": [1]}
    copied = copy_plain({"a": inner, "b": inner})
    copied["a"]["k"].append(2)
    assert copied["b"] == inner == {"k": [1]}


def test_order_is_no_difference() -> None:
    """Of keys; of items it is."""
    assert digest_of({"a": 1, "b": 2}) == digest_of({"b": 2, "a": 1})
    assert digest_of([1, 2]) != digest_of([2, 1])
    assert compact({"b": 1, "a": [True, None]}) == '{"a":[true,null],"b":1}'


@pytest.mark.parametrize("value", [object(), {"a": (1,)}, {"a": {1: 2}}, {"a": b"x"}, {"a": {1}}])
def test_what_no_configuration_holds(value: Any) -> None:
    """It is told and not carried along."""
    with pytest.raises(ValueError, match=r"holds no|must be text"):
        copy_plain(value)


def test_bounds(monkeypatch: Any) -> None:
    """Too deep and too large are refused, long before the interpreter is exhausted."""
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ValueError, match="nested deeper than 32 levels"):
        copy_plain(deep)
    monkeypatch.setattr(limits, "CONFIG_VALUES", 10)
    copy_plain([1] * 9)
    with pytest.raises(ValueError, match="more than 10 values"):
        copy_plain([1] * 10)
    with pytest.raises(ValueError, match="more than 10 values"):
        copy_plain({str(key): 1 for key in range(5)})


CONFIGS = Path(__file__).resolve().parent.parent.parent / "configs"


def holds_secret(annotation: object) -> bool:
    """Whether a secret stands anywhere in a type, the models that it names left out."""
    if isinstance(annotation, type) and issubclass(annotation, Secret):
        return True
    return any(holds_secret(inner) for inner in get_args(annotation))


def examples(model: type[Model], value: Any) -> Iterator[tuple[str, Any]]:
    """A document with a value of every secret of the models, by the key that holds it."""
    for key, field in keys_of(model).items():
        kind = kind_of(field.annotation)
        wrap = {"named": lambda x: {"n": x}, "list": lambda x: [x]}.get(kind.form, lambda x: x)
        if holds_secret(field.annotation):
            yield key, {key: wrap(value)}
        elif kind.model is not None:
            for inner, document in examples(kind.model, value):
                yield f"{key}.{inner}", {key: wrap(document)}


def test_every_secret_of_the_models() -> None:
    """Whatever key takes a secret is masked, and comes back from what stands."""
    found = list(examples(RouterConfig, "hidden-value"))
    keys = [key for key, _ in found]
    assert "management.users.password" in keys
    assert "trace.otlp.headers" in keys
    assert "listeners.tls.key_password" in keys
    assert "msg_vpns.bridges.remote_msg_vpns.client_cert.password" in keys
    assert len(keys) >= 8
    for key, document in found:
        shown = mask(document)
        assert "hidden-value" not in compact(shown), key
        assert '"***"' in compact(shown), key
        assert unmask(shown, document) == []
        assert shown == document


def test_of_many_objects_every_secret_is_masked() -> None:
    """None shows the secrets of the second user, bridge or remote either."""
    remotes = [{"name": "red", "location": each, "password": "hidden-value"} for each in "hi"]
    document = {
        "management": {"users": {each: {"password": "hidden-value"} for each in ("ann", "bob")}},
        "msg_vpns": {
            vpn: {"bridges": {each: {"remote_msg_vpns": remotes} for each in ("b", "c")}}
            for vpn in ("blue", "green")
        },
    }
    shown = compact(mask(document))
    assert "hidden-value" not in shown
    assert shown.count("***") == 2 + 8


def test_references_and_removals_stay() -> None:
    """They say where a secret is and not what it is; whatever else stands there is masked."""
    for value in ({"env": "NAME"}, {"file": "/run/secret"}, None):
        for _, document in examples(RouterConfig, value):
            assert mask(document) == document
    for value in (5, ["x"], {"env": "A", "file": "B"}, {"value": "x"}, {"env": ["x"]}):
        for key, document in examples(RouterConfig, value):
            assert "***" in compact(mask(document)), (key, value)


def test_the_document_itself_is_not_touched() -> None:
    """The mask is put on a copy."""
    document = {"management": {"users": {"ann": {"password": "x"}}}}
    before = copy.deepcopy(document)
    mask(document)
    assert document == before


def test_files_of_this_project() -> None:
    """What is masked and put back is what it was."""
    for name in ("core", "edge", "reference"):
        whole = yaml.safe_load((CONFIGS / f"{name}.yaml").read_text(encoding="utf-8"))
        shown = mask(whole)
        assert unmask(shown, whole) == []
        assert shown == whole


def remote(name: str, location: str, password: str) -> dict[str, str]:
    """A remote message VPN."""
    return {"name": name, "location": location, "password": password}


def bridge(*remotes: Any) -> Any:
    """A document with one bridge."""
    return {"msg_vpns": {"blue": {"bridges": {"x": {"remote_msg_vpns": list(remotes)}}}}}


def test_items_of_lists_are_found_by_what_they_are() -> None:
    """An item that moved keeps its secret, and none gets that of another one."""
    known = bridge(remote("red", "h:1", "one"), remote("red", "h:2", "two"))
    document = bridge(
        remote("red", "h:3", "***"),
        remote("red", "h:2", "***"),
        remote("red", "h:1", "***"),
        "no mapping",
    )
    (left,) = unmask(document, known)
    assert left == ("msg_vpns", "blue", "bridges", "x", "remote_msg_vpns", 0, "password")
    remotes = document["msg_vpns"]["blue"]["bridges"]["x"]["remote_msg_vpns"]
    assert [one["password"] for one in remotes[:3]] == ["***", "two", "one"]


def test_no_secret_goes_to_another_name() -> None:
    """A renamed user has no password yet."""
    users = {"management": {"users": {"bob": {"password": "***"}}}}
    assert unmask(users, {"management": {"users": {"ann": {"password": "x"}}}}) == [
        ("management", "users", "bob", "password")
    ]


def many(line: str, head: str = "router: {name: edge}\n") -> str:
    """A file with far more lines of a kind than problems are told; `%d` counts them."""
    return head + "".join(line.replace("%d", str(number)) for number in range(5_000))


VPNS = "router: {name: edge}\nmsg_vpns:\n"
QUEUES = VPNS + "  blue:\n    queues:\n"

MANY = {
    "keys that stand twice": many("same: x\n"),
    "keys that are no text": many("%d: x\n"),
    "unknown keys": many("key%d: x\n"),
    "unknown keys with anchors": many("key%d: &a%d x\n"),
    "long unknown keys": many("key%d" + "x" * 500 + ": x\n"),
    "unknown keys of objects": many("  v%d: {bogus: 1, other: 2}\n", VPNS),
    "wrong values": many("      q%d: {access_type: x}\n", QUEUES),
    "empty objects of a kind": many("  v%d: 1\n", VPNS),
    "names that lead nowhere": many(
        "      u%d: {password: x, client_profile: no}\n",
        VPNS + "  blue:\n    client_usernames:\n",
    ),
}
"""Files with more problems than anybody reads."""


@pytest.mark.parametrize("text", MANY.values(), ids=MANY)
def test_more_problems_than_anybody_reads(tmp_path: Path, text: str) -> None:
    """So many of them are told, all errors, and the last one says that there are more; it takes a moment."""
    file = tmp_path / "many.yaml"
    file.write_text(text, encoding="utf-8")
    began = time.process_time()
    reading = read(file, {})
    assert time.process_time() - began < 10
    assert reading.loaded is None
    assert limits.CONFIG_PROBLEMS <= len(reading.problems) <= limits.CONFIG_PROBLEMS + 2
    assert sum("more problems" in problem.message for problem in reading.problems) == 1
