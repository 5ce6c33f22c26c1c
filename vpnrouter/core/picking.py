"""Which messages are traced where it depends on topic and client: trace filters, the first that fits decides.

What of a filter is about the client is looked at when it logs in, what is about the topic once for each
route. Without filters nothing of this is ever asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from vpnrouter import limits
from vpnrouter.topics.algebra import matches
from vpnrouter.trace.sampler import Sampler

if TYPE_CHECKING:
    from vpnrouter.core.plane import Plane
    from vpnrouter.core.publisher import Publisher
    from vpnrouter.core.route import Route
    from vpnrouter.topics.grammar import Filter


@final
class TraceFilter:
    """One trace filter; an empty list fits everything. `sampler` picks among the messages that fit.

    Args:
        sampler: made with the filter's own rate.
        subscriptions: topic filters, one of which the topic has to match.
        vpns: names of message VPNs.
        usernames: client usernames.
        names: client names; one that ends in `*` fits all that begin alike.
    """

    __slots__ = ("names", "sampler", "subscriptions", "usernames", "vpns")

    def __init__(
        self,
        sampler: Sampler,
        subscriptions: list[Filter],
        vpns: list[str],
        usernames: list[str],
        names: list[str],
    ) -> None:
        self.sampler = sampler
        self.subscriptions = subscriptions
        self.vpns = vpns
        self.usernames = usernames
        self.names = names

    def fits_client(self, vpn: str, username: str, name: str) -> bool:
        """True when it looks at what this client publishes."""
        if self.vpns and vpn not in self.vpns:
            return False
        if self.usernames and username not in self.usernames:
            return False
        if not self.names:
            return True
        return any(
            wanted == name or (wanted.endswith("*") and name.startswith(wanted[:-1]))
            for wanted in self.names
        )

    def fits_topic(self, topic: str) -> bool:
        """True when it looks at messages of this topic."""
        if not self.subscriptions:
            return True
        return any(matches(filter_, topic) for filter_ in self.subscriptions)


@final
class TraceTerms:
    """What the configuration says of tracing, besides the rate.

    `discards`, `rejects`: these are told of messages that are not traced too. `honours`: a publisher's
    `traceparent` counts. `emits`: messages that came without one leave with one.
    """

    __slots__ = ("discards", "emits", "filters", "honours", "rejects")

    def __init__(
        self,
        discards: bool = False,
        rejects: bool = False,
        filters: list[TraceFilter] | None = None,
        honours: bool = False,
        emits: bool = False,
    ) -> None:
        self.discards = discards
        self.rejects = rejects
        self.filters = filters or []
        self.honours = honours
        self.emits = emits


@final
class Picking:
    """The filters that look at the clients of one kind, in order, and what they chose for each topic."""

    __slots__ = ("_chosen", "_default", "_filters")

    def __init__(self, filters: list[TraceFilter], default: Sampler) -> None:
        self._filters = filters
        self._default = default
        self._chosen: dict[bytes, Sampler] = {}

    def choose(self, route: Route) -> Sampler:
        """The sampler for messages of this route; the route remembers it."""
        known = self._chosen.get(route.raw)
        if known is None:
            known = self._default
            for one in self._filters:
                if one.fits_topic(route.topic):
                    known = one.sampler
                    break
            if len(self._chosen) >= limits.TRACE_PICKED_TOPICS:
                self._chosen.clear()
            self._chosen[route.raw] = known
        route.picking = self
        route.sampler = known
        return known


def assign(plane: Plane, publisher: Publisher, username: str) -> None:
    """Give a client that has logged in its sampler, or its picking where that depends on the topic."""
    vpn = publisher.vpn.name
    name = publisher.subscriber.client_name
    key = b""
    found: list[TraceFilter] = []
    for index, one in enumerate(plane.filters):
        if one.fits_client(vpn, username, name):
            found.append(one)
            key += bytes((index,))
            if not one.subscriptions:
                # It fits every topic: what comes behind it is never asked.
                break
    if not found:
        return
    if not found[0].subscriptions:
        publisher.sampler = found[0].sampler
        return
    picking = plane.pickings.get(key)
    if picking is None:
        if len(plane.pickings) >= limits.TRACE_PICKED_TOPICS:
            plane.pickings.clear()
        picking = Picking(found, plane.sampler)
        plane.pickings[key] = picking
    publisher.picking = picking
