"""Merge patches: made, written, read and merged; nulls; places in two files."""

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter.config.document_values import compact
from vpnrouter.config.overlay import difference, fill_nulls, merge, text_of
from vpnrouter.config.parse import Document, parse
from vpnrouter.config.problem import Position, Problem
from vpnrouter.config.router import RouterConfig

CONFIGS = Path(__file__).resolve().parent.parent.parent / "configs"

NAMES = st.sampled_from(["a", "b", "c", "<<", "=", "yes", "1", "2024-01-01", "", "a: b", "é\u2028"])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 10**20)
    | st.floats()
    | st.sampled_from(["", "1", "1.0", "1e16", "null", "~", "true", "<<", "=", "*a", "2024-01-01"])
    | st.text(max_size=6)
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)
MAPPINGS = st.dictionaries(NAMES, VALUES, max_size=5)


def parsed(text: bytes, file: str) -> Document:
    """A document that is right."""
    problems: list[Problem] = []
    document = parse(text, file, problems)
    assert document is not None, problems
    return document


def written(data: Any, file: str = "base.yaml") -> Document:
    """Plain data as a file."""
    return parsed(text_of(data), file)


def merged(base: Any, patch: Any) -> Any:
    """Plain data with a patch over it, both by way of a file."""
    return merge(written(base), written(patch, "overlay.yaml")).data


def without_nulls(value: Any) -> Any:
    """Plain data as a patch can write it: no null in a mapping; those in lists are values."""
    if isinstance(value, dict):
        return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}
    return value


@given(MAPPINGS, MAPPINGS)
def test_what_is_different_merged_again(base: Any, other: Any) -> None:
    """For any pair the difference over the base is what was wanted, type for type."""
    wanted = without_nulls(other)
    before = compact(base)
    patch = difference(base, wanted)
    assert compact(merged(base, patch)) == compact(wanted)
    assert compact(base) == before
    assert difference(base, base) == {}


@given(MAPPINGS, st.data())
def test_nulls_of_the_base_stay(base: Any, data: st.DataObject) -> None:
    """What a person wrote as `green:` stays so through any change that does not touch it."""
    changed = copy.deepcopy(base)
    name = data.draw(NAMES)
    changed[name] = without_nulls(data.draw(VALUES.filter(lambda value: value is not None)))
    assert compact(merged(base, difference(base, changed))) == compact(changed)


@given(MAPPINGS, MAPPINGS, MAPPINGS)
def test_one_change_after_another(base: Any, first: Any, second: Any) -> None:
    """Each overlay is made against the file, so nothing of an earlier one is left over."""
    over = merged(base, difference(base, without_nulls(first)))
    assert compact(over) == compact(without_nulls(first))
    wanted = without_nulls(second)
    assert compact(merged(base, difference(base, wanted))) == compact(wanted)


@pytest.mark.parametrize(
    ("base", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {}),
        ({"a": 1}, {"a": {"bb": {"ccc": None}}}, {"a": 1}),
        ({"a": 1}, {"a": {"bb": {"ccc": None}, "d": {}}}, {"a": {"d": {}}}),
        ({}, {"a": {}}, {"a": {}}),
        ({"a": None}, {"a": {}}, {"a": {}}),
        ({"a": {"b": 1}}, {"a": {"b": None}}, {"a": {}}),
    ],
)
def test_the_cases_of_the_rfc(base: Any, patch: Any, result: Any) -> None:
    """RFC 7396, appendix A, for mappings; and what removes from nothing makes nothing."""
    assert merged(base, patch) == result


@pytest.mark.parametrize("wanted", [{"a": None}, {"a": {"b": None}}, {"n": {"b": {"c": None}}}])
def test_a_null_that_no_patch_can_write(wanted: Any) -> None:
    """It is refused and not taken for a removal; in a list it is a value."""
    with pytest.raises(ValueError, match="null"):
        difference({"a": 1}, wanted)
    assert difference({"a": 1}, {"a": [None, {"b": None}]}) == {"a": [None, {"b": None}]}
    assert difference({"a": None}, {"a": None, "b": 1}) == {"b": 1}


def test_types_are_told_apart() -> None:
    """A strict model takes 1 and not true, and 1.0 for neither."""
    assert difference({"a": 1}, {"a": True}) == {"a": True}
    assert difference({"a": 1}, {"a": 1.0}) == {"a": 1.0}
    assert difference({"a": float("nan")}, {"a": float("nan")}) == {}


