"""vpnrouter.core.vpn: one message VPN's routing, subscriptions and bookkeeping."""

from __future__ import annotations

import gc
import math
import time
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from vpnrouter import limits
from vpnrouter.core.access import AclProfile, TopicRule
from vpnrouter.core.discard_reasons import (
    MSG_TOO_BIG,
    NO_SUBSCRIPTION_MATCH,
    PUBLISH_TOPIC_ACL,
    TRANSMIT_CONGESTION,
)
from vpnrouter.core.profile import ClientProfile
from vpnrouter.core.vpn import VpnLimits
from vpnrouter.topics.cache import RouteCache
from vpnrouter.topics.grammar import MQTT
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.packets import Publish, SubscriptionRequest
from vpnrouter.wire.mqtt.properties import Properties

if TYPE_CHECKING:
    from types import ModuleType

    from vpnrouter.testing.memory import Client, MemoryRouter

TOPICS = ["a", "a/b", "a/c", "b", "a/b/c", "sensor/0001"]
FILTERS = ["a", "a/+", "a/#", "#", "+", "sensor/0001", "$share/g/a/+"]


@given(
    st.lists(
        st.tuples(st.booleans(), st.sampled_from("xyz"), st.sampled_from(FILTERS)), max_size=25
    ),
    st.sampled_from([1, 2, 65_536]),
)
def test_cached_routes_are_what_the_trie_says(
    kit: ModuleType, changes: list[tuple[bool, str, str]], cache: int
) -> None:
    """After every change each cached route names exactly those whom a fresh look-up names."""
    world: MemoryRouter = kit.MemoryRouter()
    vpn = world.add_vpn("blue", cache=cache)
    clients = {name: world.connect(name) for name in "xyz"}
    for come, name, text in changes:
        for topic in TOPICS:
            vpn.route(topic.encode())
        if come:
            clients[name].subscribe(text)
        else:
            clients[name].unsubscribe(text)
        for topic in TOPICS:
            raw = topic.encode()
            cached = vpn.route(raw)
            fresh = vpn.resolve(raw)
            assert set(cached.targets()) == set(fresh.targets())
            assert set(cached.groups) == set(fresh.groups)
    held = sum(len(session.subscriptions) for session in vpn.clients.values())
    assert vpn.subscription_count == held == len(vpn.trie)


def test_a_cached_route_is_kept_while_nothing_changes_it(world: MemoryRouter) -> None:
    """Subscriptions elsewhere leave it alone."""
    client = world.connect("c")
    route = world.vpn().route(b"a/b")
    client.subscribe("x/#")
    assert world.vpn().route(b"a/b") is route
    client.subscribe("a/#")
    assert world.vpn().route(b"a/b") is not route


def test_the_route_cache_is_bounded(world: MemoryRouter) -> None:
    """ROUTE_CACHE_ENTRIES topics stay cached, one more pushes the oldest out; longer topics are not cached."""
    vpn = world.vpn()
    for number in range(limits.ROUTE_CACHE_ENTRIES):
        vpn.route(b"%d" % number)
    assert len(vpn.cache) == limits.ROUTE_CACHE_ENTRIES
    stamp = vpn.route_table.stamp
    vpn.route(b"one more")
    assert len(vpn.cache) <= limits.ROUTE_CACHE_ENTRIES
    assert vpn.cache.get(b"0") is None
    assert vpn.route_table.stamp > stamp
    vpn.route(b"x" * limits.ROUTE_CACHE_TOPIC_BYTES)
    vpn.route(b"y" * (limits.ROUTE_CACHE_TOPIC_BYTES + 1))
    assert vpn.cache.get(b"x" * limits.ROUTE_CACHE_TOPIC_BYTES) is not None
    assert vpn.cache.get(b"y" * (limits.ROUTE_CACHE_TOPIC_BYTES + 1)) is None


def test_the_memory_of_permissions_is_bounded(world: MemoryRouter) -> None:
    """PERMITTED_TOPIC_BYTES of topics are remembered, with one more the memory starts anew; answers stay right."""
    rule = TopicRule(True, [("no/#", MQTT)])
    vpn = world.add_vpn("blue", acl=AclProfile("default", publish=rule))
    publisher = world.connect("p").connection.publisher
    assert publisher is not None
    known = publisher.permitted.answers
    most = limits.PERMITTED_TOPIC_BYTES // (limits.ROUTE_CACHE_TOPIC_BYTES + 70)
    for number in range(most):
        topic = (b"yes/%d/" % number).ljust(limits.ROUTE_CACHE_TOPIC_BYTES, b"x")
        assert publisher.allowed(vpn.route(topic))
        assert len(known) == number + 1
    refused = b"no/".ljust(limits.ROUTE_CACHE_TOPIC_BYTES, b"x")
    assert not publisher.allowed(vpn.route(refused))
    assert len(known) == 1
    assert not publisher.allowed(vpn.route(refused))


