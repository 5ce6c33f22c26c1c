"""Answers an MQTT provider for the QoS 1 and 2 messages that it publishes, and knows those that come again.

QoS 2: the identifier is in the spool from PUBLISH to PUBREL, in one unit with the message (MQTT 5, 4.3.3, method B).

QoS 1 has no such exchange: the provider sends a message again over the next connection where it has not got our PUBACK
(MQTT-4.4.0-1), with DUP and under the same identifier. For a link that has each message once, the identifier and a
digest of the message are in the spool, in one unit with it, until it is proved that the provider has the PUBACK: it has
answered a PINGREQ that was sent later. What comes with DUP meanwhile, and has that identifier and says the same, is the
same message. Nothing can tell it from an equal one that was sent under that identifier between our PUBACK and the loss
of the connection, and was lost with it.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final, final

from typing_extensions import override

from vpnrouter import limits
from vpnrouter.connectors.provider import Receipts
from vpnrouter.core.guaranteed.unit_of_work import REJECTED
from vpnrouter.wire.mqtt import reason
from vpnrouter.wire.mqtt.encode import encode_ack
from vpnrouter.wire.mqtt.reason import PUBACK, PUBCOMP, PUBREC

if TYPE_CHECKING:
    from vpnrouter.connectors.mqtt.client import MqttClient
    from vpnrouter.connectors.provider_session import ProviderSession
    from vpnrouter.core.connection import Connection

RECEIVED: Final = 0x10000
"""Flag of a token: a QoS 2 PUBLISH, to be answered with PUBREC."""

COMPLETE: Final = 0x20000
"""Flag of a token: a PUBREL, to be answered with PUBCOMP."""

UNKNOWN: Final = 0x40000
"""Flag of such a token: there was no such identifier."""

EXACT: Final = 0x80000
"""Flag of a token: a QoS 1 PUBLISH of a link that has each message once."""

READ_ON: Final = 0x100000
"""Token: reading goes on."""

ANSWERED: Final = 0x200000
"""Token: what came before is answered."""

DIGEST_BYTES: Final = 8


def digest_of(topic: bytes, payload: bytes) -> bytes:
    """Return by what a QoS 1 message is known again. Its properties may change when it is sent again."""
    found = blake2b(topic, digest_size=DIGEST_BYTES)
    found.update(b"\0")
    found.update(payload)
    return found.digest()


@final
class Incoming(Receipts):
    """The answers over one connection.

    `unproved` are identifiers of QoS 1 whose PUBACK is out, with the number of PINGREQs that were sent before it.
    """

    __slots__ = (
        "_client",
        "_digests",
        "connection",
        "level",
        "pings",
        "session",
        "unproved",
    )

    def __init__(
        self, client: MqttClient, connection: Connection, session: ProviderSession, level: int
    ) -> None:
        self._client = client
        self.connection = connection
        self.session = session
        self.level = level
        self.pings = 0
        self.unproved: dict[int, int] = {}
        self._digests: dict[int, bytes] = {}

    # -- messages --------------------------------------------------------------------------------

    def is_known(self, packet_id: int, qos: int, dup: bool, digest: bytes) -> bool:
        """Return whether a message has been taken before; then only its answer is due, and is given.

        `digest` is that of a QoS 1 message of a link that has each once, else b"".
        """
        session = self.session
        if qos == 2:
            if packet_id not in session.received:
                return False
            self.leave_out(packet_id | RECEIVED)
            return True
        if not digest:
            return False
        if dup and session.known.get(packet_id, b"") == digest:
            self.leave_out(packet_id | EXACT)
            return True
        self._digests[packet_id] = digest
        self.unproved.pop(packet_id, 0)
        return False

    def token(self, packet_id: int, qos: int, digest: bytes) -> int:
        """Return the token of a message."""
        if qos == 2:
            return packet_id | RECEIVED
        return packet_id | EXACT if digest else packet_id

    def leave_out(self, token: int) -> None:
        """Answer a message that does not enter, when what it is known by is synced."""
        spool = self.session.spool
        if spool is None:
            self.on_outcome(token, 0, "")
        else:
            spool.when_synced(self, token)

    @override
    def remember(self, token: int) -> None:
        packet_id = token & 0xFFFF
        if token & RECEIVED:
            self.session.remember(packet_id, b"")
        elif token & EXACT:
            self.session.remember(packet_id, self._digests.get(packet_id, b"?"))

    @override
    def forget(self, token: int) -> None:
        if token & (RECEIVED | EXACT):
            self.session.forget(token & 0xFFFF)

    def release(self, packet_id: int) -> None:
        """Handle PUBREL: forget the identifier, and answer when that is synced."""
        session = self.session
        if packet_id not in session.received:
            # The identifier may be free only since a moment ago: it must not be used again before that is synced.
            self.leave_out(packet_id | COMPLETE | UNKNOWN)
            return
        session.forget(packet_id)
        spool = session.spool
        if spool is not None and spool.fault is not None:
            spool.fault("pubrel-received")
        self.leave_out(packet_id | COMPLETE)

    def hold_back(self) -> None:
        """Read no further until the next commit, where too much waits for it."""
        spool = self.session.spool
        connection = self.connection
        if spool is None or spool.down or connection.paused:
            return
        if spool.ledger.pending_bytes > limits.UNIT_BYTES:
            connection.paused = True
            spool.when_synced(self, READ_ON)

    def when_answered(self) -> None:
        """Have the client begin to send when what has come by now is answered: a message may end the connection."""
        spool = self.session.spool
        if spool is None or spool.down:
            self._client.begin_sending()
        else:
            spool.when_synced(self, ANSWERED)

    # -- answers ---------------------------------------------------------------------------------

    @override
    def owning_connection(self) -> Connection | None:
        return self.connection

    @override
    def on_outcome(self, token: int, outcome: int, reason: str) -> None:
        connection = self.connection
        if connection.closing or outcome == REJECTED:
            # What is refused waits, and is answered later.
            return
        if token == READ_ON:
            connection.resume()
            return
        if token == ANSWERED:
            self._client.begin_sending()
            return
        packet_id = token & 0xFFFF
        kind = PUBACK
        code = 0
        if token & COMPLETE:
            kind = PUBCOMP
            if token & UNKNOWN and self.level == 5:
                code = _NOT_FOUND
        elif token & RECEIVED:
            kind = PUBREC
        elif token & EXACT:
            self.unproved[packet_id] = self.pings
            self._client.prove_later()
            self._digests.pop(packet_id, b"")
        connection.outbox.control(encode_ack(kind, packet_id, self.level, code))

    def proved(self, ping: int) -> None:
        """The provider has answered PINGREQ number `ping`, and so has what was sent before it."""
        unproved = self.unproved
        while unproved:
            packet_id = next(iter(unproved))
            if unproved[packet_id] >= ping:
                return
            del unproved[packet_id]
            self.session.forget(packet_id)


_NOT_FOUND: Final = reason.PACKET_IDENTIFIER_NOT_FOUND
