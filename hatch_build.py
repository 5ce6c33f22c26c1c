"""Build hook: compiles the hot modules with mypyc, and goes on pure where that cannot be done.

- The compiler works on a copy of the package in a temporary directory. Extensions left beside the
  sources would shadow them, and later edits would silently have no effect.
- A compile step that fails for whatever reason (no compiler, no headers, an error of mypyc) costs
  the speed, not the installation: the same files are packed uncompiled, and a warning says so.

Which modules are hot is written in pyproject.toml; how they are compiled, in compile_modules.py.
VPNROUTER_PURE=1 switches the compile step off.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_PROGRESS = "vpnrouter: "
"""How lines begin that whoever waits for the build may see."""

_REASON_LINES = 25
"""Last lines of the compiler's output in the warning; a C compiler's first error is among them."""


class CompileHotModules(BuildHookInterface[Any]):
    """Adds compiled modules to a wheel, and its platform tag with them."""

    _scratch: Path | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, unless switched off, not asked for, or impossible."""
        if self.target_name != "wheel" or version == "editable" or not self.config.get("include"):
            return
        if os.environ.get("VPNROUTER_PURE", "0") not in {"", "0"}:
            self.app.display_info("VPNROUTER_PURE is set: the wheel is pure")
            return
        self._scratch = Path(tempfile.mkdtemp(prefix="vpnrouter-build-")).resolve()
        try:
            extensions = self._compile(self._scratch)
        except Exception as error:  # noqa: BLE001 - nothing here may stop an installation
            _warn(error)
            return
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["force_include"].update(extensions)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the copy, whose extensions are in the wheel by now."""
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def _compile(self, scratch: Path) -> dict[str, str]:
        """Compile a copy of the package; return the place in the wheel of each extension."""
        root = Path(self.root)
        modules = hot_modules(root, self.config["include"], self.config.get("exclude", []))
        tree = scratch / "tree"
        unwanted = shutil.ignore_patterns("__pycache__", "*.so", "*.pyd")
        shutil.copytree(root / "vpnrouter", tree / "vpnrouter", ignore=unwanted)
        _run([str(root / "compile_modules.py"), str(scratch / "work"), *modules], tree)
        made = [path for path in tree.rglob("*") if path.suffix in {".so", ".pyd"}]
        # One extension for each module, and the shared library that holds the group's code.
        if len(made) != len(modules) + 1:
            names = ", ".join(sorted(path.name for path in made))
            raise RuntimeError(f"{len(modules)} modules gave only: {names}")
        return {str(path): path.relative_to(tree).as_posix() for path in made}


def hot_modules(root: Path, include: list[str], exclude: list[str]) -> list[str]:
    """The files below `root` that patterns of `include` name and none of `exclude`, sorted, with slashes."""
    left_out = {path for pattern in exclude for path in root.glob(pattern)}
    found = {path for pattern in include for path in root.glob(pattern)} - left_out
    return sorted(path.relative_to(root).as_posix() for path in found)


def _run(arguments: list[str], folder: Path) -> None:
    """Run a Python program in `folder`, passing its progress on; RuntimeError with all it said if it fails."""
    said: list[str] = []
    with subprocess.Popen(
        [sys.executable, *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        for line in process.stdout or ():
            said.append(line)
            if line.startswith(_PROGRESS):
                print(line, end="", file=sys.stderr, flush=True)
    if process.returncode:
        raise RuntimeError("".join(said))


def _warn(error: Exception) -> None:
    lines = [line for line in str(error).splitlines() if line.strip()]
    reason = "\n".join(f"    {line}" for line in lines[-_REASON_LINES:])
    print(
        "vpnrouter: WARNING: the hot modules could not be compiled, so this build is PURE: it\n"
        "vpnrouter: does the same, several times slower. A compiled build needs a C compiler and\n"
        "vpnrouter: the headers of Python (Debian: build-essential python3-dev). What went wrong:\n"
        f"{reason or f'    {error!r}'}",
        file=sys.stderr,
    )
