"""docs/limits.md says what vpnrouter/limits.py says."""

import ast
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MAKER = runpy.run_path(str(ROOT / "docs" / "make_limits.py"))


def test_page_is_up_to_date() -> None:
    """Each limit stands in docs/limits.md with its present value and reason."""
    written = (ROOT / "docs" / "limits.md").read_text(encoding="utf-8")
    assert written == MAKER["page"](), "regenerate it: python docs/make_limits.py"


def test_limit_without_a_reason_is_refused() -> None:
    """A constant that does not say why it has its value never reaches the page."""
    with pytest.raises(ValueError, match="HOPS has no string"):
        MAKER["limits"]('LEVELS: Final = 1\n"""Why."""\nHOPS: Final = 8\n')


def test_reason_over_several_lines_becomes_one() -> None:
    """A table cell is one line, however the source is wrapped."""
    source = 'HOPS: Final = 8\n"""First line,\nsecond line."""\n'
    assert MAKER["limits"](source) == [("HOPS", "First line, second line.")]


def test_every_limit_is_read() -> None:
    """Every bound of limits.py is used by some code."""
    read: set[str] = set()
    for path in (ROOT / "vpnrouter").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Attribute(value=ast.Name(id=module), attr=name) if module.endswith(
                    "limits"
                ):
                    read.add(name)
                case ast.ImportFrom(module=str(module), names=names) if module.endswith("limits"):
                    read.update(each.name for each in names)
                case ast.Name(id=name, ctx=ast.Load()) if path.name == "limits.py":
                    read.add(name)
    named = {name for name, _ in MAKER["limits"](MAKER["SOURCE"].read_text("utf-8"))}
    assert named - read == set()
