from vpnrouter.tui.api import Connection


def test_delays_grow_to_a_bound_and_begin_anew() -> None:
    """Tries are 1, 2, 4, 8, 8 … seconds apart; an answer ends it."""
    one, waits = Connection(), []
    now = 50.0
    for _ in range(6):
        one.failed(now, "refused")
        waits.append(one.next_try - now)
        assert not one.is_due(one.next_try - 0.01)
        assert one.is_due(one.next_try)
        now = one.next_try
    assert waits == [1.0, 2.0, 4.0, 8.0, 8.0, 8.0]
    assert one.answered(now)
    assert not one.is_lost
    one.failed(now, "again")
    assert one.next_try == now + 1.0


def test_since_when_it_is_lost_stays() -> None:
    """The first failure counts, the last reason is told."""
    one = Connection()
    one.failed(10.0, "refused")
    one.failed(20.0, "no answer in time")
    assert (one.lost_at, one.why) == (10.0, "no answer in time")


def test_a_router_that_answers_is_asked_at_any_time() -> None:
    """Nothing is put off while all is well."""
    one = Connection()
    assert one.is_due(0.0)
    assert not one.answered(1.0)
    assert one.is_due(1.0)
    assert one.why == ""
