"""vpnrouter.management.status.clients: who is said to get a topic is who gets it."""

import itertools
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter.core.guaranteed.endpoint_settings import QUEUE, TOPIC_ENDPOINT
from vpnrouter.errors import TopicError
from vpnrouter.management.status.clients import holder_of, matching
from vpnrouter.wire.mqtt.properties import Properties

FILTERS = ["a", "a/b", "a/+", "+/b", "#", "a/#", "b/+", "+/+"]
TOPICS = ["a", "a/b", "b/b", "a/b/c", "c"]

wants = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from(FILTERS),
        st.sampled_from(["", "", "$share/g/", "$share/h/"]),
        st.booleans(),
    ),
    max_size=12,
)


@given(
    wants,
    st.lists(
        st.sampled_from(
            [f"{mark}{text}" for mark in ("", "!") for text in ("a/b", "a/>", "b/*", ">")]
        )
    ),
    st.sets(st.integers(0, 3), max_size=2),
    st.sampled_from(TOPICS),
)
def test_who_matches_gets_it(
    kit: ModuleType, subscribed: Any, attracted: list[str], leave: set[int], topic: str
) -> None:
    """Each client that is named gets one copy; of each group that is named one member gets one; nobody else does."""
    world = kit.MemoryRouter()
    clients = [
        world.connect(
            f"c{number}",
            level=4 + number % 2,
            clean_start=False,
            **({"properties": Properties(session_expiry_interval=60)} if number % 2 else {}),
        )
        for number in range(4)
    ]
    for number, text, share, identified in subscribed:
        clients[number].subscribe(f"{share}{text}", 7 if identified and number % 2 else 0)
    link = kit.FakeLink(world.vpn(), "far/v")
    for text in attracted:
        link.subscribe(text)
    for number in leave:
        clients[number].lose()
    publisher = world.connect("publisher")
    entries = world.vpn().cache.entries
    known = dict(entries)
    found = matching(world.vpn(), topic)
    assert dict(entries) == known, "looking changes nothing"
    publisher.publish(topic)
    got = {
        f"c{number}": len(client.payloads())
        for number, client in enumerate(clients)
        if number not in leave
    }
    got["#bridge/far/v"] = link.offered
    plain = {each.subscriber.client_name for each in found if not each.filter.share}
    groups: dict[Any, set[str]] = {}
    for each in found:
        if each.filter.share:
            groups.setdefault(each.filter, set()).add(each.subscriber.client_name)
    choices = itertools.product(*[sorted(members) for members in groups.values()])
    possible = [{name: (name in plain) + choice.count(name) for name in got} for choice in choices]
    assert got in possible


QUEUES = (
    "msg_vpns: {blue: {queues: {q: {subscriptions: [a/>, '!a/no']}, p: {subscriptions: [a/*]}},"
    " topic_endpoints: {t: {}}}}"
)


@pytest.mark.parametrize("topic", ["a/1", "a/no", "a/1/2", "b", "$queue/q", "$queue/none"])
def test_queues(stored: Any, topic: str) -> None:
    """The queues that are named keep the message, and no others; exceptions and topics of queues included."""
    one = stored(QUEUES)
    vpn = one.router.vpns["blue"]
    named = {holder_of(each.subscriber) for each in matching(vpn, topic)}
    one.publish(topic)
    kept = {("queue", name) for name in ("q", "p") if one.payloads(name)}
    assert named == kept
    assert (TOPIC_ENDPOINT, "t") in vpn.endpoints
    assert (QUEUE, "q") in vpn.endpoints


@pytest.mark.parametrize("topic", ["", "a/\0", "a/+", "#", "a/" * 200])
def test_no_topic(kit: ModuleType, topic: str) -> None:
    """What nobody could publish to is refused as a publisher would be."""
    with pytest.raises(TopicError):
        matching(kit.MemoryRouter().vpn(), topic)
