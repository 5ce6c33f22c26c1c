"""Logins whose passwords wait to be verified, which takes long where a hash is configured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.core.scram import PREFIX
from vpnrouter.core.timers import TimerTarget
from vpnrouter.wire.mqtt.reason import SERVER_BUSY

if TYPE_CHECKING:
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.login_throttle import LoginThrottle


BUSY: Final = "503 Too Many Logins"


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
