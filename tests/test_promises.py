"""The tests that docs/promises.md and docs/security.md name exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize(("page", "least"), [("promises.md", 20), ("security.md", 10)])
def test_every_test_that_is_named_exists(page: str, least: int) -> None:
    """Each row names one at least, by path and, mostly, by name."""
    lines = (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines()
    if page == "security.md":
        lines = lines[lines.index("| promise | proved by |") + 1 :]
    rows = [line for line in lines if line.startswith("| ") and not line.startswith("| promise ")]
    assert len(rows) > least
    for row in rows:
        named = re.findall(r"`(tests/[^`:]+)(?:::(test_\w+))?`", row)
        assert named, row
        for path, name in named:
            text = (ROOT / path).read_text(encoding="utf-8")
            assert f"def {name or 'test_'}" in text, (path, name)
