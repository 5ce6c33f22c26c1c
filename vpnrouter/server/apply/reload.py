"""Brings a running router from one checked configuration to another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter.config.diff import changes
from vpnrouter.config.effects import NEEDS_RESTART, describe
from vpnrouter.config.model import changed
from vpnrouter.config.router import RouterConfig
from vpnrouter.management.config.editor import PreparedChange
from vpnrouter.server.apply.assemble import read_authorities, take_authorities, vpn_of
from vpnrouter.server.apply.listener_change import ListenerChange
from vpnrouter.server.apply.message_vpn_change import change_message_vpn, remove_message_vpn
from vpnrouter.server.net.reactor import flush_ready
from vpnrouter.settings.schema import Effect

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vpnrouter.config.locations import Locations
    from vpnrouter.server.net.listeners import ListenerSet
    from vpnrouter.server.objects.running import RunningObjects, Services
    from vpnrouter.settings.endpoint import GuaranteedMsging
    from vpnrouter.settings.kinds import Kind


FIXED: Final = ("router", "trace")
"""Top-level keys that hold until the router stops; every key below them needs a restart."""


@final
class Reload:
    """Changes a running router. `config` is what is in force; `secret` is that of its passwords.

    `objects` are changed in place. Called in the router's thread only; nothing here waits, so that nobody sees half of
    a change. Either call it, or `prepare`, and then commit or abandon that change before the next.
    """

    def __init__(
        self,
        config: RouterConfig,
        secret: bytes,
        services: Services,
        answering: ListenerSet,
        objects: Mapping[Kind, RunningObjects],
    ) -> None:
        self.config = config
        self._secret = secret
        self._services = services
        self._book = services.book
        self._dialler = services.dialler
        self._spool_service = services.spool_service
        self._answering = answering
        self._objects = objects

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
        for objects in self._objects.values():
            objects.change(before, after, found)
        for name in before.msg_vpns:
            if name not in after.msg_vpns:
                vpn = router.vpns[name]
                remove_message_vpn(vpn, self._book)
                if self._spool_service is not None:
                    self._spool_service.remove(vpn)
        listeners.apply()
        self._answering.admit(after.management)
        self.tell_ports()
        for objects in self._objects.values():
            objects.settle()
        self.config = after
        flush_ready(router.context)
        return [describe(change) for change in found] + told

    def begin_all(self) -> None:
        """Start the objects of the configuration that is in force."""
        for objects in self._objects.values():
            objects.begin(self.config)

    def tell_ports(self) -> None:
        """Let peers learn the ports of the link listeners again."""
        self._book.link_port = self._answering.port_of("link")
        self._book.links_port = self._answering.port_of("links")


def _with_spool_as_before(before: RouterConfig, after: RouterConfig) -> GuaranteedMsging:
    """The settings of the spool; whether there is one holds until the router stops."""
    enabled = before.guaranteed_msging.enabled
    return changed(after.guaranteed_msging, enabled=enabled)
