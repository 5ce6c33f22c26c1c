"""Overlays: merge patches, and the file that one stands in."""

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter.config.document_values import compact
from vpnrouter.config.load import Reading, load, read
from vpnrouter.config.overlay import difference, fill_nulls, merge, text_of
from vpnrouter.config.parse import Document, parse
from vpnrouter.config.problem import Position, Problem
from vpnrouter.config.router import RouterConfig
from vpnrouter.errors import ConfigError

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


@pytest.fixture
def laid(tmp_path: Path) -> Any:
    """`laid(base, overlay)`: the paths of a file and of the overlay in its data directory."""

    def run(base: str, overlay: str | None) -> tuple[Path, Path]:
        path, data = tmp_path / "c.yaml", tmp_path / "data"
        data.mkdir(exist_ok=True)
        path.write_text(f"router: {{name: here, data_dir: {data}}}\n{base}", encoding="utf-8")
        over = data / "overlay.yaml"
        if overlay is not None:
            over.write_text(overlay, encoding="utf-8")
        return path, over

    return run


def errors(reading: Reading) -> list[str]:
    """The errors of a reading."""
    return [str(one) for one in reading.problems if one.severity == "error"]


def test_it_is_read_with_the_file(laid: Any) -> None:
    """The configuration is that of both; both documents are told."""
    path, over = laid("msg_vpns: {blue: {max_subscription_count: 5}}\n", "msg_vpns: {green: }\n")
    reading = read(path)
    assert reading.overlay_file == str(over)
    assert reading.loaded is not None
    assert list(reading.loaded.config.msg_vpns) == ["blue"], "null removes what is not there"
    over.write_text("msg_vpns: {blue: {max_subscription_count: 6}, green: {}}\n")
    loaded = load(path)
    assert list(loaded.config.msg_vpns) == ["blue", "green"]
    assert loaded.config.msg_vpns["blue"].max_subscription_count == 6
    place = ("msg_vpns", "blue", "max_subscription_count")
    assert loaded.positions.value_at(place).file == str(over)
    assert loaded.base is not None
    assert loaded.base.value_of(place) == 5
    assert loaded.overlay is not None
    assert loaded.overlay.value_of(place) == 6


def test_it_can_be_left_out(laid: Any, tmp_path: Path) -> None:
    """`overlay=False` is the file alone, a path another overlay; none there is none."""
    path, over = laid("msg_vpns: {blue: {}}\n", "msg_vpns: {green: {}}\n")
    assert list(load(path, overlay=False).config.msg_vpns) == ["blue"]
    assert read(path, overlay=False).overlay_file is None
    other = tmp_path / "other.yaml"
    other.write_text("msg_vpns: {red: {}}\n")
    assert list(load(path, overlay=str(other)).config.msg_vpns) == ["blue", "red"]
    over.unlink()
    assert read(path).overlay_file is None
    assert load(path).overlay is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("msg_vpns: {blue: {zzz: 1}}\n", "1:19: unknown key zzz in msg_vpns.blue"),
        ("msg_vpns: [\n", "2:1: "),
        ("- a\n", "1:1: an overlay must be a mapping"),
        ("5\n", "1:1: an overlay must be a mapping"),
        ("router: {data_dir: x}\n", "1:20: router.data_dir: the overlay stands in that directory"),
        ("msg_vpns: {blue: {max_topic_levels: no}}\n", "1:37: msg_vpns.blue.max_topic_levels: "),
    ],
)
def test_a_broken_one(laid: Any, text: str, said: str) -> None:
    """It is refused at its own place, with a way out, and the way out leads out."""
    path, over = laid("msg_vpns: {blue: {}}\n", text)
    told = errors(read(path))
    assert any(one.startswith(f"{over}:{said}") for one in told), told
    assert any("--no-overlay" in one for one in told), told
    with pytest.raises(ConfigError, match="--no-overlay"):
        load(path)
    load(path, overlay=False)


def test_one_that_breaks_the_file(laid: Any) -> None:
    """Where the error stands in the file and only the overlay is to blame, the way out is told too."""
    bad = "msg_vpns: {blue: {client_profiles: {p: null}}}\n"
    base = "msg_vpns:\n  blue:\n    client_profiles: {p: {}}\n"
    base += "    client_usernames: {ann: {client_profile: p}}\n"
    path, over = laid(base, bad)
    told = errors(read(path))
    assert len(told) == 2
    assert any(one.startswith(f"{path}:5:") for one in told), told
    assert any(one.startswith(f"{over}:1:1: ") for one in told), told


def test_a_broken_file_is_not_blamed_on_it(laid: Any) -> None:
    """What the file itself has wrong has nothing to do with a good overlay."""
    path, over = laid("msg_vpns: {blue: {zzz: 1}}\n", "msg_vpns: {green: {}}\n")
    told = errors(read(path))
    assert len(told) == 1
    assert str(over) not in told[0]


def test_one_that_cannot_be_read(laid: Any) -> None:
    """A directory or a dangling link there is a problem, and not as if there were none."""
    path, over = laid("msg_vpns: {blue: {}}\n", None)
    over.symlink_to(over.parent / "nowhere")
    assert any("cannot read" in one for one in errors(read(path)))
    over.unlink()
    over.mkdir()
    told = errors(read(path))
    assert told[0].startswith(f"{over}:1:1: ")


@pytest.mark.parametrize("written", ["5", "null", "''", "[]"])
def test_a_data_dir_that_is_none(tmp_path: Path, written: str, monkeypatch: Any) -> None:
    """An unsound `data_dir` is the file's own problem; nothing is guessed of an overlay."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "c.yaml"
    path.write_text(f"router: {{name: here, data_dir: {written}}}\n")
    assert all(str(path) in one for one in errors(read(path)))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "overlay.yaml").write_text("msg_vpns: {green: {}}\n")
    path.write_text("router: {name: here}\n")
    assert list(load(path).config.msg_vpns) == ["green"]
