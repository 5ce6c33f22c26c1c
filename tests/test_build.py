"""The build is what was asked for, and a failed compile step never fails an installation."""

import importlib.util
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

import vpnrouter
from vpnrouter.build_info import build_kind, version_line

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
WHEEL = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
HOOK = WHEEL["hooks"]["custom"]
EXPECTED = os.environ.get("VPNROUTER_EXPECT_BUILD")


def _hook_module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


LISTED = _hook_module().hot_modules(ROOT, HOOK["include"], HOOK["exclude"])


def wheel_of(folder: Path, **environment: str) -> tuple[Path, str]:
    """Build a wheel from a copy of the tree below `folder`; return it and what stderr said."""
    copy = folder / "tree"
    unwanted = shutil.ignore_patterns("__pycache__", "*.so")
    shutil.copytree(ROOT / "vpnrouter", copy / "vpnrouter", ignore=unwanted)
    for name in ("pyproject.toml", "hatch_build.py", "compile_modules.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    inherited = {name: value for name, value in os.environ.items() if name != "VPNROUTER_PURE"}
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "wheel")],
        cwd=copy,
        env=inherited | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    left = [path.name for path in copy.rglob("*") if path.suffix in {".so", ".bak"}]
    assert left == [], "the build left files in the tree"
    (wheel,) = (folder / "wheel").glob("*.whl")
    return wheel, done.stderr


def extensions_in(wheel: Path) -> list[str]:
    """Names of the extension modules that a wheel holds."""
    return [name for name in zipfile.ZipFile(wheel).namelist() if name.endswith((".so", ".pyd"))]


def test_build_is_the_expected_one() -> None:
    """A run that says which build it tests imports that build, from the place that build has."""
    in_checkout = Path(vpnrouter.__file__).is_relative_to(ROOT / "vpnrouter")
    assert build_kind() == (EXPECTED or build_kind())
    assert in_checkout == (build_kind() == "pure")


def test_every_listed_module_is_of_the_build() -> None:
    """Each module of the compiled list is loaded from an extension, or none is."""
    modules = [name.removesuffix(".py").replace("/", ".") for name in LISTED]
    program = (
        "import importlib, sys\n"
        "for name in sys.argv[1:]: print(importlib.import_module(name).__file__)"
    )
    found = subprocess.run(
        [sys.executable, "-c", program, *modules], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert len(found) == len(modules)
    assert {path.endswith(".py") for path in found} == {build_kind() == "pure"}


def test_each_module_can_be_the_first_one() -> None:
    """No compiled module needs another to have been imported before it."""
    program = (
        "import importlib, os, sys\n"
        "import vpnrouter, asyncio, ctypes, dataclasses, enum, json, logging, socket, ssl, struct, typing\n"
        "for name in sys.argv[1:]:\n"
        "    if not (child := os.fork()):\n"
        "        importlib.import_module(name)\n"
        "        os._exit(0)\n"
        "    if os.waitpid(child, 0)[1]: print(name)"
    )
    modules = [name.removesuffix(".py").replace("/", ".") for name in LISTED]
    command = [sys.executable, "-c", program, *modules]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == ""


@pytest.mark.parametrize("pattern", HOOK["include"] + HOOK["exclude"])
def test_each_pattern_names_files(pattern: str) -> None:
    """Whatever is compiled, or left out of it, is there."""
    assert list(ROOT.glob(pattern))


def test_version_line_says_the_build() -> None:
    """`vpnrouter --version` tells version, build and interpreter."""
    line = version_line()
    assert line.startswith(f"vpnrouter {vpnrouter.__version__} ({build_kind()}, ")
    assert f" {sys.version_info[0]}.{sys.version_info[1]}." in line


def test_pure_build_on_request(tmp_path: Path) -> None:
    """VPNROUTER_PURE=1 gives a wheel for every platform, without a warning."""
    wheel, said = wheel_of(tmp_path, VPNROUTER_PURE="1")
    assert wheel.name.endswith("-py3-none-any.whl")
    assert extensions_in(wheel) == []
    assert "WARNING" not in said


@pytest.mark.slow
def test_compiler_that_fails_gives_a_pure_wheel(tmp_path: Path) -> None:
    """Without a working C compiler the wheel is pure, stderr says so and why, and the exit is 0."""
    wheel, said = wheel_of(tmp_path, CC="/bin/false")
    assert wheel.name.endswith("-py3-none-any.whl")
    assert extensions_in(wheel) == []
    assert "WARNING: the hot modules could not be compiled" in said
    assert "/bin/false" in said


@pytest.mark.slow
def test_mypyc_that_is_missing_gives_a_pure_wheel(tmp_path: Path) -> None:
    """Without a usable mypyc the wheel is pure as well, with the reason."""
    shadow = tmp_path / "shadow" / "mypyc"
    shadow.mkdir(parents=True)
    (shadow / "__init__.py").write_text("raise ImportError('no mypyc here')\n")
    wheel, said = wheel_of(tmp_path, PYTHONPATH=str(shadow.parent))
    assert extensions_in(wheel) == []
    assert "no mypyc here" in said


@pytest.mark.slow
def test_one_changed_function_compiles_one_file(tmp_path: Path) -> None:
    """With a cache of objects a build after a change of one function compiles that function's module alone."""
    tree = tmp_path / "tree"
    package = tree / "pair"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "first.py").write_text("def one(x: int) -> int:\n    return x + 1\n")
    (package / "second.py").write_text("def two(x: int) -> int:\n    return x + 2\n")

    def built(work: str) -> str:
        files = ["pair/first.py", "pair/second.py"]
        done = subprocess.run(
            [sys.executable, str(ROOT / "compile_modules.py"), str(tmp_path / work), *files],
            cwd=tree,
            env=os.environ | {"VPNROUTER_OBJECT_CACHE": str(tmp_path / "objects")},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stderr.splitlines()[-1]

    first = built("a")
    assert "; 0 objects" not in first
    (package / "second.py").write_text("def two(x: int) -> int:\n    return x * 2\n")
    assert "; 1 objects were not in the cache" in built("b")
    assert "; 0 objects were not in the cache" in built("c")
