"""One router in memory: core, spool and logins, without sockets and threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from vpnrouter import limits
from vpnrouter.bridges.link_registry import LinkRegistry
from vpnrouter.config.model import model_of
from vpnrouter.config.secrets import verify_password
from vpnrouter.core.guaranteed.endpoint_definition import read_definitions
from vpnrouter.core.guaranteed.spool import Spool
from vpnrouter.core.turn import CommitPort
from vpnrouter.server.apply.assemble import build_router
from vpnrouter.server.bridges.flows import BridgeFlows, have_lots
from vpnrouter.server.spool.endpoints import Endpoints
from vpnrouter.settings.trace import Trace
from vpnrouter.spool.ledger import Ledger
from vpnrouter.spool.store import STORE_ID_BYTES, MemoryStore
from vpnrouter.units import MEGABYTE

if TYPE_CHECKING:
    from vpnrouter.config.router import Loaded
    from vpnrouter.core.verifications import PendingLogin
    from vpnrouter.spool.store import Store

MASKED = frozenset({"***", "********"})
"""What stands for a secret that was not given away; it is taken to be right."""


@final
class Commits(CommitPort):
    """Commits to a store in memory at once."""

    def __init__(self, spool: Spool, store: Store) -> None:
        super().__init__()
        self._spool = spool
        self._store = store

    def step(self) -> None:
        """Commit to the store until the spool has nothing left, at most EXPLAIN_COMMITS times."""
        spool = self._spool
        for _ in range(limits.EXPLAIN_COMMITS):
            if not spool.busy:
                return
            batch = spool.end_round()
            if batch is not None:
                self._store.commit(batch)
                spool.committed()


@final
class MemoryRouter:
    """The router of `loaded`. `number` tells it from the others of the mesh.

    Every message is traced, or none, whatever the configuration says.
    """

    def __init__(
        self, loaded: Loaded, number: int, now_ns: int, wall_ns: int, *, traced: bool
    ) -> None:
        self.loaded = loaded
        self.number = number
        config = loaded.config
        self.name = config.router.name
        trace = None
        if traced:
            trace = model_of(Trace).model_validate(
                {"directory": ".", "sample": 1.0, "traceparent": "ignore"}
            )
        self.router = build_router(
            config.model_copy(update={"trace": trace}), number + 1, bytes(16)
        )
        for vpn in self.router.vpns.values():
            if vpn.credentials.client_cert is not None:
                # No authority is asked here.
                vpn.credentials.client_cert.authorities = None
        self.router.tick(now_ns, wall_ns)
        self.book = LinkRegistry(self.router, config.router.name.encode())
        self.store: MemoryStore | None = None
        self.spool: Spool | None = None
        self.flows: BridgeFlows | None = None
        self._verified: dict[tuple[str, bytes], bool] = {}
        if config.guaranteed_msging.enabled:
            self._open_spool()

    def _open_spool(self) -> None:
        config = self.loaded.config
        context = self.router.context
        store = MemoryStore(self.number.to_bytes(STORE_ID_BYTES, "big"))
        spool = Spool(
            context, Ledger(store), config.guaranteed_msging.max_msg_spool_usage * MEGABYTE
        )
        context.spool = spool
        definitions, following = read_definitions(store)
        spool.start_numbers(following)
        endpoints = Endpoints(spool, definitions)
        for name, msg_vpn in config.msg_vpns.items():
            endpoints.configure(self.router.vpns[name], msg_vpn)
            have_lots(endpoints, self.router.vpns[name], msg_vpn)
        context.committing = Commits(spool, store)
        self.store = store
        self.spool = spool
        self.flows = BridgeFlows(spool, store, endpoints)

    def finish_round(self) -> bool:
        """End a round as the edge does; return whether a login was answered."""
        waiting = self.router.verifications.take_all()
        for login in waiting:
            login.settle(self._verify(login))
        context = self.router.context
        context.jobs.finish()
        if context.committing is not None:
            context.committing.step()
        context.ready.clear()
        return bool(waiting)

    def _verify(self, login: PendingLogin) -> bool:
        stored, password = login.stored, login.given
        vpn = self.router.vpns.get(login.vpn)
        username = None if vpn is None else vpn.credentials.usernames.get(login.name)
        if username is None or username.password != stored:
            # A stand-in for a name that is not configured.
            return False
        if stored in MASKED or password.decode(errors="replace") in MASKED:
            return True
        key = (stored, password)
        if key not in self._verified:
            # A hash takes tens of milliseconds, and many bridges may use one username.
            self._verified[key] = verify_password(stored, password)
        return self._verified[key]
