"""vpnrouter.report.page.page: what a reader sees first."""

from typing import Any

import pytest

from vpnrouter.report.page.figures import Contents, Places
from vpnrouter.report.page.page import counsels, verdict
from vpnrouter.report.schema import ADVICE, FINDINGS


def found(*kinds: tuple[str, str]) -> Contents:
    """Contents with findings of (kind, severity)."""
    blank = dict.fromkeys(FINDINGS.names)
    rows = [blank | {"kind": kind, "severity": severity} for kind, severity in kinds]
    return Contents(nodes=[], edges=[], findings=rows)


@pytest.mark.parametrize(
    ("kinds", "tone", "text"),
    [
        ((), "good", "No errors, no warnings"),
        ((("covered", "info"),), "good", "No errors, no warnings"),
        ((("black_hole", "warning"),), "warning", "No errors, 1 warning"),
        ((("loop", "error"), ("loop", "error")), "error", "2 errors, 0 warnings"),
    ],
)
def test_the_worst_sets_the_tone(kinds: tuple[tuple[str, str], ...], tone: str, text: str) -> None:
    """One error is an error; notes alone are no trouble."""
    said = verdict(found(*kinds))
    assert (said.tone, said.text) == (tone, text)


def test_findings_are_counted_by_what_they_are_about() -> None:
    """Areas without findings are left out, the most frequent kind comes first."""
    said = verdict(
        found(
            ("loop", "error"),
            ("black_hole", "warning"),
            ("black_hole", "warning"),
            ("covered", "info"),
        )
    )
    assert [(one.name, one.errors, one.warnings, one.infos) for one in said.areas] == [
        ("trouble", 1, 2, 0),
        ("subscriptions", 0, 0, 1),
    ]
    assert said.areas[0].kinds == "black hole 2, loop 1"


def test_advice_keeps_its_rank_and_finds_its_place() -> None:
    """By rank whatever the order of the rows; control characters are spelt out."""
    blank: dict[str, Any] = dict.fromkeys(ADVICE.names)
    rows = [
        blank
        | {"rank": 2, "advice": "second\u202e", "action": "add_link", "router": "c", "vpn": "z"},
        blank | {"rank": 1, "advice": "first", "router": "a", "vpn": "x"},
    ]
    nodes = [{"router": "a", "vpn": "x"}]
    given = counsels(Contents(nodes=nodes, edges=[], advice=rows), Places(nodes, []))
    assert [one.advice for one in given] == ["first", r"second\u202e"]
    assert [one.rank for one in given] == [1, 2]
    assert [one.shape for one in given] == ["node-0", None]
    assert given[1].action == "add link"
