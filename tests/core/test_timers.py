"""vpnrouter.core.timers: deadlines in virtual time."""

from vpnrouter.core.timers import FEW, Timers, TimerTarget


class Target(TimerTarget):
    """Remembers what it was called with."""

    def __init__(self, timers: Timers) -> None:
        self.timers = timers
        self.calls: list[tuple[int, int]] = []
        self.again_ns = 0

    def on_timer(self, kind: int, now_ns: int) -> None:
        """Remember, and arm again when told to."""
        self.calls.append((kind, now_ns))
        if self.again_ns:
            self.timers.arm(self.again_ns, self, kind + 1)
            self.again_ns = 0


def test_deadlines_fire_once_in_order() -> None:
    """What is due fires in the order of its time, and of arming where times are equal."""
    timers = Timers()
    target = Target(timers)
    for at_ns, kind in ((30, 3), (10, 1), (20, 2), (20, 4)):
        timers.arm(at_ns, target, kind)
    assert timers.next_ns() == 10
    assert timers.run(9) == 0
    assert timers.run(25) == 3
    assert target.calls == [(1, 25), (2, 25), (4, 25)]
    assert timers.next_ns() == 30
    assert timers.run(30) == 1
    assert timers.next_ns() == -1


def test_a_cancelled_deadline_does_nothing() -> None:
    """Cancelling, also twice or after firing, is safe."""
    timers = Timers()
    target = Target(timers)
    first = timers.arm(1, target, 1)
    second = timers.arm(2, target, 2)
    first.cancel()
    first.cancel()
    assert timers.run(5) == 1
    second.cancel()
    assert target.calls == [(2, 5)]
    assert timers.cancelled == 0


def test_a_deadline_may_arm_the_next() -> None:
    """What is armed while firing and already due fires in the same run."""
    timers = Timers()
    target = Target(timers)
    target.again_ns = 3
    timers.arm(1, target, 1)
    assert timers.run(5) == 2
    assert target.calls == [(1, 5), (2, 5)]


def test_cancelled_deadlines_are_swept() -> None:
    """However many come and are cancelled, the heap stays small, and the living ones fire."""
    timers = Timers()
    target = Target(timers)
    for number in range(50):
        timers.arm(1_000_000 + number, target, number)
    for number in range(10_000):
        timers.arm(2_000_000 + number, target, -1).cancel()
        assert len(timers) <= 2 * (50 + FEW)
    assert timers.run(3_000_000) == 50
    assert [kind for kind, _ in target.calls] == list(range(50))
