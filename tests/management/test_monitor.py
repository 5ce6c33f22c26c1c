from dataclasses import fields
from typing import Any

from vpnrouter.management.rows import camel, names_of
from vpnrouter.management.sources import Monitor, MsgVpnStatus


def test_every_attribute_is_shown() -> None:
    """A message VPN has no attribute that a row would leave out."""
    assert names_of(MsgVpnStatus) == tuple(camel(field.name) for field in fields(MsgVpnStatus))


def test_what_stands_in_for_a_router_does_so(still: Any) -> None:
    """The monitor of these tests has every method that the API may call."""
    methods = {name for name, value in vars(Monitor).items() if callable(value) and name[0] != "_"}
    assert methods
    assert all(callable(getattr(still, name)) for name in methods)
