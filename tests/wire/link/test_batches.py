import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vpnrouter import limits
from vpnrouter.wire.link import encode
from vpnrouter.wire.link.encode import subscribe_frames, unsubscribe_frames


def test_ten_thousand_filters_cost_three_frames() -> None:
    """The count per frame bounds how many control messages a change of many filters costs."""
    filters = [(0, f"orders/{n}/>") for n in range(10_000)]
    batches = subscribe_frames(7, filters, limits.LINK_FRAME_BYTES)
    assert [frame.request_id for frame in batches] == [7, 8, 9]
    assert [len(frame.filters) for frame in batches] == [4_096, 4_096, 1_808]


@settings(max_examples=60, deadline=None)
@given(
    texts=st.lists(st.text("aé/>", min_size=1, max_size=30), max_size=40),
    max_frame=st.integers(80, 200),
)
def test_frames_keep_below_the_limit_and_lose_nothing(texts: list[str], max_frame: int) -> None:
    """Every filter is in exactly one frame, in order, and no frame is longer than allowed."""
    subscribes = subscribe_frames(1, [(1, text) for text in texts], max_frame)
    unsubscribes = unsubscribe_frames(1, texts, max_frame)
    assert all(len(encode.subscribe(frame)) <= max_frame for frame in subscribes)
    assert all(len(encode.unsubscribe(frame)) <= max_frame for frame in unsubscribes)
    assert [pair for frame in subscribes for pair in frame.filters] == [(1, t) for t in texts]
    assert [text for frame in unsubscribes for text in frame.filters] == texts
    assert [frame.request_id for frame in subscribes] == list(range(1, len(subscribes) + 1))


def test_a_filter_that_no_frame_holds() -> None:
    """A filter longer than a whole frame is a ValueError."""
    with pytest.raises(ValueError, match="filter of 90 bytes"):
        subscribe_frames(1, [(0, "a" * 90)], 100)
