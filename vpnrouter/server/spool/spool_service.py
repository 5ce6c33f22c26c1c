"""Opens the message spool of a router and recovers the messages of its endpoints."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, final

import trio

from vpnrouter.config.checks.listeners import SPOOL_FOLDER
from vpnrouter.connectors.provider_session import restore_provider_sessions
from vpnrouter.core.amqp.subscriptions import restore_subscriptions
from vpnrouter.core.credentials import Credentials
from vpnrouter.core.fault_barrier import SPOOL
from vpnrouter.core.guaranteed.endpoint_definition import EndpointDefinition, read_definitions
from vpnrouter.core.guaranteed.endpoint_settings import REPLAY_LOG, SESSION, SUBSCRIPTION
from vpnrouter.core.guaranteed.recover import recover, recover_retained
from vpnrouter.core.guaranteed.spool import Spool
from vpnrouter.core.mqtt.restore import restore_sessions, restore_wills
from vpnrouter.core.vpn import MessageVpn
from vpnrouter.errors import OperationError, SpoolError
from vpnrouter.events.table import SPOOL_RECOVERED
from vpnrouter.server.bridges.flows import have_lots
from vpnrouter.server.crash_points import crash_point_from_environment
from vpnrouter.server.events.event_context import raise_event_in
from vpnrouter.server.net.reactor import flush_ready
from vpnrouter.server.spool.committer import Committer
from vpnrouter.server.spool.endpoints import Endpoints
from vpnrouter.server.spool.held_counts import count_now
from vpnrouter.server.spool.saved_counters import SavedCounters, restore_endpoints
from vpnrouter.spool.ledger import Ledger
from vpnrouter.units import MEGABYTE

if TYPE_CHECKING:
    from vpnrouter.config.router import RouterConfig
    from vpnrouter.connectors.provider_session import ProviderSession
    from vpnrouter.core.router import Router
    from vpnrouter.server.net.reactor import Reactor
    from vpnrouter.spool.store import Store


def open_store(config: RouterConfig) -> Store | None:
    """The store of a configured router; None where guaranteed messaging is off.

    Raises OperationError when it cannot be opened: locked by another router, damaged, of another version,
    not permitted, no room, put aside by a restore that was cut off.
    """
    if not config.guaranteed_msging.enabled:
        return None
    from vpnrouter.spool.rocks_store import RocksStore
    from vpnrouter.spool.store_files import has_store

    spool = Path(config.router.data_dir) / SPOOL_FOLDER
    old = spool.with_name("spool.old")
    if old.exists() and not has_store(spool):
        # Beginning with an empty spool would lose all that was acknowledged.
        raise OperationError(
            f"{spool} is not there, but {old} is: a restore was cut off; rename {old.name} to {spool.name} for"
            " what was there before, then restore again if you want to"
        )
    try:
        return RocksStore(spool)
    except SpoolError as error:
        raise OperationError(_with_way_out(error)) from error


def open_spool(router: Router, config: RouterConfig) -> SpoolService | None:
    """The spool of `router`, recovered; None where guaranteed messaging is off. Raises OperationError."""
    store = open_store(config)
    if store is None:
        return None
    router.context.now_ns = time.monotonic_ns()
    router.context.wall_ns = time.time_ns()
    return SpoolService(router, store, config)


def _with_way_out(error: SpoolError) -> str:
    """The text of an error that a start met while it read the spool."""
    from vpnrouter.spool.store_files import WAY_OUT

    text = str(error)
    damaged = error.reason in {"corrupt", "gone"} and WAY_OUT not in text
    return f"{text}; {WAY_OUT}" if damaged else text


@final
class SpoolService:
    """The spool of a running router: `endpoints` makes and changes those of the configuration."""

    def __init__(self, router: Router, store: Store, config: RouterConfig) -> None:
        """Recover everything that `store` holds. Raises OperationError for what cannot be read."""
        self.store = store
        self._router = router
        context = router.context
        try:
            definitions, following = read_definitions(store)
            spool = Spool(
                context, Ledger(store), config.guaranteed_msging.max_msg_spool_usage * MEGABYTE
            )
            spool.fault = crash_point_from_environment()
            self.spool = spool
            context.spool = spool
            spool.start_numbers(following)
            self.endpoints = Endpoints(spool, definitions)
            for name, configured in config.msg_vpns.items():
                self.endpoints.configure(router.vpns[name], configured)
                have_lots(self.endpoints, router.vpns[name], configured)
            by_number = self.endpoints.by_number
            vpns = {**router.vpns, **self._absent(router, definitions)}
            self.provider_sessions: dict[tuple[str, str], ProviderSession] = {}
            for vpn in vpns.values():
                for session in restore_provider_sessions(spool, store, vpn.name):
                    self.provider_sessions[vpn.name, session.client_name] = session
                vpn.known_links.restore(spool.ledger, store)
                restored = restore_sessions(vpn, store)
                restored += restore_subscriptions(vpn, spool, definitions)
                for endpoint in restored:
                    by_number[endpoint.number] = endpoint
            self._orphans(vpns, definitions)
            recover_retained(store, vpns)
            count = recover(spool, store, by_number)
            restore_endpoints(spool, store, by_number)
            for vpn in router.vpns.values():
                restore_wills(vpn, store)
        except SpoolError as error:
            store.close()
            raise OperationError(_with_way_out(error)) from error
        if count:
            raise_event_in(context, SPOOL_RECOVERED, f"{count:,} messages wait in the spool")
        self.endpoints.tell_orphans()
        self.sheets: SavedCounters | None = None
        self.committer = Committer(spool, store)
        context.committing = self.committer

    def _absent(
        self, router: Router, definitions: list[EndpointDefinition]
    ) -> dict[str, MessageVpn]:
        """Message VPNs of which the store has endpoints and the configuration nothing."""
        found: dict[str, MessageVpn] = {}
        for definition in definitions:
            name = definition.vpn
            if name not in router.vpns and name not in found:
                found[name] = MessageVpn(name, router.context, Credentials(False, ()), {}, {})
                self.endpoints.keep_absent(found[name])
        return found

    def _orphans(self, vpns: dict[str, MessageVpn], definitions: list[EndpointDefinition]) -> None:
        """Keep queues that the store knows and the configuration does not, shut down; forget the rest."""
        for definition in definitions:
            if definition.number in self.endpoints.by_number:
                continue
            if definition.kind in (SESSION, REPLAY_LOG, SUBSCRIPTION):
                self.endpoints.forget(definition)
            else:
                self.endpoints.keep_orphan(vpns[definition.vpn], definition)

    def serve_with(self, reactor: Reactor | None) -> None:
        """Let rounds of `reactor` hear of commits; without one, this trio run."""
        committer = self.committer
        if reactor is not None and committer.fd >= 0:
            reactor.call(committer.fd, committer.finished)
            return
        context = self.spool.context
        token = trio.lowlevel.current_trio_token()

        def hear() -> None:
            context.now_ns = time.monotonic_ns()
            context.wall_ns = time.time_ns()
            try:
                committer.finished()
            except Exception as error:  # noqa: BLE001 - given to the barrier
                context.barrier.caught(error, SPOOL, "", "", "goes on")
            flush_ready(context)

        def wake_up() -> None:
            # After the run has ended nobody is left who waits.
            with contextlib.suppress(trio.RunFinishedError):
                token.run_sync_soon(hear)

        committer.wake_with(wake_up)

    def change(
        self, router: Router, config: RouterConfig, before: RouterConfig | None = None
    ) -> None:
        """Take over the endpoints of a changed configuration; `before` is the one that holds."""
        self.spool.max_usage = config.guaranteed_msging.max_msg_spool_usage * MEGABYTE
        for name, configured in config.msg_vpns.items():
            known = None if before is None else before.msg_vpns.get(name)
            if known is not configured:
                self.endpoints.configure(router.vpns[name], configured, known)

    def remove(self, vpn: MessageVpn) -> None:
        """Let go of the endpoints of a message VPN that is not configured any more."""
        self.endpoints.remove(vpn)

    def vpns(self) -> list[MessageVpn]:
        """The message VPNs of which the store has something."""
        return [*self._router.vpns.values(), *self.endpoints.absent()]

    def close(self) -> None:
        """Commit what is left, and close the store."""
        count_now(self.store, self.vpns())
        if self.sheets is not None:
            self.sheets.write_all()
        self.committer.close()
