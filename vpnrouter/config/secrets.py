"""Secrets, which are used and never shown, and password hashes with verifiers for SCRAM.

A secret is written as text, `{env: NAME}` or `{file: PATH}`. It is resolved while the configuration
is loaded, so a missing variable or file is a problem at the place where it is named. No message and
no `repr` holds the value. A `Password` is only compared, so it may also be a hash.

Password hashes: `scrypt$ln=15,r=8,p=1$SALT$HASH`, and verifiers for SCRAM (core/scram.py).

scrypt (RFC 7914) with N = 2^ln; salt and hash are base64 (RFC 4648, 4) without padding. The
parameters stand in the string, so that later defaults can grow without breaking old hashes. What a
hash may cost is bounded when it is read, not when a client logs in.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, final

from pydantic_core import core_schema

from vpnrouter import limits
from vpnrouter.core import scram

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import GetCoreSchemaHandler


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
    """Return whether a configured password is meant as a hash; `parse_hash` tells whether it is a good
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
    """Return the hash of a password for a configuration. Deterministic: the caller draws the salt, 8..64 bytes.

    Raises:
        ValueError: the parameters are out of bounds, or the password holds NUL or is longer than
            can be configured.
    """
    password = text.encode()
    if b"\0" in password:
        raise ValueError("a password has no NUL character")
    if len(password) > limits.PASSWORD_BYTES:
        raise ValueError(f"a password has at most {limits.PASSWORD_BYTES} bytes")
    _check_cost(ln, r, p)
    digest = _scrypt(password, ScryptHash(ln, r, p, salt, bytes(_HASH_BYTES)))
    stored = f"{PREFIX}ln={ln},r={r},p={p}${_encode(salt)}${_encode(digest)}"
    parse_hash(stored)
    return stored


def scram_verifier(text: str, salt: bytes, iterations: int = limits.SCRAM_ITERATIONS) -> str:
    """Return a verifier for SCRAM-SHA-256, which serves bridges as well as clients. The caller draws the salt, 8..64
    bytes.

    Raises:
        ValueError: the iterations are out of bounds, or the password is longer than can be configured.
    """
    password = text.encode()
    if b"\0" in password:
        raise ValueError("a password has no NUL character")
    if len(password) > limits.PASSWORD_BYTES:
        raise ValueError(f"a password has at most {limits.PASSWORD_BYTES} bytes")
    scram.check_iterations(iterations)
    salted = scram.salted_password(password, salt, iterations)
    stored = scram.stored_text(scram.verifier_of(salted, salt, iterations))
    scram.parse_stored(stored)
    return stored


