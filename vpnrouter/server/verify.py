"""Verify passwords off the data plane: scrypt is slow on purpose, and releases the interpreter lock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from vpnrouter.config.passwords import is_hash, verify_password
from vpnrouter.server.flush import flush_ready

if TYPE_CHECKING:
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.router import Router

THREADS: Final = 2
"""Verifications at once: more would take the data plane's core away."""


class Verifier:
    """Takes the router's waiting logins to worker threads."""

    def __init__(self, router: Router, nursery: trio.Nursery) -> None:
        self._router = router
        self._nursery = nursery
        self._limiter = trio.CapacityLimiter(THREADS)

    def start_waiting(self) -> None:
        """Begin all logins that wait; called after each round, nearly free when there is none."""
        waiting = self._router.verifications
        if waiting:
            for connection in waiting[:]:
                stored = connection.stored_password
                if is_hash(stored):
                    self._nursery.start_soon(self._verify, connection, stored)
                else:
                    self._tell(connection, verify_password(stored, connection.given_password))
            waiting.clear()
            flush_ready(self._router.plane)

    async def _verify(self, connection: Connection, stored: str) -> None:
        try:
            good = await trio.to_thread.run_sync(
                verify_password, stored, connection.given_password, limiter=self._limiter
            )
        except Exception as error:  # noqa: BLE001 - the barrier's: no thread or memory to verify it with
            self._router.plane.barrier.end(connection, error)
        else:
            self._tell(connection, good)
        flush_ready(self._router.plane)

    def _tell(self, connection: Connection, good: bool) -> None:
        try:
            connection.password_verified(good)
        except Exception as error:  # noqa: BLE001 - the same
            self._router.plane.barrier.end(connection, error)
