"""Counts what crossed a bridge and what did not, under the field's names, in balance.

For the inbound direction received = delivered + discarded by reason + in flight, and for the
outbound one offered = sent + discarded by reason + in flight, at every instant.

The data plane counts on objects of the link. The difference is added to the record when it is read, and when a half
ends, so that a record costs nothing per message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter.core.discard_reasons import (
    CLIENT_NOT_CONNECTED,
    NO_SUBSCRIPTION_MATCH,
    TRANSMIT_CONGESTION,
    DiscardCounts,
)

if TYPE_CHECKING:
    from vpnrouter.core.outbox import Outbox
    from vpnrouter.core.publisher import Publisher
    from vpnrouter.core.subscriber import Subscriber


COUNTS: Final = (
    "control_rx_byte_count",
    "control_rx_msg_count",
    "control_tx_byte_count",
    "control_tx_msg_count",
    "data_rx_byte_count",
    "data_rx_msg_count",
    "data_tx_byte_count",
    "data_tx_msg_count",
    "delivered_rx_msg_count",
    "login_rx_msg_count",
    "login_tx_msg_count",
    "offered_tx_msg_count",
)
"""Attributes of Counters that are numbers."""


@final
class Counters:
    """Counters of one bridge. They only grow, and outlive connections and restarts (server/spool/saved_counters.py).

    `data_*` are messages as they cross the link, `control_*` all other frames, `login_*` the HELLO,
    WELCOME and REFUSE among those. Bytes are frames with their heads. `last_data_*_ns` says when
    messages last moved, -1 for never: a bridge is healthy when it forwards, not when its socket is
    open.
    """

    __slots__ = (*COUNTS, "discarded_rx", "discarded_tx", "last_data_rx_ns", "last_data_tx_ns")

    def __init__(self) -> None:
        self.control_rx_byte_count = 0
        self.control_rx_msg_count = 0
        self.control_tx_byte_count = 0
        self.control_tx_msg_count = 0
        self.data_rx_byte_count = 0
        self.data_rx_msg_count = 0
        self.data_tx_byte_count = 0
        self.data_tx_msg_count = 0
        self.delivered_rx_msg_count = 0
        self.discarded_rx = DiscardCounts()
        self.discarded_tx = DiscardCounts()
        self.last_data_rx_ns = -1
        self.last_data_tx_ns = -1
        self.login_rx_msg_count = 0
        self.login_tx_msg_count = 0
        self.offered_tx_msg_count = 0

    def data_rx(self, messages: int, size_bytes: int, now_ns: int) -> None:
        """Count a batch of received messages."""
        self.data_rx_msg_count += messages
        self.data_rx_byte_count += size_bytes
        self.last_data_rx_ns = now_ns

    def data_tx(self, messages: int, size_bytes: int, now_ns: int) -> None:
        """Count a batch of sent messages."""
        self.data_tx_msg_count += messages
        self.data_tx_byte_count += size_bytes
        self.last_data_tx_ns = now_ns

    def control_rx(self, size_bytes: int, *, login: bool = False) -> None:
        """Count one received frame that is not a message."""
        self.control_rx_msg_count += 1
        self.control_rx_byte_count += size_bytes
        self.login_rx_msg_count += login

    def control_tx(self, size_bytes: int, *, login: bool = False) -> None:
        """Count one sent frame that is not a message."""
        self.control_tx_msg_count += 1
        self.control_tx_byte_count += size_bytes
        self.login_tx_msg_count += login

    def discard_rx(self, reason: str, messages: int = 1) -> None:
        """Messages that came were not delivered; `reason` of core/discard_reasons.py."""
        self.discarded_rx.add(reason, messages)

    def discard_tx(self, reason: str, messages: int = 1) -> None:
        """Messages offered were not sent; `reason` of core/discard_reasons.py."""
        self.discarded_tx.add(reason, messages)

    def add(self, other: Counters) -> None:
        """Add what `other` counted; the later time of a last message counts."""
        for name in COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.discarded_rx.merge(other.discarded_rx)
        self.discarded_tx.merge(other.discarded_tx)
        self.last_data_rx_ns = max(self.last_data_rx_ns, other.last_data_rx_ns)
        self.last_data_tx_ns = max(self.last_data_tx_ns, other.last_data_tx_ns)

    @property
    def discarded_rx_msg_count(self) -> int:
        """Messages received and not delivered, for any reason."""
        return self.discarded_rx.total()

    @property
    def discarded_tx_msg_count(self) -> int:
        """Messages offered that were not sent, whatever the reason."""
        return self.discarded_tx.total()

    @property
    def rx_msg_count(self) -> int:
        """All frames received."""
        return self.data_rx_msg_count + self.control_rx_msg_count

    @property
    def tx_msg_count(self) -> int:
        """All frames sent."""
        return self.data_tx_msg_count + self.control_tx_msg_count

    @property
    def rx_byte_count(self) -> int:
        """All bytes received."""
        return self.data_rx_byte_count + self.control_rx_byte_count

    @property
    def tx_byte_count(self) -> int:
        """All bytes sent."""
        return self.data_tx_byte_count + self.control_tx_byte_count

    def rx_imbalance(self, in_flight: int) -> int:
        """Messages received and not accounted for; anything but 0 is a fault of the router."""
        accounted = self.delivered_rx_msg_count + self.discarded_rx_msg_count + in_flight
        return self.data_rx_msg_count - accounted

    def tx_imbalance(self, in_flight: int) -> int:
        """Messages offered and not accounted for; anything but 0 is a fault of the router."""
        accounted = self.data_tx_msg_count + self.discarded_tx_msg_count + in_flight
        return self.offered_tx_msg_count - accounted


@final
class RxTally:
    """Copies into `Counters` what a half received, as the link's publisher counted it."""

    __slots__ = ("_bytes", "_delivered", "_messages", "_unmatched")

    def __init__(self, sink: Publisher) -> None:
        self._messages = sink.messages
        self._bytes = sink.bytes_
        self._delivered = sink.delivered + sink.spooled
        self._unmatched = sink.unmatched

    def update_counters(self, sink: Publisher, counters: Counters, now_ns: int) -> None:
        """Add to `counters` what `sink` counted since the last time."""
        messages = sink.messages - self._messages
        delivered = sink.delivered + sink.spooled
        unmatched = sink.unmatched - self._unmatched
        # Nothing below may raise: counts would be added and not remembered, or the other way round.
        if messages:
            counters.data_rx_msg_count += messages
            counters.data_rx_byte_count += sink.bytes_ - self._bytes
            counters.last_data_rx_ns = now_ns
        counters.delivered_rx_msg_count += delivered - self._delivered
        if unmatched:
            counts = counters.discarded_rx.counts
            counts[NO_SUBSCRIPTION_MATCH] = counts.get(NO_SUBSCRIPTION_MATCH, 0) + unmatched
        self._messages = sink.messages
        self._bytes = sink.bytes_
        self._delivered = delivered
        self._unmatched = sink.unmatched


