"""Shares among the message VPNs of a router its traces, bounds and message spool."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from vpnrouter import limits
from vpnrouter.core.discard_rows import DiscardRows
from vpnrouter.core.retained import RetainedBytes
from vpnrouter.core.tracing import TraceSettings
from vpnrouter.core.turn import TurnContext
from vpnrouter.core.username_quota import UsernameQuota
from vpnrouter.trace.sampler import Sampler

if TYPE_CHECKING:
    from vpnrouter.core.message import Message
    from vpnrouter.core.route import Route
    from vpnrouter.core.timers import Job
    from vpnrouter.core.tracing import TopicSamplers
    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.spool.ledger import Ledger
    from vpnrouter.trace.recorder import Recorder


class SpoolPort:
    """The interface of `Spool` for Direct and retained messages. `ledger` holds the content of the store."""

    __slots__ = ("ledger",)

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger

    def promote(self, vpn: MessageVpn, route: Route, message: Message) -> bool:
        """Spool a Direct message for the endpoints that match it; True when one took it.

        Where there is no room it is discarded and counted.
        """
        raise AssertionError(self)

    def obstacle(self, vpn: MessageVpn, size: int) -> str:
        """Why neither the message VPN nor the router has room for `size` bytes more, "" when they have."""
        raise AssertionError(self)

    def crowded(self) -> bool:
        """Return whether so much waits for the next commit that large messages have to wait for the one after it."""
        raise AssertionError(self)

    def await_commit(self, job: Job) -> None:
        """Have a job go on when the next commit has begun."""
        raise AssertionError(job)


@final
class RouterContext(TurnContext):
    """Shared state of a router, written by one task only.

    `spool` is None without guaranteed messaging, `discard_rows` None where traces have no rows for untraced messages.
    `filters`, `honours` and `emits` come from the trace settings (tracing.py); `pickings` are the samplers by topic in
    use, by the indices of their filters. `wills` counts bytes of wills, `retained` bytes of retained messages in the
    spool, each over all message VPNs.
    """

    __slots__ = (
        "discard_rows",
        "emits",
        "filters",
        "honours",
        "pickings",
        "retained",
        "sampler",
        "spool",
        "wills",
    )

    def __init__(
        self,
        router_name: str,
        seed: int,
        recorder: Recorder,
        sample: float,
        terms: TraceSettings | None = None,
    ) -> None:
        super().__init__(router_name, seed, recorder, sample > 0.0 or terms is not None)
        self.sampler = Sampler(sample, seed)
        wanted = terms or TraceSettings()
        self.filters = wanted.filters
        self.pickings: dict[bytes, TopicSamplers] = {}
        self.honours = wanted.honours
        self.emits = wanted.emits
        self.discard_rows: DiscardRows | None = None
        if wanted.discards or wanted.rejects:
            self.discard_rows = DiscardRows(self, wanted.discards, wanted.rejects)
        self.retained = RetainedBytes()
        self.wills = UsernameQuota(limits.WILL_BYTES_ALL)
        self.spool: SpoolPort | None = None
