"""Tests of attributes that are made of settings; test_kinds.py compares them with all models."""

import pytest

from vpnrouter.config.msg_vpn import MsgVpn
from vpnrouter.config.settings_models import Queue
from vpnrouter.management.config.from_model import derived
from vpnrouter.settings import endpoint, message_vpn


def test_names_bounds_and_defaults() -> None:
    """Groups are joined; what differs from the field is as it is declared."""
    made = {each.name: each for each in derived(endpoint.Queue, Queue)}
    delay = made["redeliveryDelayInitialInterval"]
    assert (delay.keys, delay.bounds) == (
        ("redelivery", "delay", "initial_interval"),
        (1, 3_600_000),
    )
    egress = made["egressEnabled"]
    assert (egress.default, egress.written_default) == (False, True)
    assert made["owner"].blank
    assert made["topicSyntax"].ours
    assert not made["maxTtl"].ours
    assert "subscriptions" not in made
    assert made["eventBindCountThreshold"].default == {"setPercent": 80, "clearPercent": 60}


def test_a_key_that_can_be_no_attribute_has_to_be_left() -> None:
    """Objects by name are objects of their own."""
    with pytest.raises(TypeError, match="is no attribute"):
        list(derived(message_vpn.MsgVpn, MsgVpn))