@final
class TxTally:
    """Copies into `Counters` what a half sent, as the link's outbox and client counted it."""

    __slots__ = ("_bytes", "_discarded", "_full", "_offered", "_sent")

    def __init__(self, outbox: Outbox, client: Subscriber, discarded: DiscardCounts) -> None:
        self._sent = outbox.messages - outbox.waiting()
        self._bytes = outbox.bytes_
        self._full = outbox.discarded
        self._offered = client.offered
        self._discarded = dict(discarded.counts)

    def update_counters(
        self,
        outbox: Outbox,
        client: Subscriber,
        discarded: DiscardCounts,
        counters: Counters,
        now_ns: int,
        dropped: int = 0,
    ) -> None:
        """Add to `counters` what was counted since the last time.

        `dropped` messages went down with the connection; nothing waits then. Where it is less than 0, as
        many wait that still leave after this last look.
        """
        sent = outbox.messages - outbox.waiting() - dropped
        # Nothing below may raise, as above.
        if sent != self._sent:
            counters.data_tx_msg_count += sent - self._sent
            counters.data_tx_byte_count += outbox.bytes_ - self._bytes
            counters.last_data_tx_ns = now_ns
        counts = counters.discarded_tx.counts
        if dropped > 0:
            counts[CLIENT_NOT_CONNECTED] = counts.get(CLIENT_NOT_CONNECTED, 0) + dropped
        if outbox.discarded != self._full:
            full = outbox.discarded - self._full
            counts[TRANSMIT_CONGESTION] = counts.get(TRANSMIT_CONGESTION, 0) + full
        for reason, count in discarded.counts.items():
            before = self._discarded.get(reason, 0)
            if count != before:
                counts[reason] = counts.get(reason, 0) + count - before
                self._discarded[reason] = count
        counters.offered_tx_msg_count += client.offered - self._offered
        self._sent = sent
        self._bytes = outbox.bytes_
        self._full = outbox.discarded
        self._offered = client.offered


@final
class ControlTally:
    """The frames of a link that are no messages, as last looked at."""

    __slots__ = ("_seen",)

    def __init__(self) -> None:
        self._seen = (0, 0, 0, 0, 0, 0)

    def update_counters(self, now: tuple[int, int, int, int, int, int], counters: Counters) -> None:
        """Add what happened since: frames and bytes received, frames and bytes sent, logins of each."""
        seen = self._seen
        counters.control_rx_msg_count += now[0] - seen[0]
        counters.control_rx_byte_count += now[1] - seen[1]
        counters.control_tx_msg_count += now[2] - seen[2]
        counters.control_tx_byte_count += now[3] - seen[3]
        counters.login_rx_msg_count += now[4] - seen[4]
        counters.login_tx_msg_count += now[5] - seen[5]
        self._seen = now
