"""vpnrouter.core.direct: a short cut to cached routes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter.core.direct import FEWEST, MOST, Slots
from vpnrouter.core.route import Route


def route_of(topic: bytes) -> Route:
    """A route of its own for a topic."""
    return Route(topic.decode("latin-1"), topic)


def find(slots: Slots, topic: bytes) -> Route | None:
    """Look a topic up where it stands in a larger buffer."""
    return slots.find(b"ab" + topic + b"cd", 2, len(topic))


@given(st.lists(st.binary(min_size=8, max_size=30), min_size=1, max_size=60), st.data())
def test_what_is_found_is_right(topics: list[bytes], data: st.DataObject) -> None:
    """A topic finds its own route or nothing; after a drop nothing is found until it is put again."""
    slots = Slots()
    newest: dict[bytes, Route] = {}
    trusted: set[bytes] = set()
    for topic in topics:
        # While a route is cached it is the only one of its topic.
        route = newest.setdefault(topic, route_of(topic))
        slots.put(route)
        trusted.add(topic)
        assert find(slots, topic) is route
        if data.draw(st.integers(0, 9)) == 0:
            slots.drop()
            trusted.clear()
            newest.clear()
        for other in topics:
            found = find(slots, other)
            if found is not None:
                assert other in trusted
                assert found.raw == other
                assert found is newest[other]


def test_one_byte_anywhere_makes_another_topic() -> None:
    """Topics of one size that differ in a single byte are never taken for each other."""
    base = bytes(range(40, 69))
    slots = Slots()
    slots.put(route_of(base))
    for index in range(len(base)):
        other = bytearray(base)
        other[index] ^= 1
        assert find(slots, bytes(other)) is None
    assert find(slots, base[:-1]) is None
    assert find(slots, base) is not None


def test_the_table_grows_to_its_bound() -> None:
    """More topics than places make the table larger, up to MOST places and no further."""
    slots = Slots()
    assert len(slots._places) == FEWEST
    for number in range(3 * MOST):
        slots.put(route_of(b"topic/%08d" % number))
    assert len(slots._places) == MOST
    assert find(slots, b"topic/%08d" % (3 * MOST - 1)) is not None


def test_most_topics_keep_their_place() -> None:
    """Numbered topics, the usual ones, spread: nine in ten of a fifth of the places are found."""
    slots = Slots()
    topics = [b"sensor/%04d/value" % number for number in range(FEWEST // 5)]
    for topic in topics:
        slots.put(route_of(topic))
    assert sum(find(slots, topic) is not None for topic in topics) >= len(topics) * 9 // 10


@pytest.mark.parametrize("where", [0, 8, 21])
def test_topics_that_share_a_place(where: int) -> None:
    """Topics with one place between them, alike but for one word, are told apart, and both are found."""
    slots = Slots()
    base = b"sensor/00/temperature00000000"
    kept = route_of(base)
    slots.put(kept)
    place = slots._place(base, 0, len(base))
    sharing = 0
    for number in range(1, 4_000):
        topic = base[:where] + b"%08d" % number + base[where + 8 :]
        if slots._place(topic, 0, len(topic)) == place:
            sharing += 1
            assert find(slots, topic) is None
            route = route_of(topic)
            slots.put(route)
            assert find(slots, topic) is route
            slots.put(kept)
            assert find(slots, base) is kept
            assert find(slots, topic) is route
            slots.drop()
            slots.put(kept)
    assert sharing > 1
