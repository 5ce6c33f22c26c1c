"""Sums over a message VPN, made when somebody asks, so that counting costs nothing per message."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, final

from vpnrouter.core.discards import (
    NO_SUBSCRIPTION_MATCH,
    PUBLISH_TOPIC_ACL,
    TRANSMIT_CONGESTION,
)

if TYPE_CHECKING:
    from vpnrouter.core.publisher import Publisher
    from vpnrouter.core.vpn import MessageVpn


class VpnTotals(NamedTuple):
    """Counts since the router started; names follow SEMP's monitor attributes."""

    rx_msg_count: int
    rx_byte_count: int
    tx_msg_count: int
    tx_byte_count: int
    discards: dict[str, int]


def absorb(vpn: MessageVpn, publisher: Publisher) -> None:
    """Keep the counters of a connection that ends."""
    outbox = publisher.subscriber.outbox
    vpn.rx_messages += publisher.messages
    vpn.rx_bytes += publisher.bytes_
    vpn.tx_messages += outbox.messages
    vpn.tx_bytes += outbox.bytes_
    for reason, count in _counted(publisher):
        vpn.discards.add(reason, count)


def _counted(publisher: Publisher) -> list[tuple[str, int]]:
    pairs = [
        (NO_SUBSCRIPTION_MATCH, publisher.unmatched),
        (PUBLISH_TOPIC_ACL, publisher.acl_denied),
        (TRANSMIT_CONGESTION, publisher.subscriber.outbox.discarded),
    ]
    return [(reason, count) for reason, count in pairs if count]


def totals(vpn: MessageVpn) -> VpnTotals:
    """Everything counted in `vpn`: connections that ended and those that live."""
    sums = Sums(vpn)
    sums.step(len(vpn.publishers))
    return sums.totals()


@final
class Sums:
    """The sum over a message VPN, made in portions between which its clients go on.

    Each count lies between what it was at the beginning and what it was at the end, whoever comes or goes
    meanwhile: so a later sum has no lower counts, but for messages that went down with a connection after
    they had been counted as sent.
    """

    __slots__ = (
        "_at",
        "_congested",
        "_denied",
        "_outboxes",
        "_publishers",
        "_unmatched",
        "_vpn_sums",
    )

    def __init__(self, vpn: MessageVpn) -> None:
        # What ends from here on is in the list, with all that it counts.
        self._publishers = list(vpn.publishers.values())
        # A session that another connection takes over has another outbox then.
        self._outboxes = [publisher.subscriber.outbox for publisher in self._publishers]
        self._at = 0
        self._unmatched = 0
        self._denied = 0
        self._congested = 0
        self._vpn_sums = VpnTotals(
            vpn.rx_messages,
            vpn.rx_bytes,
            vpn.tx_messages,
            vpn.tx_bytes,
            dict(vpn.discards.counts),
        )

    def step(self, most: int) -> bool:
        """Add up to `most` connections more; True when all are in."""
        rx_messages, rx_bytes, tx_messages, tx_bytes, counts = self._vpn_sums
        publishers = self._publishers
        end = min(self._at + most, len(publishers))
        for index in range(self._at, end):
            publisher = publishers[index]
            outbox = self._outboxes[index]
            rx_messages += publisher.messages
            rx_bytes += publisher.bytes_
            tx_messages += outbox.messages
            tx_bytes += outbox.bytes_
            self._unmatched += publisher.unmatched
            self._denied += publisher.acl_denied
            self._congested += outbox.discarded
        self._at = end
        self._vpn_sums = VpnTotals(rx_messages, rx_bytes, tx_messages, tx_bytes, counts)
        return end == len(publishers)

    def totals(self) -> VpnTotals:
        """What was added up until now."""
        sums = self._vpn_sums
        counts = dict(sums.discards)
        for reason, count in (
            (NO_SUBSCRIPTION_MATCH, self._unmatched),
            (PUBLISH_TOPIC_ACL, self._denied),
            (TRANSMIT_CONGESTION, self._congested),
        ):
            if count:
                counts[reason] = counts.get(reason, 0) + count
        return VpnTotals(
            sums.rx_msg_count, sums.rx_byte_count, sums.tx_msg_count, sums.tx_byte_count, counts
        )
