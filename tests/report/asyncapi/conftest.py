"""AsyncAPI's own parser, as `.ci/peers` installs it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
INSTALLED = HERE.parents[2] / ".peers" / "asyncapi"
PATIENCE_S = 300

Judged = dict[str, dict[str, Any]]
"""What the parser says of each file below a directory, by its path there."""


@pytest.fixture
def judged() -> Callable[[Path], Judged]:
    """Gives all files of a directory to the parser; without it the test skips."""
    if not (INSTALLED / "done").exists():
        pytest.skip(f"{INSTALLED / 'done'} is missing: run .ci/peers")

    def judge(folder: Path) -> Judged:
        done = subprocess.run(
            ["node", HERE / "peer" / "validate.js", folder],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=True,
            env={**os.environ, "ASYNCAPI": str(INSTALLED / "node_modules")},
        )
        # Lines as JSON has them: names of files may hold what else parts lines.
        told = [json.loads(line) for line in done.stdout.split("\n") if line]
        return {str(Path(one["file"]).relative_to(folder)): one for one in told}

    return judge
