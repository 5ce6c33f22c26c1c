import re
from pathlib import Path

from vpnrouter.trace import span as names
from vpnrouter.trace.span import Span

PAGE = (Path(__file__).parents[2] / "docs" / "opentelemetry.md").read_text(encoding="utf-8")


def test_the_page_lists_every_attribute() -> None:
    """docs/opentelemetry.md has each attribute name once, and no other."""
    section = PAGE.split("\n## Attributes\n", 1)[1].split("\n## ")[0]
    listed = re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)
    known = [value for value in vars(names).values() if str(value).startswith("messaging.")]
    assert sorted(listed) == sorted(known)


def test_spans_share_no_list() -> None:
    """Each span has events of its own."""
    first, second = (Span("n", names.INTERNAL, "v", 1, 1, 0, 1, 1, {}) for _ in range(2))
    first.events.append(names.SpanEvent("e", 1, {}))
    assert second.events == []
