"""Takes back what a consumer holds when it ends: a few messages at once, many in slices.

What is on its way back belongs to no consumer: no bind is refused for it, and nobody waits for it to be gone. The order
holds meanwhile: from a partition of the consumer, from an exclusive endpoint, and from one that had no other consumer,
nothing is delivered until all is back, as while an endpoint is sorted anew. Where other consumers shared the messages,
these go on.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final, final

from vpnrouter.core.fault_barrier import SPOOL
from vpnrouter.core.guaranteed.flow import Flow
from vpnrouter.core.guaranteed.waiting_list import WaitingList
from vpnrouter.core.timers import Job

if TYPE_CHECKING:
    from vpnrouter.core.guaranteed.endpoint import Endpoint

AT_ONCE: Final = 128
"""Messages that go back in the turn in which their consumer ends, if that has not done enough already."""

RETURN_WORK: Final = 2
"""What it costs to take a message back, in parts of a turn (TurnContext.work)."""


def take_back(endpoint: Endpoint, flow: Flow, outcome: int) -> None:
    """Take back all that a consumer holds, which has left the flows of `endpoint` just now.

    `outcome` is FAILED or RELEASED. After an exception a second call goes on behind what raised.
    """
    held = flow.unacked
    context = endpoint.vpn.context
    if len(held) <= AT_ONCE and not context.turn_spent:
        context.work += RETURN_WORK * len(held)
        for message_id in list(held):
            endpoint.give_back(flow, message_id, outcome)
        return
    if held:
        returning = Returning(endpoint, flow, outcome)
        endpoint.returning.append(returning)
        context.jobs.add(returning)


def holds_up(endpoint: Endpoint, lane: int) -> bool:
    """Return whether nothing may be delivered from a partition (0 where there is one) until more is back."""
    for returning in endpoint.returning:  # noqa: SIM110 (compiled: no generator expressions)
        if lane in returning.lanes:
            return True
    return False


@final
class Returning(Job):
    """What one consumer held, on its way back into `endpoint`, the oldest first.

    `holder` has it, a flow to which nothing is sent. `lanes` are the partitions, or 0 alone, that wait for it. Its
    bytes count for the client username of the consumer, whose connection may be gone.
    """

    __slots__ = ("_account", "_counted", "_endpoint", "_ids", "_outcome", "holder", "lanes")

    def __init__(self, endpoint: Endpoint, flow: Flow, outcome: int) -> None:
        super().__init__()
        self._endpoint = endpoint
        self._outcome = outcome
        # The next one at the end; sorted in the first slice.
        self._ids: list[int] = []
        self.lanes = _lanes_of(endpoint, flow)
        self._counted = flow.counted
        self._account = flow.leave_counted()
        holder = Flow(endpoint, flow.client_name, 0)
        holder.unacked = flow.unacked
        holder.bytes_out = flow.bytes_out
        self.holder = holder
        flow.unacked = {}
        flow.bytes_out = 0

    def step(self) -> bool:
        """Take messages back until this turn has done enough. What raises costs one message its place in the order."""
        endpoint = self._endpoint
        context = endpoint.vpn.context
        try:
            if not self._ids:
                self._ids = sorted(self.holder.unacked, reverse=True)
            ids = self._ids
            while ids:
                if context.turn_spent:
                    self._count()
                    return False
                context.work += RETURN_WORK
                endpoint.give_back(self.holder, ids[-1], self._outcome)
                ids.pop()
            self._count()
            if self in endpoint.returning:
                endpoint.returning.remove(self)
                endpoint.wake()
        except Exception as problem:  # noqa: BLE001 - given to the barrier: the others follow
            context.barrier.caught(problem, SPOOL, endpoint.name, endpoint.vpn.name, "goes on")
            return False
        return True

    def reclaim(self, message_id: int) -> bool:
        """Take one message back now; False where it is not among these."""
        if message_id not in self.holder.unacked:
            return False
        self._endpoint.give_back(self.holder, message_id, self._outcome)
        return True

    def ids_left(self) -> WaitingList:
        """Let go of all that is left, and return its ids."""
        holder = self.holder
        left = WaitingList()
        left.extend(array("Q", sorted(holder.unacked)), 0)
        self._ids.clear()
        holder.forget_all()
        self._count()
        return left

    def _count(self) -> None:
        """Have less counted, as less is left."""
        account = self._account
        surplus = self._counted - self.holder.bytes_out
        if account is not None and surplus > 0:
            self._counted -= surplus
            account.forget(surplus)


def _lanes_of(endpoint: Endpoint, flow: Flow) -> list[int]:
    if endpoint.partitions is not None:
        return [lane for lane, owner in enumerate(endpoint.partitions.owners) if owner is flow]
    return [0] if endpoint.settings.exclusive or not endpoint.flows else []
