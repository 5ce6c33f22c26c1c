"""Tests of rows; most of it by way of test_routes.py."""

from vpnrouter.config.router import RouterConfig
from vpnrouter.management.config.kinds import BRIDGE, MSG_VPN, QUEUE, REMOTE_MSG_VPN
from vpnrouter.management.config.object_type import keys_in, row_at

CONFIG = RouterConfig.model_validate(
    {
        "router": {"name": "r"},
        "msg_vpns": {
            "blue": {"bridges": {"b": {"remote_msg_vpns": [{"name": "red", "location": "h"}]}}}
        },
    }
)
BRIDGE_KEYS = (("blue",), ("b", "auto"))


def test_a_row_has_every_readable_attribute() -> None:
    """And no other."""
    for kind, keys in (
        (MSG_VPN, (("blue",),)),
        (BRIDGE, BRIDGE_KEYS),
        (REMOTE_MSG_VPN, (*BRIDGE_KEYS, ("red", "h", ""))),
    ):
        row = row_at(CONFIG, kind, keys)
        assert row is not None
        assert set(row) == set(kind.readable)
        assert None not in row.values()


def test_what_is_not_there() -> None:
    """No row, and no list where that is in nothing; an empty list where it could be."""
    assert row_at(CONFIG, QUEUE, (("gone",), ("q",))) is None
    assert row_at(CONFIG, QUEUE, (("blue",), ("q",))) is None
    assert keys_in(CONFIG, QUEUE, (("blue",),)) == []
    assert keys_in(CONFIG, QUEUE, (("gone",),)) is None
    assert keys_in(CONFIG, REMOTE_MSG_VPN, BRIDGE_KEYS) == [("red", "h", "")]
