"""Generates load and compares brokers.

Modules compiled by `python -m bench.compile` live in `build/bench/`, never beside their sources.
They are put first on this package's path only while they are exactly the sources that stand here.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

HOT_MODULES = ("layout", "publisher", "receiver", "window", "flood", "pace")
"""Modules that work per chunk or per message; `bench.compile` compiles them together."""

SOURCES = Path(__file__).resolve().parent
COMPILED = SOURCES.parent / "build" / "bench"


def fingerprint() -> str:
    """Digest of the hot sources and of the interpreter they are compiled for."""
    digest = hashlib.sha256(sys.version.encode())
    for name in HOT_MODULES:
        digest.update((SOURCES / f"{name}.py").read_bytes())
    return digest.hexdigest()


def _prefer_compiled() -> bool:
    try:
        stamp = json.loads((COMPILED / "stamp.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    if stamp.get("fingerprint") != fingerprint():
        return False
    __path__.insert(0, str(COMPILED / "bench"))
    sys.path.append(str(COMPILED))  # the shared library of a compiled group is a top-level module
    return True


IS_COMPILED = _prefer_compiled()
"""Whether the hot modules of this process are the compiled ones."""
