"""Verifies passwords in worker threads: scrypt is slow on purpose, and releases the interpreter lock."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Final

import trio

from vpnrouter import limits
from vpnrouter.config.secrets import verify_password
from vpnrouter.server.net.reactor import flush_ready

if TYPE_CHECKING:
    from vpnrouter.core.router import Router
    from vpnrouter.core.scram import Derivation
    from vpnrouter.core.verifications import PendingLogin

LOGINS: Final = "logins"
"""The name of the tasks that verify passwords."""

THREADS: Final = 1 if (os.cpu_count() or 1) <= 2 else 2
"""Verifications at once: each takes 32 MiB and a core, and more would take the data plane's."""


class PasswordVerifier:
    """Takes the router's waiting logins to worker threads, one for each thread that is free."""

    def __init__(self, router: Router, nursery: trio.Nursery) -> None:
        self._router = router
        self._nursery = nursery
        self._waiting = router.verifications
        self._limiter = trio.CapacityLimiter(THREADS)
        self._running = 0
        # Our own logins do not wait for those of strangers.
        self._own = trio.CapacityLimiter(1)
        self._strangers = trio.CapacityLimiter(1)
        self._threads = trio.CapacityLimiter(2)
        # Strangers whose proofs wait, by address.
        self._proofs: dict[str, int] = {}

    def start_waiting(self) -> None:
        """Begin what can begin; called after each round, nearly free when no login waits."""
        if self._router.derivations:
            self._begin_derivations()
        waiting = self._waiting
        if not len(waiting):
            return
        plain = waiting.plain()
        for login in plain:
            login.settle(verify_password(login.stored, login.given))
        while self._running < THREADS:
            slow = waiting.next()
            if slow is None:
                break
            self._running += 1
            self._nursery.start_soon(self._verify, slow, name=LOGINS)
        if plain:
            flush_ready(self._router.context)

    def _begin_derivations(self) -> None:
        """Have salted passwords computed; of strangers' only so many wait, and of one address fewer."""
        jobs = self._router.derivations[:]
        self._router.derivations.clear()
        proofs = self._proofs
        for job in jobs:
            if job.peer and (
                sum(proofs.values()) >= limits.LINK_PROOFS_WAITING
                or proofs.get(job.peer, 0) >= limits.LINK_PROOFS_OF_ADDRESS
            ):
                job.deriver.underivable("503 Too Many Logins")
                continue
            if job.peer:
                proofs[job.peer] = proofs.get(job.peer, 0) + 1
            self._nursery.start_soon(self._derive, job, name=LOGINS)
        flush_ready(self._router.context)

    async def _derive(self, job: Derivation) -> None:
        try:
            async with self._strangers if job.peer else self._own:
                if job.deriver.waits():
                    salted = await trio.to_thread.run_sync(job.work, limiter=self._threads)
                    job.finish(salted)
        except Exception as error:  # noqa: BLE001 - the barrier's: no thread or memory for it
            self._router.context.barrier.end(job.connection, error)
        finally:
            if job.peer:
                self._proofs[job.peer] -= 1
                if not self._proofs[job.peer]:
                    del self._proofs[job.peer]
        flush_ready(self._router.context)

    async def _verify(self, login: PendingLogin) -> None:
        began_ns = time.monotonic_ns()
        try:
            good = await trio.to_thread.run_sync(
                verify_password, login.stored, login.given, limiter=self._limiter
            )
        except Exception as error:  # noqa: BLE001 - the barrier's: no thread or memory to verify it with
            login.fail(error)
        else:
            self._waiting.took_ns = time.monotonic_ns() - began_ns
            login.settle(good)
        finally:
            self._running -= 1
        flush_ready(self._router.context)
        self.start_waiting()
