"""Plans a whole simulation before a message is drawn: mesh, feeds, templates, streams, states, clocks."""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from vpnrouter.errors import OperationError
from vpnrouter.simulation import traffic as profiles
from vpnrouter.simulation.mesh import Bridge, Mesh
from vpnrouter.simulation.templates import (
    State,
    Stream,
    Templates,
    Topics,
    key_of,
    partitions_of,
    walk,
)
from vpnrouter.simulation.traffic import Feed, Profile, build

LEAST_MESSAGES: Final = 3
"""Messages of each topic at least, so that everybody gets something."""

ALWAYS: Final = ("discard", "reject")
"""Events that routers record of every message, traced or not."""

_BUSY_S: Final = (2.0, 2.0)
_ZIPF: Final = 1.1
_CLOCK_NS: Final = 200_000
_AHEAD_S: Final = 0.5
_AFTER_S: Final = 0.2
_UNTRACED_ROWS: Final = 20
_STOPPED: Final = "503 Service Unavailable"


@dataclass
class Drift:
    """How the configurations differ from the mesh: message VPNs (a site on their router, a name) and bridges that are
    configured only, bridges left out, filters of bridges that are added or left out.
    """

    vpns: list[tuple[int, str]] = field(default_factory=list)
    bridges: list[Bridge] = field(default_factory=list)
    without: set[int] = field(default_factory=set)
    more: list[tuple[int, str]] = field(default_factory=list)
    less: list[tuple[int, str]] = field(default_factory=list)


@dataclass
class Plan:
    """A whole simulation.

    `seconds` is its length; `clocks_ns` how far each router's clock is ahead, `clock_sets` when one is set, in
    seconds, and how many nanoseconds ahead, `clock_drifts_ppm` by how many millionths one is fast. `feeds` get their
    templates from the plan, `scripted` ones from their fault. `downs` are spans in which a bridge is down (begin,
    end, reason), `stalls` one in which it loses everything, both in seconds. `refusals` are bridges that never come
    up: when they are refused, in seconds, and why. `extra_subscriptions` are (site, client, MQTT filter).
    """

    mesh: Mesh
    seconds: float
    feeds: list[Feed]
    profiles: list[Profile]
    clocks_ns: NDArray[np.int64]
    clock_sets: dict[int, tuple[float, int]] = field(default_factory=dict)
    clock_drifts_ppm: dict[int, float] = field(default_factory=dict)
    templates: Templates = field(default_factory=Templates)
    topics: Topics = field(default_factory=Topics)
    streams: list[Stream] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    scripted: list[Feed] = field(default_factory=list)
    downs: dict[int, list[tuple[float, float, str]]] = field(default_factory=dict)
    stalls: dict[int, tuple[float, float]] = field(default_factory=dict)
    refusals: list[tuple[Bridge, list[float], str]] = field(default_factory=list)
    extra_subscriptions: list[tuple[int, str, str]] = field(default_factory=list)
    drift: Drift = field(default_factory=Drift)

    @property
    def busy_s(self) -> tuple[float, float]:
        """When messages come: after the links are up, until before they go down."""
        return _BUSY_S[0], self.seconds - _BUSY_S[1]


def draft(
    mesh: Mesh, seconds: float, feeds_per_vpn: float, items: int, rng: np.random.Generator
) -> Plan:
    """Return feeds, profiles and clocks for a mesh; nothing is planted and no template is written yet."""
    return Plan(
        mesh=mesh,
        seconds=seconds,
        feeds=build(mesh, feeds_per_vpn, items, rng),
        profiles=profiles.normal(_BUSY_S[0], seconds - _BUSY_S[1], rng),
        clocks_ns=rng.normal(0, _CLOCK_NS / 3, len(mesh.network.routers)).astype(np.int64),
    )


def lay_out(plan: Plan, sample: float, rng: np.random.Generator) -> None:
    """Write templates and streams of the normal feeds, and all states."""
    for feed in plan.feeds:
        _lay_out_feed(plan, feed, rng)
    _link_states(plan)
    _subscriptions(plan)
    if sample < 1:
        _untraced(plan, 1 / sample - 1)


