import pytest

from vpnrouter import limits
from vpnrouter.spool.segments import Building, decode_index, decode_segment


def add(building: Building, *sets: list[int], record: bytes = b"record") -> None:
    """Add a message for each set of endpoints."""
    for members in sets:
        building.add(record, 6, 4, 0, 0, members)


def members(building: Building) -> list[list[int]]:
    """Who has each message, as the index says."""
    columns = decode_index(building.index())
    which = columns.which or [0] * columns.count
    return [columns.sets[number] for number in which]


def test_messages_for_several_sets() -> None:
    """Each message keeps its own set, equal sets are stored once."""
    building = Building(10)
    add(building, [1], [1, 2], [1], [2, 1], [1, 2])
    assert members(building) == [[1], [1, 2], [1], [2, 1], [1, 2]]
    assert len(decode_index(building.index()).sets) == 3
    assert (building.left, len(building)) == (8, 5)


def test_list_that_changes_later() -> None:
    """The caller's list stays the caller's."""
    building = Building(1)
    mine = [1]
    add(building, mine)
    mine.append(2)
    add(building, mine)
    assert members(building) == [[1], [1, 2]]


def test_settled_before_it_was_stored() -> None:
    """It is noted in a bitmap; a message that nobody needs has no body."""
    building = Building(1, 100)
    add(building, [1, 2], [1, 2], [3])
    building.settle(1, 0)
    building.settle(1, 0)
    building.settle(9, 0)
    building.settle(1, 1)
    building.settle(2, 1)
    assert building.left == 2
    assert members(building) == [[1, 2], [1, 2], [3]]
    assert [(part.endpoint, bytes(part.bits)) for part in building.parts()] == [
        (1, b"\3"),
        (2, b"\2"),
    ]
    assert decode_segment(building.bodies()) == [b"record", b"", b"record"]


def test_bounds_of_a_segment() -> None:
    """Messages up to a count and to a size; the first one of any size."""
    building = Building(1)
    assert building.takes(limits.SPOOL_SEGMENT_BYTES * 2)
    add(building, [1], record=b"x" * (limits.SPOOL_SEGMENT_BYTES - 10))
    assert building.takes(10)
    assert not building.takes(11)
    many = Building(1)
    add(many, *[[1]] * (limits.SPOOL_SEGMENT_MESSAGES - 1))
    assert many.takes(1)
    add(many, [1])
    assert not many.takes(1)


@pytest.mark.parametrize(
    ("size", "priority", "lane", "expires"),
    [(1 << 32, 0, 0, 0), (-1, 0, 0, 0), (0, 256, 0, 0), (0, 0, 65_536, 0), (0, 0, 0, 1 << 62)],
)
def test_values_without_a_column(size: int, priority: int, lane: int, expires: int) -> None:
    """They are refused when they come: sealing must not fail."""
    building = Building(1)
    with pytest.raises(OverflowError):
        building.add(b"x", size, priority, lane, expires, [1])
    assert len(building) == 0


@pytest.mark.parametrize("endpoints", [[], [1, 2, 1]])
def test_sets_without_sense(endpoints: list[int]) -> None:
    """A message for nobody, and an endpoint named twice, could never be settled."""
    building = Building(1)
    for _ in range(2):
        with pytest.raises(ValueError, match="endpoint"):
            building.add(b"x", 1, 1, 1, 1, endpoints)
    add(building, [1])
    assert members(building) == [[1]]


def test_more_endpoints_than_a_set_can_name() -> None:
    """The count of a set has two bytes."""
    building = Building(1)
    add(building, list(range(65_535)))
    with pytest.raises(OverflowError):
        add(building, list(range(65_536)))
    assert len(members(building)[0]) == 65_535
