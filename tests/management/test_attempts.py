from vpnrouter import limits
from vpnrouter.management.attempts import PERIOD_NS, Attempts


def test_the_bound() -> None:
    """After ten attempts without success an address waits for the rest of its minute, and no other does."""
    attempts = Attempts()
    for number in range(limits.MANAGEMENT_LOGIN_FAILURES):
        assert attempts.begin("a", number) == 0
    assert attempts.begin("a", 1_000) == PERIOD_NS - 1_000
    assert attempts.begin("b", 1_000) == 0
    assert attempts.begin("a", PERIOD_NS - 1) == 1
    assert attempts.begin("a", PERIOD_NS) == 0


def test_success_does_not_count() -> None:
    """A login that succeeds is taken back, and does not forgive those that failed."""
    attempts = Attempts()
    for _ in range(3 * limits.MANAGEMENT_LOGIN_FAILURES):
        assert attempts.begin("a", 0) == 0
        attempts.take_back("a")
    for _ in range(limits.MANAGEMENT_LOGIN_FAILURES - 1):
        attempts.begin("a", 0)
        attempts.begin("a", 0)
        attempts.take_back("a")
    assert attempts.begin("a", 0) == 0
    assert attempts.begin("a", 0) > 0


def test_memory_is_bounded() -> None:
    """One address too many makes the oldest forgotten."""
    attempts = Attempts()
    for number in range(limits.MANAGEMENT_LOGIN_ADDRESSES + 1):
        attempts.begin(str(number), number)
    assert len(attempts._counts) == limits.MANAGEMENT_LOGIN_ADDRESSES
    assert "0" not in attempts._counts
    attempts.take_back("0")