def verify_password(stored: str, password: bytes) -> bool:
    """Return whether `password` is the password that `stored` stands for, a hash or a plain password.

    Takes the same time wherever the two differ. Blocks for as long as the hash costs (new ones: 70
    ms).

    Raises:
        ValueError: `stored` begins like a hash but is none; a loaded configuration holds no such
            value.
    """
    if stored.startswith(scram.PREFIX):
        verifier = scram.parse_stored(stored)
        if b"\0" in password:
            # HMAC pads with zeros, as below.
            return False
        salted = scram.salted_password(password, verifier.salt, verifier.iterations)
        known = scram.verifier_of(salted, verifier.salt, verifier.iterations)
        return hmac.compare_digest(known.stored_key, verifier.stored_key) and hmac.compare_digest(
            known.server_key, verifier.server_key
        )
    if is_hash(stored):
        parsed = parse_hash(stored)
        if b"\0" in password:
            # The HMAC below pads with zeros (RFC 2104, 2): "pw" and "pw" with a NUL have one hash.
            return False
        return hmac.compare_digest(_scrypt(password, parsed), parsed.digest)
    # Digests of one length, so that not even the length of the plain password shows.
    return hmac.compare_digest(
        hashlib.sha256(stored.encode()).digest(), hashlib.sha256(password).digest()
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


def _scrypt(password: bytes, parsed: ScryptHash) -> bytes:
    return hashlib.scrypt(
        password,
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


REVEAL: Final = "reveal_secrets"
"""Context key: `model_dump(context={REVEAL: True})` writes secrets as they were given; else
`********`."""

ENVIRONMENT: Final = "environment"
"""Context key: the variables that `{env: NAME}` looks in; without it, the process's own."""

HIDDEN: Final = "********"

_FILE_BYTES: Final = limits.TOKEN_BYTES + 2
"""A line feed or a carriage return and a line feed may end the file."""


class Origin(NamedTuple):
    """Where a secret came from: kind `text`, `env` or `file`, and the variable or path."""

    kind: str
    name: str


AS_TEXT: Final = Origin("text", "")


class Secret:
    """A resolved secret that has to be shown to somebody else, so it must not be a hash."""

    __slots__ = ("_text", "origin")

    def __init__(self, text: str, origin: Origin = AS_TEXT) -> None:
        if not text:
            raise ValueError("must not be empty; leave the key out where none is wanted")
        if text == HIDDEN:
            raise ValueError(
                "stands for a value that was hidden when this was written; give the value"
            )
        self._check(text)
        self._text = text
        self.origin = origin

    def reveal(self) -> str:
        """Return the value itself."""
        return self._text

    @classmethod
    def _check(cls, text: str) -> None:
        if is_hash(text):
            raise ValueError(
                "a hash will not do here: the other side has to be shown the password itself"
            )
        if len(text.encode()) > limits.PASSWORD_BYTES:
            raise ValueError(f"longer than {limits.PASSWORD_BYTES} bytes")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.origin.kind} {self.origin.name or HIDDEN})"

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: object, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """Return how pydantic validates and serializes this type."""
        return core_schema.with_info_plain_validator_function(
            cls._validate,
            serialization=core_schema.plain_serializer_function_ser_schema(
                cls._serialize, info_arg=True
            ),
        )

    @classmethod
    def _validate(cls, value: object, info: core_schema.ValidationInfo[Any]) -> Self:
        if isinstance(value, cls):
            return value
        context: Mapping[str, Any] = info.context or {}
        text, origin = _resolve(value, context.get(ENVIRONMENT, os.environ))
        return cls(text, origin)

    def _serialize(self, info: core_schema.SerializationInfo) -> object:
        if self.origin.kind != "text":
            return {self.origin.kind: self.origin.name}
        context: Mapping[str, Any] = info.context or {}
        return self._text if context.get(REVEAL) else HIDDEN


@final
class Token(Secret):
    """A secret that somebody else has issued, and that is longer than a password."""

    __slots__ = ()

    @classmethod
    def _check(cls, text: str) -> None:
        if len(text.encode()) > limits.TOKEN_BYTES:
            raise ValueError(f"longer than {limits.TOKEN_BYTES:,} bytes")


@final
class Password(Secret):
    """A password that is only compared with what a client gives: plain or a hash."""

    __slots__ = ()

    @property
    def is_hash(self) -> bool:
        """Whether comparing costs a key derivation (some 70 ms) or next to nothing."""
        return is_hash(self._text)

    def verify(self, password: bytes) -> bool:
        """Return whether `password` is the password; takes the same time wherever the two differ."""
        return verify_password(self._text, password)

    @classmethod
    def _check(cls, text: str) -> None:
        if is_hash(text):
            check_stored(text)
        elif len(text.encode()) > limits.PASSWORD_BYTES:
            raise ValueError(f"longer than {limits.PASSWORD_BYTES} bytes")


def _resolve(value: object, environment: Mapping[str, str]) -> tuple[str, Origin]:
    """Return the secret that a value of a document stands for. No message repeats the value."""
    if isinstance(value, str):
        return value, AS_TEXT
    if isinstance(value, dict) and len(value) == 1:
        kind, name = next(iter(value.items()))
        if kind in ("env", "file") and isinstance(name, str) and name:
            return (_from_environment if kind == "env" else _from_file)(name, environment)
    # ValueError, since pydantic lets a TypeError pass.
    if isinstance(value, (int, float)):
        raise ValueError("must be text: put the value in quotes")  # noqa: TRY004
    raise ValueError("must be text, {env: NAME} or {file: PATH}")


def _from_environment(name: str, environment: Mapping[str, str]) -> tuple[str, Origin]:
    text = environment.get(name)
    if text is None:
        raise ValueError(f"environment variable {name} is not set")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"environment variable {name} is not UTF-8") from None
    return text, Origin("env", name)


def _from_file(path: str, _: Mapping[str, str]) -> tuple[str, Origin]:
    """Return the file's one line, without its line end."""
    try:
        with Path(path).open("rb") as file:
            # Nothing that is kept in one is longer than a token.
            raw = file.read(_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a path"
        raise ValueError(f"cannot read {path}: {reason}") from None
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8") from None
    text = text.removesuffix("\n").removesuffix("\r")
    if "\n" in text:
        raise ValueError(f"{path} must hold one line")
    return text, Origin("file", path)
