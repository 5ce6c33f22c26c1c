"""vpnrouter.core.forward: how many frames in a row begin alike."""

from hypothesis import given
from hypothesis import strategies as st

from vpnrouter.core.forward import run_length


@given(
    head=st.integers(1, 30),
    tail=st.integers(0, 9),
    frames=st.integers(1, 12),
    change=st.none() | st.tuples(st.integers(1, 11), st.integers(0, 29)),
    before=st.integers(0, 3),
    most=st.integers(1, 12),
)
def test_run_length(
    head: int, tail: int, frames: int, change: tuple[int, int] | None, before: int, most: int
) -> None:
    """Every byte of the head counts, none of the rest, and never more than `most` are counted."""
    begin = bytes(range(65, 65 + head))
    heads = [bytearray(begin) for _ in range(frames)]
    if change is not None and change[0] < frames:
        heads[change[0]][head - 1 - change[1] % head] ^= 1
    parts = [bytes(one) + bytes((index,)) * tail for index, one in enumerate(heads)]
    most = min(most, frames)
    expected = 1
    while expected < most and heads[expected] == heads[0]:
        expected += 1
    buf = b"\x00" * before + b"".join(parts)
    assert run_length(buf, before, head, head + tail, most) == expected


@given(head=st.integers(1, 30))
def test_every_byte_of_the_head_counts(head: int) -> None:
    """One byte that differs anywhere ends the run."""
    begin = bytes(range(65, 65 + head))
    for index in range(head):
        other = bytearray(begin)
        other[index] ^= 1
        buf = begin + b"tail" + begin + b"TAIL" + bytes(other) + b"tail"
        assert run_length(buf, 0, head, head + 4, 3) == 2
