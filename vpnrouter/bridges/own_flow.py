"""Binds the guaranteed flow of an own bridge over one link, binds it again after a refusal, and ends it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter.bridges.flow_sender import FlowCallbacks
from vpnrouter.bridges.half_events import HalfEvent
from vpnrouter.core.discard_reasons import NO_SUBSCRIPTION_MATCH
from vpnrouter.core.guaranteed.unit_of_work import DEMOTED, SPOOLED
from vpnrouter.core.timers import TimerTarget
from vpnrouter.core.tracing import kept_mode, lost
from vpnrouter.trace.events import DISCARD
from vpnrouter.units import SECOND_NS
from vpnrouter.wire.link import codes, frames

if TYPE_CHECKING:
    from vpnrouter.bridges.flow_receiver import FlowReceiver
    from vpnrouter.bridges.own_half import OwnHalf
    from vpnrouter.bridges.remote_settings import RemoteSettings
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.message import Message
    from vpnrouter.core.timers import Timer
    from vpnrouter.wire.link.decode import Frame


REBIND_LEAST_NS: Final = SECOND_NS
"""Shortest time before a refused queue is bound again."""

NO_FLOWS: Final = "the remote router keeps no guaranteed messages"


@final
class _Again(TimerTarget):
    """The timer that binds the flow again."""

    __slots__ = ("_flow",)

    def __init__(self, flow: OwnFlow) -> None:
        self._flow = flow

    def owning_connection(self) -> Connection | None:
        """The link of the flow."""
        return self._flow.owning_connection()

    def on_timer(self, kind: int, now_ns: int) -> None:
        """Bind the queue again."""
        self._flow.again()


@final
class OwnFlow(FlowCallbacks):
    """The flow of `half`, whose messages `taker` receives. `bound_since_ns` is -1 while the flow is not bound; `reason`
    says why. `stands_by`: another consumer gets the messages of the queue. `queue_msgs` is how many the remote last
    reported in it, -1 for no report, and `window_closed` how often one of them has waited for the window.
    """

    __slots__ = (
        "_again",
        "_asked",
        "_finishing",
        "_half",
        "_paused",
        "_queue",
        "_timer",
        "bound_since_ns",
        "queue_msgs",
        "reason",
        "stands_by",
        "taker",
        "window_closed",
    )

    def __init__(self, half: OwnHalf, taker: FlowReceiver) -> None:
        self.taker = taker
        self.bound_since_ns = -1
        self.reason = ""
        self.stands_by = False
        self.queue_msgs = -1
        self.window_closed = 0
        self._half = half
        self._queue = ""
        self._asked = ("", 0, 0, 0, "")
        self._finishing = False
        self._paused = False
        self._again = _Again(self)
        self._timer: Timer | None = None

    # -- what the bridge wants -------------------------------------------------------------------

    def ask(self, terms: RemoteSettings) -> None:
        """Bind the queue of these settings, instead of the bound one where they differ; a flow that is paused, or goes
        on, stays bound.
        """
        flow = terms.flow
        self.taker.take(flow)
        turns = flow.paused is not self._paused
        self._paused = flow.paused
        asked = (terms.queue, terms.window, flow.lanes, flow.on_reject, flow.selector)
        if asked == self._asked:
            return
        queue, _, lanes, on_reject, selector = self._asked
        same = (queue, lanes, on_reject, selector) == (
            terms.queue,
            flow.lanes,
            flow.on_reject,
            flow.selector,
        )
        if turns and same and self.bound_since_ns >= 0 and self.taker.narrow(terms.window):
            self._asked = asked
            return
        if self._queue:
            self._rest()
            self.taker.stop(codes.NORMAL, codes.REASONS[codes.NORMAL])
        self._asked = asked
        self._queue = terms.queue
        self.reason = ""
        self._start()

    def _start(self) -> None:
        link = self._half.link
        client = link.client
        if not self._queue or client is None:
            return
        if link.features & frames.FLOWS:
            self.taker.start(self, client, self._queue, self._half.terms.window)
        else:
            self._lacks(NO_FLOWS)

    def again(self) -> None:
        """Try again to bind the refused queue."""
        self._timer = None
        self._start()

    def finish(self) -> None:
        """End the flow when all accepted messages are acknowledged; then `flow_is_over` of the half is called."""
        if self.over:
            return
        # What was refused, and is to be asked for again later, is not there to be ended.
        stands = self._timer is None and self._half.link.features & frames.FLOWS
        self._finishing = True
        self._rest()
        if stands:
            self.taker.finish(codes.NORMAL, codes.REASONS[codes.NORMAL])
        else:
            self._queue = ""
            self._half.flow_is_over()

    @property
    def now_ns(self) -> int:
        """The time on the clock of `bound_since_ns`."""
        return self._half.link.context.now_ns

    @property
    def over(self) -> bool:
        """True when there is nothing to finish."""
        return self._queue == ""

    def end(self) -> None:
        """The link is lost, or the half leaves it."""
        self._rest()
        self._queue = ""
        if self.taker.serves(self):
            self.taker.detach()

    def _rest(self) -> None:
        self.bound_since_ns = -1
        self.stands_by = False
        self.queue_msgs = -1
        self.window_closed = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # -- frames ----------------------------------------------------------------------------------

    def on_frame(self, frame: Frame) -> None:
        """Any frame of the flow but a message."""
        if isinstance(frame, frames.Bound):
            self.taker.on_bound(frame)
        elif isinstance(frame, frames.Forget):
            self.taker.on_forget(frame)
        elif isinstance(frame, frames.Unbind):
            self.taker.on_unbind(frame)
        elif isinstance(frame, frames.Unbound):
            self.taker.on_unbound(frame)
        elif isinstance(frame, frames.FlowStatus) and frame.flow_id == self.taker.flow_id:
            self.stands_by = not frame.active
            self.queue_msgs = frame.messages
            self.window_closed = frame.window_closed

    # -- what the flow tells ---------------------------------------------------------------------

    def owning_connection(self) -> Connection | None:
        """The link of the half."""
        return self._half.link

    def say(self, data: bytes) -> None:
        """Send a frame over the link of the half."""
        self._half.link.say(data)

    def bound(self) -> None:
        """Note and report that the queue is bound."""
        self.bound_since_ns = self._half.link.context.now_ns
        self.reason = ""
        self._tell(HalfEvent.BOUND, "")

    def unbound(self, code: int, reason: str) -> None:
        """The flow is over or was refused: bind it again after a while, unless it was to end."""
        self._rest()
        if self._finishing:
            self._queue = ""
            self._half.flow_is_over()
            return
        self._lacks(reason)
        context = self._half.link.context
        wait_ns = max(REBIND_LEAST_NS, self._half.terms.retry_delay_ns)
        self._timer = context.timers.arm(context.now_ns + wait_ns, self._again, 0)

    def _lacks(self, reason: str) -> None:
        known = self.reason
        self.reason = reason
        if reason != known:
            # Told once and not at every attempt.
            self._tell(HalfEvent.UNBOUND, reason)

    def stalled(self, reason: str) -> None:
        """Report that a message is held."""
        self._tell(HalfEvent.STALLED, reason)

    def released(self) -> None:
        """Report that no message is held any more."""
        self._tell(HalfEvent.RELEASED, "")

    def stopped(self, reason: str) -> None:
        """Report that the bridge is to stop."""
        self._tell(HalfEvent.STOPPED, reason)

    def _tell(self, event: HalfEvent, reason: str) -> None:
        self._half.owner.on_half_event(self._half, event, reason)

    # -- counting --------------------------------------------------------------------------------

    def received(self, message: Message, size: int) -> None:
        """Count and trace a message."""
        self._count(size)
        if message.traced:
            self._half.traces.received(message)

    def passed_over(self, size: int, reason: str) -> None:
        """Count a message that was not looked at, by reason."""
        self._count(size)
        self._refuse(1, reason)

    def entered(self, outcome: int) -> None:
        """Count what became of a message: spooled, delivered as Direct, or without a match."""
        sink = self._half.link.sink
        if sink is None:
            return
        if outcome == SPOOLED:
            sink.spooled += 1
        elif outcome == DEMOTED:
            sink.delivered += 1
        else:
            # The spool has counted the discard for the message VPN.
            self._refuse(1, NO_SUBSCRIPTION_MATCH)

    def discarded(self, message: Message, reason: str) -> None:
        """Count a message that was discarded here, by reason."""
        self._refuse(1, reason)
        vpn = self._half.link.vpn
        if vpn is not None:
            vpn.discards.add(reason)
            lost(vpn, DISCARD, message, kept_mode(message), "", reason)

    def returned(self, count: int, reason: str) -> None:
        """Count messages that went back to the remote, by reason."""
        self._refuse(count, reason)

    def _count(self, size: int) -> None:
        sink = self._half.link.sink
        if sink is not None:
            sink.messages += 1
            sink.bytes_ += size

    def _refuse(self, count: int, reason: str) -> None:
        sink = self._half.link.sink
        if sink is not None:
            sink.refused += count
        self._half.record.counters.discard_rx(reason, count)
