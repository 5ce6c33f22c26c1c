"""Counts the memory that clients make the router hold, of any kind: one account for all of it.

    router → message VPN → client username → client → its connection

What counts in an account counts in those around it, too. Each has a bound, and the one who holds most does without: at
the bound of a client, the client; at an outer one, the client with most of the client username with most. So nobody is
refused, or ended, for what another one holds. What is of fixed size is bounded by its number instead (connections,
subscriptions, endpoints).

Direct messages are not counted one by one: what waits to be sent counts when a peer does not take it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.core.timers import Job

if TYPE_CHECKING:
    from vpnrouter.core.connection import Connection


LASTING_SHARE: Final = 2
"""The part of a bound that may be taken by what stays when connections end, as a divisor."""

ROOMY: Final = 4
"""An account is crowded when less than this part of its bound is left, as a divisor."""


@final
class MemoryAccount:
    """Bytes that one holder keeps in memory: `held` now, at most `most` (0: no bound of its own), within `within`.

    `lasting` of them stay when connections end. `refused` counts what was not given, here or within, and holders that
    were ended for their size. `unreturned` are bytes that holders within had not given back when they ended: more than
    0 is a fault of the router. A connection's own account has the connection as its `holder`. `ending`: it is
    closed when it is empty. `closed`: nothing counts here any more. `inner_accounts` are those within that hold
    something, `named` those that are found by name, `users` how many were made and not closed.
    """

    __slots__ = (
        "closed",
        "ending",
        "held",
        "holder",
        "inner_accounts",
        "lasting",
        "most",
        "name",
        "named",
        "refused",
        "unreturned",
        "users",
        "within",
    )

    def __init__(
        self,
        name: str,
        most: int,
        within: MemoryAccount | None = None,
        holder: Connection | None = None,
    ) -> None:
        self.name = name
        self.most = most
        self.within = within
        self.holder = holder
        self.held = 0
        self.lasting = 0
        self.refused = 0
        self.unreturned = 0
        self.closed = False
        self.ending = False
        self.inner_accounts: dict[MemoryAccount, None] = {}
        self.named: dict[str, MemoryAccount] = {}
        self.users = 0
        if within is not None:
            within.users += 1

    def of(self, name: str, most: int = 0) -> MemoryAccount:
        """Return the account of a client username within this one; `most` is its bound from now on, unless 0."""
        known = self.named.get(name)
        if known is None:
            known = MemoryAccount(name, most or limits.USERNAME_MEMORY, self)
            known.ending = True
            self.named[name] = known
        elif most:
            known.most = most
        return known

    # -- more and less ---------------------------------------------------------------------------

    def take(self, size: int) -> bool:
        """Count `size` bytes more; False, and nothing is counted, where the holder has to do without them.

        Another holder, which has more, may be ended for it.
        """
        account: MemoryAccount | None = self
        while account is not None:
            if account.closed:
                return False
            while account.most and account.held + size > account.most:
                victim = account.largest()
                if victim is None or victim is self or victim.own <= self.own + size:
                    self._refuse()
                    return False
                victim.evict()
            account = account.within
        self._add(size)
        return True

    def keep(self, size: int) -> bool:
        """Count as `take` what stays when connections end; it may have half of each bound."""
        account: MemoryAccount | None = self
        while account is not None:
            if account.most and account.lasting + size > account.most // LASTING_SHARE:
                self._refuse()
                return False
            account = account.within
        if not self.take(size):
            return False
        account = self
        while account is not None:
            account.lasting += size
            account = account.within
        return True

    def leave_behind(self, size: int) -> MemoryAccount | None:
        """Count `size` bytes of a connection for its client username instead, as what stays when connections end.

        Nobody holds more by that, so it is not refused. Returns the client username's account, which forgets them; None
        where nothing is counted any more.
        """
        if self.closed:
            return None
        home = self.within
        while home is not None and (
            home.within is None or home.within.named.get(home.name) is not home
        ):
            home = home.within
        if home is None:
            self._add(-size)
            return None
        inner = self
        while inner is not home and inner.within is not None:
            inner.held -= size
            if not inner.held:
                inner.within.inner_accounts.pop(inner, None)
            inner = inner.within
        account: MemoryAccount | None = home
        while account is not None:
            account.lasting += size
            account = account.within
        return home

    def give_back(self, size: int) -> None:
        """Count `size` bytes less; of a closed account nothing is left to give back."""
        if not self.closed:
            self._add(-size)

    def forget(self, size: int) -> None:
        """Give back what `keep` counted."""
        if self.closed:
            return
        account: MemoryAccount | None = self
        while account is not None:
            account.lasting -= size
            account = account.within
        self._add(-size)
        self._end_if_empty()

    @property
    def own(self) -> int:
        """Bytes that end with connections."""
        return self.held - self.lasting

    def has_room(self, size: int) -> bool:
        """Return whether the client may hold `size` bytes more, or half of its bound where that is less."""
        account: MemoryAccount | None = self
        while account is not None:
            most = account.most
            if most:
                return account.held + min(size, most // 2) <= most
            account = account.within
        return True

    def crowded(self) -> bool:
        """Return whether little is left of what the client may hold: what can wait should wait."""
        account: MemoryAccount | None = self
        while account is not None:
            most = account.most
            if most:
                return account.held > most - most // ROOMY
            account = account.within
        return False

    def crowded_around(self) -> bool:
        """Return whether little is left in any account around this one."""
        account = self.within
        while account is not None:
            most = account.most
            if most and account.held > most - most // ROOMY:
                return True
            account = account.within
        return False

    def _add(self, size: int) -> None:
        inner = self
        inner.held += size
        account = inner.within
        while account is not None:
            if inner.held:
                account.inner_accounts[inner] = None
            else:
                account.inner_accounts.pop(inner, None)
            account.held += size
            inner = account
            account = account.within

    def _refuse(self) -> None:
        account: MemoryAccount | None = self
        while account is not None:
            account.refused += 1
            account = account.within

    # -- the one with most -----------------------------------------------------------------------

    def largest(self) -> MemoryAccount | None:
        """The connection's account with most, of the address with most, of the client username with most."""
        account = self
        while account.holder is None:
            found: MemoryAccount | None = None
            origin = account._greatest_origin()
            for inner in account.inner_accounts:
                if inner.own > (0 if found is None else found.own) and (
                    not origin or inner.origin == origin
                ):
                    found = inner
            if found is None:
                return None
            account = found
        return account

    @property
    def origin(self) -> str:
        """The address that a client's account belongs to, as limits by address count it; "" for none."""
        holder = self.holder
        if holder is not None:
            return holder.origin
        for inner in self.inner_accounts:
            if inner.holder is not None:
                return inner.holder.origin
        return ""

    def _greatest_origin(self) -> str:
        """Among the clients of one client username, the address whose clients hold most."""
        sums: dict[str, int] = {}
        for inner in self.inner_accounts:
            origin = inner.origin
            if origin:
                sums[origin] = sums.get(origin, 0) + inner.own
        found = ""
        for origin, size in sums.items():
            if not found or size > sums[found]:
                found = origin
        return found

    # -- end -------------------------------------------------------------------------------------

    def evict(self) -> None:
        """End the connection of this account; what it holds no longer counts."""
        holder = self.holder
        if holder is None or self.closed:
            return
        self._refuse()
        self._close(fault=False)
        holder.context.jobs.add(Eviction(holder))

    def close(self) -> None:
        """Note that the holder has ended, and has given back all but what lasts. A second call does nothing."""
        if not self.closed:
            self._close(fault=True)

    def end(self) -> None:
        """Close the account when the last one within is closed, and nothing is held."""
        self.ending = True
        self._end_if_empty()

    def _close(self, *, fault: bool) -> None:
        left = self.held
        lasting = self.lasting
        account: MemoryAccount | None = self
        while account is not None:
            account.lasting -= lasting
            if fault:
                account.unreturned += left - lasting
            account = account.within
        self._add(-left)
        self.closed = True
        self.holder = None
        within = self.within
        if within is not None:
            within.one_left()

    def one_left(self) -> None:
        """One of those within was closed."""
        self.users -= 1
        self._end_if_empty()

    def _end_if_empty(self) -> None:
        if self.users or self.held or not self.ending or self.closed:
            return
        within = self.within
        if within is not None and within.named.get(self.name) is self:
            del within.named[self.name]
        self.close()


OUTGROWN: Final = "holds too much memory"


@final
class Eviction(Job):
    """Ends a connection that holds most where others need room, or more than it may."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self._connection = connection

    def step(self) -> bool:
        """End the connection."""
        self._connection.outgrown(OUTGROWN)
        return True

    def owning_connection(self) -> Connection | None:
        """The connection that ends."""
        return self._connection
