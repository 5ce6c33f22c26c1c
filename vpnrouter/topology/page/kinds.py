"""The kinds of findings as people read them: their name, what they are about, what their value is."""

from typing import Any, Final

from vpnrouter.topology.page.figures import NONE, decimal, duration, share, visible

TROUBLE: Final = "trouble"
SUBSCRIPTIONS: Final = "subscriptions"
STRUCTURE: Final = "structure"
DRIFT: Final = "drift"
AREAS: Final = (TROUBLE, SUBSCRIPTIONS, STRUCTURE, DRIFT)

_AREA_OF: Final = {
    **dict.fromkeys(
        ("loop", "loop_stopped", "duplicate", "two_ways", "black_hole", "stalled_bridge",
         "head_of_line", "hot_bridge", "skewed_partition", "flapping_link", "clock_skew"),
        TROUBLE,
    ),
    **dict.fromkeys(
        ("never_matched", "covered", "overlapping", "over_broad", "wasted_crossing", "not_examined"),
        SUBSCRIPTIONS,
    ),
    **dict.fromkeys(("articulation", "cut_bridge"), STRUCTURE),
    **dict.fromkeys(
        ("missing_vpn", "missing_bridge", "unknown_vpn", "unknown_bridge", "missing_subscription",
         "unknown_subscription"),
        DRIFT,
    ),
}  # fmt: skip

_SECONDS: Final = {"stalled_bridge", "head_of_line", "clock_skew", "never_matched"}
_SHARES: Final = {"hot_bridge", "over_broad", "wasted_crossing"}


def area_of(kind: str) -> str:
    """What a kind is about; a kind that is not known here is trouble."""
    return _AREA_OF.get(kind, TROUBLE)


def label_of(kind: str) -> str:
    """The kind "stalled_bridge" as "stalled bridge"."""
    return visible(kind).replace("_", " ")


def value_of(finding: dict[str, Any]) -> str:
    """The finding's value in the unit that its kind gives it."""
    value: float | None = finding["value"]
    if value is None:
        return NONE
    kind = finding["kind"]
    if kind in _SECONDS:
        return duration(round(value * 1_000_000_000))
    if kind in _SHARES:
        return share(value)
    if kind == "skewed_partition":
        return f"{value:.3g} × the mean"
    return decimal(value)
