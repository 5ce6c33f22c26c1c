from vpnrouter.report.advice.context import (
    Item,
    bytes_of,
    messages_of,
    place_of,
    worst_of,
)
from vpnrouter.report.schema import ADVICE, ERROR, INFO, WARNING, Finding, Severity


def item(severity: Severity, gain: int) -> Item:
    """A piece of advice of this weight."""
    return Item(
        action="set_clock", severity=severity, gain=gain, advice="a", evidence="e", effect="f"
    )


def test_severity_goes_before_gain() -> None:
    """No number of messages makes a warning of an error; among equals more messages count more."""
    scores = [
        item(severity, gain).score
        for severity in (INFO, WARNING, ERROR)
        for gain in (-1, 10, 10_000, 10**18)
    ]
    assert scores == sorted(set(scores))
    assert scores[-1] == 299.0


def test_a_row_of_advice() -> None:
    """Every column of the table."""
    row = item(ERROR, 9).row(3)
    assert sorted(row) == sorted(ADVICE.names)
    assert (row["rank"], row["score"], row["action"]) == (3, 210.0, "set_clock")


def test_what_findings_have_in_common() -> None:
    """The worst severity, the sums, and the fields of a place."""
    findings = [
        Finding(kind="x", severity=INFO, router="a", messages=3, bytes=4),
        Finding(kind="x", severity=ERROR, bridge="b", messages=None, bytes=1),
    ]
    assert worst_of(findings) == ERROR
    assert (messages_of(findings), bytes_of(findings)) == (3, 5)
    assert place_of(findings[0], "router", "vpn") == {"router": "a", "vpn": None}
    assert place_of(findings[1])["bridge"] == "b"
