"""Find what the compiled build would keep for ever: `python lint_compiled.py`, exit code 1 where there is any.

In an `__init__` mypyc writes an attribute without releasing what it held before, where it takes the attribute for
unset. It cannot see all that set it already, and what was there is then never freed. None of that happens in the pure
files. So a class in a compiled module keeps to these rules:

- `__init__` sets no attribute that belongs to a base: it gives the base's `__init__` what to set. (A base that is open
  to interpreted subclasses is not looked into at all; any base is taken to come first.)
- `__init__` is called for an object once: by `super().__init__` at one place that is not in a loop, and nowhere else.
- Below a base that is open to interpreted subclasses and has an `__init__`, each class has its own: built by
  interpreted code, one that inherits it is initialised twice.

The modules are those that pyproject.toml has compiled.
"""

import ast
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from hatch_build import hot_modules

OPEN: Final = "allow_interpreted_subclasses"
"""What mypyc calls a class of which interpreted code may have subclasses."""

INIT: Final = "__init__"


class Fault(NamedTuple):
    """One place that breaks a rule."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        """The fault as other checks of `make lint` write theirs."""
        return f"{self.path}:{self.line}: {self.text}"


class Known(NamedTuple):
    """One class of a compiled module; `owned` are the attributes that its own code declares or sets."""

    path: str
    node: ast.ClassDef
    bases: list[str]
    init: ast.FunctionDef | None
    owned: frozenset[str]
    is_open: bool


def faults(sources: Mapping[str, str]) -> list[Fault]:
    """What breaks the rules in modules, given as texts by their paths from the root, with slashes."""
    trees = {path: ast.parse(text, path) for path, text in sources.items()}
    classes: dict[str, Known] = {}
    for path, tree in trees.items():
        names = _names(path, tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                classes[f"{_module(path)}.{node.name}"] = _known(path, node, names)
    found = [fault for known in classes.values() for fault in _of_class(known, classes)]
    for path, tree in trees.items():
        found += _calls(path, tree)
    return sorted(found)


def _module(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".")


def _names(path: str, tree: ast.Module) -> dict[str, str]:
    """What names of a module stand for, where they are classes of it or imported from another."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                names[alias.asname or alias.name] = alias.name
        elif isinstance(node, ast.ClassDef):
            names[node.name] = f"{_module(path)}.{node.name}"
    return names


def _known(path: str, node: ast.ClassDef, names: Mapping[str, str]) -> Known:
    methods = [each for each in node.body if isinstance(each, ast.FunctionDef)]
    init = next((each for each in methods if each.name == INIT), None)
    owned = {target.attr for method in methods for target in _set_in(method)}
    for each in node.body:
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            owned.add(each.target.id)
        elif isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == "__slots__":
            texts = [part for part in ast.walk(each.value) if isinstance(part, ast.Constant)]
            owned |= {text.value for text in texts if isinstance(text.value, str)}
    return Known(
        path,
        node,
        [_base(base, names) for base in node.bases],
        init,
        frozenset(owned),
        any(OPEN in ast.unparse(decorator) for decorator in node.decorator_list),
    )


def _base(base: ast.expr, names: Mapping[str, str]) -> str:
    if isinstance(base, ast.Subscript):
        base = base.value
    first, _, rest = ast.unparse(base).partition(".")
    whole = names.get(first, first)
    return f"{whole}.{rest}" if rest else whole


def _set_in(method: ast.FunctionDef) -> Iterator[ast.Attribute]:
    """The places at which a method sets an attribute of its own object, whatever the statement."""
    arguments = method.args.posonlyargs + method.args.args
    if not arguments:
        return
    own = arguments[0].arg
    for node in ast.walk(method):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and isinstance(node.value, ast.Name)
            and node.value.id == own
        ):
            yield node


def _above(known: Known, classes: Mapping[str, Known]) -> list[Known]:
    """The compiled bases of a class and theirs, nearest first."""
    found: list[Known] = []
    left = list(known.bases)
    while left:
        base = classes.get(left.pop(0))
        if base is not None and base not in found:
            found.append(base)
            left += base.bases
    return found


def _of_class(known: Known, classes: Mapping[str, Known]) -> Iterator[Fault]:
    above = _above(known, classes)
    name = known.node.name
    if known.init is None:
        heir = next((base for base in above if base.init is not None), None)
        if heir is not None and heir.is_open and not known.is_open:
            text = f"{name} inherits __init__ of {heir.node.name}: give it its own"
            yield Fault(known.path, known.node.lineno, text)
        return
    for target in _set_in(known.init):
        owner = next((base for base in above if target.attr in base.owned), None)
        if owner is not None:
            text = (
                f"{name}.__init__ sets {target.attr}, which {owner.node.name} has:"
                " pass it to the __init__ of the base"
            )
            yield Fault(known.path, target.lineno, text)
    looped = {
        id(inner)
        for loop in ast.walk(known.init)
        if isinstance(loop, ast.For | ast.While)
        for inner in ast.walk(loop)
    }
    calls = [call for call in ast.walk(known.init) if _calls_base(call)]
    for count, call in enumerate(calls):
        if count or id(call) in looped:
            text = f"{name}.__init__ calls the __init__ of its base more than once"
            yield Fault(known.path, getattr(call, "lineno", 0), text)


def _calls_base(node: ast.AST) -> bool:
    """Whether this is `super().__init__(…)`."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == INIT
        and isinstance(node.func.value, ast.Call)
        and isinstance(node.func.value.func, ast.Name)
        and node.func.value.func.id == "super"
    )


def _calls(path: str, tree: ast.Module) -> Iterator[Fault]:
    """Calls of an `__init__` other than that of the base from one's own."""
    allowed = {
        id(call)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef) and function.name == INIT
        for call in ast.walk(function)
        if _calls_base(call)
    }
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == INIT
            and id(node) not in allowed
        ):
            yield Fault(
                path, node.lineno, "calls __init__ of an object that may have been through it"
            )


def compiled(root: Path) -> dict[str, str]:
    """The texts of the modules that are compiled, by their paths from the root."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    hook = project["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["custom"]
    modules = hot_modules(root, hook["include"], hook["exclude"])
    return {path: (root / path).read_text("utf-8") for path in modules}


def main() -> None:
    """Print the faults of the compiled modules."""
    found = faults(compiled(Path(__file__).resolve().parent))
    for fault in found:
        print(fault)
    if found:
        sys.exit(1)


if __name__ == "__main__":
    main()
