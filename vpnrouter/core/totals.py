"""Sums over a message VPN, made when somebody asks, so that counting costs nothing per message."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from vpnrouter.core.discards import (
    NO_SUBSCRIPTION_MATCH,
    PUBLISH_TOPIC_ACL,
    TRANSMIT_CONGESTION,
    Discards,
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
    discards = Discards()
    discards.merge(vpn.discards)
    rx_messages, rx_bytes = vpn.rx_messages, vpn.rx_bytes
    tx_messages, tx_bytes = vpn.tx_messages, vpn.tx_bytes
    for publisher in vpn.publishers.values():
        rx_messages += publisher.messages
        rx_bytes += publisher.bytes_
        tx_messages += publisher.subscriber.outbox.messages
        tx_bytes += publisher.subscriber.outbox.bytes_
        for reason, count in _counted(publisher):
            discards.add(reason, count)
    return VpnTotals(rx_messages, rx_bytes, tx_messages, tx_bytes, discards.counts)
