"""The tags of deliveries that a client has to settle: the same over all connections, and nobody else can make them.

    8 bytes   the spool's id of the message, big-endian
    8 bytes   a proof that the router gave it to this client username, out of this endpoint

A client names its unsettled deliveries by their tags when it comes back, perhaps after the router has started anew
(AMQP 1.0, 2.6.13). Ids alone can be guessed.
"""

from __future__ import annotations

from hashlib import blake2b
from hmac import compare_digest
from typing import Final, final

from librt.strings import read_i64_le
from mypy_extensions import i64

_ID_BYTES: Final = 8
_PROOF_BYTES: Final = 8
_MOST_ID: Final = (1 << 63) - 1

_GROUP_SHIFT: Final = 3
_IN_GROUP: Final = (1 << _GROUP_SHIFT) - 1
"""One digest has the proofs of eight ids in a row, whose messages often leave one after the other."""


@final
class DeliveryTags:
    """The tags of deliveries out of the endpoint with the number `endpoint` for one client username.

    `secret` is that of the store: 32 bytes.
    """

    __slots__ = ("_digest", "_group", "_key")

    def __init__(self, secret: bytes, username: str, endpoint: int) -> None:
        whose = endpoint.to_bytes(4, "big") + username.encode()
        self._key = blake2b(whose, key=secret, digest_size=32).digest()
        self._group: i64 = -1
        self._digest = b""

    def proof(self, message_id: i64) -> i64:
        """Return the proof for a message, its bytes as a little-endian number with a sign."""
        group = message_id >> _GROUP_SHIFT
        if group != self._group:
            number: int = group
            # What is hashed always has the same length, so that the key may stand before it: one block in all.
            self._digest = blake2b(self._key + number.to_bytes(_ID_BYTES, "big")).digest()
            self._group = group
        return read_i64_le(self._digest, (message_id & _IN_GROUP) * _PROOF_BYTES)

    def tag(self, message_id: int) -> bytes:
        """Return the tag of a message."""
        proof: int = self.proof(message_id)
        return message_id.to_bytes(_ID_BYTES, "big") + proof.to_bytes(
            _PROOF_BYTES, "little", signed=True
        )

    def message_of(self, tag: bytes) -> int:
        """Return the id of the message that was given under a tag, -1 for a tag that the router did not give."""
        if len(tag) != _ID_BYTES + _PROOF_BYTES:
            return -1
        message_id = int.from_bytes(tag[:_ID_BYTES], "big")
        if message_id > _MOST_ID:
            return -1
        return message_id if compare_digest(self.tag(message_id), tag) else -1
