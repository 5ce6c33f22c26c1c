"""Brings a running router from one checked configuration to another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

import trio

from vpnrouter.config.diff import changes
from vpnrouter.config.effects import NEEDS_RESTART, describe
from vpnrouter.config.model import changed
from vpnrouter.config.router import RouterConfig
from vpnrouter.core.mqtt.session import CONNECTOR_PREFIX
from vpnrouter.management.config.editor import PreparedChange
from vpnrouter.server.apply.assemble import read_authorities, take_authorities, vpn_of
from vpnrouter.server.apply.changes import (
    ListenerChange,
    change_bridges,
    change_connectors,
    change_message_vpn,
    connector_login,
    remove_message_vpn,
    rename_outward,
)
from vpnrouter.server.bridges.flows import BridgeFlows
from vpnrouter.server.bridges.runner import BridgeRunner
from vpnrouter.server.connectors.runner import ConnectorRunner
from vpnrouter.server.net.reactor import flush_ready
from vpnrouter.settings.listener import server_certificate
from vpnrouter.settings.schema import Effect

if TYPE_CHECKING:
    from vpnrouter.bridges.link_registry import LinkRegistry
    from vpnrouter.config.locations import Locations
    from vpnrouter.connectors.mqtt.session import ProviderSession
    from vpnrouter.server.net.dial import Dialler
    from vpnrouter.server.net.listeners import ListenerSet
    from vpnrouter.server.spool.spool_service import SpoolService
    from vpnrouter.settings.endpoint import GuaranteedMsging


FIXED: Final = ("router", "trace")
"""Top-level keys that hold until the router stops; every key below them needs a restart."""


@final
class Reload:
    """Changes a running router. `config` is what is in force; `secret` is that of its passwords.

    `runners` and `connectors` are changed in place. Called in the router's thread only; nothing here waits, so that
    nobody sees half of a change. Either call it, or `prepare`, and then commit or abandon that change before the next.
    """

    def __init__(
        self,
        config: RouterConfig,
        secret: bytes,
        book: LinkRegistry,
        dialler: Dialler,
        answering: ListenerSet,
        runners: list[BridgeRunner],
        nursery: trio.Nursery,
        spool_service: SpoolService | None = None,
        connectors: list[ConnectorRunner] | None = None,
    ) -> None:
        self._connectors: list[ConnectorRunner] = [] if connectors is None else connectors
        # Connectors that were removed, until they have logged out for good.
        self._leaving: list[ConnectorRunner] = []
        self._spool_service = spool_service
        self._flows: BridgeFlows | None = None
        self._provider_sessions: dict[tuple[str, str], ProviderSession] = {}
        if spool_service is not None:
            self._provider_sessions = spool_service.provider_sessions
            self._flows = BridgeFlows(
                spool_service.spool, spool_service.store, spool_service.endpoints
            )
        self.config = config
        self._secret = secret
        self._book = book
        self._dialler = dialler
        self._answering = answering
        self._runners = runners
        self._nursery = nursery

    def __call__(self, config: RouterConfig) -> list[str]:
        """Put a checked configuration into force; returns one line for each difference.

        What needs a restart stays as it was, and is told again as long as it differs. The TLS files of
        listeners, and those of authorities of message VPNs, are read again in any case. Raises OperationError
        when an address cannot be bound or a file not be used; nothing has changed then.
        """
        return self.prepare(config).commit()

    def prepare(self, config: RouterConfig, locations: Locations | None = None) -> PreparedChange:
        """Do what can fail of such a change: bind new addresses, read the TLS files of listeners and message VPNs.

        `locations` are those that bridges may dial once the change is in force; None leaves them as they are.
        Raises OperationError; nothing has changed then.
        """
        before = self.config
        after = config.model_copy(
            update={key: getattr(before, key) for key in FIXED}
            | {"guaranteed_msging": _with_spool_as_before(before, config)}
        )
        authorities = read_authorities(after)
        listeners = ListenerChange(self._answering, after.listeners)

        def commit() -> list[str]:
            if locations is not None:
                self._dialler.locations = locations
            return self._commit(config, after, authorities, listeners)

        return PreparedChange(commit, listeners.abandon)

    def _commit(
        self,
        config: RouterConfig,
        after: RouterConfig,
        authorities: dict[str, frozenset[bytes]],
        listeners: ListenerChange,
    ) -> list[str]:
        """Put `after` into force, which is `config` but for what needs a restart."""
        before = self.config
        found = changes(before, after)
        told = [
            NEEDS_RESTART + describe(change).removesuffix(f" ({Effect.RESTART.value})")
            for change in changes(before, config)
            if change.kind is Effect.RESTART
        ]
        self._dialler.set_clocks()
        router = self._book.router
        for name, configured in after.msg_vpns.items():
            known = before.msg_vpns.get(name)
            if known is None:
                router.add(vpn_of(router, name, configured, self._secret))
            elif known != configured:
                change_message_vpn(router.vpns[name], self._book, known, configured, self._secret)
        take_authorities(router, authorities)
        if self._spool_service is not None:
            self._spool_service.change(router, after, before)
        change_bridges(
            self._runners, before, after, found, lambda vpn, name: self._begin(after, vpn, name)
        )
        for runner in self._runners:
            runner.identity = server_certificate(after.listeners)
        change_connectors(
            self._connectors,
            after,
            found,
            lambda vpn, name: self._connect(after, vpn, name),
            self._leaving,
        )
        for name in before.msg_vpns:
            if name not in after.msg_vpns:
                vpn = router.vpns[name]
                remove_message_vpn(vpn, self._book)
                if self._spool_service is not None:
                    self._spool_service.remove(vpn)
        listeners.apply()
        self._answering.admit(after.management)
        self.tell_ports()
        rename_outward(self._book)
        self.config = after
        flush_ready(router.context)
        return [describe(change) for change in found] + told

    def begin_all(self) -> None:
        """Start the bridges and connectors of the configuration that is in force."""
        for vpn_name, vpn in self.config.msg_vpns.items():
            for name in vpn.bridges:
                self._runners.append(self._begin(self.config, vpn_name, name))
            for name in vpn.connectors:
                self._connectors.append(self._connect(self.config, vpn_name, name))
        if self._flows is not None:
            self._flows.look_for_gone()
        for session in self._provider_sessions.values():
            # Its connector is not configured any more.
            session.erase()
        self._provider_sessions.clear()

    def tell_ports(self) -> None:
        """Let peers learn the ports of the link listeners again."""
        self._book.link_port = self._answering.port_of("link")
        self._book.links_port = self._answering.port_of("links")

    def _begin(self, config: RouterConfig, vpn_name: str, name: str) -> BridgeRunner:
        vpn = config.msg_vpns[vpn_name]
        runner = BridgeRunner(
            self._book,
            self._dialler,
            vpn_name,
            name,
            vpn.bridges[name],
            vpn.bridging.tls_server_cert,
            flows=self._flows,
        )
        runner.identity = server_certificate(config.listeners)
        self._nursery.start_soon(runner.run, name="bridges")
        return runner

    def _connect(self, config: RouterConfig, vpn_name: str, name: str) -> ConnectorRunner:
        vpn = config.msg_vpns[vpn_name]
        client_name = CONNECTOR_PREFIX + name
        session = self._provider_sessions.pop((vpn_name, client_name), None)
        login = connector_login(config, (vpn_name, name))
        before = next((one for one in reversed(self._leaving) if one.login == login), None)
        bequest = None if before is None else before.bequest()
        if bequest is not None:
            session = bequest
            session.move(vpn_name, client_name)
        runner = ConnectorRunner(
            self._book.router,
            self._dialler,
            vpn_name,
            name,
            vpn.connectors[name],
            vpn.bridging.tls_server_cert,
            session,
            before,
        )
        self._nursery.start_soon(runner.run, name="connectors")
        return runner


def _with_spool_as_before(before: RouterConfig, after: RouterConfig) -> GuaranteedMsging:
    """The settings of the spool; whether there is one holds until the router stops."""
    enabled = before.guaranteed_msging.enabled
    return changed(after.guaranteed_msging, enabled=enabled)
