"""What a peer's bridge asked for: its subscriptions in the message VPN here (LINK-23 to LINK-26)."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from vpnrouter import limits
from vpnrouter.core.subscriber import Subscription
from vpnrouter.errors import Refused, SelectorError, TopicError
from vpnrouter.events.table import SUBSCRIPTION_REFUSED
from vpnrouter.selectors import parse_selector
from vpnrouter.topics.grammar import SMF, parse_filter
from vpnrouter.wire.link import close_codes, frames

if TYPE_CHECKING:
    from vpnrouter.bridges.link_client import LinkClient
    from vpnrouter.core.login import Admission
    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.topics.grammar import Filter
    from vpnrouter.topics.mapping import TopicMapping


@final
class Attracted:
    """The subscriptions of `client`, who logged in as `admission` says.

    Where `mapping` renames what leaves, the peer speaks of topics as it sees them: each of its filters
    stands for others here (`sources`). `asked` keeps the flags and the selector of each.
    """

    __slots__ = ("_admission", "_client", "_mapping", "asked", "sources")

    def __init__(
        self, client: LinkClient, admission: Admission, mapping: TopicMapping | None
    ) -> None:
        self._client = client
        self._admission = admission
        self._mapping = mapping
        self.sources: dict[str, list[Filter]] = {}
        self.asked: dict[str, tuple[int, str]] = {}

    def inherit(self, before: Attracted, subscriptions: list[Subscription]) -> None:
        """Go on with what was asked for over the connection that this one takes over."""
        client = self._client
        standing = {old.filter.original: old for old in subscriptions}
        for text, sources in before.sources.items():
            flags, selector = before.asked[text]
            try:
                filter_ = self._allowed(text)
                for source in sources:
                    old = standing.get(source.original)
                    if old is not None:
                        client.vpn.subscribe(
                            Subscription(
                                old.filter,
                                client,
                                deliver_always=old.deliver_always,
                                exception=old.exception,
                                selector=old.selector,
                                dto_priority=old.dto_priority,
                            )
                        )
            except Refused as refusal:
                self._tell_dropped(text, refusal.reason)
                self._drop_sources(sources)
                continue
            self.sources[text] = sources
            self.asked[text] = (flags, selector)
            client.asked(text, filter_)

    def _tell_dropped(self, text: str, why: str) -> None:
        """What was granted over the connection before is not any more: its bounds or rules have changed."""
        client = self._client
        vpn = client.vpn
        events = vpn.plane.events
        if events is not None:
            told = f"VPN {vpn.name} bridge {client.client_name}: subscription {text} dropped: {why}"
            events.raise_event(SUBSCRIPTION_REFUSED, vpn.name, client.client_name, told)

    def subscribe(self, frame: frames.Subscribe) -> frames.Subscribed:
        """Add or replace subscriptions; the answer tells which were refused."""
        codes: list[int] = []
        first = ""
        for flags, text in frame.filters:
            try:
                self._subscribe_one(flags, text, frame.selectors.get(text, ""))
                codes.append(close_codes.GRANTED)
            except Refused as refusal:
                codes.append(refusal.reason_code)
                first = first or f"{refusal.reason}: {text}"
        reason = first.encode()[: limits.LINK_TEXT_BYTES].decode(errors="ignore")
        return frames.Subscribed(frame.request_id, codes, reason)

    def _subscribe_one(self, flags: int, text: str, selector: str) -> None:
        client = self._client
        admission = self._admission
        vpn = client.vpn
        filter_ = self._allowed(text)
        try:
            chosen = parse_selector(selector) if selector else None
        except SelectorError as error:
            raise Refused("406 Invalid Selector", close_codes.SUBSCRIPTION_PARSE_ERROR) from error
        sources = [filter_]
        if self._mapping is not None:
            # An exception speaks of topics as they leave: the client looks at it then.
            texts = [] if filter_.exception else self._mapping.sources(filter_)
            sources = [_parse(vpn, source) for source in texts]
        known = self.sources.get(text, [])
        bound = admission.profile.max_subscription_count
        if bound and not known and len(client.subscriptions) + len(sources) > bound:
            raise Refused("400 Max Num Subscriptions Exceeded", close_codes.QUOTA_EXCEEDED)
        for source in sources:
            vpn.subscribe(
                Subscription(
                    source,
                    client,
                    deliver_always=bool(flags & frames.DELIVER_ALWAYS),
                    exception=filter_.exception,
                    selector=chosen,
                    dto_priority=(flags >> frames.PRIORITY_SHIFT) & 0b111,
                )
            )
        self.sources[text] = sources
        self.asked[text] = (flags, selector)
        client.asked(text, filter_)

    def _allowed(self, text: str) -> Filter:
        """The filter, where the message VPN's grammar and the ACL let the peer have it; else Refused."""
        client = self._client
        admission = self._admission
        try:
            filter_ = _parse(client.vpn, text)
        except TopicError as error:
            raise Refused(
                "400 Subscription Parse Error", close_codes.SUBSCRIPTION_PARSE_ERROR
            ) from error
        acl = admission.acl.subscribe
        if (
            not acl.unrestricted
            and not filter_.exception
            and not acl.bind(admission.username.name, client.client_name).allows_filter(filter_)
        ):
            raise Refused("403 Subscription ACL Denied", close_codes.NOT_AUTHORIZED)
        return filter_

    def unsubscribe(self, frame: frames.Unsubscribe) -> frames.Subscribed:
        """Drop subscriptions; the answer tells which were not there."""
        codes: list[int] = []
        for text in frame.filters:
            there = self._drop(text)
            codes.append(close_codes.GRANTED if there else close_codes.NO_SUBSCRIPTION_EXISTED)
        return frames.Subscribed(frame.request_id, codes)

    def _drop(self, text: str) -> bool:
        client = self._client
        sources = self.sources.pop(text, None)
        self.asked.pop(text, None)
        if sources is None:
            return False
        client.asked_no_more(text)
        self._drop_sources(sources)
        return True

    def _drop_sources(self, sources: list[Filter]) -> None:
        """Drop what no other filter of the peer stands for."""
        client = self._client
        left = {source.original for kept in self.sources.values() for source in kept}
        for source in sources:
            if source.original not in left:
                client.vpn.unsubscribe(client, source.original)


def _parse(vpn: MessageVpn, text: str) -> Filter:
    return parse_filter(
        text,
        SMF,
        max_levels=vpn.limits.max_topic_levels,
        max_bytes=vpn.limits.max_topic_bytes,
        exceptions=True,
    )
