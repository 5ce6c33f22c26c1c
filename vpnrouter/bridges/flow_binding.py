"""What the receiver of a guaranteed flow asked of its sender: BIND and UNBIND, and the answers that are due."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from vpnrouter.bridges.accepted import Positions
from vpnrouter.errors import ProtocolError
from vpnrouter.wire.link import encode, frames
from vpnrouter.wire.link.codes import PROTOCOL_ERROR

if TYPE_CHECKING:
    from vpnrouter.bridges.accepted import Accepted
    from vpnrouter.bridges.flow_terms import FlowTerms


@final
class FlowBinding:
    """What is asked of the remote for a flow. `queue` is the queue that is wanted, "" for none, with at most `window`
    messages on the way. `unready`: BIND waits for the parking lot. `asked` is the number of the last BIND.
    """

    __slots__ = (
        "_left",
        "_named",
        "_request_id",
        "_synced",
        "_unwanted",
        "asked",
        "queue",
        "unready",
        "window",
    )

    def __init__(self) -> None:
        self.queue = ""
        self.window = 0
        self.unready = False
        self._request_id = 0
        self.asked = 0
        # The last BIND that is synced, requests whose answers are not wanted any more, flows that end.
        self._synced = 0
        self._unwanted: set[int] = set()
        self._left: set[int] = set()
        self._named: dict[bytes, list[tuple[int, int]]] = {}

    def want(self, queue: str, window: int) -> int:
        """Note that BIND is to be sent after the next sync. Returns its number."""
        self.queue = queue
        self.window = window
        self.asked += 1
        return self.asked

    def due(self, number: int) -> bool:
        """Note that BIND `number` is synced. False where a later one was wanted, or nothing is wanted any more.

        BINDs are numbered, not counted: if the receipt of one raised, those behind it go on all the same.
        """
        self._synced = max(self._synced, number)
        return number == self.asked and self.queue != ""

    def ask(self, accepted: Accepted, terms: FlowTerms) -> bytes:
        """The BIND for what is wanted."""
        self._request_id += 1
        self._named = accepted.named(self.queue)
        frame = frames.Bind(self._request_id, self.queue, self.window, accepted=self._named)
        frame.selector = terms.selector
        frame.lanes = terms.lanes
        frame.on_reject = terms.on_reject
        return encode.bind(frame)

    def unwanted(self, frame: frames.Bound) -> bool:
        """True when this is the answer to a request that was given up."""
        if frame.request_id not in self._unwanted:
            return False
        self._unwanted.discard(frame.request_id)
        return True

    def answered(self, frame: frames.Bound) -> bool:
        """True when the flow is bound now. Raises ProtocolError for an answer to nothing."""
        if frame.request_id != self._request_id:
            raise ProtocolError(PROTOCOL_ERROR, "LINK-40: BOUND without BIND")
        if frame.code or not frame.flow_id:
            self.queue = ""
            return False
        return True

    def settled(self, frame: frames.Bound) -> list[tuple[int, int]]:
        """The positions that BIND named of the sender's store and BOUND does not keep: the sender has settled them."""
        named = self._named.pop(frame.store_id, [])
        if not frame.kept:
            return named
        left = Positions()
        for first, count in named:
            left.fill(first, count)
        for first, count in frame.kept:
            left.remove(first, count)
        return left.ranges()

    def give_up(self) -> None:
        """The answer to what was asked for, if one is due, is not wanted any more."""
        if self.queue and self._request_id and self._synced == self.asked:
            self._unwanted.add(self._request_id)

    def leave(self, flow_id: int, code: int, reason: str) -> bytes:
        """The UNBIND for a flow."""
        self._left.add(flow_id)
        return encode.unbind(frames.Unbind(flow_id, code, reason))

    def has_left(self, flow_id: int) -> bool:
        """True while UNBIND was sent for this flow and is not answered."""
        return flow_id in self._left

    def heard(self, flow_id: int) -> None:
        """UNBOUND came."""
        self._left.discard(flow_id)

    def over(self) -> None:
        """Nothing is wanted any more."""
        self.queue = ""
        self.unready = False

    def cut(self) -> None:
        """The link is lost: no answers come."""
        self._left.clear()
        self._unwanted.clear()
