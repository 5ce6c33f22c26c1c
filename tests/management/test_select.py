import pytest

from vpnrouter import limits
from vpnrouter.errors import RequestError
from vpnrouter.management.responses import parse_select

KNOWN = ["bridgeName", "rxMsgCount", "rxByteCount", "txMsgCount"]


@pytest.mark.parametrize(
    ("select", "names"),
    [
        ("bridgeName", {"bridgeName"}),
        ("rx*", {"rxMsgCount", "rxByteCount"}),
        ("*MsgCount,bridgeName", {"rxMsgCount", "txMsgCount", "bridgeName"}),
        ("-rx*", {"bridgeName", "txMsgCount"}),
        ("rx*,-rxByte*", {"rxMsgCount"}),
        ("bridgeName,-bridgeName", set()),
    ],
)
def test_select(select: str, names: set[str]) -> None:
    """Names and patterns add, those with a dash take away."""
    assert parse_select(select, KNOWN) == names


def test_nothing_selected_is_everything() -> None:
    """Without a select no attribute is left out."""
    assert parse_select("", KNOWN) is None


@pytest.mark.parametrize("select", ["nosuch", "bridgeName,", "-nosuch*", "bridgename"])
def test_a_pattern_that_fits_nothing(select: str) -> None:
    """A misspelt name is an error that names it, not an empty answer."""
    with pytest.raises(RequestError, match=r"^select: there is no attribute"):
        parse_select(select, KNOWN)


def test_too_many_names() -> None:
    """One name more than the bound is refused."""
    names = ["bridgeName"] * limits.MANAGEMENT_SELECTED
    assert parse_select(",".join(names), KNOWN) == {"bridgeName"}
    with pytest.raises(RequestError, match="more than 256 names"):
        parse_select(",".join([*names, "bridgeName"]), KNOWN)
