"""Failed logins, counted for a minute each."""

from vpnrouter import limits
from vpnrouter.core.pre_login_limits import (
    PERIOD_NS,
    PRETEND,
    REFUSE,
    VERIFY,
    Attempts,
    LoginThrottle,
    origin_of,
)

MOST = 10
KEYS = 4_096


def fresh() -> Attempts:
    """As the management API counts."""
    return Attempts(MOST, KEYS)


def test_the_bound() -> None:
    """After ten attempts without success an address waits for the rest of its minute, and no other does."""
    attempts = fresh()
    for number in range(MOST):
        assert attempts.begin("a", number) == 0
    assert attempts.begin("a", 1_000) == PERIOD_NS - 1_000
    assert attempts.begin("b", 1_000) == 0
    assert attempts.begin("a", PERIOD_NS - 1) == 1
    assert attempts.begin("a", PERIOD_NS) == 0


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


def test_a_user_at_an_address() -> None:
    """After its failures a username is refused from that address, and still verified from another one."""
    throttle = LoginThrottle()
    for _ in range(limits.LOGIN_FAILURES):
        assert throttle.begin("a", "blue", "u", known=True, now_ns=0) == VERIFY
    assert throttle.begin("a", "blue", "u", known=True, now_ns=1) == REFUSE
    assert throttle.begin("a", "red", "u", known=True, now_ns=1) == VERIFY
    assert throttle.begin("b", "blue", "u", known=True, now_ns=1) == VERIFY
    assert throttle.begin("a", "blue", "u", known=True, now_ns=PERIOD_NS) == VERIFY
    assert throttle.refused == 1


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


def test_origins() -> None:
    """IPv6 addresses count by network, mapped ones as the IPv4 address that they are."""
    assert origin_of("192.0.2.1") == "192.0.2.1"
    assert origin_of("::ffff:192.0.2.1") == "192.0.2.1"
    assert origin_of("2001:db8::1") == origin_of("2001:db8::ffff:2") == "2001:db8::/64"
    assert origin_of("") == ""
