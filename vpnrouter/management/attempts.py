"""Wrong passwords by address: after too many of them an address waits until its minute is over."""

from typing import Final, final

from vpnrouter import limits

PERIOD_NS: Final = 60_000_000_000
"""The minute that wrong passwords are counted in; it begins with the first one."""


@final
class Attempts:
    """Counts login attempts that have not succeeded, by address. Times are monotonic nanoseconds."""

    def __init__(self) -> None:
        self._counts: dict[str, tuple[int, int]] = {}

    def begin(self, address: str, now_ns: int) -> int:
        """Count one attempt before its password is looked at, so that parallel ones count too.

        Returns 0, or the nanoseconds that the address has to wait because it has none left.
        """
        since_ns, count = self._counts.get(address, (now_ns, 0))
        if now_ns - since_ns >= PERIOD_NS:
            del self._counts[address]
            since_ns, count = now_ns, 0
        if count >= limits.MANAGEMENT_LOGIN_FAILURES:
            return since_ns + PERIOD_NS - now_ns
        if address not in self._counts and len(self._counts) >= limits.MANAGEMENT_LOGIN_ADDRESSES:
            del self._counts[next(iter(self._counts))]
        self._counts[address] = (since_ns, count + 1)
        return 0

    def take_back(self, address: str) -> None:
        """The attempt was no failure."""
        known = self._counts.get(address)
        if known is None:
            return
        since_ns, count = known
        if count > 1:
            self._counts[address] = (since_ns, count - 1)
        else:
            del self._counts[address]