batches = st.lists(
    st.tuples(
        st.sampled_from(["p4", "p5"]),
        st.sampled_from(["both", "one", "nobody", "denied"]),
        st.integers(1, 12),
        st.sampled_from([1, 8, 30, 31, 60]),
        st.sampled_from(["", "", "drain", "lose", "return"]),
    ),
    max_size=15,
)


@given(batches, st.sampled_from([0.0, 0.3, 1.0]))
def test_every_message_is_accounted_for(
    kit: ModuleType,
    script: list[tuple[str, str, int, int, str]],
    sample: float,
) -> None:
    """Received = denied + too big + unmatched + matched; copies of matched = sent + congested + too big to send.

    `both` matches a 3.1.1 client that may be away and an MQTT 5 client with a small packet limit, `one`
    the second only. Counts hold while connections live, and after they ended.
    """
    world: MemoryRouter = kit.MemoryRouter(sample=sample)
    vpn = world.add_vpn(
        "blue",
        profile=ClientProfile("default", max_outbox_bytes=300),
        acl=AclProfile("default", publish=TopicRule(True, [("denied/#", MQTT)])),
        bounds=VpnLimits(max_msg_size=30),
    )
    publishers = {"p4": world.connect("p4", level=4), "p5": world.connect("p5")}
    small = Properties(maximum_packet_size=20)
    second = world.connect("second", properties=small)
    second.subscribe("both")
    second.subscribe("one")
    first: Client | None = None
    received = octets = denied = big = unmatched = too_large = 0
    copies = got = 0
    for name, topic, times, size, then in script:
        publisher = publishers[name]
        text = "denied/x" if topic == "denied" else topic
        frame = encode(Publish(text.encode(), b"x" * size), publisher.level)
        publisher.raw(frame * times)
        received += times
        octets += times * len(frame)
        if topic == "denied":
            denied += times
        elif size > 30:
            big += times
        elif topic == "nobody":
            unmatched += times
        else:
            to_second = encode(Publish(text.encode(), b"x" * size), 5)
            if len(to_second) > 20:
                too_large += times
            else:
                copies += times
            if topic == "both" and first is not None:
                copies += times
        if then == "drain":
            got += len(second.messages())
        elif then == "lose" and first is not None:
            got += len(first.messages())
            first.lose()
            first = None
        elif then == "return" and first is None:
            first = world.connect("first", level=4)
            first.subscribe("both")
    got += len(second.messages()) + (len(first.messages()) if first is not None else 0)
    wanted = {
        NO_SUBSCRIPTION_MATCH: unmatched,
        PUBLISH_TOPIC_ACL: denied,
        MSG_TOO_BIG: big + too_large,
        TRANSMIT_CONGESTION: copies - got,
    }
    expected = {reason: count for reason, count in wanted.items() if count}
    for _ in range(2):
        counted = vpn.totals()
        assert (counted.rx_msg_count, counted.rx_byte_count) == (received, octets)
        assert counted.tx_msg_count == got
        assert counted.discards == expected
        for client in (*publishers.values(), second, first):
            if client is not None and not client.closed:
                client.lose()
    assert vpn.publishers == {}


def test_routes_with_many_subscriptions_share_the_memory_of_the_cache(world: MemoryRouter) -> None:
    """Where each topic matches hundreds of filters of one client, fewer topics stay cached."""
    vpn = world.vpn()
    most = 1_000_000
    vpn.cache = RouteCache(most_bytes=most)
    client = world.connect("s")
    filters = ["/".join("a+"[number >> level & 1] for level in range(9)) for number in range(512)]
    client.request([SubscriptionRequest(f"+/{text}") for text in filters], identifier=7)
    rest = b"/a" * 9
    for number in range(400):
        vpn.route(b"%d" % number + rest)
    (target,) = vpn.route(b"399" + rest).special
    assert len(target.subscriptions) == 512
    assert 100 < len(vpn.cache) <= most // (8 * 512)


def test_the_route_of_thousands_of_groups_is_made_in_one_pass(world: MemoryRouter) -> None:
    """Four times as many groups that match a topic take some four times as long, and not sixteen times."""
    vpn = world.vpn()
    # Both numbers are beyond what the caches of a processor hold: fewer groups are faster each.
    groups = {"few": 8_000, "many": 32_000}
    for topic, count in groups.items():
        for first in range(0, count, 2_000):
            client = world.connect(f"{topic}{first}")
            names = [f"$share/g{number}/{topic}/#" for number in range(first, first + 2_000)]
            client.request([SubscriptionRequest(text, qos=1) for text in names])
    best = dict.fromkeys(groups, math.inf)
    # What other tests have left is not walked in between.
    gc.collect()
    gc.disable()
    try:
        # In turn, so that a machine that is busy for a while slows both.
        for number in range(20):
            for topic, count in groups.items():
                began = time.process_time()
                assert len(vpn.route(b"%s/%d" % (topic.encode(), number)).groups) == count
                best[topic] = min(best[topic], time.process_time() - began)
    finally:
        gc.enable()
    assert best["many"] < 10 * best["few"], best