def test_places() -> None:
    """Each part knows its file: what the overlay says stands there, what it leaves alone below."""
    base = parsed(b"router: {name: r}\nmsg_vpns:\n  blue:\n    max_ttl: 1\n    x: [a]\n", "b.yaml")
    over = parsed(b"# head\nmsg_vpns:\n  blue: {max_ttl: 2, q: {}}\n  green: {}\n", "o.yaml")
    document = merge(base, over)
    at = document.value_at
    assert at(("router", "name")) == Position("b.yaml", 1, 16)
    assert at(("msg_vpns", "blue")) == Position("b.yaml", 4, 5)
    assert document.key_at(("msg_vpns", "blue")) == Position("b.yaml", 3, 3)
    assert at(("msg_vpns", "blue", "x", 0)) == Position("b.yaml", 5, 9)
    assert at(("msg_vpns", "blue", "max_ttl")) == Position("o.yaml", 3, 19)
    assert document.key_at(("msg_vpns", "blue", "q")) == Position("o.yaml", 3, 22)
    assert document.key_at(("msg_vpns", "green")) == Position("o.yaml", 4, 3)
    assert at(("msg_vpns", "blue", "no", "where")) == Position("b.yaml", 4, 5)
    assert document.without([("router",)]).value_at(("msg_vpns", "green")).file == "o.yaml"
    assert dict(document.places())[("msg_vpns", "blue", "max_ttl")] == Position("o.yaml", 3, 10)
    assert base.data["msg_vpns"] == {"blue": {"max_ttl": 1, "x": ["a"]}}, "the file is as it was"


def test_what_an_alias_shares_is_changed_in_one_place() -> None:
    """A patch of one place of an anchored mapping leaves the other alone."""
    base = parsed(b"a: &x {k: 1}\nb: *x\n", "b.yaml")
    document = merge(base, written({"b": {"k": 2}}, "o.yaml"))
    assert document.data == {"a": {"k": 1}, "b": {"k": 2}}


def test_the_text_is_for_people() -> None:
    """Block style, a head that says where it comes from, no anchors."""
    shared = {"k": 1}
    text = text_of({"a": shared, "b": shared}).decode()
    assert text.startswith("# Written by the router")
    assert text.endswith("a:\n  k: 1\nb:\n  k: 1\n")


def test_text_that_no_file_can_hold() -> None:
    """Half of a surrogate pair either is refused while writing or read back as a problem."""
    try:
        text = text_of({"a": "\ud800"})
    except ValueError:
        return
    problems: list[Problem] = []
    assert parse(text, "o.yaml", problems) is None
    assert problems


def test_nulls_of_a_new_document() -> None:
    """They become what the models take them for; where nothing may stand they are told."""
    wanted: dict[str, Any] = {
        "router": {"name": "r", "data_dir": None},
        "listeners": None,
        "guaranteed_msging": None,
        "trace": None,
        "no_such": None,
        "msg_vpns": {
            "blue": None,
            "old": None,
            "green": {
                "queues": {"q": None, "p": {"subscriptions": None, "owner": None}},
                "max_ttl": None,
                "client_usernames": None,
            },
        },
    }
    left = fill_nulls(wanted, {"msg_vpns": {"old": None}}, RouterConfig)
    assert sorted(left) == [
        ("msg_vpns", "green", "max_ttl"),
        ("no_such",),
        ("router", "data_dir"),
    ]
    assert wanted["listeners"] == []
    assert wanted["guaranteed_msging"] == {}
    assert "trace" not in wanted
    blue, green = wanted["msg_vpns"]["blue"], wanted["msg_vpns"]["green"]
    assert blue == {}
    assert wanted["msg_vpns"]["old"] is None
    assert green["queues"] == {"q": {}, "p": {"subscriptions": []}} or (
        green["queues"]["p"]["owner"] == ""
    )
    assert green["client_usernames"] == {}


def test_the_files_of_this_project() -> None:
    """Between any two of them there is a patch."""
    names = ("core", "edge", "reference")
    whole = [
        yaml.safe_load((CONFIGS / f"{name}.yaml").read_text(encoding="utf-8")) for name in names
    ]
    for base in whole:
        for other in whole:
            wanted = copy.deepcopy(other)
            assert fill_nulls(wanted, base, RouterConfig) == []
            assert merged(base, difference(base, wanted)) == wanted
