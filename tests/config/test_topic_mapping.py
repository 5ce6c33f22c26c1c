from typing import Any

import pytest
from pydantic import ValidationError

from vpnrouter.config.model import model_of
from vpnrouter.settings import bridge

TopicMapping = model_of(bridge.TopicMapping)


@pytest.mark.parametrize(
    "written",
    [
        {"from": "a/*", "to": "b/{1}"},
        {"add_prefix": "a/"},
        {"strip_prefix": "a/", "direction": "out"},
        {"strip_prefix": "a/", "direction": "both"},
    ],
)
def test_each_form(written: dict[str, Any]) -> None:
    """A mapping has one of three forms, and goes in unless it says otherwise."""
    mapping = TopicMapping.model_validate(written)
    assert mapping.model_dump(exclude_none=True, by_alias=True) == {"direction": "in", **written}


@pytest.mark.parametrize(
    "written",
    [
        {},
        {"direction": "in"},
        {"from": "a"},
        {"to": "a"},
        {"from": "a", "to": "b", "add_prefix": "c"},
        {"from": "a", "add_prefix": "c"},
        {"add_prefix": "a", "strip_prefix": "a"},
    ],
)
def test_exactly_one_form(written: dict[str, Any]) -> None:
    """No form, half of one or two of them are refused with the forms that there are."""
    with pytest.raises(ValidationError, match="exactly one of from with to, add_prefix, strip"):
        TopicMapping.model_validate(written)
