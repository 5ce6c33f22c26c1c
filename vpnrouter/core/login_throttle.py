"""Counts failed logins within a minute, by address and name, and slows down peers that guess passwords.

Clients, bridges and the management API have their failures counted.
"""

from __future__ import annotations

from typing import Final, final

from vpnrouter import limits

PERIOD_NS: Final = 60_000_000_000
"""Wrong passwords are counted for a minute, which begins with the first one."""

TOO_MANY_FAILURES: Final = "403 Too Many Failed Logins"


@final
class Attempts:
    """Counts login attempts that have not succeeded, by any key. Times are monotonic nanoseconds.

    Each key may have `most` of them a minute. At most `keys` keys are remembered; beyond, the one whose minute
    began first is forgotten.
    """

    __slots__ = ("_counts", "_keys", "_most")

    def __init__(self, most: int, keys: int) -> None:
        self._most = most
        self._keys = keys
        self._counts: dict[object, tuple[int, int]] = {}

    def __len__(self) -> int:
        return len(self._counts)

    def begin(self, key: object, now_ns: int) -> int:
        """Count one attempt before its password is verified, so that parallel attempts count too.

        Returns 0, or the nanoseconds that the key has to wait because it has none left.
        """
        wait_ns = self.wait_ns(key, now_ns)
        if wait_ns == 0:
            self.add(key, now_ns)
        return wait_ns

    def wait_ns(self, key: object, now_ns: int) -> int:
        """The nanoseconds until the key has an attempt left; 0 when it has one now."""
        if self.count(key, now_ns) < self._most:
            return 0
        return self._counts[key][0] + PERIOD_NS - now_ns

    def count(self, key: object, now_ns: int) -> int:
        """The number of attempts of this key in its minute."""
        since_ns, count = self._counts.get(key, (now_ns, 0))
        if now_ns - since_ns >= PERIOD_NS:
            del self._counts[key]
            return 0
        return count

    def add(self, key: object, now_ns: int) -> None:
        """Count one attempt, even if none was left."""
        count = self.count(key, now_ns)
        if count:
            self._counts[key] = (self._counts[key][0], count + 1)
            return
        if len(self._counts) >= self._keys:
            del self._counts[next(iter(self._counts))]
        self._counts[key] = (now_ns, 1)

    def take_back(self, key: object) -> None:
        """Take back one attempt, which was no failure."""
        known = self._counts.get(key)
        if known is None:
            return
        since_ns, count = known
        if count > 1:
            self._counts[key] = (since_ns, count - 1)
        else:
            del self._counts[key]


VERIFY: Final = 0
"""Verify the password."""

PRETEND: Final = 1
"""Answer as for a wrong password, after as long as a verification takes. Nothing is hashed."""

REFUSE: Final = 2
"""Refuse the login without a look at its password: there were too many failures in this minute."""


@final
class LoginThrottle:
    """Slows down peers that guess passwords of clients and bridges, before anything is hashed.

    Failures are counted by address, by username at an address, and by username at all addresses. Nobody can shut out a
    user at another address: a username attacked from many addresses still has one attempt a minute from each. Passwords
    verified before bypass this (`Credentials.remembered`), so that a fleet behind an attacker's address can log in
    again.
    """

    __slots__ = ("_addresses", "_pairs", "_usernames", "refused")

    def __init__(self) -> None:
        self._addresses = Attempts(limits.LOGIN_FAILURES_OF_ADDRESS, limits.LOGIN_KEYS)
        self._pairs = Attempts(limits.LOGIN_FAILURES, limits.LOGIN_KEYS)
        self._usernames = Attempts(limits.LOGIN_FAILURES_OF_USERNAME, limits.LOGIN_KEYS)
        self.refused = 0

    def begin(self, origin: str, vpn: str, name: str, *, known: bool, now_ns: int) -> int:
        """Decide about one more attempt: VERIFY, PRETEND or REFUSE. The first two count it.

        `origin` comes from `origin_of`; `known` says that there is such a client username. An address with too
        many failures has one attempt a minute for each username. It is verified where the username is known;
        otherwise nothing is hashed.
        """
        pair = hash((origin, vpn, name))
        user = hash((vpn, name))
        over = self._addresses.wait_ns(origin, now_ns) > 0
        tried = self._pairs.count(pair, now_ns)
        if tried and (
            over
            or self._pairs.wait_ns(pair, now_ns) > 0
            or self._usernames.wait_ns(user, now_ns) > 0
        ):
            self.refused += 1
            return REFUSE
        self._addresses.add(origin, now_ns)
        self._pairs.add(pair, now_ns)
        self._usernames.add(user, now_ns)
        return PRETEND if over and not known else VERIFY

    def take_back(self, origin: str, vpn: str, name: str) -> None:
        """Take back an attempt that was no failure, or was never answered."""
        self._addresses.take_back(origin)
        self._pairs.take_back(hash((origin, vpn, name)))
        self._usernames.take_back(hash((vpn, name)))
