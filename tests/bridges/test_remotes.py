import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vpnrouter.bridges.remote_order import Remote, RemoteOrder

A, B, C, D = (
    Remote("v", f"{name}:55555", order) for name, order in zip("abcd", (1, 2, 3, 4), strict=True)
)


def test_best_first_and_round_the_list() -> None:
    """Without retries each host is tried once, by connect order, for ever."""
    remotes = RemoteOrder([C, A, D, B])
    seen = [remotes.current]
    seen += [remotes.failed() for _ in range(8)]
    assert seen == [A, B, C, D, A, B, C, D, A]


def test_retries_before_the_next_host() -> None:
    """A retry count of 2 gives each host three attempts in a row."""
    remotes = RemoteOrder([A, B], retry_count=2)
    seen = [remotes.current]
    seen += [remotes.failed() for _ in range(6)]
    assert seen == [A, A, A, B, B, B, A]


def test_equal_orders_stand_as_configured() -> None:
    """Remotes of one order are tried in the order of the configuration."""
    first, second = Remote("v", "x:1"), Remote("v", "y:1")
    assert RemoteOrder([first, second]).current == first
    assert RemoteOrder([second, first]).current == second


def test_after_a_loss_the_next_best() -> None:
    """The remote lost comes last in that pass; the next one goes as configured."""
    remotes = RemoteOrder([A, B, C])
    assert remotes.lost() == B
    assert [remotes.failed() for _ in range(4)] == [C, A, A, B]
    assert remotes.lost() == A


def test_a_lone_remote_is_tried_again() -> None:
    """With one remote every way leads to it."""
    remotes = RemoteOrder([A])
    assert remotes.lost() == A
    assert remotes.failed() == A
    assert remotes.better() == ()


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
    seen = {remotes.failed() for _ in range(2 * len(configured) * (retries + 1))}
    assert seen == set(configured)
