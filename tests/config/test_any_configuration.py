"""Whatever stands in a file, reading it ends in a configuration or in problems with places."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter.config.load import read

CONFIGS = Path(__file__).resolve().parent.parent.parent / "configs"
WHOLE = [
    yaml.safe_load((CONFIGS / f"{name}.yaml").read_text(encoding="utf-8"))
    for name in ("core", "edge", "reference")
]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value in plain data, its top left out."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for step, inner in pairs:
        yield (*path, step)
        if isinstance(inner, (dict, list)):
            yield from places(inner, (*path, step))


PLACES = [(number, path) for number, whole in enumerate(WHOLE) for path in places(whole)]
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 0, -1, 1.5, 10**30, float("nan"), "", "x", "a//b", ">", "a/#", "v:", "[::1]:1",
     "h:0", "scrypt$", "default", "*", [], [[]], [None], [""], ["!a", "!a"], {}, {"": None},
     {"env": "NONE"}, {"file": "/"}, {"name": None}, {"enabled": {}}, {"a": {"b": ["c"]}}]
)  # fmt: skip


@given(
    st.lists(
        st.tuples(st.sampled_from(PLACES), st.none() | ODD, st.booleans()), min_size=1, max_size=4
    )
)
def test_damaged_configurations(
    tmp_path_factory: Any, damage: list[tuple[tuple[int, tuple[Any, ...]], Any, bool]]
) -> None:
    """Any part of a good file may be missing or be anything else: problems, never a traceback."""
    number = damage[0][0][0]
    data = copy.deepcopy(WHOLE[number])
    for (whole, path), value, removed in damage:
        owner = data
        try:
            for step in path[:-1]:
                owner = owner[step]
            if whole != number:
                continue
            if removed:
                del owner[path[-1]]
            else:
                owner[path[-1]] = value
        except (KeyError, IndexError, TypeError):
            continue
    file = tmp_path_factory.getbasetemp() / "damaged.yaml"
    text = yaml.safe_dump(data)
    file.write_text(text)
    reading = read(file, {})
    refused = any(found.severity == "error" for found in reading.problems)
    assert refused == (reading.loaded is None)
    lines = text.splitlines()
    for found in reading.problems:
        assert 1 <= found.position.line <= len(lines)
        assert 1 <= found.position.column <= len(lines[found.position.line - 1]) + 1
