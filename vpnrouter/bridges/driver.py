"""Connects a bridge's machine with links: reports what happens to its halves, performs the machine's actions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, final

from typing_extensions import override

from vpnrouter.bridges.half_events import HalfCallbacks, HalfEvent
from vpnrouter.bridges.link import dial
from vpnrouter.bridges.machine import (
    ApplySettings,
    CancelDial,
    ConnectionEnds,
    DetachHalf,
    Dial,
    Drain,
    Machine,
    Phase,
    Resume,
    Reuse,
)
from vpnrouter.bridges.own_half import OwnHalf
from vpnrouter.wire.link import codes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vpnrouter.bridges.flow_receiver import FlowReceiver
    from vpnrouter.bridges.link import Link
    from vpnrouter.bridges.machine import Action
    from vpnrouter.bridges.remote_links import RemoteLinks
    from vpnrouter.events.table import EventType


class BridgeDriver(HalfCallbacks, ABC):
    """One bridge. The subclass provides the clock, makes connections and raises events."""

    def __init__(self, machine: Machine, links: RemoteLinks) -> None:
        self.machine = machine
        self.links = links
        self.record = machine.record
        self.halves = links.halves

    # -- of whoever runs it ----------------------------------------------------------------------

    @abstractmethod
    def now_ns(self) -> int:
        """Return the time of the machine's clock."""

    @abstractmethod
    def begin_dialling(self, action: Dial) -> None:
        """Begin to connect to a remote. `greet` follows, or `machine.failed`."""

    def give_up_dialling(self, number: int) -> None:
        """Stop connecting for this login."""

    def tell(self, kind: EventType, text: str) -> None:
        """Raise an event about the bridge."""

    def poke(self) -> None:
        """Schedule another step of the machine: something has happened."""

    @property
    def taker(self) -> FlowReceiver | None:
        """The receiver of guaranteed messages, None where there is no spool."""
        return None

    # -- halves ----------------------------------------------------------------------------------

    @property
    def half(self) -> OwnHalf | None:
        """The half in use, which may have ended just now."""
        use = self.machine.use
        return None if use is None else self.halves.get(use.number)

    @final
    def greet(self, action: Dial, host: str, port: int) -> OwnHalf:
        """Return a half on a new connection to a remote; its HELLO waits in the outbox of its link."""
        links, remote = self.links, action.remote
        return dial(
            links.book,
            links.vpn,
            f"[{host}]:{port}" if ":" in host else f"{host}:{port}",
            links.configured.terms(remote),
            self,
            self.record,
            tls=remote.tls,
            moves_from=self.halves.get(action.moves_from),
        )

    @final
    def begun(self, number: int, half: OwnHalf) -> None:
        """Report to the machine that the HELLO of a half is about to leave."""
        self.halves[number] = half
        link = half.link
        ends = ConnectionEnds(link.peer, link.address, link.interface, link.dialed, link.tls)
        self.machine.connected(number, ends, self.now_ns())

    @override
    def on_half_event(self, half: OwnHalf, event: HalfEvent, reason: str) -> None:
        number = next((number for number, one in self.halves.items() if one is half), 0)
        if not number:
            return
        try:
            if event == HalfEvent.WELCOMED:
                self.perform(self._welcomed(number, half))
            else:
                now_ns, in_sync = self.now_ns(), half.in_sync
                self.perform(
                    self.machine.on_half_event(number, event, reason, now_ns, in_sync=in_sync)
                )
        finally:
            self.poke()

    def _welcomed(self, number: int, half: OwnHalf) -> list[Action]:
        machine, link = self.machine, half.link
        login = machine.login(number)
        if login is not None:
            self.links.learn(login.remote, link.peer_router)
        name = "" if link.client is None else link.client.client_name
        return machine.welcomed(number, link.peer_router, name, self.now_ns(), resumed=half.resumed)

    @override
    def incoming(self, link: Link) -> None:
        if self.links.may_be(self.machine.remotes.current, link):
            self.machine.incoming(self.now_ns())
        self.poke()

    # -- actions ---------------------------------------------------------------------------------

    @final
    def work(self, draw: float) -> None:
        """Do what the machine says now, until it has nothing more to do."""
        for login in self.machine.logins():
            half = self.halves.get(login.number)
            if half is not None and half.over and login.phase is not Phase.OVER:
                # A fault of the router kept its end from being told.
                self.on_half_event(half, HalfEvent.LOST, "the link is over")
        while actions := self.machine.step(self.now_ns(), draw, self.links):
            self.perform(actions)
        used = {login.number for login in self.machine.logins()}
        for number in [number for number, half in self.halves.items() if half.over]:
            if number not in used:
                del self.halves[number]

    @final
    def perform(self, actions: Iterable[Action]) -> None:
        """Do this, in this order."""
        for action in actions:
            self.do(action)

    @final
    def do(self, action: Action) -> None:
        """Do one of these."""
        if isinstance(action, Dial):
            self.begin_dialling(action)
        elif isinstance(action, CancelDial):
            self.give_up_dialling(action.number)
        elif isinstance(action, Reuse):
            self._reuse(action)
        elif isinstance(action, DetachHalf):
            self._leave(action)
        elif isinstance(action, ApplySettings):
            self._ask(action.number)
        elif isinstance(action, Drain):
            half = self.halves[action.number]
            if half.attracts and not half.over:
                half.drain()
            else:
                self.on_half_event(half, HalfEvent.DRAINED, "")
        elif isinstance(action, Resume):
            link = self.halves[action.number].link
            if link.paused:
                link.resume()
        else:
            self.tell(action.kind, action.text)

    def _reuse(self, action: Reuse) -> None:
        terms = self.links.configured.terms(action.remote)
        before = self.halves.get(action.moves_from)
        self.begun(action.number, OwnHalf(action.link, terms, self, self.record, before))

    def _leave(self, action: DetachHalf) -> None:
        half = self.halves[action.number]
        reason = codes.REASONS[action.code]
        half.leave(action.code, reason)
        # Where it was over before, the machine may not know.
        self.on_half_event(half, HalfEvent.LOST, reason)

    def _ask(self, number: int) -> None:
        login = self.machine.login(number)
        half = self.halves[number]
        if login is None or half.over:
            return
        terms = self.links.configured.terms(login.remote)
        if not half.welcomed:
            # It asks when it is welcomed.
            half.terms = terms
            return
        half.take(terms)
        half.want(terms.filters, terms.selectors)
        taker = self.taker
        if taker is not None:
            half.carry(taker)
