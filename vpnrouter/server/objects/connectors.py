"""The running connectors: begun and changed with the configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from typing_extensions import override

from vpnrouter.config.configured_connector import connections_of, login_of
from vpnrouter.core.fault_barrier import CONNECTOR
from vpnrouter.server.connectors.provider_logins import ProviderLogins
from vpnrouter.server.connectors.runner import WHOLE, ConnectorRunner
from vpnrouter.server.objects.running import RunningObjects
from vpnrouter.settings.schema import Effect

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vpnrouter.config.effects import Change
    from vpnrouter.config.router import RouterConfig
    from vpnrouter.connectors.status import ConnectorLook
    from vpnrouter.server.objects.running import Services
    from vpnrouter.settings.kinds import Kind


Place = tuple[str, str]
"""A connector: its message VPN and its name."""


@final
class ConnectorObjects(RunningObjects):
    """The connectors, each with its task."""

    def __init__(self, kind: Kind, services: Services) -> None:
        super().__init__(kind, services)
        self._running: list[ConnectorRunner] = []
        spool = services.spool_service
        self._logins = ProviderLogins({} if spool is None else spool.provider_sessions)

    @property
    @override
    def running(self) -> list[ConnectorRunner]:
        return self._running

    @override
    def look(self, one: ConnectorRunner) -> ConnectorLook:
        return one.look()

    @override
    def sample(self, now_ns: int) -> None:
        for runner in self._running:
            runner.sample(now_ns)

    @override
    def begin(self, config: RouterConfig) -> None:
        self._running += [self._begun(config, *place) for place in _places(config)]
        self._logins.erase()

    def _begun(self, config: RouterConfig, vpn_name: str, name: str) -> ConnectorRunner:
        vpn = config.msg_vpns[vpn_name]
        runner = ConnectorRunner(
            self.services.book.router,
            self.services.dialler,
            vpn_name,
            name,
            vpn.connectors[name],
            vpn.bridging.tls_server_cert,
            self._logins,
        )
        self.services.nursery.start_soon(runner.run, name="connectors")
        return runner

    @override
    def change(self, before: RouterConfig, after: RouterConfig, found: Sequence[Change]) -> None:
        running = {(runner.vpn.name, runner.name): runner for runner in self.running}
        there = _places(after)
        hit: dict[Place, set[str]] = {}
        for change in found:
            for place in there:
                if _is_hit(change, place):
                    hit.setdefault(place, set()).update(_made_anew(change))
        self._logins.wanted = _logins(after)
        for place, runner in running.items():
            if place not in there:
                runner.remove()
        for place, links in hit.items():
            if place in running:
                vpn = after.msg_vpns[place[0]]
                connector, server_cert = vpn.connectors[place[1]], vpn.bridging.tls_server_cert
                running[place].change(connector, server_cert, links)
        self._running[:] = [running.get(place) or self._begun(after, *place) for place in there]

    @override
    def goodbye(self, why: str) -> None:
        barrier = self.services.book.router.context.barrier
        for runner in self.running:
            try:
                runner.leave(why)
            except Exception as error:  # noqa: BLE001 - given to the barrier: the others hear why
                barrier.caught(error, CONNECTOR, runner.name, runner.vpn.name)


def _places(config: RouterConfig) -> list[Place]:
    return [
        (vpn_name, name) for vpn_name, vpn in config.msg_vpns.items() for name in vpn.connectors
    ]


def _logins(config: RouterConfig) -> set[tuple[str, str]]:
    """Return the logins of all connections, by which their sessions are known at the providers."""
    return {
        login_of(config.router.name, vpn_name, name, connector, link)
        for vpn_name, vpn in config.msg_vpns.items()
        for name, connector in vpn.connectors.items()
        for link in connections_of(connector)
    }


def _is_hit(change: Change, place: Place) -> bool:
    """Return whether a change is one for the connector at `place`."""
    path = change.path
    if path[0] != "msg_vpns" or len(path) < 3 or path[1] != place[0]:
        return False
    if path[2] == "connectors":
        return len(path) > 4 and path[3] == place[1]
    return path[2] in ("bridging", "enabled")


def _made_anew(change: Change) -> list[str]:
    """Return the link whose connection a change makes anew, WHOLE for all of the connector, [] for none."""
    if change.path[2] != "connectors":
        return [WHOLE]
    if change.kind is Effect.IN_PLACE:
        return []
    match change.path[4:]:
        case ("links", str(link), *_):
            return [link]
    return [WHOLE]
