"""The running connectors: begun and changed with the configuration, and what is left of those that were removed."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from typing_extensions import override

from vpnrouter.config.configured_connector import login_of
from vpnrouter.core.fault_barrier import CONNECTOR
from vpnrouter.core.mqtt.session import CONNECTOR_PREFIX
from vpnrouter.server.connectors.runner import ConnectorRunner
from vpnrouter.server.objects.running import RunningObjects
from vpnrouter.settings.schema import Effect

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vpnrouter.config.effects import Change
    from vpnrouter.config.router import RouterConfig
    from vpnrouter.connectors.provider_session import ProviderSession
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
        # Connectors that were removed, until they have logged out for good.
        self._leaving: list[ConnectorRunner] = []
        spool = services.spool_service
        self._sessions: dict[tuple[str, str], ProviderSession] = (
            {} if spool is None else spool.provider_sessions
        )

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
        for session in self._sessions.values():
            # Its connector is not configured any more.
            session.erase()
        self._sessions.clear()

    def _begun(self, config: RouterConfig, vpn_name: str, name: str) -> ConnectorRunner:
        vpn = config.msg_vpns[vpn_name]
        client_name = CONNECTOR_PREFIX + name
        session = self._sessions.pop((vpn_name, client_name), None)
        login = _login(config, (vpn_name, name))
        before = next((one for one in reversed(self._leaving) if one.login == login), None)
        bequest = None if before is None else before.bequest()
        if bequest is not None:
            session = bequest
            session.move(vpn_name, client_name)
        runner = ConnectorRunner(
            self.services.book.router,
            self.services.dialler,
            vpn_name,
            name,
            vpn.connectors[name],
            vpn.bridging.tls_server_cert,
            session,
            before,
        )
        self.services.nursery.start_soon(runner.run, name="connectors")
        return runner

    @override
    def change(self, before: RouterConfig, after: RouterConfig, found: Sequence[Change]) -> None:
        running = {(runner.vpn.name, runner.name): runner for runner in self.running}
        there = _places(after)
        hit: dict[Place, bool] = {}
        for change in found:
            for place in there:
                if _is_hit(change, place):
                    hit[place] = hit.get(place, False) or _reconnects(change)
        logins = {_login(after, place) for place in there}
        for place, runner in running.items():
            if place not in there:
                runner.remove(bequeaths=runner.login in logins)
                self._leaving.append(runner)
            elif place in hit:
                vpn = after.msg_vpns[place[0]]
                connector, server_cert = vpn.connectors[place[1]], vpn.bridging.tls_server_cert
                runner.change(connector, server_cert, reconnects=hit[place])
        self._running[:] = [running.get(place) or self._begun(after, *place) for place in there]
        self._leaving[:] = [runner for runner in self._leaving if not runner.ended.is_set()]

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


def _login(config: RouterConfig, place: Place) -> tuple[str, str]:
    """Return the login of a connector, by which its session is known at the provider."""
    vpn_name, name = place
    connector = config.msg_vpns[vpn_name].connectors[name]
    return login_of(config.router.name, vpn_name, name, connector)


def _is_hit(change: Change, place: Place) -> bool:
    """Return whether a change is one for the connector at `place`."""
    path = change.path
    if path[0] != "msg_vpns" or len(path) < 3 or path[1] != place[0]:
        return False
    if path[2] == "connectors":
        return len(path) > 4 and path[3] == place[1]
    return path[2] in ("bridging", "enabled")


def _reconnects(change: Change) -> bool:
    """Return whether a connector that a change is for has to connect anew."""
    return change.path[2] != "connectors" or change.kind is not Effect.IN_PLACE
