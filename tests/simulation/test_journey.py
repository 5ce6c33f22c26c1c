import numpy as np
import pytest

from vpnrouter.simulation import feeds, mesh
from vpnrouter.simulation.journey import Journey, key_of, partitions_of, walk
from vpnrouter.simulation.templates import Templates


@pytest.fixture
def made() -> tuple[mesh.Mesh, list[int]]:
    """A mesh, and three of its sites in a row."""
    built = mesh.build(mesh.load("sndlib/polska"), 8, 1, np.random.default_rng(2))
    middle = max(range(len(built.near)), key=lambda site: len(built.near[site]))
    one, other, *_ = built.near[middle]
    return built, [one, middle, other]


def events_of(templates: Templates, template: int) -> list[str]:
    """Events of one template with the hops so far."""
    first, length = templates.first[template], templates.length[template]
    columns = templates.columns
    return [f"{columns['event'][at]} {columns['hops'][at]}" for at in range(first, first + length)]


def test_a_direct_message_goes_all_the_way(made: tuple[mesh.Mesh, list[int]]) -> None:
    """It is sent, received and delivered at each stage; a send counts the bridge that it goes over."""
    built, way = made
    feed = feeds.new_feed(built, "prices", feeds.DIRECT, way[0], np.random.default_rng(1))
    feed.receivers = {way[1]: [feeds.Receiver("near")], way[2]: [feeds.Receiver("far")]}
    feeds.lead(built, feed, way)
    templates = Templates()
    template = walk(templates, built, feed, 0)
    assert events_of(templates, template) == [
        "ingress 0",
        "bridge_send 1",
        "bridge_receive 1",
        "deliver 1",
        "bridge_send 2",
        "bridge_receive 2",
        "deliver 2",
    ]
    here = [built.sites[site].name for site in way]
    assert templates.columns["path"][-1] == f"{here[0]}>{here[1]}"
    assert templates.columns["path"][:2] == [None, None]
    assert templates.columns["client"][1] == built.client_of(built.bridges[feed.onward[way[0]][0]])


def test_a_persistent_message_waits_in_queues(made: tuple[mesh.Mesh, list[int]]) -> None:
    """It is enqueued and acknowledged at the bridge's queue and at the receiver's."""
    built, way = made
    feed = feeds.new_feed(built, "orders", feeds.PERSISTENT, way[0], np.random.default_rng(1))
    feed.receivers = {way[1]: [feeds.Receiver("worker", "q", 4)]}
    feeds.lead(built, feed, way[:2])
    templates = Templates()
    template = walk(templates, built, feed, 0, partition=2)
    assert events_of(templates, template) == [
        "ingress 0",
        "enqueue 0",
        "bridge_send 1",
        "acknowledge 0",
        "bridge_receive 1",
        "enqueue 1",
        "deliver 1",
        "acknowledge 1",
    ]
    assert templates.columns["partition"] == [None] * 5 + [2] * 3
    assert templates.columns["client"][-1] == "worker-2"
    assert partitions_of(feed) == 4


def test_a_stalled_bridge_is_where_it_ends(made: tuple[mesh.Mesh, list[int]]) -> None:
    """What is sent over it never arrives, nor anything behind it."""
    built, way = made
    feed = feeds.new_feed(built, "prices", feeds.DIRECT, way[0], np.random.default_rng(1))
    feed.receivers = {way[2]: [feeds.Receiver("far")]}
    feeds.lead(built, feed, way)
    templates = Templates()
    (second,) = feed.onward[way[1]]
    template = walk(templates, built, feed, 0, stalled=[second])
    assert events_of(templates, template)[-1] == "bridge_send 2"


def test_only_who_wants_an_item_gets_it(made: tuple[mesh.Mesh, list[int]]) -> None:
    """Items with a receiver of their own have templates of their own, the others share one."""
    built, way = made
    feed = feeds.new_feed(built, "prices", feeds.DIRECT, way[0], np.random.default_rng(1))
    feed.items = 3
    feed.receivers = {way[0]: [feeds.Receiver("all"), feeds.Receiver("one", item=1)]}
    templates = Templates()
    many = [templates.length[walk(templates, built, feed, item)] for item in range(3)]
    assert many == [2, 3, 2]
    assert [key_of(feed, item) for item in range(3)] == [(), (1,), ()]


def test_rejects_name_endpoint_and_bridge(made: tuple[mesh.Mesh, list[int]]) -> None:
    """The row tells who refused what came by whom."""
    built, way = made
    feed = feeds.new_feed(built, "orders", feeds.PERSISTENT, way[0], np.random.default_rng(1))
    feeds.lead(built, feed, way[:2])
    templates = Templates()
    journey = Journey(templates, built, feed)
    (number,) = feed.onward[way[0]]
    spot = journey.cross(journey.ingress(), number)
    journey.reject(spot, "q", "503 Spool Over Quota", built.bridges[number])
    last = {name: column[-1] for name, column in templates.columns.items()}
    assert last["event"] == "reject"
    assert last["endpoint"] == "q"
    assert last["bridge"] == built.bridges[number].name
    assert last["peer_router"] == built.sites[way[0]].router_name
