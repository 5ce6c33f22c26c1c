"""The running bridges: begun and changed with the configuration, and the links of peers whose topics they rename."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from typing_extensions import override

from vpnrouter.bridges.peer_subscriptions import PeerSubscriptions
from vpnrouter.config.effects import Item
from vpnrouter.errors import Refused
from vpnrouter.server.bridges.flows import BridgeFlows
from vpnrouter.server.bridges.runner import BridgeRunner
from vpnrouter.server.objects.running import RunningObjects
from vpnrouter.settings.listener import server_certificate
from vpnrouter.settings.schema import Effect
from vpnrouter.wire.link import codes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from vpnrouter.bridges.link import Link
    from vpnrouter.bridges.link_registry import LinkRegistry
    from vpnrouter.config.effects import Change
    from vpnrouter.config.router import RouterConfig
    from vpnrouter.server.objects.running import Services
    from vpnrouter.settings.kinds import Kind
    from vpnrouter.topics.mapping import TopicMapping


Place = tuple[str, str]
"""A bridge: its message VPN and its name."""

_REMOTE_AT: Final = 5
"""Where the path of a change to a remote message VPN of a bridge says which one."""


@final
class BridgeObjects(RunningObjects):
    """The router's own bridges, each with its task."""

    def __init__(self, kind: Kind, services: Services) -> None:
        super().__init__(kind, services)
        self._running: list[BridgeRunner] = []
        spool = services.spool_service
        self._flows = (
            None if spool is None else BridgeFlows(spool.spool, spool.store, spool.endpoints)
        )

    @property
    @override
    def running(self) -> list[BridgeRunner]:
        return self._running

    @override
    def begin(self, config: RouterConfig) -> None:
        self._running += [self._begun(config, *place) for place in _places(config)]
        if self._flows is not None:
            self._flows.look_for_gone()

    def _begun(self, config: RouterConfig, vpn_name: str, name: str) -> BridgeRunner:
        vpn = config.msg_vpns[vpn_name]
        runner = BridgeRunner(
            self.services.book,
            self.services.dialler,
            vpn_name,
            name,
            vpn.bridges[name],
            vpn.bridging.tls_server_cert,
            flows=self._flows,
        )
        runner.identity = server_certificate(config.listeners)
        self.services.nursery.start_soon(runner.run, name="bridges")
        return runner

    @override
    def change(self, before: RouterConfig, after: RouterConfig, found: Sequence[Change]) -> None:
        there = _places(after)
        stay: dict[Place, BridgeRunner] = {}
        for runner in self.running:
            place = (runner.vpn.name, runner.name)
            if place in there:
                stay[place] = runner
            else:
                runner.remove()
                if runner.flow is not None:
                    runner.flow.remove()
        moved = reconnects(stay, found)
        for place in stay:
            if before.msg_vpns[place[0]].enabled != after.msg_vpns[place[0]].enabled:
                moved.setdefault(place, False)
        # Two bridges may have changed roles: what each renames is forgotten before any is told anew.
        for place in moved:
            stay[place].links.forget()
        for (vpn_name, name), reconnect in moved.items():
            vpn = after.msg_vpns[vpn_name]
            runner = stay[vpn_name, name]
            runner.change(vpn.bridges[name], vpn.bridging.tls_server_cert, reconnect=reconnect)
        self._running[:] = [
            stay[place] if place in stay else self._begun(after, *place) for place in there
        ]
        for runner in self.running:
            runner.identity = server_certificate(after.listeners)

    @override
    def settle(self) -> None:
        rename_outward(self.services.book)

    @override
    def goodbye(self, why: str) -> None:
        book = self.services.book
        own = [half.link for runner in self.running for half in runner.halves.values()]
        for link in [*book.serving.values(), *own]:
            try:
                link.goodbye(codes.SHUTTING_DOWN, codes.REASONS[codes.SHUTTING_DOWN])
            except Exception as error:  # noqa: BLE001 - given to the barrier: the others hear why
                book.router.context.barrier.end(link, error)


def _places(config: RouterConfig) -> list[Place]:
    return [(vpn_name, name) for vpn_name, vpn in config.msg_vpns.items() for name in vpn.bridges]


def reconnects(stay: dict[Place, BridgeRunner], found: Iterable[Change]) -> dict[Place, bool]:
    """The bridges among `stay` that `found` changes, and whether each has to reconnect."""
    moved: dict[Place, bool] = {}
    for change in found:
        if change.path[0] != "msg_vpns" or len(change.path) < 3:
            continue
        for place, runner in stay.items():
            if place[0] != change.path[1]:
                continue
            if change.path[2] == "bridging":
                moved[place] = moved.get(place, False) or _is_encrypted(runner)
            elif change.path[2] == "bridges" and place[1] == change.path[3]:
                moved[place] = moved.get(place, False) or _is_hit(runner, change)
    return moved


def _is_encrypted(runner: BridgeRunner) -> bool:
    return runner.half is not None and runner.half.link.tls


def _is_hit(runner: BridgeRunner, change: Change) -> bool:
    if change.kind is not Effect.RECONNECT_IF_USED:
        return change.kind is Effect.RECONNECT
    used = runner.machine.remotes.current
    remote = change.path[_REMOTE_AT]
    return (
        used is not None
        and isinstance(remote, Item)
        and remote.identity == (used.msg_vpn, used.location)
    )


def rename_outward(book: LinkRegistry) -> None:
    """Let each link that serves a bridge of a peer rename what leaves as `book.out_mappings` says now.

    What the peer asked for stands for other topics here under another mapping, so it is asked for anew. A
    peer for whom that is too much (its client profile bounds subscriptions) logs in again.
    """
    for link in list(book.serving.values()):
        peer = link.peer_half
        if peer is None or link.vpn is None:
            continue
        hello = peer.hello
        mapping = book.out_mapping(link.vpn.name, hello.router, hello.local_vpn)
        if _shown(mapping) == _shown(peer.mapping):
            continue
        peer.mapping = mapping
        if peer.flows is not None:
            peer.flows.rename(mapping)
        if not _ask_anew(link, mapping):
            code = codes.ADMINISTRATIVE
            link.goodbye(code, f"{codes.REASONS[code]}: other topic mapping")


def _shown(mapping: TopicMapping | None) -> list[tuple[str, str, list[int]]]:
    """The parts of a mapping by which two mappings are compared: label, filter and kinds of each rule."""
    rules = [] if mapping is None else mapping.rules
    return [(rule.label, rule.filter.text, list(rule.filter.kinds)) for rule in rules]


def _ask_anew(link: Link, mapping: TopicMapping | None) -> bool:
    """Put the subscriptions of the peer in terms of another mapping; False where one is not possible."""
    peer, client, admission = link.peer_half, link.client, link.admission
    before = None if peer is None else peer.attracted
    if peer is None or client is None or admission is None or before is None:
        return False
    client.vpn.drop(client)
    client.rename(mapping)
    peer.attracted = PeerSubscriptions(client, admission, mapping)
    try:
        for text, (flags, selector) in before.asked.items():
            peer.attracted.subscribe_one(flags, text, selector)
    except Refused:
        return False
    return True
