from typing import Any

import pytest
from pydantic import ValidationError

from vpnrouter.config.model import model_of
from vpnrouter.settings.event import PercentThreshold, QueueEvent, RateThreshold, SpoolThreshold


def test_one_mark_keeps_the_other() -> None:
    """What is not written stays at the default of that threshold."""
    queue: Any = model_of(QueueEvent)
    found = queue.model_validate({"msg_spool_usage_threshold": {"set_percent": 90}})
    assert found.msg_spool_usage_threshold.model_dump() == {"set_percent": 90, "clear_percent": 18}


@pytest.mark.parametrize(
    ("declared", "written"),
    [
        (PercentThreshold, {"set_percent": 50}),
        (SpoolThreshold, {"set_percent": 10}),
        (RateThreshold, {"set_value": 1}),
    ],
)
def test_marks_in_the_wrong_order(
    declared: type[PercentThreshold | RateThreshold], written: dict[str, int]
) -> None:
    """A value that clears above the one that sets would flap."""
    with pytest.raises(ValidationError, match="is above set_"):
        model_of(declared).model_validate(written)
