"""How attributes of monitoring are displayed: each is one that the status class has."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import pytest

from vpnrouter.bridges.status import BridgeStatus
from vpnrouter.management import display
from vpnrouter.management.display import Display
from vpnrouter.management.status.clients import ClientStatus, SubscriptionStatus
from vpnrouter.management.status.msg_vpns import MsgVpnStatus
from vpnrouter.management.status.queues import MsgStatus, QueueStatus
from vpnrouter.text import camel


def names(kind: Any) -> set[str]:
    """The attributes of a status class, as rows of the API name them."""
    return {camel(field.name) for field in fields(kind)}


@pytest.mark.parametrize(
    ("displays", "kind"),
    [
        pytest.param(display.MSG_VPN, MsgVpnStatus, id="message VPN"),
        pytest.param(display.CLIENT, ClientStatus, id="client"),
        pytest.param(display.SUBSCRIPTION, SubscriptionStatus, id="subscription"),
        pytest.param(display.BRIDGE, BridgeStatus, id="bridge"),
        pytest.param(display.QUEUE, QueueStatus, id="queue"),
        pytest.param(display.MSG, MsgStatus, id="message"),
    ],
)
def test_every_displayed_attribute_is_one_of_the_status(
    displays: Mapping[str, Display], kind: Any
) -> None:
    """What a column of `show` or of a screen is made of is an attribute of the status class."""
    assert {name for each in displays.values() for name in each.of} <= names(kind)


@pytest.mark.parametrize(
    ("bound", "bindings", "text"),
    [
        pytest.param(True, ["q"], "bound", id="bound"),
        pytest.param(False, ["", "q"], "unbound", id="a remote has a binding"),
        pytest.param(False, [""], "", id="no remote has a binding"),
        pytest.param(False, [], "", id="no remote"),
    ],
)
def test_queue_of_a_bridge(bound: bool, bindings: list[str], text: str) -> None:
    """A bridge without queue binding is not unbound."""
    remotes = [{"queueBinding": name} for name in bindings]
    row = {"boundToQueue": bound, "remotes": remotes, "remoteQueueStandby": False}
    queue = display.BRIDGE["queue"]
    assert queue.value(row) == text
    assert queue.value(row | {"remoteQueueStandby": True}) == ("standby" if bound else text)


@pytest.mark.parametrize(
    ("inbound", "outbound", "text"),
    [
        ("ready-in-sync", "ready", "bi"),
        ("ready-in-sync", "not-applicable", "uni"),
        ("not-applicable", "ready", "uni"),
        ("not-ready-wait-next", "not-applicable", "uni"),
    ],
)
def test_direction_of_a_bridge(inbound: str, outbound: str, text: str) -> None:
    """Both ways where both halves are in use."""
    row = {"inboundState": inbound, "outboundState": outbound}
    assert display.BRIDGE["direction"].value(row) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(True, "yes"), (False, "no"), (1_234, "1,234"), ({"b": 1, "a": 2}, "a 2, b 1"), ("", "-"),
     (None, "-"), ([], "-"), (["a", 1], "a, 1")],
)  # fmt: skip
def test_values_for_people(value: Any, text: str) -> None:
    """Truth values, numbers, counts by name, lists and texts, each as people read them."""
    assert display.shown(value) == text


def test_names_of_attributes_as_words() -> None:
    """Each capital letter begins a word."""
    assert display.words("inboundFailureReason") == "inbound failure reason"