def _lay_out_feed(plan: Plan, feed: Feed, rng: np.random.Generator) -> None:
    crossed = [number for onward in feed.onward.values() for number in onward]
    profile = _avoiding(
        plan, int(rng.integers(len(profiles.SHAPES))), [n for n in crossed if n in plan.downs]
    )
    whole = sum((item + 1) ** -_ZIPF for item in range(feed.items))
    parts = _parted(plan, profile, crossed)
    known: dict[tuple[tuple[int, ...], frozenset[int]], list[int]] = {}
    for item in range(feed.items):
        share = (item + 1) ** -_ZIPF / whole
        topic = plan.topics.number(feed.topic(item))
        for which, part, stalled in parts:
            key = (key_of(feed, item), stalled)
            if key not in known:
                known[key] = _templates(plan, feed, item, stalled)
            for template in known[key]:
                size = share * part / len(known[key])
                plan.streams.append(
                    Stream(
                        template,
                        topic,
                        which,
                        feed.mean_bytes,
                        weight=feed.weight * feed.items * size,
                        messages=round(feed.messages * size),
                    )
                )


def _templates(plan: Plan, feed: Feed, item: int, stalled: frozenset[int]) -> list[int]:
    """Return the ways of one item: one, or one for each partition of its queue."""
    partitions = partitions_of(feed)
    return [
        walk(plan.templates, plan.mesh, feed, item, partition=partition, stalled=stalled)
        for partition in (range(partitions) if partitions else (None,))
    ]


def _avoiding(plan: Plan, profile: int, bridges: list[int]) -> int:
    """Return the profile without the times at which one of these bridges is down, or nearly so."""
    for number in bridges:
        edges = [plan.busy_s[0]]
        for begin, end, _ in plan.downs[number]:
            edges += [begin - _AHEAD_S, end + _AFTER_S]
        edges.append(plan.busy_s[1])
        pairs = zip(edges[::2], edges[1::2], strict=True)
        windows = [(begin, end) for begin, end in pairs if end > begin]
        plan.profiles.append(plan.profiles[profile].within(windows))
        profile = len(plan.profiles) - 1
    return profile


def _parted(
    plan: Plan, profile: int, crossed: list[int]
) -> list[tuple[int, float, frozenset[int]]]:
    """Return the profile in parts, by which of the bridges that are crossed stall: the number of each part's profile,
    its share of the messages, and the bridges that stall meanwhile.
    """
    spans = {number: plan.stalls[number] for number in crossed if number in plan.stalls}
    if not spans:
        return [(profile, 1.0, frozenset())]
    windows: dict[frozenset[int], list[tuple[float, float]]] = {}
    edges = sorted({*plan.busy_s, *(edge for span in spans.values() for edge in span)})
    for window in pairwise(edges):
        stalled = (n for n, span in spans.items() if span[0] <= window[0] < span[1])
        windows.setdefault(frozenset(stalled), []).append(window)
    usual = plan.profiles[profile]
    parts = []
    for bridges, when in windows.items():
        plan.profiles.append(usual.within(when))
        parts.append((len(plan.profiles) - 1, usual.share_within(when), bridges))
    return parts


def _untraced(plan: Plan, times: float) -> None:
    """Add rows for the discards and rejects of the messages that are not traced, `times` as many as traced ones: rows
    that stand for several messages and name none.
    """
    columns = plan.templates.columns
    for stream in list(plan.streams):
        first = plan.templates.first[stream.template]
        many = round(stream.messages * times / _UNTRACED_ROWS)
        for row in range(first, first + plan.templates.length[stream.template]):
            if columns["event"][row] in ALWAYS and many:
                values = {name: column[row] for name, column in columns.items()}
                values |= {"hops": None, "path": None, "count": many}
                values |= {"origin_router": None, "origin_vpn": None}
                plan.templates.begin()
                counted = plan.templates.add(plan.templates.router[row], values)
                shares = (np.arange(_UNTRACED_ROWS) + 0.5) / _UNTRACED_ROWS
                plan.states += [
                    State(at_s, counted, stream.topic)
                    for at_s in plan.profiles[stream.profile].times(shares).tolist()
                ]


