"""The build is what was asked for, and a failed compile step never fails an installation."""

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import vpnrouter
from vpnrouter.build_info import build_kind, version_line

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
WHEEL = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
LISTED = WHEEL["hooks"]["custom"]["include"]
EXPECTED = os.environ.get("VPNROUTER_EXPECT_BUILD")


def wheel_of(folder: Path, **environment: str) -> tuple[Path, str]:
    """Build a wheel from a copy of the tree below `folder`; return it and what stderr said."""
    copy = folder / "tree"
    unwanted = shutil.ignore_patterns("__pycache__", "*.so")
    shutil.copytree(ROOT / "vpnrouter", copy / "vpnrouter", ignore=unwanted)
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
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


@pytest.mark.parametrize("name", LISTED)
def test_listed_file_exists(name: str) -> None:
    """The list of compiled modules names files that are there."""
    assert (ROOT / name).is_file()


def test_list_has_no_name_twice_and_is_sorted() -> None:
    """The list of compiled modules is easy to compare with the tree."""
    assert sorted(set(LISTED)) == LISTED


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
