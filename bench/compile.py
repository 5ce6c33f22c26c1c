"""Compiles the generator's hot modules with mypyc into `build/bench/`: `python -m bench.compile`.

A failed compilation is not fatal: the same files run uncompiled, and results say which build ran.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from bench import COMPILED, HOT_MODULES, SOURCES, fingerprint

_SETUP = """\
from mypyc.build import mypycify
from setuptools import setup
setup(name="bench", packages=[], ext_modules=mypycify({modules!r}, opt_level="3"))
"""


def compile_hot(destination: Path = COMPILED) -> bool:
    """Compiles `HOT_MODULES` below `destination`; True when a usable build stands there."""
    stamp = destination / "stamp.json"
    wanted = {"fingerprint": fingerprint()}
    if stamp.exists() and json.loads(stamp.read_text(encoding="utf-8")) == wanted:
        return True
    shutil.rmtree(destination, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="bench-compile-") as scratch:
        package = Path(scratch) / "bench"
        package.mkdir()
        (package / "__init__.py").touch()
        for name in HOT_MODULES:
            shutil.copy(SOURCES / f"{name}.py", package / f"{name}.py")
        modules = [f"bench/{name}.py" for name in HOT_MODULES]
        setup = Path(scratch) / "setup.py"
        setup.write_text(_SETUP.format(modules=["--strict", *modules]), encoding="utf-8")
        library = Path(scratch) / "library"
        build = subprocess.run(
            [sys.executable, "setup.py", "-q", "build_ext", "--build-lib", str(library)],
            cwd=scratch,
            env={**os.environ, "PYTHONPATH": scratch},
            capture_output=True,
            text=True,
            check=False,
        )
        if build.returncode != 0:
            print(build.stdout[-2000:], build.stderr[-2000:], sep="\n", file=sys.stderr)
            print("the generator runs uncompiled: mypyc or the C compiler failed", file=sys.stderr)
            return False
        shutil.copytree(library, destination)
    stamp.write_text(json.dumps(wanted), encoding="utf-8")
    return True


if __name__ == "__main__":
    compile_hot()
