"""Checks who may use the management API, and holds which message VPNs each user sees."""

import base64
import binascii
import hashlib
import hmac
import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, final

import trio

from vpnrouter import limits
from vpnrouter.core.login_throttle import Attempts
from vpnrouter.core.origin import address_of, origin_of
from vpnrouter.errors import RequestError
from vpnrouter.limits import NAME_SHOWN_CHARS
from vpnrouter.management.errors import busy, forbidden, too_many, unauthorized
from vpnrouter.settings.management import Management, User
from vpnrouter.settings.schema import Password
from vpnrouter.text import printable
from vpnrouter.units import SECOND_NS

THREADS: Final = 1
"""Password hashes verified at once: more would take the data plane's core away."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks. `msg_vpns` None means all of them."""

    name: str
    role: str = "read-only"
    msg_vpns: frozenset[str] | None = None

    def sees(self, msg_vpn: str) -> bool:
        """Return whether a message VPN exists and this caller may see it."""
        return self.msg_vpns is None or msg_vpn in self.msg_vpns

    @property
    def may_change(self) -> bool:
        """Whether requests that change something are allowed."""
        return self.role == "admin"


ON_THIS_MACHINE: Final = Caller("", "admin")
"""Whoever asks from a loopback address where no users are configured."""


@final
class Access:
    """Admits requests. Without users everybody on this machine, else users by HTTP basic (RFC 7617)."""

    def __init__(
        self, users: Mapping[str, User], clock_ns: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._users: dict[str, User] = {}
        self._clock_ns = clock_ns
        self._attempts = Attempts(
            limits.MANAGEMENT_LOGIN_FAILURES, limits.MANAGEMENT_LOGIN_ADDRESSES
        )
        self._threads = trio.CapacityLimiter(THREADS)
        self._waiting = 0
        # What was verified is remembered by keyed digest: whoever looks every second pays once.
        self._secret = os.urandom(32)
        self._verified: dict[str, bytes] = {}
        self._decoy: Password | None = None
        self.use(users)

    @classmethod
    def of(cls, management: Management) -> "Access":
        """Return the access that the configuration describes."""
        return cls(management.users)

    def use(self, users: Mapping[str, User]) -> None:
        """Admit these users from now on; who keeps a password need not be verified again."""
        known = self._users
        self._users = dict(users)
        for name in list(self._verified):
            if name not in users or users[name].password != known[name].password:
                del self._verified[name]
        hashed = (user.password for user in users.values() if user.password.is_hash)
        self._decoy = next(hashed, None)

    async def admit(self, peer: str, host: str, authorization: str) -> Caller:
        """Return the caller: `peer` is its address, `host` and `authorization` are the headers, "" for none.

        Raises RequestError for whoever is not let in.
        """
        if not self._users:
            return _on_this_machine(peer, host)
        name, password = _credentials(authorization)
        origin = origin_of(peer)
        wait_ns = self._attempts.begin(origin, self._clock_ns())
        if wait_ns:
            seconds = -(-wait_ns // SECOND_NS)
            raise too_many(f"Too many wrong passwords from {peer}; try again in {seconds} s")
        try:
            good = await self._is_right(name, password)
        except RequestError:
            self._attempts.take_back(origin)
            raise
        if not good:
            raise unauthorized("Unknown user or wrong password")
        self._attempts.take_back(origin)
        user = self._users[name]
        seen = None if user.msg_vpns is None else frozenset(user.msg_vpns)
        return Caller(name, user.role, seen)

    async def _is_right(self, name: str, password: bytes) -> bool:
        user = self._users.get(name)
        # An unknown name takes as long as a wrong password, so that names cannot be found out.
        stored = self._decoy if user is None else user.password
        if stored is None:
            return False
        digest = hmac.new(self._secret, name.encode() + b"\0" + password, hashlib.sha256).digest()
        known = self._verified.get(name)
        if known is not None and hmac.compare_digest(known, digest):
            return True
        good = await self._verify(stored, password) and user is not None
        if not good and not stored.is_hash and self._decoy is not None:
            # Nor by the time that a password takes that is not hashed.
            await self._verify(self._decoy, password)
        # The password may have changed meanwhile.
        good = good and name in self._users and self._users[name].password == stored
        if good:
            self._verified[name] = digest
        return good

    async def _verify(self, stored: Password, password: bytes) -> bool:
        if not stored.is_hash:
            return stored.verify(password)
        if self._waiting >= limits.MANAGEMENT_LOGINS_WAITING:
            raise busy("Too many logins at once; try again")
        self._waiting += 1
        try:
            return await trio.to_thread.run_sync(stored.verify, password, limiter=self._threads)
        finally:
            self._waiting -= 1


def _on_this_machine(peer: str, host: str) -> Caller:
    if not _is_loopback(peer):
        raise forbidden(f"No users are configured, so {peer or 'this address'} is not served")
    # A web page may send a browser here under a name of its own that leads to 127.0.0.1.
    if host:
        # The whole text must be HOST[:PORT] (RFC 3986 §3.2.2); a part of it that looks like one does not count.
        match = _HOST.fullmatch(host)
        name = "" if match is None else match["six"] or match["name"]
        if name.lower() != "localhost" and not _is_loopback(name):
            shown = printable(host, NAME_SHOWN_CHARS)
            raise forbidden(f"No users are configured, so only localhost is served and not {shown}")
    return ON_THIS_MACHINE


_HOST: Final = re.compile(
    r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9.-]+))(?::[0-9]{0,5})?"
)


def _is_loopback(text: str) -> bool:
    address = address_of(text)
    return address is not None and address.is_loopback


def _credentials(authorization: str) -> tuple[str, bytes]:
    if not authorization:
        raise unauthorized("A user and password are needed")
    scheme, _, encoded = authorization.partition(" ")
    try:
        pair = base64.b64decode(encoded.strip(), validate=True)
        name, password = pair.split(b":", 1)
        user = name.decode()
    except (binascii.Error, ValueError):
        user = ""
    if not user or scheme.lower() != "basic":
        raise unauthorized("The Authorization header is not HTTP basic authentication")
    return user, password
