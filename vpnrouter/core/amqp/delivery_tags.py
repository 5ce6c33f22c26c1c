"""The tags of deliveries that a client has to settle: the same over all connections, and nobody else can make them.

    8 bytes   the spool's id of the message, big-endian
    8 bytes   a proof that the router gave it to this client username, out of this endpoint

A client names its unsettled deliveries by their tags when it comes back, perhaps after the router has started anew
(AMQP 1.0, 2.6.13). Ids alone can be guessed.
"""

from __future__ import annotations

from hashlib import blake2b, shake_128
from hmac import compare_digest
from struct import Struct
from typing import Final, final

from mypy_extensions import i64

_ID_BYTES: Final = 8
_PROOF_BYTES: Final = 8
_MOST_ID: Final = (1 << 63) - 1

_GROUP_SHIFT: Final = 6
_GROUP: Final = 1 << _GROUP_SHIFT
"""Proofs of so many ids in a row are made together: their messages often leave one after the other."""

_WORDS: Final = Struct(f"<{_GROUP}q")


@final
class DeliveryTags:
    """The tags of deliveries out of the endpoint with the number `endpoint` for one client username.

    `secret` is that of the store: 32 bytes.
    """

    __slots__ = ("_group", "_key", "_proofs")

    def __init__(self, secret: bytes, username: str, endpoint: int) -> None:
        whose = endpoint.to_bytes(4, "big") + username.encode()
        self._key = blake2b(whose, key=secret, digest_size=32).digest()
        self._group: i64 = -1
        self._proofs: tuple[int, ...] = ()

    def proof(self, message_id: i64) -> int:
        """Return the proof for a message, its bytes as a little-endian number with a sign."""
        group = message_id >> _GROUP_SHIFT
        if group != self._group:
            self._make(group)
        return self._proofs[message_id & (_GROUP - 1)]

    def _make(self, group: i64) -> None:
        number: int = group
        data = self._key + number.to_bytes(_ID_BYTES, "big")
        self._proofs = _WORDS.unpack(shake_128(data).digest(_GROUP * _PROOF_BYTES))
        self._group = group

    def tag(self, message_id: int) -> bytes:
        """Return the tag of a message."""
        proof = self.proof(message_id).to_bytes(_PROOF_BYTES, "little", signed=True)
        return message_id.to_bytes(_ID_BYTES, "big") + proof

    def message_of(self, tag: bytes) -> int:
        """Return the id of the message that was given under a tag, -1 for a tag that the router did not give."""
        if len(tag) != _ID_BYTES + _PROOF_BYTES:
            return -1
        message_id = int.from_bytes(tag[:_ID_BYTES], "big")
        if message_id > _MOST_ID:
            return -1
        return message_id if compare_digest(self.tag(message_id), tag) else -1
