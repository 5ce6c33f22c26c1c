"""Whether a message has been at a provider, by its path."""

import pytest

from vpnrouter.connectors.visited import entry_of, has_visited

HERE, THERE = "mqtt://localhost:1883@r1", "mqtt://localhost:1883@r2"
OTHER = "mqtt://localhost:1884@r1"
HUB = "mqtt://hub:1883"
NAMED = "provider://hub"

CASES = [
    # From, over MQTT 5; to, over MQTT 5; whether it may be the same broker.
    (HUB, True, HUB, True, True),
    (HUB, False, HUB, False, True),
    (HUB, True, "mqtt://hub:1884", True, False),
    (NAMED, False, NAMED, True, True),
    (NAMED, False, HUB, False, False),
    (HERE, True, HERE, True, True),
    (HERE, False, HERE, False, True),
    # The brokers beside two routers are two, where a message that goes round between them would be known again.
    (HERE, True, THERE, True, False),
    (HERE, False, THERE, True, True),
    (HERE, True, THERE, False, True),
    (HERE, False, THERE, False, True),
    (OTHER, False, THERE, False, False),
    (OTHER, True, THERE, False, False),
    (HERE, False, NAMED, False, False),
    (HERE, False, HUB, False, False),
]


@pytest.mark.parametrize(("came", "carries_in", "goes", "carries_out", "same"), CASES)
def test_back_to_where_it_was(
    came: str, carries_in: bool, goes: str, carries_out: bool, same: bool
) -> None:
    """What came from one provider leaves for another one."""
    path = ["r0/red", entry_of(came, carries_path=carries_in), "r1/blue"]
    assert has_visited(path, goes, carries_path=carries_out) is same


def test_a_message_that_was_at_no_provider() -> None:
    """It leaves for each."""
    for place in (HERE, HUB, NAMED):
        for carries in (True, False):
            assert not has_visited(["r0/red", "r1/blue"], place, carries_path=carries)
            assert not has_visited([], place, carries_path=carries)
