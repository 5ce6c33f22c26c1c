"""An overlay that lies over a configuration file: found, read, refused with a way out."""

from pathlib import Path
from typing import Any

import pytest

from vpnrouter.config.load import Reading, load, read
from vpnrouter.errors import ConfigError


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


@pytest.mark.parametrize("text", ["", "# nothing\n", "{}\n", "---\n"])
def test_an_empty_one(laid: Any, text: str) -> None:
    """It changes nothing."""
    path, over = laid("msg_vpns: {blue: {}}\n", text)
    reading = read(path)
    assert errors(reading) == []
    assert reading.overlay_file == str(over)


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
