"""vpnrouter.report.rules.context: not too many of a kind."""

from vpnrouter.report.rules.context import bounded
from vpnrouter.report.schema import Finding


def finding(kind: str, messages: int) -> Finding:
    """An error."""
    return Finding(kind=kind, severity="error", messages=messages, detail=f"{messages} lost.")


def test_the_worst_of_a_kind_stay() -> None:
    """The last one says how many are left out, kind by kind."""
    given = [finding("loop", count) for count in (1, 5, 3, 4)] + [finding("hot_bridge", 7)]
    found = bounded(given, 2)
    assert [(one.kind, one.messages) for one in found] == [
        ("hot_bridge", 7),
        ("loop", 5),
        ("loop", 4),
    ]
    assert [one.detail for one in found] == [
        "7 lost.",
        "5 lost.",
        "4 lost. And 2 more of this kind.",
    ]


def test_nothing_is_said_when_all_are_there() -> None:
    """As many as the bound."""
    assert [one.detail for one in bounded([finding("loop", 1), finding("loop", 2)], 2)] == [
        "2 lost.",
        "1 lost.",
    ]
