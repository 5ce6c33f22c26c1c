"""What crossed a bridge and what did not, by the field's names, in balance.

For the inbound direction received = delivered + discarded by reason + in flight, and for the
outbound one offered = sent + discarded by reason + in flight, at every instant.
"""

from typing import Final, final

from vpnrouter.core.discards import Discards

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
    """Counters of one bridge; they only grow, and outlive its connections and restarts (server/sheets.py).

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
        self.discarded_rx = Discards()
        self.discarded_tx = Discards()
        self.last_data_rx_ns = -1
        self.last_data_tx_ns = -1
        self.login_rx_msg_count = 0
        self.login_tx_msg_count = 0
        self.offered_tx_msg_count = 0

    def data_rx(self, messages: int, size_bytes: int, now_ns: int) -> None:
        """A batch of messages came over the link."""
        self.data_rx_msg_count += messages
        self.data_rx_byte_count += size_bytes
        self.last_data_rx_ns = now_ns

    def data_tx(self, messages: int, size_bytes: int, now_ns: int) -> None:
        """A batch of messages went out over the link."""
        self.data_tx_msg_count += messages
        self.data_tx_byte_count += size_bytes
        self.last_data_tx_ns = now_ns

    def control_rx(self, size_bytes: int, *, login: bool = False) -> None:
        """One other frame came."""
        self.control_rx_msg_count += 1
        self.control_rx_byte_count += size_bytes
        self.login_rx_msg_count += login

    def control_tx(self, size_bytes: int, *, login: bool = False) -> None:
        """One other frame went out."""
        self.control_tx_msg_count += 1
        self.control_tx_byte_count += size_bytes
        self.login_tx_msg_count += login

    def discard_rx(self, reason: str, messages: int = 1) -> None:
        """Messages that came were not delivered; `reason` of core/discards.py."""
        self.discarded_rx.add(reason, messages)

    def discard_tx(self, reason: str, messages: int = 1) -> None:
        """Messages offered were not sent; `reason` of core/discards.py."""
        self.discarded_tx.add(reason, messages)

    def add(self, other: "Counters") -> None:
        """Add what `other` counted; the later time of a last message counts."""
        for name in COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.discarded_rx.merge(other.discarded_rx)
        self.discarded_tx.merge(other.discarded_tx)
        self.last_data_rx_ns = max(self.last_data_rx_ns, other.last_data_rx_ns)
        self.last_data_tx_ns = max(self.last_data_tx_ns, other.last_data_tx_ns)

    @property
    def discarded_rx_msg_count(self) -> int:
        """Messages that came and were not delivered, whatever the reason."""
        return self.discarded_rx.total()

    @property
    def discarded_tx_msg_count(self) -> int:
        """Messages offered that were not sent, whatever the reason."""
        return self.discarded_tx.total()

    @property
    def rx_msg_count(self) -> int:
        """All frames that came."""
        return self.data_rx_msg_count + self.control_rx_msg_count

    @property
    def tx_msg_count(self) -> int:
        """All frames that went out."""
        return self.data_tx_msg_count + self.control_tx_msg_count

    @property
    def rx_byte_count(self) -> int:
        """All bytes that came."""
        return self.data_rx_byte_count + self.control_rx_byte_count

    @property
    def tx_byte_count(self) -> int:
        """All bytes that went out."""
        return self.data_tx_byte_count + self.control_tx_byte_count

    def rx_imbalance(self, in_flight: int) -> int:
        """Messages received and not accounted for; anything but 0 is a fault of the router."""
        accounted = self.delivered_rx_msg_count + self.discarded_rx_msg_count + in_flight
        return self.data_rx_msg_count - accounted

    def tx_imbalance(self, in_flight: int) -> int:
        """Messages offered and not accounted for; anything but 0 is a fault of the router."""
        accounted = self.data_tx_msg_count + self.discarded_tx_msg_count + in_flight
        return self.offered_tx_msg_count - accounted
