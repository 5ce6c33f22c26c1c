"""Limits what connections may hold before login: places, bytes and verifications, for each address and in all.

Failed logins are counted within a minute, for clients, bridges and the management API.

At a bound, the address that holds most makes room: its oldest connection, its largest unfinished packet, or its
longest waiting login. So a flood from one address hurts that address alone, and there the newest connections come in:
an honest client sends its CONNECT within a round trip, a hostile one waits.
"""

from __future__ import annotations

import ipaddress
from itertools import islice
from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.core.scram import PREFIX
from vpnrouter.core.timers import TimerTarget
from vpnrouter.errors import Refused
from vpnrouter.events import table

if TYPE_CHECKING:
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.outbox import Channel
    from vpnrouter.core.turn import TurnContext


PERIOD_NS: Final = 60_000_000_000
"""Wrong passwords are counted for a minute, which begins with the first one."""


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


def address_of(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The IP address that `text` is, IPv4 for an IPv4-mapped IPv6 address; None where it is no address."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def origin_of(peer: str) -> str:
    """The key that attempts are counted by: the address, or in IPv6 its /64 network, all of which a peer may have."""
    if ":" not in peer:
        return peer
    address = address_of(peer)
    if isinstance(address, ipaddress.IPv6Address):
        return f"{ipaddress.IPv6Address(int(address) >> 64 << 64)}/64"
    return peer if address is None else str(address)


NO_DESCRIPTOR: Final = "no-descriptor-left"
MADE_ROOM: Final = "made-room"
NO_MEMORY: Final = "too-many-bytes"
LOGIN_BUSY: Final = "too-many-logins"
THROTTLED: Final = "too-many-failures"
"""Reasons for which strangers are turned away, as metrics and events name them."""

REASON_TEXTS: Final[dict[str, str]] = {
    NO_DESCRIPTOR: "no file descriptor is left beside the reserve",
    MADE_ROOM: "had not logged in, and others wanted the place",
    NO_MEMORY: "too many bytes of packets before login",
    LOGIN_BUSY: "too many passwords wait to be verified",
    THROTTLED: "too many failed logins",
}

EVENT_INTERVAL_NS: Final = 60_000_000_000
"""Each reason has at most one event in this time: a flood must not fill the log."""

SERVER_BUSY: Final = 0x89
RATE_EXCEEDED: Final = 0x9F
"""Reason codes of MQTT 5 that links use as well."""

BUSY: Final = "503 Too Many Logins"
TOO_MANY_FAILURES: Final = "403 Too Many Failed Logins"


@final
class PendingConnections:
    """Connections before login by address, each as the channel that can end it.

    There are at most `most` of them, and `most_of_address` of one address. The oldest one makes room, or with a `seed`
    a random one: where a login takes several round trips, honest clients that come faster would otherwise always close
    one another's connections.
    """

    __slots__ = ("_by_count", "_drawn", "_greatest", "_of", "count", "most", "most_of_address")

    def __init__(self, most: int, most_of_address: int, seed: int = 0) -> None:
        self.most = most
        self.most_of_address = most_of_address
        self.count = 0
        self._drawn = seed & 0x7FFF_FFFF
        self._of: dict[str, dict[Channel, None]] = {}
        # Addresses by their number of connections, so that the one with most is found at once.
        self._by_count: dict[int, dict[str, None]] = {}
        self._greatest = 0

    def of(self, origin: str) -> int:
        """The number of connections from one address."""
        own = self._of.get(origin)
        return 0 if own is None else len(own)

    def has(self, origin: str, channel: Channel) -> bool:
        """Whether this connection from `origin` is one of them."""
        own = self._of.get(origin)
        return own is not None and channel in own

    def victim(self, origin: str) -> Channel | None:
        """The connection that has to make room for one more from `origin`, None while there is a place."""
        if self.of(origin) >= self.most_of_address:
            return self._one(origin)
        return self.of_greatest() if self.count >= self.most else None

    def of_greatest(self) -> Channel | None:
        """A connection of the address that has most of them, None where there is none."""
        if self.count == 0:
            return None
        return self._one(next(iter(self._by_count[self._greatest])))

    def _one(self, origin: str) -> Channel:
        own = self._of[origin]
        index = 0
        if self._drawn:
            # The generator of Park and Miller is good enough: an attacker must only not know who is next.
            self._drawn = self._drawn * 48_271 % 0x7FFF_FFFF
            index = self._drawn % len(own)
        return next(islice(own, index, None))

    def enter(self, origin: str, channel: Channel) -> None:
        """Add a connection; the caller has made room."""
        own = self._of.get(origin)
        if own is None:
            own = self._of[origin] = {}
        own[channel] = None
        self.count += 1
        self._moved(origin, len(own) - 1, len(own))

    def leave(self, origin: str, channel: Channel) -> None:
        """Remove a connection that has logged in or has gone."""
        own = self._of.get(origin)
        if own is None or channel not in own:
            return
        del own[channel]
        self.count -= 1
        if not own:
            del self._of[origin]
        self._moved(origin, len(own) + 1, len(own))

    def _moved(self, origin: str, before: int, after: int) -> None:
        if before:
            known = self._by_count[before]
            del known[origin]
            if not known:
                del self._by_count[before]
        if after:
            self._by_count.setdefault(after, {})[origin] = None
        self._greatest = max(self._greatest, after)
        while self._greatest and self._greatest not in self._by_count:
            self._greatest -= 1


@final
class BufferedBytes:
    """Bytes that connections hold for now, bounded by `most` together; beyond, the largest one is closed.

    That is the largest one of the address that holds most.
    """

    __slots__ = ("_held", "_of", "most", "total")

    def __init__(self, most: int) -> None:
        self.most = most
        self.total = 0
        self._held: dict[Connection, int] = {}
        self._of: dict[str, int] = {}

    def hold(self, connection: Connection, size: int) -> None:
        """Note that the connection holds `size` bytes now, 0 for none. This may end this connection."""
        held = self._held
        change = size - held.get(connection, 0)
        if size:
            held[connection] = size
        elif change:
            del held[connection]
        self.total += change
        origin = connection.origin
        of_origin = self._of.get(origin, 0) + change
        if of_origin:
            self._of[origin] = of_origin
        else:
            self._of.pop(origin, None)
        while self.total > self.most:
            largest = self._largest()
            if largest is None:
                break
            largest.crowded_out()
            if largest in held:
                self.hold(largest, 0)

    def _largest(self) -> Connection | None:
        most = 0
        origin = ""
        for text, size in self._of.items():
            if size > most:
                most = size
                origin = text
        most = 0
        found: Connection | None = None
        for connection, size in self._held.items():
            if size > most and connection.origin == origin:
                most = size
                found = connection
        return found


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


@final
class PendingLogin(TimerTarget):
    """A password to be verified, for one connection or for several that gave the same name and password.

    `stored` is the configured password; `hashed` says that it takes long to verify. `counted`: the login was counted as
    an attempt. `key` is b"" for a login that no other connection may share.
    """

    __slots__ = (
        "_waiting",
        "connections",
        "counted",
        "given",
        "hashed",
        "key",
        "name",
        "origin",
        "stored",
        "vpn",
    )

    def __init__(
        self, waiting: Verifications, connection: Connection, vpn: str, name: str, key: bytes
    ) -> None:
        self._waiting = waiting
        self.connections = [connection]
        self.origin = connection.origin
        self.vpn = vpn
        self.name = name
        self.key = key
        self.stored = ""
        self.given = b""
        self.hashed = False
        self.counted = True

    def verifies(self, stored: str, given: bytes) -> None:
        """Have `given` verified against `stored`: a hash or plain text."""
        self.stored = stored
        self.given = given
        self.hashed = stored.startswith(("scrypt$", PREFIX))

    def settle(self, good: bool) -> None:
        """Give the result to all waiting connections."""
        waiting = self._waiting
        waiting.forget(self)
        connections = self.connections
        self.connections = []
        if good and self.counted:
            waiting.throttle.take_back(self.origin, self.vpn, self.name)
        for connection in connections:
            connection.login = None
            try:
                connection.password_verified(good)
            except Exception as error:  # noqa: BLE001 - given to the barrier
                connection.context.barrier.end(connection, error)

    def fail(self, error: Exception) -> None:
        """End the connections that waited: the password could not be verified."""
        self._waiting.forget(self)
        connections = self.connections
        self.connections = []
        for connection in connections:
            connection.login = None
            connection.context.barrier.end(connection, error)

    def leave(self, connection: Connection) -> None:
        """Forget a connection that has ended. The last one takes the login out of the queue, uncounted."""
        if connection in self.connections:
            self.connections.remove(connection)
        if not self.connections and self._waiting.drop(self) and self.counted:
            self._waiting.throttle.take_back(self.origin, self.vpn, self.name)

    def busy(self) -> None:
        """Refuse the login: too many wait."""
        connections = self.connections
        self.connections = []
        self._waiting.forget(self)
        if self.counted:
            self._waiting.throttle.take_back(self.origin, self.vpn, self.name)
        for connection in connections:
            connection.login = None
            connection.login_refused(SERVER_BUSY, BUSY)

    def on_timer(self, kind: int, now_ns: int) -> None:
        """Refuse the login after as long as a verification takes."""
        self.settle(False)


@final
class Verifications:
    """Logins whose password the edge must verify. Addresses take turns with slow ones, each with its newest first.

    Under a flood the oldest have given up when their turn comes. Beyond LOGINS_WAITING, and of one address beyond
    LOGINS_WAITING_OF_ADDRESS, the longest waiting login is refused as busy. `took_ns` is the duration of the last
    verification.
    """

    __slots__ = ("_by_key", "_count", "_plain", "_slow", "throttle", "took_ns")

    def __init__(self, throttle: LoginThrottle) -> None:
        self.throttle = throttle
        self.took_ns = 100_000_000
        self._plain: list[PendingLogin] = []
        self._slow: dict[str, list[PendingLogin]] = {}
        self._count = 0
        self._by_key: dict[bytes, PendingLogin] = {}

    def __len__(self) -> int:
        return self._count + len(self._plain)

    def share(self, connection: Connection, key: bytes) -> bool:
        """Let `connection` wait with a login of the same name and password; False where there is none."""
        login = self._by_key.get(key)
        if login is None:
            return False
        login.connections.append(connection)
        connection.login = login
        return True

    def add(self, login: PendingLogin) -> PendingLogin | None:
        """Add a login. Returns the login that has to make room, which the caller refuses, or None."""
        if login.key:
            self._by_key[login.key] = login
        if not login.hashed:
            self._plain.append(login)
            return None
        own = self._slow.setdefault(login.origin, [])
        own.append(login)
        self._count += 1
        if len(own) > limits.LOGINS_WAITING_OF_ADDRESS:
            return own[0]
        if self._count > limits.LOGINS_WAITING:
            return max(self._slow.values(), key=len)[0]
        return None

    def plain(self) -> list[PendingLogin]:
        """Take out the logins that are verified at once."""
        found = self._plain
        self._plain = []
        return found

    def next(self) -> PendingLogin | None:
        """Take out the next slow login, None where there is none."""
        if not self._slow:
            return None
        origin = next(iter(self._slow))
        own = self._slow.pop(origin)
        login = own.pop()
        self._count -= 1
        if own:
            self._slow[origin] = own
        return login

    def take_all(self) -> list[PendingLogin]:
        """Take out all logins."""
        found = self.plain()
        while True:
            login = self.next()
            if login is None:
                return found
            found.append(login)

    def drop(self, login: PendingLogin) -> bool:
        """Take a login out; False where it was taken before."""
        self.forget(login)
        own = self._slow.get(login.origin)
        if own is not None and login in own:
            own.remove(login)
            self._count -= 1
            if not own:
                del self._slow[login.origin]
            return True
        if login in self._plain:
            self._plain.remove(login)
            return True
        return False

    def forget(self, login: PendingLogin) -> None:
        """Let no further connection share this login."""
        if self._by_key.get(login.key) is login:
            del self._by_key[login.key]


@final
class PreLoginLimits:
    """The connections before login of one router, and the counts of those that were refused.

    `plain` are on plain sockets, `shaken` over TLS or WebSocket, which cost more. `held` are the bytes that they sent
    and that are not handled yet. `open` counts connections of all kinds; `most_open` bounds them, so that a reserve of
    descriptors is left. `refused` counts by reason.
    """

    __slots__ = (
        "_told",
        "context",
        "held",
        "most_open",
        "open",
        "plain",
        "refused",
        "shaken",
        "throttle",
        "verifications",
    )

    def __init__(self, context: TurnContext) -> None:
        self.context = context
        self.plain = PendingConnections(limits.STRANGERS, limits.STRANGERS_OF_ADDRESS)
        self.shaken = PendingConnections(
            limits.STRANGERS_SHAKING, limits.STRANGERS_SHAKING_OF_ADDRESS, context.ids.high | 1
        )
        self.held = BufferedBytes(limits.STRANGER_BYTES)
        self.throttle = LoginThrottle()
        self.verifications = Verifications(self.throttle)
        self.open = 0
        self.most_open = limits.OPEN_CONNECTIONS
        self.refused: dict[str, int] = {}
        self._told: dict[str, tuple[int, int]] = {}

    @property
    def strangers(self) -> int:
        """Connections that have not logged in."""
        return self.plain.count + self.shaken.count

    def bound(self, descriptors: int) -> None:
        """Set the bounds by the descriptors that the process may have; a reserve is left."""
        reserve = min(limits.RESERVED_DESCRIPTORS, descriptors // 2)
        self.most_open = min(limits.OPEN_CONNECTIONS, descriptors - reserve)
        self.plain.most = min(limits.STRANGERS, self.most_open // 2)
        self.shaken.most = min(limits.STRANGERS_SHAKING, self.most_open // 4)

    def has_place(self, strangers: PendingConnections, peer: str) -> bool:
        """Return whether one more connection from `peer` may come in; another one may be closed for it."""
        victim = strangers.victim(origin_of(peer))
        if victim is None and self.open >= self.most_open:
            victim = self.plain.of_greatest() or self.shaken.of_greatest()
            if victim is None:
                self.turned_away(NO_DESCRIPTOR, peer)
                return False
        if victim is not None:
            self.turned_away(MADE_ROOM, peer)
            victim.cut(REASON_TEXTS[MADE_ROOM])
        return True

    def out_of_descriptors(self, shortage: bool) -> bool:
        """Close a stranger if there is a `shortage` of descriptors. True when there is one and no stranger is left."""
        if not shortage:
            return False
        self.turned_away(NO_DESCRIPTOR, "")
        victim = self.plain.of_greatest() or self.shaken.of_greatest()
        if victim is not None:
            victim.cut(REASON_TEXTS[MADE_ROOM])
        return victim is None

    def turned_away(self, reason: str, peer: str) -> None:
        """Count that `peer` was turned away, and raise an event at most once in EVENT_INTERVAL_NS."""
        count = self.refused.get(reason, 0) + 1
        self.refused[reason] = count
        events = self.context.events
        if events is None:
            return
        now_ns = self.context.now_ns
        told_ns, told = self._told.get(reason, (now_ns - EVENT_INTERVAL_NS, 0))
        if now_ns - told_ns < EVENT_INTERVAL_NS:
            return
        self._told[reason] = (now_ns, count)
        text = f"turned away: {REASON_TEXTS[reason]}; {count - told:,} since last told, now from {peer or 'all'}"
        events.raise_event(table.STRANGERS_REFUSED, "", reason, text)

    def verify(self, login: PendingLogin, *, known: bool) -> None:
        """Queue a new login for verification; `known`: the username exists. Raises Refused after too many failures."""
        waiting = self.verifications
        connection = login.connections[0]
        if waiting.share(connection, login.key):
            return
        now_ns = self.context.now_ns
        verdict = self.throttle.begin(
            login.origin, login.vpn, login.name, known=known, now_ns=now_ns
        )
        if verdict == REFUSE:
            self.turned_away(THROTTLED, connection.peer)
            raise Refused(TOO_MANY_FAILURES, RATE_EXCEEDED)
        connection.login = login
        if verdict == PRETEND and login.hashed:
            self.context.timers.arm(now_ns + waiting.took_ns, login, 0)
            return
        displaced = waiting.add(login)
        if displaced is not None:
            waiting.drop(displaced)
            self.turned_away(LOGIN_BUSY, connection.peer)
            displaced.busy()
