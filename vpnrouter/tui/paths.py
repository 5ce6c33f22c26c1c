"""Paths of the management API that the screens ask; each name is encoded by itself."""

from typing import Final

from vpnrouter.bridges.status import VIRTUAL_ROUTER
from vpnrouter.management.rows import segment

MONITOR: Final = "/SEMP/v2/monitor"
ACTION: Final = "/SEMP/v2/action"
CONFIG: Final = "/SEMP/v2/config"
OURS: Final = "/vpnrouter/v1"

ROUTER: Final = f"{OURS}/router"
MSG_VPNS: Final = f"{MONITOR}/msgVpns"
ALL_BRIDGES: Final = f"{OURS}/bridges"
ALL_QUEUES: Final = f"{OURS}/queues"
ALL_CLIENTS: Final = f"{OURS}/clients"
EVENTS: Final = f"{OURS}/events"
TRACES: Final = f"{OURS}/traces"


def msg_vpn(name: str) -> str:
    """A message VPN, below one of the roots."""
    return f"/msgVpns/{segment(name)}"


def bridge(vpn: str, name: str) -> str:
    """A bridge, below one of the roots."""
    return f"{msg_vpn(vpn)}/bridges/{segment(name, VIRTUAL_ROUTER)}"


def queue(vpn: str, name: str) -> str:
    """A queue, below one of the roots."""
    return f"{msg_vpn(vpn)}/queues/{segment(name)}"


def client(vpn: str, name: str) -> str:
    """A client, below one of the roots."""
    return f"{msg_vpn(vpn)}/clients/{segment(name)}"


def subscriptions(vpn: str) -> str:
    """The subscriptions of a message VPN, or of all of them."""
    return f"{OURS}{msg_vpn(vpn) if vpn else ''}/subscriptions"


def matches(vpn: str) -> str:
    """The subscriptions of a message VPN that match a topic."""
    return f"{OURS}{msg_vpn(vpn)}/matches"
