"""Changed topic mappings of what goes out, while the bridges of others that take it stay logged in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vpnrouter.bridges.attracted import Attracted
from vpnrouter.errors import Refused
from vpnrouter.wire.link import codes

if TYPE_CHECKING:
    from vpnrouter.bridges.book import LinkBook
    from vpnrouter.bridges.link import Link
    from vpnrouter.topics.mapping import TopicMapping


def rename_outward(book: LinkBook) -> None:
    """Let each link that serves a bridge of a peer rename what leaves as `book.out_mappings` says now.

    What the peer asked for stands for other topics here under another mapping, so it is asked for anew. A
    peer for whom that is too much (its client profile bounds subscriptions) logs in again.
    """
    for link in list(book.serving.values()):
        outbound = link.outbound
        if outbound is None or link.vpn is None:
            continue
        hello = outbound.hello
        mapping = book.out_mapping(link.vpn.name, hello.router, hello.local_vpn)
        if _shown(mapping) == _shown(outbound.mapping):
            continue
        outbound.mapping = mapping
        if outbound.flows is not None:
            outbound.flows.rename(mapping)
        if not _ask_anew(link, mapping):
            code = codes.ADMINISTRATIVE
            link.goodbye(code, f"{codes.REASONS[code]}: other topic mapping")


def _shown(mapping: TopicMapping | None) -> list[tuple[str, str, list[int]]]:
    """What two mappings that do the same have in common."""
    rules = [] if mapping is None else mapping.rules
    return [(rule.label, rule.filter.text, list(rule.filter.kinds)) for rule in rules]


def _ask_anew(link: Link, mapping: TopicMapping | None) -> bool:
    """Put the subscriptions of the peer in terms of another mapping; False where one is not possible."""
    outbound, client, admission = link.outbound, link.client, link.admission
    before = None if outbound is None else outbound.attracted
    if outbound is None or client is None or admission is None or before is None:
        return False
    client.vpn.drop(client)
    client.rename(mapping)
    outbound.attracted = Attracted(client, admission, mapping)
    try:
        for text, (flags, selector) in before.asked.items():
            outbound.attracted.subscribe_one(flags, text, selector)
    except Refused:
        return False
    return True
