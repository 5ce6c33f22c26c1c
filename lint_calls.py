"""Find calls with many arguments by position: `python lint_calls.py`, exit code 1 where there is any.

Nobody can tell by its place what the ninth of them means. A starred argument counts as one.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

MOST: Final = 8
"""Arguments that a call may give by position."""

FOLDERS: Final = ("vpnrouter", "bench", "fuzz", "tests")
"""What is looked through."""


def faults(path: str, text: str) -> Iterator[str]:
    """The calls in a module that give more than MOST arguments by position, as other checks write theirs."""
    for node in ast.walk(ast.parse(text, path)):
        if isinstance(node, ast.Call) and len(node.args) > MOST:
            called = ast.unparse(node.func).rpartition(".")[2]
            yield (
                f"{path}:{node.lineno}: {called} gets {len(node.args)} arguments by position:"
                " name some of them, or pass a list"
            )


def checked(root: Path) -> dict[str, str]:
    """The texts of the modules that are looked at, by their paths from the root, with slashes."""
    files = (path for folder in FOLDERS for path in (root / folder).rglob("*.py"))
    texts = {path.relative_to(root).as_posix(): path.read_text("utf-8") for path in files}
    return dict(sorted(texts.items()))


def main() -> None:
    """Print the faults of the modules."""
    sources = checked(Path(__file__).resolve().parent)
    found = [fault for path, text in sources.items() for fault in faults(path, text)]
    for fault in found:
        print(fault)
    if found:
        sys.exit(1)


if __name__ == "__main__":
    main()
