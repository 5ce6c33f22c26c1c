"""vpnrouter.core.forward: a short cut to cached routes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter.core.forward import FEWEST, MOST, RouteTable
from vpnrouter.core.route import Route


def route_of(topic: bytes) -> Route:
    """A route of its own for a topic."""
    return Route(topic.decode("latin-1"), topic)


def find(table: RouteTable, topic: bytes) -> Route | None:
    """Look a topic up where it stands in a larger buffer."""
    return table.find(b"ab" + topic + b"cd", 2, len(topic))


@given(st.lists(st.binary(min_size=8, max_size=30), min_size=1, max_size=60), st.data())
def test_what_is_found_is_right(topics: list[bytes], data: st.DataObject) -> None:
    """A topic finds its own route or nothing; after a drop nothing is found until it is put again."""
    table = RouteTable()
    newest: dict[bytes, Route] = {}
    trusted: set[bytes] = set()
    for topic in topics:
        # While a route is cached it is the only one of its topic.
        route = newest.setdefault(topic, route_of(topic))
        table.put(route)
        trusted.add(topic)
        assert find(table, topic) is route
        if data.draw(st.integers(0, 9)) == 0:
            table.drop()
            trusted.clear()
            newest.clear()
        for other in topics:
            found = find(table, other)
            if found is not None:
                assert other in trusted
                assert found.raw == other
                assert found is newest[other]


def test_one_byte_anywhere_makes_another_topic() -> None:
    """Topics of one size that differ in a single byte are never taken for each other."""
    base = bytes(range(40, 69))
    table = RouteTable()
    table.put(route_of(base))
    for index in range(len(base)):
        other = bytearray(base)
        other[index] ^= 1
        assert find(table, bytes(other)) is None
    assert find(table, base[:-1]) is None
    assert find(table, base) is not None


def test_the_table_grows_to_its_bound() -> None:
    """More topics than places make the table larger, up to MOST places and no further."""
    table = RouteTable()
    assert len(table._places) == FEWEST
    for number in range(3 * MOST):
        table.put(route_of(b"topic/%08d" % number))
    assert len(table._places) == MOST
    assert find(table, b"topic/%08d" % (3 * MOST - 1)) is not None


def test_most_topics_keep_their_place() -> None:
    """Numbered topics, the usual ones, spread: nine in ten of a fifth of the places are found."""
    table = RouteTable()
    topics = [b"sensor/%04d/value" % number for number in range(FEWEST // 5)]
    for topic in topics:
        table.put(route_of(topic))
    assert sum(find(table, topic) is not None for topic in topics) >= len(topics) * 9 // 10


@pytest.mark.parametrize("where", [0, 8, 21])
def test_topics_that_share_a_place(where: int) -> None:
    """Topics with one place between them, alike but for one word, are told apart, and both are found."""
    table = RouteTable()
    base = b"sensor/00/temperature00000000"
    kept = route_of(base)
    table.put(kept)
    place = table._place(base, 0, len(base))
    sharing = 0
    for number in range(1, 4_000):
        topic = base[:where] + b"%08d" % number + base[where + 8 :]
        if table._place(topic, 0, len(topic)) == place:
            sharing += 1
            assert find(table, topic) is None
            route = route_of(topic)
            table.put(route)
            assert find(table, topic) is route
            table.put(kept)
            assert find(table, base) is kept
            assert find(table, topic) is route
            table.drop()
            table.put(kept)
    assert sharing > 1
