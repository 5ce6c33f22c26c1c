"""How a bridge leaves one half for another, so that what is on the way still arrives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vpnrouter import limits
from vpnrouter.bridges.remotes import SECOND
from vpnrouter.server.approach import now_ns
from vpnrouter.server.flush import flush_ready
from vpnrouter.server.standby import leave

if TYPE_CHECKING:
    from vpnrouter.bridges.inbound import InboundHalf
    from vpnrouter.server.bridge_runner import BridgeRunner
    from vpnrouter.server.standby import Standby

DRAIN_S: Final = 2.0
"""Seconds of silence after which nothing more is expected from a link that is left."""

DRAIN_MOST_S: Final = 10.0
"""Seconds that a link that is left has to deliver what is on the way, as long as something comes."""


async def hand_over(runner: BridgeRunner, half: InboundHalf, standby: Standby) -> bool:
    """Wait until `standby` is logged in and `half` is over; False when nothing came of the former.

    Where the peer hands the subscriptions over it closes the old connection itself, behind the last
    message (LINK-20). With another peer ours end the old one, when what is on the way has arrived.
    """
    until_ns = now_ns() + limits.CONNECT_TIMEOUT_S * SECOND
    while standby.half is not None and not (standby.welcomed or standby.lost):
        if now_ns() >= until_ns:
            break
        await runner.pause(until_ns)
    if standby.half is None or not standby.welcomed or standby.lost:
        return False
    if standby.half.resumed:
        runner.drained = False
        await _emptied(runner, half)
        leave(half)
    else:
        await drain(runner, half)
    return True


async def drain(runner: BridgeRunner, half: InboundHalf) -> None:
    """Leave `half` when what is on the way has arrived, or nothing more comes."""
    if half.attracts and not half.over:
        runner.drained = False
        half.drain()
        flush_ready(half.link.plane)
        await _emptied(runner, half)
    leave(half)


async def _emptied(runner: BridgeRunner, half: InboundHalf) -> None:
    """Wait until `half` is over or drained, for as long as the constants above say."""
    link = half.link
    last_ns = now_ns() + int(DRAIN_MOST_S * SECOND)
    heard_ns = -1
    while link.heard_ns != heard_ns and now_ns() < last_ns:
        heard_ns = link.heard_ns
        until_ns = min(last_ns, now_ns() + int(DRAIN_S * SECOND))
        while now_ns() < until_ns:
            if runner.drained or half.over:
                return
            await runner.pause(until_ns)
