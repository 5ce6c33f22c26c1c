"""Reads and writes what SASL mechanisms say: PLAIN (RFC 4616) and SCRAM-SHA-256 (RFC 5802, RFC 7677).

User names and passwords are UTF-8 as they came: what SASLprep would change is not changed.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final, NamedTuple

from vpnrouter import limits
from vpnrouter.errors import ProtocolError
from vpnrouter.wire.amqp.conditions import DECODE_ERROR

ANONYMOUS: Final = "ANONYMOUS"
PLAIN: Final = "PLAIN"
EXTERNAL: Final = "EXTERNAL"
SCRAM: Final = "SCRAM-SHA-256"

OK: Final = 0
REFUSED: Final = 1
"""Codes of an outcome (5.3.3.6)."""

NO_BINDING: Final = "n,,"
"""Header of a client that binds its login to no channel (RFC 5802, 7: gs2-header)."""

_PROOF_BYTES: Final = 32
_NAME: Final = re.compile(r"(?:[^,=\0]|=2C|=3D)+")
_COUNT: Final = re.compile(r"i=[1-9][0-9]{0,8}")
_NONCE: Final = re.compile(r"[!-+\--~]+")


class Plain(NamedTuple):
    """What a client says by PLAIN. `authorization` is whom it wants to act for, "" for itself."""

    authorization: str
    username: str
    password: bytes


class ClientFirst(NamedTuple):
    """The first message of SCRAM. `header` is its beginning, `bare` the rest of it, both as they came."""

    header: bytes
    bare: bytes
    authorization: str
    username: str
    nonce: str


class ClientFinal(NamedTuple):
    """The last message of SCRAM's client. `unproven` is what stands before the proof, as it came."""

    unproven: bytes
    nonce: str
    proof: bytes


class ServerFirst(NamedTuple):
    """The first message of SCRAM's server. `nonce` begins with the client's."""

    nonce: str
    salt: bytes
    iterations: int


def _malformed(what: str) -> ProtocolError:
    return ProtocolError(DECODE_ERROR, what)


def _text(data: bytes) -> str:
    if len(data) > limits.SASL_BYTES:
        raise _malformed(f"5.3.3: a SASL message of {len(data)} bytes")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise _malformed("5.3.3: a SASL message is not well-formed UTF-8") from None


def read_plain(response: bytes) -> Plain:
    """Return what the response of PLAIN says.

    Raises ProtocolError where it is none, has no user name, or is longer than limits.SASL_BYTES.
    """
    parts = response.split(b"\0")
    if len(parts) != 3:
        raise _malformed("RFC 4616, 2: two zero bytes are due")
    authorization, username = _text(parts[0]), _text(parts[1])
    _text(parts[2])
    if not username:
        raise _malformed("RFC 4616, 2: no user name")
    return Plain(authorization, username, parts[2])


def read_client_first(data: bytes) -> ClientFirst:
    """Return what the first message of SCRAM says.

    Raises ProtocolError where it is none, asks for channel binding, which is not offered, or for an extension.
    """
    parts = _text(data).split(",")
    if len(parts) < 4 or parts[0] not in {"n", "y"}:
        raise _malformed("RFC 5802, 7: the first message begins with n or y, and has four parts")
    header = f"{parts[0]},{parts[1]},"
    authorization = _name(parts[1], "a=") if parts[1] else ""
    return ClientFirst(
        header.encode(),
        ",".join(parts[2:]).encode(),
        authorization,
        _name(parts[2], "n="),
        _nonce(parts[3]),
    )


def server_first(nonce: str, salt: bytes, iterations: int) -> bytes:
    """Return the server's first message; `nonce` begins with the client's."""
    return f"r={nonce},s={base64.b64encode(salt).decode()},i={iterations}".encode()


def client_first_bare(username: str, nonce: str) -> str:
    """Return the client's first message without its header."""
    name = username.replace("=", "=3D").replace(",", "=2C")
    return f"n={name},r={nonce}"


def read_server_first(data: bytes, nonce: str) -> ServerFirst:
    """Return what the server's first message says to a client that has sent `nonce`. Raises ProtocolError."""
    parts = _text(data).split(",")
    if len(parts) < 3 or not parts[1].startswith("s=") or not _COUNT.fullmatch(parts[2]):
        raise _malformed("RFC 5802, 7: the server's first message has a nonce, a salt and a count")
    both = _nonce(parts[0])
    if not both.startswith(nonce) or both == nonce:
        raise _malformed("RFC 5802, 5.1: the server's nonce does not go on from the client's")
    return ServerFirst(both, _decoded(parts[1][2:]), int(parts[2][2:]))


def read_client_final(data: bytes, header: bytes) -> ClientFinal:
    """Return what the last message of the client says; `header` is that of its first one.

    Raises ProtocolError where it is none, or repeats another header.
    """
    unproven, found, proof = _text(data).rpartition(",p=")
    parts = unproven.split(",")
    if not found or len(parts) < 2 or not parts[0].startswith("c="):
        raise _malformed("RFC 5802, 7: the last message has a header, a nonce and a proof")
    if _decoded(parts[0][2:]) != header:
        raise _malformed("RFC 5802, 5.1: the last message repeats another header")
    proven = _decoded(proof)
    if len(proven) != _PROOF_BYTES:
        raise _malformed(f"RFC 7677, 3: a proof of {len(proven)} bytes")
    return ClientFinal(unproven.encode(), _nonce(parts[1]), proven)


def server_final(signature: bytes) -> bytes:
    """Return the server's last message."""
    return b"v=" + base64.b64encode(signature)


def scram_message(first: ClientFirst, answer: bytes, final: ClientFinal) -> bytes:
    """Return what the proofs of a login sign (RFC 5802, 3: AuthMessage); `answer` is the server's first message."""
    return b",".join([first.bare, answer, final.unproven])


def _name(part: str, prefix: str) -> str:
    name = part[2:]
    if not part.startswith(prefix) or not _NAME.fullmatch(name):
        raise _malformed(f"RFC 5802, 7: a name behind {prefix} is due")
    return name.replace("=2C", ",").replace("=3D", "=")


def _nonce(part: str) -> str:
    if not part.startswith("r=") or not _NONCE.fullmatch(part[2:]):
        raise _malformed("RFC 5802, 7: a nonce is due")
    return part[2:]


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise _malformed("RFC 5802, 7: base64 is due") from None
