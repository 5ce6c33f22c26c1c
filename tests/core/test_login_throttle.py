"""vpnrouter.core.login_throttle: what is counted against those who guess passwords."""

from vpnrouter import limits
from vpnrouter.core.login_throttle import PRETEND, REFUSE, VERIFY, Attempts, LoginThrottle

MOST = 10
KEYS = 4_096


def fresh() -> Attempts:
    """As the management API counts."""
    return Attempts(MOST, KEYS)


def test_success_does_not_count() -> None:
    """A login that succeeds is taken back, and does not forgive those that failed."""
    attempts = fresh()
    for _ in range(3 * MOST):
        assert attempts.begin("a", 0) == 0
        attempts.take_back("a")
    for _ in range(MOST - 1):
        attempts.begin("a", 0)
        attempts.begin("a", 0)
        attempts.take_back("a")
    assert attempts.begin("a", 0) == 0
    assert attempts.begin("a", 0) > 0


def test_memory_is_bounded() -> None:
    """An address beyond the bound makes the oldest one forgotten."""
    attempts = fresh()
    for number in range(KEYS + 1):
        attempts.begin(str(number), number)
    assert len(attempts) == KEYS
    assert attempts.count("0", KEYS) == 0
    assert attempts.count("1", KEYS) == 1
    attempts.take_back("0")


def test_an_address_with_many_names() -> None:
    """Beyond its bound an address has one attempt for each name, and a name that is unknown is not hashed."""
    throttle = LoginThrottle()
    for number in range(limits.LOGIN_FAILURES_OF_ADDRESS):
        assert throttle.begin("a", "blue", f"x{number}", known=False, now_ns=0) == VERIFY
    assert throttle.begin("a", "blue", "other", known=False, now_ns=0) == PRETEND
    assert throttle.begin("a", "blue", "user", known=True, now_ns=0) == VERIFY
    for name, known in (("other", False), ("user", True)):
        assert throttle.begin("a", "blue", name, known=known, now_ns=0) == REFUSE
    assert throttle.begin("b", "blue", "new", known=False, now_ns=0) == VERIFY


def test_a_user_attacked_from_everywhere() -> None:
    """However many addresses guess at a username, one that has not failed may log in by it."""
    throttle = LoginThrottle()
    for number in range(3 * limits.LOGIN_FAILURES_OF_USERNAME):
        assert throttle.begin(str(number), "blue", "u", known=True, now_ns=0) == VERIFY
    assert throttle.begin("0", "blue", "u", known=True, now_ns=0) == REFUSE
    assert throttle.begin("home", "blue", "u", known=True, now_ns=0) == VERIFY


def test_logins_that_succeed_are_not_counted() -> None:
    """A fleet with one username logs in from one address as often as it likes."""
    throttle = LoginThrottle()
    for _ in range(3 * limits.LOGIN_FAILURES_OF_USERNAME):
        assert throttle.begin("a", "blue", "u", known=True, now_ns=0) == VERIFY
        throttle.take_back("a", "blue", "u")
