"""Trace filters: what they may say."""

from typing import Any

import pytest
from pydantic import ValidationError

from vpnrouter import limits
from vpnrouter.config.trace import Trace, TraceFilter


def test_a_name_is_enough() -> None:
    """What is left out fits everything, and all of it is traced."""
    one = TraceFilter(trace_filter_name="f")
    assert (one.enabled, one.sample, one.topic_syntax) == (True, 1.0, "smf")
    assert one.subscriptions == one.msg_vpns == ()
    assert one.client_usernames == one.client_names == ()


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"trace_filter_name": ""},
        {"trace_filter_name": "x" * (limits.TRACE_FILTER_NAME_LENGTH + 1)},
        {"trace_filter_name": "f", "sample": 1.5},
        {"trace_filter_name": "f", "sample": float("nan")},
        {"trace_filter_name": "f", "topic_syntax": "regex"},
        {"trace_filter_name": "f", "client_names": [""]},
        {"trace_filter_name": "f", "msg_vpns": ["*"]},
        {"trace_filter_name": "f", "client_usernames": "ann"},
        {"trace_filter_name": "f", "rate": 1},
    ],
)
def test_refused(given: dict[str, Any]) -> None:
    """Everything else is refused."""
    with pytest.raises(ValidationError):
        TraceFilter.model_validate(given)


def test_as_many_as_the_bound() -> None:
    """The list is bounded."""
    filters = [{"trace_filter_name": f"f{number}"} for number in range(limits.TRACE_FILTERS + 1)]
    assert len(Trace.model_validate({"directory": "t", "filters": filters[:-1]}).filters) == 64
    with pytest.raises(ValidationError):
        Trace.model_validate({"directory": "t", "filters": filters})
