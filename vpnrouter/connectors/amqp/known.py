"""The messages of a provider that a connector has taken last, by which one that comes again is known.

AMQP settles a delivery without an answer, so that nothing shows whether the provider has got it: one that is killed
may send again what it was told of a moment ago. So the digests of the last messages are kept, each in the unit of its
message, and give way to others in turn.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits

if TYPE_CHECKING:
    from vpnrouter.connectors.provider_session import ProviderSession

DIGEST_BYTES: Final = 16
_TURN_BYTES: Final = 8


def digest_of(link: str, bare: bytes) -> bytes:
    """Return by what a message of a link is known again; `bare` is what its sender wrote, the same each time (3.2)."""
    found = blake2b(link.encode(), digest_size=DIGEST_BYTES)
    found.update(b"\0")
    found.update(bare)
    return found.digest()


@final
class KnownMessages:
    """The last messages, as rows of the session: a slot, the turn in which it was written, and the digest."""

    __slots__ = ("_session", "_slots", "_turn")

    def __init__(self, session: ProviderSession) -> None:
        self._session = session
        self._slots: dict[bytes, int] = {}
        self._turn = 0
        for slot, value in session.known.items():
            self._slots[value[_TURN_BYTES:]] = slot
            self._turn = max(self._turn, int.from_bytes(value[:_TURN_BYTES], "big"))

    def __contains__(self, digest: object) -> bool:
        return digest in self._slots

    def remember(self, digest: bytes) -> None:
        """Know a message from now on, in the unit being built, and forget the oldest where there are too many."""
        self._turn += 1
        slot = self._turn % limits.KNOWN_MESSAGES
        before = self._session.known.get(slot)
        if before is not None:
            self._slots.pop(before[_TURN_BYTES:], 0)
        self._slots[digest] = slot
        self._session.remember(slot, self._turn.to_bytes(_TURN_BYTES, "big") + digest)

    def forget(self, digest: bytes) -> None:
        """Know it no more: it has not entered."""
        slot = self._slots.pop(digest, -1)
        if slot >= 0:
            self._session.forget(slot)
