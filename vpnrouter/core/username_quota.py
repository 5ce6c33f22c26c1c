"""Bounds an amount by client username, by message VPN and in the whole router."""

from __future__ import annotations

from typing import final


@final
class UsernameQuota:
    """An amount by client username, bounded by `most` together, and within a larger whole."""

    __slots__ = ("_of", "most", "total", "within")

    def __init__(self, most: int, within: UsernameQuota | None = None) -> None:
        self.most = most
        self.within = within
        self.total = 0
        self._of: dict[str, int] = {}

    def fits(self, name: str, amount: int, most_of_name: int) -> bool:
        """True when `amount` more may be added for `name`; a bound of 0 is none."""
        within = self.within
        if within is not None and within.most and within.total + amount > within.most:
            return False
        if self.most and self.total + amount > self.most:
            return False
        return not most_of_name or self._of.get(name, 0) + amount <= most_of_name

    def add(self, name: str, amount: int) -> None:
        """Add `amount`, which may be negative, for `name`."""
        self.total += amount
        of_name = self._of.get(name, 0) + amount
        if of_name:
            self._of[name] = of_name
        else:
            self._of.pop(name, None)
        if self.within is not None:
            self.within.add(name, amount)
