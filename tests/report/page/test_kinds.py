"""vpnrouter.report.page.tables: findings in words."""

import pytest

from vpnrouter.report.page import tables


@pytest.mark.parametrize(
    ("kind", "area"),
    [
        ("loop", tables.TROUBLE),
        ("over_broad", tables.SUBSCRIPTIONS),
        ("cut_bridge", tables.STRUCTURE),
        ("missing_vpn", tables.DRIFT),
        ("of tomorrow", tables.TROUBLE),
    ],
)
def test_each_kind_is_about_something(kind: str, area: str) -> None:
    """Kinds have their area; one that is not known is trouble."""
    assert tables.area_of(kind) == area
    assert area in tables.AREAS


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("stalled_bridge", 38.0, "38 s"),
        ("clock_skew", -0.0021, "-2.1 ms"),
        ("hot_bridge", 0.042, "4.2 %"),
        ("skewed_partition", 3.25, "3.25 × the mean"),
        ("flapping_link", 5.0, "5"),
        ("loop", None, "–"),
    ],
)
def test_values_have_the_unit_of_their_kind(kind: str, value: float | None, text: str) -> None:
    """Seconds, shares, ratios and plain counts."""
    assert tables.value_of({"kind": kind, "value": value}) == text


def test_labels() -> None:
    """Kinds are written as words."""
    assert tables.label_of("head_of_line") == "head of line"
