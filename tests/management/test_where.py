import fnmatch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vpnrouter import limits
from vpnrouter.errors import RequestError
from vpnrouter.management.responses import matches, meets, parse_where

ROW = {"name": "from-edge", "up": True, "count": 5, "reasons": {"a": 1}}


@pytest.mark.parametrize(
    ("where", "met"),
    [
        ("", True),
        ("name==from-edge", True),
        ("name!=from-edge", False),
        ("name==from-*", True),
        ("name==*x*", False),
        ("name!=to-*", True),
        ("name==", False),
        ("up==true", True),
        ("up!=true", False),
        ("up==false", False),
        ("count==5", True),
        ("count!=5", False),
        ("count<5", False),
        ("count<=5", True),
        ("count>4", True),
        ("count>=6", False),
        ("count>-1", True),
        ("count>4,up==true,name==from*", True),
        ("count>4,up==false,name==from*", False),
    ],
)
def test_conditions(where: str, met: bool) -> None:
    """A row meets a where when it meets each of its conditions."""
    assert meets(ROW, parse_where(where, ROW)) is met


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("name", "'name' is no condition"),
        ("name=x", "'name=x' is no condition"),
        ("==x", "'==x' is no condition"),
        ("name==a,", "'' is no condition"),
        ("nmae==x", "there is no attribute nmae"),
        ("count==many", "count is compared with a number"),
        ("up==yes", "up is compared by == or != with true or false"),
        ("up>true", "up is compared by == or !="),
        ("name>a", "name cannot be compared by >"),
        ("reasons==a", "reasons cannot be compared by =="),
        (",".join(["count>1"] * (limits.MANAGEMENT_CONDITIONS + 1)), "more than 16 conditions"),
    ],
)
def test_what_is_no_condition(where: str, said: str) -> None:
    """One error says what is wrong with it."""
    with pytest.raises(RequestError, match=r"^where: ") as caught:
        meets(ROW, parse_where(where, ROW))
    assert said in str(caught.value)
    assert (caught.value.code, caught.value.http_status) == (11, 400)


@given(
    st.text(alphabet="ab*", max_size=8),
    st.text(alphabet="ab", max_size=8),
)
@example("ab*b", "ab")
@example("a*b*b", "ab")
def test_matches_as_a_shell_does(pattern: str, text: str) -> None:
    """Only `*` is special, and it stands for any characters, none included."""
    assert matches(pattern, text) == fnmatch.fnmatchcase(text, pattern)


def test_a_hostile_pattern_is_not_slow() -> None:
    """Many wildcards over a long text take linear time."""
    assert not matches("*a" * 50_000 + "b", "a" * 100_000)
