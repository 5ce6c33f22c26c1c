"""Tests of single attributes; what requests may give them is in test_given.py."""

import pytest

from vpnrouter.config.bridge import Bridge
from vpnrouter.config.secrets import Secret
from vpnrouter.errors import RequestError
from vpnrouter.management.config.attribute import TEXT, Attribute
from vpnrouter.management.config.kinds import BRIDGE


def test_what_is_shown() -> None:
    """A text that is not there is empty, a secret is never shown, records have attribute names."""
    text = Attribute(name="owner", form=TEXT)
    assert text.shown(None) == ""
    assert text.shown("o") == "o"
    assert text.shown(Secret("thing")) == ""
    bridge = Bridge.model_validate({"topic_mapping": [{"from": "a", "to": "b"}]})
    mapping = BRIDGE.attributes["topicMapping"]
    assert mapping.shown(bridge.topic_mapping) == [{"from": "a", "to": "b", "direction": "in"}]


def test_a_wrong_choice_is_told_unless_it_may_be_a_secret() -> None:
    """And never at length."""
    choice = Attribute(name="permission", form=TEXT, choices=("a", "b"))
    for value, told in (("c", "not c"), ("c" * 99, "must be one of a, b")):
        with pytest.raises(RequestError, match=told) as caught:
            choice.taken(value)
        assert "c" * 61 not in str(caught.value)
