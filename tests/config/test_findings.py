from pathlib import Path

from vpnrouter.config.parse import parse
from vpnrouter.config.problem_list import ProblemList


def findings() -> ProblemList:
    """Findings over a small document from which one thing was dropped."""
    document = parse(b"a: {b: 1, c: 2}\nd: [x, y]", "f", [])
    assert document is not None
    return ProblemList(document.without([("a", "c"), ("d", 0)]), document)


def test_errors_and_warnings_stand_at_values_or_keys() -> None:
    """A finding is about a value or about its key, and says the path."""
    found = findings()
    found.error(("a", "b"), "one")
    found.key_error(("a", "b"), "two")
    found.warning(("a", "b"), "three")
    found.key_warning(("a", "b"), "four")
    assert [str(problem) for problem in found.problems] == [
        "f:1:8: a.b: one",
        "f:1:5: a.b: two",
        "f:1:8: warning: a.b: three",
        "f:1:5: warning: a.b: four",
    ]


def test_what_was_dropped_counts_as_written() -> None:
    """A dropped part is still known to be written, and its owner not to be whole."""
    found = findings()
    assert found.is_written(("a", "c"))
    assert not found.is_written(("a", "z"))
    assert not found.is_whole(("a",))


def test_indexes_are_those_of_the_file() -> None:
    """After an item was dropped, the next one keeps the number that it has in the file."""
    found = findings()
    found.error(("d", 0), "this")
    assert str(found.problems[0]) == "f:2:8: d[1]: this"


def test_readable(tmp_path: Path) -> None:
    """A file that cannot be read is told with the reason; none at all is fine."""
    found = findings()
    (tmp_path / "here").touch()
    found.readable(("a", "b"), None)
    found.readable(("a", "b"), str(tmp_path / "here"))
    assert found.problems == []
    found.readable(("a", "b"), str(tmp_path / "gone"))
    found.readable(("a", "b"), "a\0b")
    assert [problem.message.rpartition(": ")[2] for problem in found.problems] == [
        "No such file or directory",
        "not a path",
    ]
