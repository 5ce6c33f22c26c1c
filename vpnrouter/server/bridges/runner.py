"""The task of one bridge: find a link to use or dial one, keep it, replace it, and leave one half for another."""

from __future__ import annotations

import random
from time import monotonic_ns
from typing import TYPE_CHECKING, Final, final

import trio

from vpnrouter import limits
from vpnrouter.bridges.bridge import Inbound, Input
from vpnrouter.bridges.inbound import InboundHalf
from vpnrouter.bridges.remotes import SECOND
from vpnrouter.bridges.terms import FLOW_EVENTS, LinkEvent, Owner
from vpnrouter.core.barrier import BRIDGE
from vpnrouter.errors import OperationError
from vpnrouter.server.bridges.approach import Approach, now_ns
from vpnrouter.server.bridges.standing import Standing, facts_of
from vpnrouter.server.events.narrate import narrate
from vpnrouter.server.net.reactor import flush_ready
from vpnrouter.wire.link import codes

if TYPE_CHECKING:
    from collections.abc import Callable

    from vpnrouter.bridges.book import LinkBook
    from vpnrouter.bridges.link import Link
    from vpnrouter.bridges.remotes import Remote
    from vpnrouter.config.bridge import Bridge as BridgeConfig
    from vpnrouter.config.msg_vpn import TlsServerCert
    from vpnrouter.server.bridges.flows import BridgeFlows
    from vpnrouter.server.net.dial import Connector


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
    """Do nothing: a name was looked up for a connection that is not shown yet."""


def begun(half: InboundHalf) -> None:
    """Do nothing: a half that stands by begins without being anybody's."""


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


VERSION_WAIT_S: Final = 60.0
"""Seconds before a remote that speaks another major version is tried again."""

FORGIVEN_S: Final = 300.0
"""After so many seconds a fault that ends a bridge's task does not count as a repetition."""

MERGE_AGAIN_S: Final = 3.0
"""Seconds before a bridge asks again for the connection of a peer that did not let it in."""

_WAITING: Final = (Inbound.NOT_READY_WAIT_NEXT, Inbound.NOT_READY_WAIT_BRIDGE_VERSION_MISMATCH)


