"""What a connector and its provider have agreed on, over all connections (of MQTT the client's session: MQTT 5, 4.1).

It outlives the router as rows of the spool, written in the unit of what they belong to: one for the session, one for
each outbound packet identifier of QoS 2, and one for each inbound message that is known again, by its packet identifier
or, of AMQP, by a slot (keys.py).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, final

from vpnrouter.core.mqtt.outbound_rows import OutboundRows, release_row
from vpnrouter.core.mqtt.session import CONNECTOR_PREFIX, NEVER_S
from vpnrouter.errors import SpoolError
from vpnrouter.spool import keys

if TYPE_CHECKING:
    from vpnrouter.core.guaranteed.spool import Spool
    from vpnrouter.spool.store import Store

SYNCED: Final = 1
"""Of `releasing`: PUBREL may be sent."""

KEYED: Final = 2
"""Of `releasing`: the identifier is in the spool."""

RECEIVED_ONCE: Final = b"\x01"
"""Row of an inbound QoS 2 message, from PUBLISH to PUBREL. That of a QoS 1 message is its digest, which is longer."""


@final
class ProviderSession:
    """The session of the client `client_name` of the message VPN `vpn`. `spool` is None where nothing is guaranteed.

    `number` is its key in the store, 0 for none yet. `asked` are the filters that it has subscribed to at the provider,
    with the QoS, or the names of its durable subscriptions. Outbound packet identifiers: `resend` has those of messages
    that may have been sent over an earlier connection (and the QoS in the bits from 16 on), by message id; `releasing`
    those whose PUBREL is due, or sent and not answered. Inbound: `received` are those of QoS 2 from PUBLISH to PUBREL,
    `known` those of QoS 1 by which a message that comes again is known, with its digest, oldest first; of AMQP slots.
    """

    __slots__ = (
        "_turn",
        "asked",
        "client_name",
        "known",
        "level",
        "number",
        "received",
        "releasing",
        "resend",
        "spool",
        "vpn",
    )

    def __init__(self, spool: Spool | None, vpn: str, client_name: str) -> None:
        self.spool = spool
        self.vpn = vpn
        self.client_name = client_name
        self.number = 0
        self.level = 0
        self.asked: dict[str, int] = {}
        self.resend: dict[int, int] = {}
        self.releasing: dict[int, int] = {}
        self.received: set[int] = set()
        self.known: dict[int, bytes] = {}
        # Of the last PUBREL that was written down as due.
        self._turn = 0

    @property
    def is_new(self) -> bool:
        """Whether nothing is stored of it."""
        return self.number == 0

    def keep(self) -> None:
        """Write the row of the session."""
        spool = self.spool
        if spool is None:
            return
        if self.number == 0:
            self.number = spool.number()
        row: dict[str, object] = {
            "number": self.number,
            "level": self.level,
            "asked": self.asked,
            # As that of every other MQTT session: it lasts, and has no endpoint of its own.
            "expiry": NEVER_S,
            "endpoint": False,
            "left_ns": 0,
        }
        spool.ledger.put(keys.session(self.vpn, self.client_name), json.dumps(row).encode())

    # -- outbound --------------------------------------------------------------------------------

    def will_send(self, packet_id: int, message_id: int) -> None:
        """Write down that a message goes out under a packet identifier of QoS 2."""
        if self.spool is not None:
            value = keys.pack_id(message_id)
            self.spool.ledger.put(keys.outbound(self.number, packet_id), value)

    def will_release(self, packet_id: int) -> None:
        """Write down that PUBREL is due for it."""
        if self.spool is not None:
            self._turn += 1
            self.spool.ledger.put(keys.outbound(self.number, packet_id), release_row(self._turn))

    def is_free(self, packet_id: int) -> None:
        """Delete it: the exchange is over."""
        if self.spool is not None:
            self.spool.ledger.delete(keys.outbound(self.number, packet_id))

    # -- inbound ---------------------------------------------------------------------------------

    def remember(self, packet_id: int, digest: bytes) -> None:
        """Know a message again: of QoS 2 until PUBREL (`digest` b""), of QoS 1 by what it says."""
        if digest:
            self.known.pop(packet_id, b"")
            self.known[packet_id] = digest
        else:
            self.received.add(packet_id)
        if self.spool is not None:
            value = digest or RECEIVED_ONCE
            self.spool.ledger.put(keys.inbound(self.number, packet_id), value)

    def forget(self, packet_id: int) -> None:
        """Know it no more."""
        self.received.discard(packet_id)
        self.known.pop(packet_id, b"")
        if self.spool is not None:
            self.spool.ledger.delete(keys.inbound(self.number, packet_id))

    # -- the end ---------------------------------------------------------------------------------

    def lost_by_provider(self) -> None:
        """The provider has no session: no identifier means anything to it any more."""
        for packet_id in [*self.received, *self.known]:
            self.forget(packet_id)
        for packet_id in [*self.releasing, *[each & 0xFFFF for each in self.resend.values()]]:
            self.is_free(packet_id)
        self.releasing.clear()
        self.resend.clear()
        if self.asked:
            self.asked = {}
            self.keep()

    def erase(self) -> None:
        """Delete all rows: the connector is gone."""
        self.lost_by_provider()
        if self.spool is not None and self.number:
            self.spool.ledger.delete(keys.session(self.vpn, self.client_name))
            self.number = 0

    def move(self, vpn: str, client_name: str) -> None:
        """Go on under another name: the connector was renamed, and logs in as before."""
        spool = self.spool
        if spool is not None and self.number:
            spool.ledger.delete(keys.session(self.vpn, self.client_name))
        self.vpn, self.client_name = vpn, client_name
        if self.number:
            self.keep()

    def leave(self) -> None:
        """Delete all rows: the connector was removed. What is to be ended at the provider is known for a last login."""
        releasing = dict.fromkeys(self.releasing, SYNCED | KEYED)
        asked = self.asked
        self.erase()
        self.releasing = releasing
        self.asked = asked

    def restore(self, store: Store, value: bytes) -> None:
        """Take what the store has; `value` is the row of the session. Raises SpoolError for what cannot be read."""
        try:
            said = json.loads(value)
            self.number = int(said["number"])
            self.level = int(said.get("level", 0))
            asked = said.get("asked", {})
            # Earlier versions wrote a list.
            self.asked = dict.fromkeys(asked, -1) if isinstance(asked, list) else dict(asked)
        except (ValueError, KeyError, TypeError) as error:
            raise SpoolError(
                "the session of a connector in the spool is damaged", "corrupt"
            ) from error
        for key, found in store.scan(keys.inbound(self.number, 0)[:-2]):
            packet_id = keys.second_of(key)
            if len(found) > len(RECEIVED_ONCE):
                self.known[packet_id] = found
            else:
                self.received.add(packet_id)
        rows = OutboundRows(store, self.number)
        for message_id, packet_id in rows.sent.items():
            self.resend[message_id] = packet_id | 2 << 16
        for packet_id in rows.due:
            self.releasing[packet_id] = SYNCED | KEYED
        self._turn = rows.turn


def restore_provider_sessions(spool: Spool, store: Store, vpn: str) -> list[ProviderSession]:
    """Return the sessions of all connectors of a message VPN that the store has.

    Raises SpoolError for what cannot be read.
    """
    found: list[ProviderSession] = []
    for key, value in store.scan(keys.session(vpn, CONNECTOR_PREFIX)):
        _, rest = keys.vpn_and_rest(key)
        session = ProviderSession(spool, vpn, rest.decode())
        session.restore(store, value)
        found.append(session)
    return found
