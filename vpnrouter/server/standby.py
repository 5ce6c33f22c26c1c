"""A half that is logged in besides the one in use, without subscriptions, to take its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import trio

from vpnrouter import limits
from vpnrouter.bridges.remotes import SECOND
from vpnrouter.bridges.terms import LinkEvent, Owner
from vpnrouter.errors import OperationError
from vpnrouter.server.flush import flush_ready
from vpnrouter.wire.link import codes

if TYPE_CHECKING:
    from vpnrouter.bridges.inbound import InboundHalf
    from vpnrouter.bridges.remotes import Remote
    from vpnrouter.server.bridge_runner import BridgeRunner


@final
class Standby(Owner):
    """Owner of such a half. `healthy` once it has stood for as long as the configuration asks."""

    def __init__(self, runner: BridgeRunner, remote: Remote | None) -> None:
        self._runner = runner
        self.remote = remote
        self.half: InboundHalf | None = None
        self.welcomed = False
        self.lost = False
        self.healthy = False
        self.changed = trio.Event()
        self.gone = trio.Event()

    def link_event(self, half: InboundHalf, event: LinkEvent, reason: str) -> None:
        """Note that the better remote has welcomed us or that the link to it is lost."""
        if event == LinkEvent.WELCOMED:
            self.welcomed = True
        elif event == LinkEvent.LOST:
            self.lost = True
            self.healthy = False
            self.gone.set()
        if self.welcomed or self.lost:
            self.changed.set()
        self._runner.poke()

    def leave(self) -> None:
        """Log out again."""
        if self.half is not None and not self.half.over:
            leave(self.half)


def leave(half: InboundHalf, code: int = codes.NORMAL) -> None:
    """End a half with the reason that belongs to `code`."""
    half.leave(code, codes.REASONS[code])
    flush_ready(half.link.plane)


async def watch_better(runner: BridgeRunner) -> None:
    """Log in to a remote better than the one in use, and say so when it has been healthy long enough."""
    approach = runner.approach
    delay_ns = max(SECOND, approach.written.remote_connection.retry_delay * SECOND)
    while True:
        for remote in approach.remotes.better():
            standby = Standby(runner, remote)
            if await _stands(runner, standby, remote):
                return
        # Between half and one and a half times the delay, so that many do not come in step.
        await trio.sleep(delay_ns * (0.5 + runner.draw()) / SECOND)


async def _stands(runner: BridgeRunner, standby: Standby, remote: Remote) -> bool:
    """Whether `standby` was logged in to `remote` for the configured time."""
    approach = runner.approach
    try:
        with trio.move_on_after(limits.CONNECT_TIMEOUT_S):
            standby.half = await approach.open(
                approach.of(remote), standby, runner.record, nothing, begun
            )
            if standby.half is not None:
                await standby.changed.wait()
        if standby.welcomed and not standby.lost:
            # From now on it may take over at once when the link in use breaks.
            runner.standby = standby
            with trio.move_on_after(approach.written.remote_connection.failback_delay):
                await standby.gone.wait()
            standby.healthy = not standby.lost
    except (OperationError, KeyError):
        # Not there, or no more written: there will be another time, and another list.
        return False
    finally:
        if runner.standby is not standby:
            standby.leave()
    if not standby.healthy:
        runner.standby = None
        standby.leave()
        return False
    runner.poke()
    return True


def nothing() -> None:
    """A name was looked up for a connection that is not shown yet."""


def begun(half: InboundHalf) -> None:
    """A half that stands by begins without being anybody's."""
