"""Plain data copied, compared and digested."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter import limits
from vpnrouter.config.document_values import compact, copy_plain, digest_of, same

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=10,
)


@given(PLAIN, PLAIN)
def test_same_and_digest_say_the_same(one: Any, other: Any) -> None:
    """Two values have one digest exactly if they are the same; a copy has it."""
    assert same(one, other) == (digest_of(one) == digest_of(other))
    assert same(one, copy_plain(one))
    assert same(one, copy.deepcopy(one))


def test_a_copy_shares_nothing() -> None:
    """Not even what was shared before."""
    inner = {"k": [1]}
    copied = copy_plain({"a": inner, "b": inner})
    copied["a"]["k"].append(2)
    assert copied["b"] == inner == {"k": [1]}


def test_order_is_no_difference() -> None:
    """Of keys; of items it is."""
    assert digest_of({"a": 1, "b": 2}) == digest_of({"b": 2, "a": 1})
    assert digest_of([1, 2]) != digest_of([2, 1])
    assert compact({"b": 1, "a": [True, None]}) == '{"a":[true,null],"b":1}'


@pytest.mark.parametrize("value", [object(), {"a": (1,)}, {"a": {1: 2}}, {"a": b"x"}, {"a": {1}}])
def test_what_no_configuration_holds(value: Any) -> None:
    """It is told and not carried along."""
    with pytest.raises(ValueError, match=r"holds no|must be text"):
        copy_plain(value)


def test_bounds(monkeypatch: Any) -> None:
    """Too deep and too large are refused, long before the interpreter is exhausted."""
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ValueError, match="nested deeper than 32 levels"):
        copy_plain(deep)
    monkeypatch.setattr(limits, "CONFIG_VALUES", 10)
    copy_plain([1] * 9)
    with pytest.raises(ValueError, match="more than 10 values"):
        copy_plain([1] * 10)
    with pytest.raises(ValueError, match="more than 10 values"):
        copy_plain({str(key): 1 for key in range(5)})
