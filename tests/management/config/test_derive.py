"""Tests of attributes that are made of models; test_kinds.py holds them against all models."""

import pytest

from vpnrouter.config.declared import Queue
from vpnrouter.config.msg_vpn import MsgVpn
from vpnrouter.management.config.derive import Differences, derived


def test_names_bounds_and_defaults() -> None:
    """Groups are joined; what differs from the field is as it is told."""
    told = Differences(
        names={"max_ttl": "longest"},
        defaults={"egressEnabled": False},
        ours=frozenset({"topic*"}),
        left={"subscriptions": "elsewhere"},
    )
    made = {each.name: each for each in derived(Queue, told)}
    delay = made["redeliveryDelayInitialInterval"]
    assert (delay.keys, delay.bounds) == (
        ("redelivery", "delay", "initial_interval"),
        (1, 3_600_000),
    )
    egress = made["egressEnabled"]
    assert (egress.default, egress.written_default) == (False, True)
    assert made["owner"].blank
    assert made["longest"].keys == ("max_ttl",)
    assert made["topicSyntax"].ours
    assert not made["longest"].ours
    assert "subscriptions" not in made
    assert made["eventBindCountThreshold"].default == {"setPercent": 80, "clearPercent": 60}


def test_a_key_that_can_be_no_attribute_has_to_be_left() -> None:
    """Objects by name are objects of their own."""
    with pytest.raises(TypeError, match="is no attribute"):
        list(derived(MsgVpn, Differences()))