@final
class BridgeRunner(Owner):
    """One bridge of the configuration, its state, and the half of a link that it has or is after.

    `draw` gives random numbers in [0, 1) for the jitter of retries.
    """

    def __init__(
        self,
        book: LinkBook,
        connector: Connector,
        vpn_name: str,
        name: str,
        written: BridgeConfig,
        server_cert: TlsServerCert,
        draw: Callable[[], float] = random.random,
        flows: BridgeFlows | None = None,
    ) -> None:
        self.approach = Approach(
            book, connector, book.router.vpns[vpn_name], name, written, server_cert
        )
        self.draw = draw
        self.flow = None if flows is None else flows.of(self.approach.vpn, name, written)
        self.half: InboundHalf | None = None
        self.standby: Standby | None = None
        self.standing = Standing(facts_of(self.approach), monotonic_ns())
        self.record = self.standing.record
        self._wake = trio.Event()
        self.drained = False
        self._leaving: InboundHalf | None = None
        self._reconnect = False
        self._removed = False
        self._refused = False
        self._next_ns = -1
        self._asked_ns = 0
        self._merge_ns = 0
        self._broken = 0
        self._broken_ns = 0

    def poke(self) -> None:
        """Look again at what there is to do."""
        self._wake.set()

    def incoming(self, link: Link) -> None:
        """Wake the bridge if it waits for its next try and the link may be of its remote."""
        if (
            self.record.inbound_state is Inbound.NOT_READY_WAIT_NEXT
            and not self._refused
            and self.approach.may_be_remote(link)
        ):
            # It is there again: no reason to wait for the time of the next attempt.
            self._next_ns = now_ns()
        self.poke()

    def change(self, written: BridgeConfig, server_cert: TlsServerCert, *, reconnect: bool) -> None:
        """Go on under a changed configuration; `reconnect` where the connection itself changes."""
        kept = self.approach.take(written, server_cert)
        if self.flow is not None:
            self.flow.change(written)
        self.record.facts = facts_of(self.approach)
        half = self.half
        moves = half is self._leaving
        if half is not None and half.welcomed and not half.over and kept and not moves:
            self._follow(half)
            flush_ready(half.link.plane)
        if self.standby is not None:
            # It was opened under what was written before.
            self.standby.leave()
        self._reconnect = half is not None and (self._reconnect or reconnect or not kept)
        self._refused = False
        self._next_ns = -1
        self.poke()

    def _follow(self, half: InboundHalf) -> None:
        """Ask for what is written now, which may be other than when the half began."""
        if self.approach.remotes.current is None:
            return
        terms = self.approach.terms(self.approach.current)
        half.take(terms)
        if self.record.is_up:
            self.record.handle(Input.SUBSCRIPTIONS_CHANGED, monotonic_ns())
        half.want(terms.filters, terms.selectors)
        if self.flow is not None:
            half.carry(self.flow.taker)

    def remove(self) -> None:
        """The bridge is no more part of the configuration: log out and end."""
        self._removed = True
        self.poke()

    def link_event(self, half: InboundHalf, event: LinkEvent, reason: str) -> None:
        """Handle an event of the half in use; events of older halves are ignored."""
        if half is not self.half:
            return
        if event == LinkEvent.WELCOMED:
            self._welcomed(half)
        elif event == LinkEvent.SUBSCRIBED:
            self.standing.subscribed(reason, monotonic_ns())
        elif event == LinkEvent.DRAINED:
            self.drained = True
        elif event == LinkEvent.PARTED:
            if self.record.is_up:
                self.record.handle(Input.SUBSCRIPTIONS_CHANGED, monotonic_ns())
        elif event in FLOW_EVENTS:
            self.standing.flow_event(event, reason, monotonic_ns(), in_sync=half.in_sync)
        elif event in {LinkEvent.REFUSED, LinkEvent.VERSION_MISMATCH}:
            self._refused = True
            self.standing.refused(event, reason, monotonic_ns())
        else:
            self.standing.lost(reason, monotonic_ns(), moving=half is self._leaving)
        if not half.welcomed:
            self.approach.failed(reason)
        self.poke()

    def _welcomed(self, half: InboundHalf) -> None:
        self.approach.backoff.up(now_ns())
        self.approach.learn(half.link.peer_router)
        self.approach.failed("")
        self.standing.welcomed(half.link, monotonic_ns())
        # At once, even if another connection is to be used soon: that one may break before.
        self._follow(half)

    # -- the task --------------------------------------------------------------------------------

    async def run(self) -> None:
        """Keep the bridge connected until cancelled or removed."""
        approach = self.approach
        approach.book.watch(approach.vpn.name, self)
        try:
            while not self._removed:
                try:
                    half = await self._connect()
                    while half is not None:
                        half = self._after(await self._keep(half))
                except Exception as error:  # noqa: BLE001 - given to the barrier
                    await self._begin_anew(error)
        finally:
            approach.book.unwatch(approach.vpn.name, self)
            approach.forget()
            if self.standby is not None:
                self.standby.leave()
            if self.half is not None:
                leave(self.half)

    async def _begin_anew(self, error: Exception) -> None:
        """Release everything after an unexpected exception, and wait before the next try.

        Each repetition waits longer: a fault that repeats must not keep the router busy.
        """
        approach = self.approach
        barrier = approach.book.router.plane.barrier
        fault = barrier.caught(
            error, BRIDGE, approach.name, approach.vpn.name, "the bridge begins anew"
        )
        standby, half = self.standby, self.half
        self.standby = self.half = self._leaving = None
        self._reconnect = self._refused = False
        self._next_ns = -1
        for each in (None if standby is None else standby.half, half):
            if each is None or each.over:
                continue
            try:
                leave(each)
            except Exception as other:  # noqa: BLE001 - the same
                barrier.end(each.link, other)
        now = now_ns()
        try:
            self.standing.broken(f"fault {fault} of the router", monotonic_ns())
        except Exception as other:  # noqa: BLE001 - the same
            barrier.caught(other, BRIDGE, approach.name, approach.vpn.name)
        if now - self._broken_ns > FORGIVEN_S * SECOND:
            self._broken = 0
        self._broken_ns = now
        self._broken = min(self._broken + 1, 6)
        # 1, 2, 4 … 32 seconds, half as much again by chance.
        until_ns = now + int((1 << self._broken - 1) * (1 + self.draw() / 2) * SECOND)
        while not self._removed and now_ns() < until_ns:
            await self.pause(until_ns)

    async def pause(self, until_ns: int = -1) -> None:
        """Wait to be poked, or for a time of trio's clock."""
        limit_s = float("inf") if until_ns < 0 else max(0.0, (until_ns - now_ns()) / SECOND)
        with trio.move_on_after(limit_s):
            await self._wake.wait()
        self._wake = trio.Event()

    async def _connect(self) -> InboundHalf | None:
        """Take one step towards a half: an incoming link that fits, or one attempt when it is time."""
        if not self.standing.may_run(self.approach, monotonic_ns()):
            await self.pause()
            return None
        if self._next_ns < 0:
            backoff = self.approach.backoff
            if self.approach.remotes.is_next and not self._refused:
                delay_ns = backoff.next_remote_ns(self.draw())
            else:
                delay_ns = backoff.delay_ns(now_ns(), self.draw())
            self._next_ns = now_ns() + delay_ns
        if now_ns() < self._next_ns:
            # Who was refused keeps away, over whatever connection.
            half = None if self._refused else self._over_incoming()
            if half is None:
                await self.pause(self._next_ns)
            return half
        self._next_ns = -1
        half = self._over_incoming()
        if half is None:
            if self.record.inbound_state in _WAITING:
                self.record.handle(Input.NEXT_REMOTE, monotonic_ns())
            half = await self._dial()
        return half

    async def _dial(self) -> InboundHalf | None:
        record = self.record
        approach = self.approach
        remote = approach.current
        record.handle(Input.DIAL, monotonic_ns())
        record.remote_address = remote.location
        record.peer_address = record.local_interface = ""
        record.remote = approach.remotes.current
        half = None
        limit_s = approach.try_s
        try:
            with trio.move_on_after(limit_s) as scope:
                half = await approach.open(remote, self, record, self._resolved, self._begin)
            if scope.cancelled_caught:
                raise OperationError(  # noqa: TRY301 - told like all that `open` raises
                    f"{remote.location}: no answer within {limit_s} s"
                )
        except OperationError as error:
            approach.failed(str(error))
            self.standing.failed(str(error), monotonic_ns())
            approach.backoff.down(now_ns())
            approach.remotes.failed()
            return None
        if half is None and self.standing.overtaken(monotonic_ns()):
            self._next_ns = now_ns()
        return half

    def _resolved(self) -> None:
        if self.record.inbound_state is Inbound.PREPARE_FETCHING_DNS:
            self.record.handle(Input.RESOLVED, monotonic_ns())

    def _over_incoming(self) -> InboundHalf | None:
        """Log in over a link that a compatible bridge of the peer has here, if there is one."""
        record = self.record
        approach = self.approach
        found = approach.incoming()
        if found is None:
            return None
        remote, link = found
        approach.remotes.choose(remote)
        if record.inbound_state is Inbound.NOT_READY_WAIT_BRIDGE_VERSION_MISMATCH:
            record.handle(Input.NEXT_REMOTE, monotonic_ns())
        record.handle(Input.REUSE, monotonic_ns())
        record.handle(Input.REUSED, monotonic_ns())
        approach.connector.set_clocks()
        half = InboundHalf(link, approach.terms(approach.of(remote)), self, record)
        self._begin(half)
        flush_ready(link.plane)
        return half

    def _begin(self, half: InboundHalf) -> None:
        record = self.record
        self.half = half
        self._refused = False
        self._leaving = None
        self._asked_ns = now_ns()
        record.remote = self.approach.remotes.current
        record.remote_address = half.link.peer
        record.peer_address = half.link.address
        record.local_interface = half.link.interface
        if record.inbound_state is Inbound.NOT_READY_CONNECTING:
            record.handle(Input.CONNECTED, monotonic_ns())

    async def _keep(self, half: InboundHalf) -> InboundHalf:
        """Stay with the half, or one that took its place, until that is over; returns the last one."""
        async with trio.open_nursery() as nursery:
            watching = False
            while not half.over:
                if self._removed or not self.standing.may_run(self.approach, monotonic_ns()):
                    leave(half)
                elif not half.welcomed:
                    until_ns = self._asked_ns + self.approach.try_s * SECOND
                    if now_ns() >= until_ns:
                        leave(half, codes.HANDSHAKE_TIMEOUT)
                    else:
                        await self.pause(until_ns)
                elif self._reconnect:
                    self._reconnect = False
                    half = await self._renew(half)
                elif (better := self._better(half)) is not None:
                    half = await self._merge(half, better)
                elif self.standby is not None and self.standby.healthy:
                    half = await self._switch(half, self.standby)
                    watching = False
                else:
                    if not watching and self.approach.wants_back():
                        watching = True
                        nursery.start_soon(watch_better, self)
                    await self.pause(self._merge_ns if now_ns() < self._merge_ns else -1)
            nursery.cancel_scope.cancel()
        return half

    def _better(self, half: InboundHalf) -> Link | None:
        return None if now_ns() < self._merge_ns else self.approach.peers_connection(half.link)

    async def _renew(self, half: InboundHalf) -> InboundHalf:
        """The connection itself changed: move to a new one.

        A new one that fails does not keep the old one alive: what is written now may be safer.
        """
        approach = self.approach
        standby = Standby(self, approach.remotes.current)
        written = approach.written
        try:
            standby.half = await approach.open(
                approach.current, standby, self.record, nothing, begun, half
            )
        except OperationError as error:
            narrate(self.record, "VPN_BRIDGING_CONNECT_FAILED", f"not connected: {error}")
        if approach.written is not written and standby.half is None:
            self._reconnect = True  # what was opened is out of date already
            return half
        moved = await self._switch(half, standby)
        if moved is half and not half.over:
            await drain(self, half)
        return moved

    async def _merge(self, half: InboundHalf, link: Link) -> InboundHalf:
        """Move to the peer's connection, which stays. Where the peer refuses, both stay for a while."""
        self._merge_ns = now_ns() + int(MERGE_AGAIN_S * SECOND)
        standby = Standby(self, self.approach.remotes.current)
        standby.half = InboundHalf(link, half.terms, standby, self.record, half)
        flush_ready(link.plane)
        return await self._switch(half, standby)

    async def _switch(self, half: InboundHalf, standby: Standby) -> InboundHalf:
        """Go over from `half` to the half that stands by, when that is logged in; returns which it is."""
        self._leaving = half
        if await hand_over(self, half, standby):
            return self._adopt(standby) or half
        standby.leave()
        if not half.over:
            self._leaving = None
            if not self._reconnect:
                # What was written meanwhile was not asked for.
                self._follow(half)
                flush_ready(half.link.plane)
        return half

    def _adopt(self, standby: Standby) -> InboundHalf | None:
        """Take the half that stands by for ours; None when it is lost."""
        self.standby = None
        half = standby.half
        terms = self.approach.choose(standby.remote)
        if half is None or half.over or terms is None:
            standby.leave()
            if half is not None and half.link.paused:
                # The peer's half goes on there.
                half.link.resume()
            return None
        half.take(terms)
        half.owner = self
        self._merge_ns = 0
        self._begin(half)
        self.standing.moved(half.link, monotonic_ns())
        self._welcomed(half)
        if half.link.paused:
            half.link.resume()
        flush_ready(half.link.plane)
        return half

    def _after(self, half: InboundHalf) -> InboundHalf | None:
        """The half is gone: take the one that stands by, or say when to try again.

        What the bridge does next depends on how far it had come.
        """
        record = self.record
        approach = self.approach
        self.half, self._reconnect = None, False
        standby = self.standby
        self.standby = None
        moving = half is self._leaving
        self._leaving = None
        if standby is not None:
            goes_on = not self._removed and self.standing.may_run(approach, monotonic_ns())
            adopted = self._adopt(standby) if goes_on else None
            if adopted is not None:
                return adopted
            standby.leave()
        if record.inbound_state is Inbound.DISABLED:
            return None
        if record.inbound_state is Inbound.NOT_READY_WAIT_BRIDGE_VERSION_MISMATCH:
            approach.backoff.refused(now_ns())
            approach.remotes.failed()
            self._next_ns = now_ns() + int(VERSION_WAIT_S * SECOND)
            return None
        if record.inbound_state is Inbound.NOT_READY_WAIT_CLEANUP:
            record.handle(Input.CLEANED, monotonic_ns())
        if moving:
            self.standing.stranded()
            self._next_ns = now_ns()
        elif half.welcomed:
            approach.backoff.down(now_ns())
            approach.remotes.lost()
        else:
            if self._refused:
                approach.backoff.refused(now_ns())
            else:
                approach.backoff.down(now_ns())
            approach.remotes.failed()
        return None
