"""Which build of the package runs: compiled by mypyc, or the same files interpreted."""

import importlib.util
import platform
from importlib.machinery import EXTENSION_SUFFIXES
from typing import Final, Literal

from vpnrouter import __version__

BuildKind = Literal["compiled", "pure"]

_HOT_MODULE: Final = "vpnrouter.topics.trie"
"""Stands for all compiled modules: they are compiled as one group, so all are or none is."""


def build_kind() -> BuildKind:
    """Say whether the hot modules are extensions, by where Python finds one of them.

    The module itself is not imported: a version line must not cost its load.
    """
    spec = importlib.util.find_spec(_HOT_MODULE)
    origin = spec.origin if spec is not None else None
    if origin is not None and origin.endswith(tuple(EXTENSION_SUFFIXES)):
        return "compiled"
    return "pure"


def version_line() -> str:
    """One line for people: version, build, interpreter, platform.

    For example "vpnrouter 0.1.0 (compiled, CPython 3.11.7, Linux x86_64)".
    """
    interpreter = f"{platform.python_implementation()} {platform.python_version()}"
    machine = f"{platform.system()} {platform.machine()}"
    return f"vpnrouter {__version__} ({build_kind()}, {interpreter}, {machine})"
