"""Evaluates the selectors of the receivers of one guaranteed message that came over a link, ahead of its entry.

One message of the flow at a time: the first that waits in memory, or the first that is parked of some lane. What
comes behind it waits in its place. So what this keeps is bounded by one message, which the flow's window or the parking
lot counts, and by the answers of the selectors of one topic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr
from typing_extensions import override

from vpnrouter.core.conversion import MEASURE
from vpnrouter.core.selection import Evaluation, at_hand, heavy, used
from vpnrouter.core.timers import Job

if TYPE_CHECKING:
    from vpnrouter.core.guaranteed.spool import Spool
    from vpnrouter.core.message import Message
    from vpnrouter.core.route import Route
    from vpnrouter.core.vpn import MessageVpn


@mypyc_attr(allow_interpreted_subclasses=True)
class FlowSelection(Job):
    """The evaluation for a flow, where one is under way or just done; `held` says that its message is not parked."""

    __slots__ = ("_done", "_evaluation", "_message", "_spool", "_vpn", "held")

    def __init__(self, vpn: MessageVpn, spool: Spool) -> None:
        super().__init__()
        self._vpn = vpn
        self._spool = spool
        self._message: Message | None = None
        self._evaluation: Evaluation | None = None
        self._done = False
        self.held = False

    def ready(self, route: Route, message: Message, entering: Message, *, held: bool) -> bool:
        """Return whether a message may enter along a route with selectors now. Else it waits until it is tried again.

        `entering` is the message itself, or the copy of it that enters: where its answers are ready, they are at hand
        for the copy until `entered`, and forgotten here. `held` says that it waits in memory, and is not parked.
        """
        evaluation = self._evaluation
        if evaluation is not None and self._done and self._message is message:
            self.drop()
            at_hand(entering, evaluation.answers)
            return True
        context = self._vpn.context
        # A spool that is down takes it in no case. Many may be tried in one turn.
        if self._spool.down or not (context.turn_spent or heavy(route, message)):
            return True
        if evaluation is None:
            self._message = message
            self._evaluation = Evaluation(context, route, message)
            self.held = held
            context.jobs.add(self)
        return False

    def entered(self, entering: Message) -> None:
        """Forget the answers for a message that was tried, and count what was evaluated meanwhile."""
        used(entering)
        self._vpn.context.work += MEASURE.work()

    def drop(self) -> None:
        """Forget the message that is being evaluated, if there is one."""
        self._message = None
        self._evaluation = None
        self._done = False
        self.held = False

    @override
    def step(self) -> bool:
        evaluation = self._evaluation
        try:
            if evaluation is not None and not evaluation.go_on():
                return False
            self._done = evaluation is not None
            self.go_on()
            if self._done:
                # Its message has gone meanwhile.
                self.drop()
                self.go_on()
        except Exception:
            self.drop()
            raise
        return True

    def go_on(self) -> None:
        """Try again what waited for the evaluation."""
        raise AssertionError(self)
