"""Message and trace ids."""

from itertools import pairwise

from vpnrouter.ids import IdSource


def test_ids_count_from_one() -> None:
    """Numbers of one source are 1, 2, 3 …, so 0 can mean "none"."""
    source = IdSource(7)
    assert [source.next() for _ in range(3)] == [1, 2, 3]


def test_high_half_is_the_seed_and_never_zero() -> None:
    """W3C trace context forbids a trace id of all zeros; the high half alone prevents it."""
    assert IdSource(7).high == 7
    assert IdSource(0).high == 1
    assert IdSource(1 << 64).high == 1
    assert IdSource((1 << 70) + 5).high == 5


def drawn(secret: bytes) -> IdSource:
    """A source whose ids come from `secret`."""
    source = IdSource(7)
    source.draw_by(secret)
    return source


def test_message_ids_are_no_two_alike_and_never_none() -> None:
    """Each number of each router has its own id, above 0 and below 2**61, the same at each call."""
    one, other = drawn(b"one"), drawn(b"other")
    made = {source.message_id(number) for source in (one, other) for number in range(1, 20_000)}
    assert len(made) == 2 * 19_999
    assert min(made) > 0
    assert max(made) < 2**61
    assert one.message_id(7) == drawn(b"one").message_id(7)


def test_message_ids_that_were_seen_tell_no_other() -> None:
    """Ids that were seen, their distances and the router's name do not lead to the next id."""
    source = drawn(b"secret")
    seen = [source.new_message_id() for _ in range(999)]
    steps = {(after - before) % 2**61 for before, after in pairwise(seen)}
    assert len(steps) == 998
    assert seen[0] not in (IdSource(7).new_message_id(), drawn(b"other").new_message_id())