def share_out(plan: Plan, rows: int) -> NDArray[np.int64]:
    """Return messages of each stream, so that there are about `rows` trace rows in all.

    Raises:
        OperationError: too few rows for every receiver to get a message.
    """
    length = np.array([plan.templates.length[stream.template] for stream in plan.streams], np.int64)
    weight = np.array([stream.weight for stream in plan.streams])
    fixed = np.array([stream.messages for stream in plan.streams], np.int64)
    counts = np.where(fixed > 0, fixed, LEAST_MESSAGES)
    least = int((counts * length).sum()) + len(plan.states)
    if rows < least:
        raise OperationError(
            f"{rows:,} rows are too few for this mesh: at least {least:,}, or fewer --vpns"
        )
    each_row = (rows - least) / max(float((weight * length).sum()), 1e-12)
    more = weight * each_row
    counts += np.floor(more).astype(np.int64)
    # What was cut off goes to the streams that lost most, while there are rows for a message more.
    left = rows - int((counts * length).sum()) - len(plan.states)
    for at in np.argsort(np.floor(more) - more, kind="stable").tolist():
        if weight[at] > 0 and length[at] <= left:
            counts[at] += 1
            left -= int(length[at])
    return counts


def _link_states(plan: Plan) -> None:
    """Record that every link comes up at the begin and goes down at the end, at both routers."""
    for number, bridge in enumerate(plan.mesh.bridges):
        place = number / len(plan.mesh.bridges)
        add_link_state(plan, bridge, "link_up", 0.2 + 0.5 * place, None)
        for begin, end, reason in plan.downs.get(number, ()):
            add_link_state(plan, bridge, "link_down", begin, reason)
            add_link_state(plan, bridge, "link_up", end, None)
        add_link_state(plan, bridge, "link_down", plan.seconds - 0.8 + 0.5 * place, _STOPPED)
    for bridge, times, reason in plan.refusals:
        for at_s in times:
            add_link_state(plan, bridge, "link_rejected", at_s, reason)


_CHANGES: Final = {"link_up": "subscribe", "link_down": "unsubscribe"}
"""What a bridge's client does with its subscriptions."""


def add_link_state(plan: Plan, bridge: Bridge, event: str, at_s: float, reason: str | None) -> None:
    """Record at both ends that a bridge's link comes up, goes down or is refused."""
    mesh = plan.mesh
    remote, local = mesh.sites[bridge.source], mesh.sites[bridge.target]
    row = _add_row(
        plan,
        remote.router,
        vpn=remote.vpn,
        event=event,
        client=mesh.client_of(bridge),
        bridge=bridge.name,
        peer_router=local.router_name,
        peer_vpn=local.vpn,
        reason=reason,
    )
    plan.states.append(State(at_s, row))
    row = _add_row(
        plan,
        local.router,
        vpn=local.vpn,
        event=event,
        bridge=bridge.name,
        peer_router=remote.router_name,
        peer_vpn=remote.vpn,
        reason=reason,
    )
    plan.states.append(State(at_s + 0.001, row))
    if event not in _CHANGES:
        return
    for name in bridge.filters:
        add_subscription_state(
            plan, bridge.source, mesh.client_of(bridge), name, "smf", at_s + 0.01, _CHANGES[event]
        )


def _subscriptions(plan: Plan) -> None:
    filters: dict[tuple[int, str, str, str], None] = {}
    for bridge in plan.mesh.bridges:
        for name in bridge.queue_filters:
            filters[bridge.source, bridge.queue, name, "smf"] = None
    for feed in (*plan.feeds, *plan.scripted):
        for site, receivers in feed.receivers.items():
            for receiver in receivers:
                topic = feed.filter if receiver.item is None else feed.topic(receiver.item)
                if receiver.endpoint:
                    filters[site, receiver.endpoint, topic, "smf"] = None
                else:
                    filters[site, receiver.client, topic.replace(">", "#"), "mqtt"] = None
    for site, client, topic in plan.extra_subscriptions:
        filters[site, client, topic, "mqtt"] = None
    for place, (site, client, topic, syntax) in enumerate(filters):
        add_subscription_state(plan, site, client, topic, syntax, 0.1 + place / len(filters))


def add_subscription_state(
    plan: Plan,
    site: int,
    client: str,
    topic: str,
    syntax: str,
    at_s: float,
    event: str = "subscribe",
) -> None:
    """Record that `client` subscribes in a site, or unsubscribes."""
    place = plan.mesh.sites[site]
    row = _add_row(
        plan, place.router, vpn=place.vpn, event=event, client=client, topic_syntax=syntax
    )
    plan.states.append(State(at_s, row, plan.topics.number(topic)))


def _add_row(plan: Plan, router: int, **values: str | None) -> int:
    plan.templates.begin()
    return plan.templates.add(router, dict(values))
