"""Computes SCRAM-SHA-256 (RFC 5802, RFC 7677) for links, and the verifiers to store.

A salted password takes milliseconds to seconds on purpose; the core requests it with a `Derivation`, and the edge
computes it in a thread. All else is a few HMACs.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from typing import TYPE_CHECKING, Final, final

from mypy_extensions import mypyc_attr

from vpnrouter import limits

if TYPE_CHECKING:
    from vpnrouter.core.connection import Connection

PREFIX: Final = "scram-sha-256$"
"""A stored verifier begins with this, other forms of a password do not."""

_FORM: Final = re.compile(
    r"scram-sha-256\$([0-9]{1,7})\$([A-Za-z0-9+/]{11,86})\$([A-Za-z0-9+/]{43})\$([A-Za-z0-9+/]{43})"
)


@final
class Verifier:
    """The stored form of a password: enough to check a proof, and to prove that it is stored."""

    __slots__ = ("iterations", "salt", "server_key", "stored_key")

    def __init__(self, iterations: int, salt: bytes, stored_key: bytes, server_key: bytes) -> None:
        self.iterations = iterations
        self.salt = salt
        self.stored_key = stored_key
        self.server_key = server_key

    def accepts(self, proof: bytes, message: bytes) -> bool:
        """Return whether `proof` shows knowledge of the password. `message` is the `auth_message` of the login."""
        signed = hmac.digest(self.stored_key, message, "sha256")
        client_key = bytes([one ^ other for one, other in zip(proof, signed, strict=True)])
        return hmac.compare_digest(hashlib.sha256(client_key).digest(), self.stored_key)

    def signature(self, message: bytes) -> bytes:
        """The signature that proves to the other side that this verifier is stored here."""
        return hmac.digest(self.server_key, message, "sha256")


def salted_password(password: bytes, salt: bytes, iterations: int) -> bytes:
    """SaltedPassword of RFC 5802, 3, of the password's UTF-8 as it is written. Blocks until it is computed."""
    return hashlib.pbkdf2_hmac("sha256", password, salt, iterations)


def verifier_of(salted: bytes, salt: bytes, iterations: int) -> Verifier:
    """The verifier of a password, from what `salted_password` gave."""
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    return Verifier(
        iterations,
        salt,
        hashlib.sha256(client_key).digest(),
        hmac.digest(salted, b"Server Key", "sha256"),
    )


def proof_of(salted: bytes, message: bytes) -> bytes:
    """The proof that the password is known (RFC 5802, 3: ClientProof)."""
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    signed = hmac.digest(hashlib.sha256(client_key).digest(), message, "sha256")
    return bytes([one ^ other for one, other in zip(client_key, signed, strict=True)])


def auth_message(hello: bytes, challenge: bytes, binding: bytes, bond: bytes) -> bytes:
    """Return the message that the proofs of a link sign (RFC 5802, 3: AuthMessage; LINK-52).

    `hello` and `challenge` are whole frames. `binding` ties them to the TLS connection, `bond` to earlier messages of
    this connection; each is b"" where there is none. So a proof is good for one connection alone.
    """
    parts = [len(part).to_bytes(4, "big") + part for part in (hello, challenge, binding, bond)]
    return b"vpnrouter link 1\0" + b"".join(parts)


def stored_text(verifier: Verifier) -> str:
    """The verifier as a configuration holds it: `scram-sha-256$ITERATIONS$SALT$STORED_KEY$SERVER_KEY`."""
    parts = (verifier.salt, verifier.stored_key, verifier.server_key)
    return f"{PREFIX}{verifier.iterations}$" + "$".join([_encode(part) for part in parts])


def parse_stored(stored: str) -> Verifier:
    """The verifier in what `stored_text` wrote. Raises ValueError, which does not repeat the text."""
    matched = _FORM.fullmatch(stored)
    if matched is None:
        raise ValueError(
            "a password verifier has the form scram-sha-256$ITERATIONS$SALT$STORED_KEY$SERVER_KEY"
        )
    iterations = int(matched.group(1))
    check_iterations(iterations)
    return Verifier(
        iterations, _decode(matched.group(2)), _decode(matched.group(3)), _decode(matched.group(4))
    )


def check_iterations(iterations: int) -> None:
    """Raise ValueError for iterations below what RFC 7677 asks for or above what a login may cost."""
    if not limits.SCRAM_ITERATIONS_LEAST <= iterations <= limits.SCRAM_ITERATIONS_MOST:
        raise ValueError(
            f"iterations from {limits.SCRAM_ITERATIONS_LEAST:,} to {limits.SCRAM_ITERATIONS_MOST:,},"
            f" not {iterations:,}"
        )


def _encode(raw: bytes) -> str:
    return base64.b64encode(raw).decode("ascii").rstrip("=")


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except binascii.Error:
        raise ValueError("a password verifier must be base64 without padding") from None


@mypyc_attr(allow_interpreted_subclasses=True)
class Deriver:
    """A login that waits for a salted password."""

    __slots__ = ()

    def waits(self) -> bool:
        """Return whether the salted password is still needed."""
        raise AssertionError(self)

    def derived(self, salted: bytes) -> None:
        """Take the salted password. Called in the router's thread, only while it is needed."""
        raise AssertionError(salted)

    def underivable(self, why: str) -> None:
        """Give up for the reason `why`: too many logins wait for theirs."""
        raise AssertionError(why)


@final
class Derivation:
    """A salted password to be computed for a login on `connection`.

    `peer` is the peer's address, "" for our own login.
    """

    __slots__ = ("_password", "_salt", "connection", "deriver", "iterations", "peer")

    def __init__(
        self,
        deriver: Deriver,
        connection: Connection,
        password: bytes,
        salt: bytes,
        iterations: int,
        peer: str,
    ) -> None:
        self.deriver = deriver
        self.connection = connection
        self.iterations = iterations
        self.peer = peer
        self._password = password
        self._salt = salt

    def work(self) -> bytes:
        """Compute the salted password. Runs in a helper thread."""
        return salted_password(self._password, self._salt, self.iterations)

    def finish(self, salted: bytes) -> None:
        """Hand it to the deriver that still waits. Runs in the router's thread."""
        if self.deriver.waits():
            self.deriver.derived(salted)
