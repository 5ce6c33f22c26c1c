"""Makes the policy for messages that cannot be delivered from the configuration of a bridge or a link."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vpnrouter.core.guaranteed.endpoint_settings import CONNECTOR_LINK, QUEUE
from vpnrouter.core.guaranteed.failure_policy import DeadMsgQueue, FailurePolicy
from vpnrouter.settings.schema import apply_settings
from vpnrouter.units import MILLISECOND_NS, SECOND_NS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vpnrouter.settings.failures import DeadMsgQueue as Written
    from vpnrouter.settings.failures import Failures


def failures_of(written: Failures, queues: Sequence[str] = ()) -> FailurePolicy:
    """Return what is done with messages that cannot be delivered.

    `queues` are, for each entry of the list, the queue from which a connector takes to the address of that.
    """
    places = [
        _place(entry, queues[at] if entry.address is not None else "")
        for at, entry in enumerate(written.dead_msg_queues)
    ]
    return apply_settings(FailurePolicy(dead_msg_queues=places), written)


def _place(written: Written, link_queue: str) -> DeadMsgQueue:
    kind, shown = QUEUE, f"queue {written.queue}"
    if written.topic is not None:
        shown = f"topic {written.topic}"
    elif written.address is not None:
        kind, shown = CONNECTOR_LINK, f"address {written.address}"
    return DeadMsgQueue(
        shown=shown,
        name=written.queue or link_queue,
        kind=kind,
        topic=written.topic or "",
        attempts=written.attempts,
        interval_ns=written.interval * MILLISECOND_NS,
        ttl_ns=written.ttl * SECOND_NS,
    )
