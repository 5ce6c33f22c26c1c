"""docs/promises.md names tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_every_test_that_is_named_exists() -> None:
    """Each row names one at least, by path and, mostly, by name."""
    rows = [
        line
        for line in (ROOT / "docs" / "promises.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| ") and not line.startswith("| asked for")
    ]
    assert len(rows) > 20
    for row in rows:
        named = re.findall(r"`(tests/[^`:]+)(?:::(test_\w+))?`", row)
        assert named, row
        for path, name in named:
            text = (ROOT / path).read_text(encoding="utf-8")
            assert f"def {name or 'test_'}" in text, (path, name)
