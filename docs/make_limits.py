"""Writes docs/limits.md from vpnrouter/limits.py: `python docs/make_limits.py`.

A name, its value, and the string under it become a row of the table. The source is read, not
imported, so that the page is made from the file beside it and from no installed package.
"""

import ast
import runpy
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).resolve().parent.parent
SOURCE: Final = _ROOT / "vpnrouter" / "limits.py"
PAGE: Final = _ROOT / "docs" / "limits.md"

_HEAD: Final = """\
# Limits

This page lists all bounds of the router, with the reason for each value and the effect beyond it.
`python docs/make_limits.py` generates it from `vpnrouter/limits.py`.

| name | value | reason, and effect beyond it |
|---|---|---|
"""


def limits(source: str) -> list[tuple[str, str]]:
    """Name and explanation of each constant, in the order of the file.

    Raises ValueError for a constant without a string under it.
    """
    statements = ast.parse(source).body
    found = []
    for statement, following in zip(statements, [*statements[1:], None], strict=True):
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name)) if name.isupper():
                pass
            case _:
                continue
        match following:
            case ast.Expr(value=ast.Constant(value=str(text))):
                found.append((name, " ".join(text.split())))
            case _:
                raise ValueError(f"{name} has no string under it that says why it has this value")
    return found


def page() -> str:
    """The text of docs/limits.md as it should be."""
    values = runpy.run_path(str(SOURCE))
    rows = [
        f"| `{name}` | {_shown(values[name])} | {_cell(text)} |\n"
        for name, text in limits(SOURCE.read_text(encoding="utf-8"))
    ]
    return _HEAD + "".join(rows)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _shown(value: object) -> str:
    match value:
        case bool():
            return str(value)
        case int() | float():
            return f"{value:,}"
        case _:
            return f"`{value}`"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
