"""From the counters that run along with the messages to those of a bridge's record.

The data plane counts on objects of the link. What it counted since the last look is added to the
record when somebody asks, and when a half ends, so that counting costs nothing per message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from vpnrouter.core.discards import (
    CLIENT_NOT_CONNECTED,
    NO_SUBSCRIPTION_MATCH,
    TRANSMIT_CONGESTION,
)

if TYPE_CHECKING:
    from vpnrouter.bridges.counters import Counters
    from vpnrouter.bridges.link_client import LinkClient
    from vpnrouter.core.outbox import Outbox
    from vpnrouter.core.publisher import Publisher


@final
class RxTally:
    """What came in over one half: the link's publisher as last looked at."""

    __slots__ = ("_bytes", "_delivered", "_messages", "_unmatched")

    def __init__(self, sink: Publisher) -> None:
        self._messages = sink.messages
        self._bytes = sink.bytes_
        self._delivered = sink.delivered + sink.spooled
        self._unmatched = sink.unmatched

    def bring(self, sink: Publisher, counters: Counters, now_ns: int) -> None:
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
    """What went out over one half: the link's outbox and client as last looked at."""

    __slots__ = ("_bytes", "_discarded", "_full", "_offered", "_sent")

    def __init__(self, outbox: Outbox, client: LinkClient) -> None:
        self._sent = outbox.messages - outbox.waiting()
        self._bytes = outbox.bytes_
        self._full = outbox.discarded
        self._offered = client.offered
        self._discarded = dict(client.discarded.counts)

    def bring(
        self, outbox: Outbox, client: LinkClient, counters: Counters, now_ns: int, dropped: int = 0
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
        for reason, count in client.discarded.counts.items():
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

    def bring(self, now: tuple[int, int, int, int, int, int], counters: Counters) -> None:
        """Add what happened since: frames and bytes received, frames and bytes sent, logins of each."""
        seen = self._seen
        counters.control_rx_msg_count += now[0] - seen[0]
        counters.control_rx_byte_count += now[1] - seen[1]
        counters.control_tx_msg_count += now[2] - seen[2]
        counters.control_tx_byte_count += now[3] - seen[3]
        counters.login_rx_msg_count += now[4] - seen[4]
        counters.login_tx_msg_count += now[5] - seen[5]
        self._seen = now
