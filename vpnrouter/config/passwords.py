"""Password hashes: `scrypt$ln=15,r=8,p=1$SALT$HASH`, and verifiers for SCRAM (core/scram.py).

scrypt (RFC 7914) with N = 2^ln; salt and hash are base64 (RFC 4648, 4) without padding. The
parameters stand in the string, so that later defaults can grow without breaking old hashes. What a
hash may cost is bounded when it is read, not when a client logs in.
"""

import base64
import binascii
import hashlib
import hmac
import re
from typing import Final, NamedTuple

from vpnrouter import limits
from vpnrouter.core import scram

PREFIX: Final = "scrypt$"
"""What tells a hash from a plain password."""

COST_LN: Final = 15
"""log2 of N for new hashes: 32 MiB and some 70 ms, the most that a burst of logins bears."""

BLOCK_SIZE: Final = 8
"""r for new hashes, as RFC 7914 recommends."""

PASSES: Final = 1
"""p for new hashes, as RFC 7914 recommends."""

_HASH_BYTES: Final = 32
_FORM: Final = re.compile(
    r"scrypt\$ln=([0-9]{1,2}),r=([0-9]{1,2}),p=([0-9]{1,2})"
    r"\$([A-Za-z0-9+/]{11,86})\$([A-Za-z0-9+/]{22,86})"
)
"""Salt of 8..64 bytes, hash of 16..64 bytes."""


class ScryptHash(NamedTuple):
    """A parsed hash; `ln` is log2 of N."""

    ln: int
    r: int
    p: int
    salt: bytes
    digest: bytes


def is_hash(stored: str) -> bool:
    """Whether a configured password is meant as a hash; `parse_hash` tells whether it is a good
    one.
    """
    return stored.startswith((PREFIX, scram.PREFIX))


def check_stored(stored: str) -> None:
    """Raise ValueError for a hash or verifier that cannot be read, or costs more than allowed."""
    if stored.startswith(scram.PREFIX):
        scram.parse_stored(stored)
    else:
        parse_hash(stored)


def hash_password(
    text: str, salt: bytes, *, ln: int = COST_LN, r: int = BLOCK_SIZE, p: int = PASSES
) -> str:
    """Hash a password for a configuration. Deterministic: the caller draws the salt, 8..64 bytes.

    Raises:
        ValueError: the parameters are out of bounds, or the password holds NUL or is longer than
            can be configured.
    """
    given = text.encode()
    if b"\0" in given:
        raise ValueError("a password has no NUL character")
    if len(given) > limits.PASSWORD_BYTES:
        raise ValueError(f"a password has at most {limits.PASSWORD_BYTES} bytes")
    _check_cost(ln, r, p)
    digest = _scrypt(given, ScryptHash(ln, r, p, salt, bytes(_HASH_BYTES)))
    stored = f"{PREFIX}ln={ln},r={r},p={p}${_encode(salt)}${_encode(digest)}"
    parse_hash(stored)
    return stored


def scram_verifier(text: str, salt: bytes, iterations: int = limits.SCRAM_ITERATIONS) -> str:
    """A verifier for SCRAM-SHA-256, which serves bridges as well as clients. The caller draws the salt, 8..64 bytes.

    Raises:
        ValueError: the iterations are out of bounds, or the password is longer than can be configured.
    """
    given = text.encode()
    if b"\0" in given:
        raise ValueError("a password has no NUL character")
    if len(given) > limits.PASSWORD_BYTES:
        raise ValueError(f"a password has at most {limits.PASSWORD_BYTES} bytes")
    scram.check_iterations(iterations)
    salted = scram.salted_password(given, salt, iterations)
    stored = scram.stored_text(scram.verifier_of(salted, salt, iterations))
    scram.parse_stored(stored)
    return stored


def verify_password(stored: str, given: bytes) -> bool:
    """Whether `given` is the password that `stored` stands for, a hash or a plain password.

    Takes the same time wherever the two differ. Blocks for as long as the hash costs (new ones: 70
    ms).

    Raises:
        ValueError: `stored` begins like a hash but is none; a loaded configuration holds no such
            value.
    """
    if stored.startswith(scram.PREFIX):
        verifier = scram.parse_stored(stored)
        if b"\0" in given:
            # HMAC pads with zeros, as below.
            return False
        salted = scram.salted_password(given, verifier.salt, verifier.iterations)
        known = scram.verifier_of(salted, verifier.salt, verifier.iterations)
        return hmac.compare_digest(known.stored_key, verifier.stored_key) and hmac.compare_digest(
            known.server_key, verifier.server_key
        )
    if is_hash(stored):
        parsed = parse_hash(stored)
        if b"\0" in given:
            # The HMAC below pads with zeros (RFC 2104, 2): "pw" and "pw" with a NUL have one hash.
            return False
        return hmac.compare_digest(_scrypt(given, parsed), parsed.digest)
    # Digests of one length, so that not even the length of the plain password shows.
    return hmac.compare_digest(
        hashlib.sha256(stored.encode()).digest(), hashlib.sha256(given).digest()
    )


def parse_hash(stored: str) -> ScryptHash:
    """Take a hash apart.

    Raises:
        ValueError: not of the form above, or it costs more memory or time than allowed. The message
            does not repeat the hash.
    """
    matched = _FORM.fullmatch(stored)
    if matched is None:
        raise ValueError("a password hash has the form scrypt$ln=15,r=8,p=1$SALT$HASH")
    ln, r, p = (int(number) for number in matched.group(1, 2, 3))
    _check_cost(ln, r, p)
    return ScryptHash(ln, r, p, _decode(matched.group(4)), _decode(matched.group(5)))


def _check_cost(ln: int, r: int, p: int) -> None:
    if not (ln >= 1 and r >= 1 and 1 <= p <= limits.PASSWORD_HASH_PASSES):
        raise ValueError(
            "a password hash needs ln and r of at least 1 and p from 1 to"
            f" {limits.PASSWORD_HASH_PASSES}"
        )
    if 128 * r << ln > limits.PASSWORD_HASH_MEMORY:
        raise ValueError(
            f"a password hash with ln={ln},r={r} needs more than"
            f" {limits.PASSWORD_HASH_MEMORY >> 20} MiB"
        )


def _scrypt(given: bytes, parsed: ScryptHash) -> bytes:
    return hashlib.scrypt(
        given,
        salt=parsed.salt,
        n=1 << parsed.ln,
        r=parsed.r,
        p=parsed.p,
        # OpenSSL counts its working blocks on top of the 128 * N * r of the definition.
        maxmem=limits.PASSWORD_HASH_MEMORY + (1 << 20),
        dklen=len(parsed.digest),
    )


def _encode(raw: bytes) -> str:
    return base64.b64encode(raw).decode("ascii").rstrip("=")


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except binascii.Error:
        raise ValueError(
            "salt and hash of a password hash must be base64 without padding"
        ) from None
