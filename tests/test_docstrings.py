"""What docstrings name exists, and none says a sentence twice."""

from __future__ import annotations

import ast
import builtins
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("vpnrouter", "tests", "bench", "fuzz")
NAME = re.compile(r"`([A-Za-z_][\w.]*)`")
RAISED = re.compile(r"^ +(\w+): ", re.MULTILINE)
WORD = re.compile(r"\w+")
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def sources() -> Iterator[Path]:
    """All files of the project's own code."""
    for folder in FOLDERS:
        yield from sorted((ROOT / folder).rglob("*.py"))


@cache
def tree_of(path: Path) -> ast.Module:
    """A file as a tree, read once."""
    return ast.parse(path.read_text(encoding="utf-8"))


def docstrings(tree: ast.Module) -> Iterator[str]:
    """The docstrings of a module: of it, its classes and functions, and the texts under attributes."""
    for node in ast.walk(tree):
        if isinstance(node, Documented):
            for each in node.body:
                match each:
                    case ast.Expr(value=ast.Constant(value=str(text))):
                        yield text


def words_of(tree: ast.Module) -> set[str]:
    """All names in the code of a module, and the words of its texts that are no docstring."""
    texts = set(docstrings(tree))
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                found.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.add(name)
            case ast.ClassDef(name=name) | ast.keyword(arg=str(name)):
                found.add(name)
            case ast.alias(name=name, asname=other):
                found |= {*name.split("."), other or name}
            case ast.Constant(value=str(text)) if text not in texts:
                found.update(WORD.findall(text))
            case ast.Constant(value=bytes(text)):
                found.update(WORD.findall(text.decode(errors="replace")))
    return found


@pytest.fixture(scope="module")
def known() -> set[str]:
    """Each name that the project has: in code and texts, of files, in configurations and pages."""
    found = {name for path in sources() for name in words_of(tree_of(path))} | set(dir(builtins))
    for path in sources():
        found |= {part.removesuffix(".py") for part in path.relative_to(ROOT).parts}
    for pattern in ("*.toml", "Makefile", "configs/*", "docs/*.md", "README.md"):
        for path in ROOT.glob(pattern):
            found.update(WORD.findall(path.read_text(encoding="utf-8")))
    return found


def test_names_exist(known: set[str]) -> None:
    """Each part of what stands in backticks, so of a class and its method both."""
    gone = [
        f"{path.relative_to(ROOT)}: `{name}`"
        for path in sources()
        for text in docstrings(tree_of(path))
        for name in NAME.findall(text)
        if not set(name.strip(".").split(".")) <= known
    ]
    assert gone == []


def test_what_is_raised_exists(known: set[str]) -> None:
    """Each exception under `Raises:`."""
    gone = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in sources()
        for text in docstrings(tree_of(path))
        if "Raises:" in text
        for name in RAISED.findall(text.split("Raises:")[1])
        if name not in known
    ]
    assert gone == []


def members() -> dict[str, set[str]]:
    """What the classes of the package have by themselves, by their names."""
    found: dict[str, set[str]] = {}
    for path in sorted((ROOT / "vpnrouter").rglob("*.py")):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ClassDef):
                named = found.setdefault(node.name, set())
                for each in ast.walk(node):
                    match each:
                        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                            named.add(name)
                        case ast.AnnAssign(target=ast.Name(id=name)) | ast.Name(id=name):
                            named.add(name)
                        case ast.Attribute(value=ast.Name(id="self"), attr=name):
                            named.add(name)
                named |= {
                    f"<{ast.unparse(base).split('[')[0].split('.')[-1]}" for base in node.bases
                }
    return found


def has(of: str, name: str, found: dict[str, set[str]]) -> bool:
    """Whether a class, or one that it derives from, has a member; of classes from outside nobody knows."""
    if of not in found:
        return True
    return name in found[of] or any(
        has(base[1:], name, found) for base in found[of] if base.startswith("<") and base[1:] != of
    )


def test_members_exist() -> None:
    """Of a name with a dot the class has the member, or one that it derives from."""
    found = members()
    gone = [
        f"{path.relative_to(ROOT)}: `{name}`"
        for path in sources()
        for text in docstrings(tree_of(path))
        for name in NAME.findall(text)
        if (parts := name.split("."))[0] in found and len(parts) > 1
        if not has(parts[0], parts[1], found)
    ]
    assert gone == []


def test_no_sentence_stands_twice() -> None:
    """Two docstrings that were put together say something twice."""
    glued = []
    for path in sources():
        for text in docstrings(tree_of(path)):
            plain = " ".join(text.split())
            sentences = Counter(
                one for one in re.split(r"(?<=[.:;]) ", plain) if len(one.split()) > 4
            )
            glued += [
                f"{path.relative_to(ROOT)}: {one}" for one, many in sentences.items() if many > 1
            ]
    assert glued == []
