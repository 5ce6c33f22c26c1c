"""Client usernames and who they are: basic authentication of one message VPN.

A password may be stored as a scrypt hash, and checking one takes tens of milliseconds on purpose. The
core therefore only says *what* must be verified; the edge does it in a worker thread and reports back.
What was verified is remembered by digest, so that a reconnecting fleet does not pay again.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Iterable

ANONYMOUS: Final = "#anonymous"
"""The client username of a client that gave none where basic authentication is off."""

DEFAULT: Final = "default"
"""The client username whose profiles hold for names that are not configured."""

BAD_PASSWORD: Final = "403 Forbidden"  # noqa: S105 - the answer to one
"""One answer for unknown name and wrong password, so that names cannot be found out by trying."""


@final
class ClientUsername:
    """One configured client username. `password` is a scrypt hash or plain text; None lets nobody in by password."""

    __slots__ = ("acl_profile", "client_profile", "enabled", "name", "password")

    def __init__(
        self,
        name: str,
        password: str | None = None,
        client_profile: str = "default",
        acl_profile: str = "default",
        enabled: bool = True,
    ) -> None:
        self.name = name
        self.password = password
        self.client_profile = client_profile
        self.acl_profile = acl_profile
        self.enabled = enabled


@final
class Credentials:
    """The client usernames of one VPN, and whether basic authentication is asked for."""

    def __init__(
        self, basic_enabled: bool, usernames: Iterable[ClientUsername] = (), secret: bytes = b""
    ) -> None:
        self.basic_enabled = basic_enabled
        self.usernames = {username.name: username for username in usernames}
        self._verified: dict[str, bytes] = {}
        # Keyed, so that a memory image does not hand out plain digests of passwords.
        self._secret = secret or b"vpnrouter"

    def identify(self, name: str | None) -> ClientUsername:
        """The client username that applies to a login.

        Raises Refused with the field's reason when it is not known here. With basic
        authentication off, a name that is configured still selects its profiles.
        """
        known = self.usernames.get(name or "")
        if known is not None:
            if self.basic_enabled and known.password is None:
                raise Refused(BAD_PASSWORD, 0x86)
            return known
        if self.basic_enabled:
            raise Refused(BAD_PASSWORD, 0x86)
        default = self.usernames.get(DEFAULT)
        if default is None:
            return ClientUsername(name or ANONYMOUS)
        return ClientUsername(
            name or ANONYMOUS, None, default.client_profile, default.acl_profile, default.enabled
        )

    def needs_password(self, username: ClientUsername) -> bool:
        """Must a password be verified for this login?"""
        return self.basic_enabled

    def remembered(self, username: ClientUsername, given: bytes) -> bool:
        """Was this very password verified before?"""
        digest = self._verified.get(username.name)
        return digest is not None and hmac.compare_digest(digest, self._digest(username, given))

    def remember(self, username: ClientUsername, given: bytes) -> None:
        """Note that the edge verified `given` for `username`."""
        if len(self._verified) >= limits.REMEMBERED_PASSWORDS:
            self._verified.clear()
        self._verified[username.name] = self._digest(username, given)

    def _digest(self, username: ClientUsername, given: bytes) -> bytes:
        # The stored hash is part of it: a changed password forgets what was verified.
        stored = (username.password or "").encode()
        return hmac.new(self._secret, stored + b"\0" + given, hashlib.sha256).digest()
