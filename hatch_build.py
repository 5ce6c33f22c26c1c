"""Build hook: compiles the hot modules with mypyc, and goes on pure where that cannot be done.

It wraps the hook of hatch-mypyc, which compiles in place, in two ways:

- The compiler works on a copy of the package in a temporary directory. Extensions left beside the
  sources would shadow them, and later edits would silently have no effect.
- A compile step that fails for whatever reason (no compiler, no headers, an error of mypyc) costs
  the speed, not the installation: the same files are packed uncompiled, and a warning says so.

The list of modules and the options of mypyc stand in pyproject.toml. VPNROUTER_PURE=1 switches the
compile step off.
"""

import contextlib
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

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
            extensions = self._compile(self._scratch, version)
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

    def _compile(self, scratch: Path, version: str) -> dict[str, str]:
        """Compile a copy of the package; return the place in the wheel of each extension."""
        from hatch_mypyc.plugin import MypycBuildHook

        root = Path(self.root)
        shutil.copy(root / "pyproject.toml", scratch)
        unwanted = shutil.ignore_patterns("__pycache__", "*.so", "*.pyd")
        shutil.copytree(root / "vpnrouter", scratch / "vpnrouter", ignore=unwanted)
        inner = MypycBuildHook(
            str(scratch),
            self.config,
            self.build_config,
            self.metadata,
            self.directory,
            self.target_name,
            self.app,
        )
        discarded: dict[str, Any] = {"artifacts": [], "force_include": {}}
        with contextlib.chdir(scratch):
            inner.initialize(version, discarded)
        made = [path for path in scratch.rglob("*") if path.suffix in {".so", ".pyd"}]
        # One extension for each module, and the shared library that holds the group's code.
        if len(made) != len(inner.included_files) + 1:
            names = ", ".join(sorted(path.name for path in made))
            raise RuntimeError(f"{len(inner.included_files)} modules gave only: {names}")
        return {str(path): path.relative_to(scratch).as_posix() for path in made}


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
