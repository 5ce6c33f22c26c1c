import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vpnrouter.bridges.remote_order import (
    QUICK_LEAST_NS,
    QUICK_MOST_NS,
    Backoff,
    Remote,
    RemoteOrder,
)
from vpnrouter.units import SECOND_NS

A, B, C, D = (
    Remote("v", f"{name}:55555", order) for name, order in zip("abcd", (1, 2, 3, 4), strict=True)
)


def test_disabled_remotes_do_not_count() -> None:
    """A remote that is switched off is never chosen, and without any there is nothing to dial."""
    off = Remote("v", "off:1", 1, enabled=False)
    assert RemoteOrder([off, B]).current == B
    empty = RemoteOrder([off])
    assert (empty.current, empty.failed(), empty.lost(), empty.better()) == (None, None, None, ())


def test_fail_back_is_to_a_strictly_better_order() -> None:
    """Better remotes are those of a lower order than the one in use, best first."""
    remotes = RemoteOrder([A, B, C, Remote("v", "c2:1", 3)])
    remotes.failed()
    remotes.failed()
    assert remotes.current == C
    assert remotes.better() == (A, B)
    remotes.choose(A)
    assert remotes.current == A
    with pytest.raises(ValueError):
        remotes.choose(D)


def test_a_changed_list_keeps_the_remote_in_use() -> None:
    """A remote that is still configured stays current, also when its order changed."""
    remotes = RemoteOrder([A, B])
    remotes.failed()
    moved = Remote(B.msg_vpn, B.location, 4)
    assert remotes.replace([A, C, moved], retry_count=0)
    assert remotes.current == moved
    assert not remotes.replace([A, C], retry_count=0)
    assert remotes.current == A
    assert not remotes.replace([], retry_count=0)
    assert remotes.current is None


@settings(max_examples=100, deadline=None)
@given(
    orders=st.lists(st.integers(1, 4), min_size=1, max_size=6),
    retries=st.integers(0, 3),
    events=st.lists(st.booleans(), max_size=30),
)
def test_every_remote_has_its_turn(orders: list[int], retries: int, events: list[bool]) -> None:
    """From any point, failures alone bring every remote up within two passes."""
    configured = [Remote("v", f"h{n}:1", order) for n, order in enumerate(orders)]
    remotes = RemoteOrder(configured, retries)
    for lost in events:
        assert (remotes.lost() if lost else remotes.failed()) in configured
    seen = [remotes.failed() for _ in range(2 * len(configured) * (retries + 1))]
    assert [one for one in configured if one not in seen] == []


# -- backoff ---------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    draws=st.lists(st.floats(0, 1, exclude_max=True), min_size=20, max_size=200),
    base_s=st.integers(0, 255),
)
def test_every_delay_is_within_its_bounds(draws: list[float], base_s: int) -> None:
    """Quick delays are 20 to 80 ms, slow ones from base to three times the last or the cap."""
    base = max(base_s * SECOND_NS, QUICK_LEAST_NS)
    cap = 300 * SECOND_NS
    backoff = Backoff(base_s * SECOND_NS, cap, quick_period_ns=SECOND_NS)
    now = 0
    quick_end = SECOND_NS
    previous = base
    backoff.down(now)
    assert backoff.delay_ns(now, draws[0]) == 0
    for draw in draws:
        backoff.down(now)
        delay = backoff.delay_ns(now, draw)
        if now < quick_end:
            assert QUICK_LEAST_NS <= delay < QUICK_MOST_NS
        else:
            assert base <= delay <= min(cap, max(base, 3 * previous))
            previous = delay
        now += delay


def test_the_peer_s_wish_counts_up_to_the_cap() -> None:
    """`retry after` lengthens a delay and cannot keep the bridge away for ever."""
    backoff = Backoff(cap_ns=30 * SECOND_NS)
    assert backoff.delay_ns(0, 0.0, at_least_ns=2 * SECOND_NS) == 2 * SECOND_NS
    assert backoff.delay_ns(0, 0.0, at_least_ns=3_600 * SECOND_NS) == 30 * SECOND_NS


def test_a_cap_below_the_base_is_a_mistake() -> None:
    """Such a policy cannot be followed."""
    with pytest.raises(ValueError, match="below base"):
        Backoff(3 * SECOND_NS, 2 * SECOND_NS)
