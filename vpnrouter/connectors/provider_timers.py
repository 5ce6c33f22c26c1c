"""The deadlines of a connection to a provider."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from typing_extensions import override

from vpnrouter.core.timers import TimerTarget

if TYPE_CHECKING:
    from vpnrouter.connectors.provider import Provider
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.timers import Timer


@final
class ProviderTimers(TimerTarget):
    """The deadlines of one connection, one of each kind at a time."""

    __slots__ = ("_armed", "_provider")

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._armed: dict[int, Timer] = {}

    def arm(self, kind: int, in_ns: int) -> None:
        """Call the provider's `on_timer` once, unless that is to happen already."""
        if kind not in self._armed:
            context = self._provider.connection.context
            self._armed[kind] = context.timers.arm(context.now_ns + in_ns, self, kind)

    def cancel(self, kind: int) -> None:
        """Call it no more for this kind."""
        timer = self._armed.pop(kind, None)
        if timer is not None:
            timer.cancel()

    def stop(self) -> None:
        """Call it no more."""
        for kind in list(self._armed):
            self.cancel(kind)

    @override
    def owning_connection(self) -> Connection | None:
        return self._provider.connection

    @override
    def on_timer(self, kind: int, now_ns: int) -> None:
        self._armed.pop(kind, None)
        self._provider.on_timer(kind)
