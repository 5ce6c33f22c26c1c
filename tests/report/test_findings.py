"""vpnrouter.report.schema: one shape for all that is found."""

from dataclasses import fields

from vpnrouter.report.schema import (
    ERROR,
    FINDINGS,
    INFO,
    WARNING,
    Finding,
    rows_of,
    worst_first,
)


def test_a_finding_is_a_row_of_the_table() -> None:
    """The same names in the same order; what is not given is null."""
    assert [field.name for field in fields(Finding)] == FINDINGS.names
    (row,) = rows_of([Finding(kind="loop", severity=ERROR, router="a", detail="Round.")])
    assert list(row) == FINDINGS.names
    assert {name: value for name, value in row.items() if value is not None} == {
        "kind": "loop",
        "severity": "error",
        "router": "a",
        "detail": "Round.",
    }


def test_the_worst_comes_first() -> None:
    """By severity, kind, messages, then place and topic, whatever the order they come in."""
    ordered = [
        Finding(kind="stalled_bridge", severity=ERROR),
        Finding(kind="black_hole", severity=WARNING, messages=9, router="z"),
        Finding(kind="black_hole", severity=WARNING, messages=2, router="a", topic="a"),
        Finding(kind="black_hole", severity=WARNING, messages=2, router="a", topic="b"),
        Finding(kind="black_hole", severity=WARNING, messages=2, router="b", topic="a"),
        Finding(kind="black_hole", severity=WARNING, router="a"),
        Finding(kind="two_ways", severity=WARNING, messages=99),
        Finding(kind="articulation", severity=INFO, messages=1_000),
    ]
    assert worst_first(reversed(ordered)) == ordered
