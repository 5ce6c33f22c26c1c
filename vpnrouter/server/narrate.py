"""Tell the operator on stderr what becomes of bridges, under the field's event names."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from vpnrouter.bridges.book import LinkLog

if TYPE_CHECKING:
    from vpnrouter.bridges.bridge import Bridge
    from vpnrouter.wire.link.frames import Hello

UP: Final = "VPN_BRIDGING_LINK_UP"
DOWN: Final = "VPN_BRIDGING_LINK_DOWN"
REJECTED: Final = "VPN_BRIDGING_LINK_REJECTED"


def narrate(record: Bridge, event: str, what: str) -> None:
    """One line about one bridge; `event` is one of the names above, or "" for what has none."""
    facts = record.facts
    where = f"{record.remote_router_name or '?'} at {record.remote_address or '?'}"
    say(event, f"VPN {facts.msg_vpn} bridge {facts.name} from {where}: {what}")


def say(event: str, text: str) -> None:
    """One line on stderr."""
    print(f"vpnrouter: {event}: {text}" if event else f"vpnrouter: {text}", file=sys.stderr)


class PeerLog(LinkLog):
    """Tells of the bridges of other routers that log in here."""

    def peer_up(self, record: Bridge) -> None:
        """See LinkLog.peer_up."""
        self._tell(record, UP, "up")

    def peer_down(self, record: Bridge, why: str) -> None:
        """See LinkLog.peer_down."""
        self._tell(record, DOWN, f"down: {why}")

    def peer_rejected(self, hello: Hello, peer: str, why: str) -> None:
        """See LinkLog.peer_rejected."""
        say(
            REJECTED,
            f"VPN {hello.remote_vpn} remote bridge {hello.bridge} of VPN {hello.local_vpn}"
            f" on {hello.router} at {peer}: rejected: {why}",
        )

    @staticmethod
    def _tell(record: Bridge, event: str, what: str) -> None:
        facts = record.facts
        say(
            event,
            f"VPN {facts.msg_vpn} remote bridge {facts.name} at {record.remote_address}: {what}",
        )
