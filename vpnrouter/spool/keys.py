"""Keys of the spool: one byte that says what it is, then big endian numbers, so that keys sort as they count.

    m first         bodies of a segment         i first         its index
    a first ep      offsets settled             e ep            endpoint definition (JSON)
    k ep            deliverable mark (u64 id)   c ep id         redelivery count (u16)
    p ep pid        outbound QoS 2: u64 id, or u48 turn once PUBREC came and PUBREL is due (earlier builds: empty)
    q ep pid        inbound QoS 2 packet id seen; of a link of AMQP a slot, with a turn and the tag of a delivery
    l vpn 0 ep      link of AMQP whose deliveries are known again (JSON)
    s vpn 0 client  durable MQTT session        t vpn 0 topic   retained message (record)
    b vpn 0 bridge  positions of a bridge       n               next spool id that is not reserved
    w vpn 0 client  will of an MQTT client      g               bridges deleted, with what they had taken (JSON)
    h e ep          counts of an endpoint (JSON)        h b half name   counts of a bridge (JSON)
    h c vpn 0 connector 0 link  counts of a connector's link (JSON)
    #               store id and format version         y       secret of the store

"first" is the spool id of a segment's first message (u64), "ep" an endpoint's number (u32), "pid" a packet
identifier (u16). Each function raises struct.error for a number that does not fit its field.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

BODIES: Final = b"m"
INDEX: Final = b"i"
SETTLED: Final = b"a"
ENDPOINT: Final = b"e"
MARK: Final = b"k"
REDELIVERIES: Final = b"c"
OUTBOUND: Final = b"p"
INBOUND: Final = b"q"
SESSION: Final = b"s"
RETAINED: Final = b"t"
BRIDGE: Final = b"b"
WILL: Final = b"w"
KNOWN_LINK: Final = b"l"
GONE: Final = b"g"
SHEET: Final = b"h"
SHEET_ENDPOINT: Final = SHEET + b"e"
SHEET_BRIDGE: Final = SHEET + b"b"
SHEET_CONNECTOR: Final = SHEET + b"c"
NEXT_ID: Final = b"n"
STORE: Final = b"#"
SECRET: Final = b"y"

_ONE: Final = Struct(">cQ").pack
_ENDPOINT: Final = Struct(">cI").pack
_ENDPOINT_ID: Final = Struct(">cIQ").pack
_ID_ENDPOINT: Final = Struct(">cQI").pack
_ENDPOINT_PID: Final = Struct(">cIH").pack
_NUMBER: Final = Struct(">Q")


def bodies(first: int) -> bytes:
    """Return the key of the bodies of the segment that begins with the spool id `first`."""
    return _ONE(BODIES, first)


def index(first: int) -> bytes:
    """Return the key of the index of the segment that begins with the spool id `first`."""
    return _ONE(INDEX, first)


def settled(endpoint: int, first: int) -> bytes:
    """Return the key of the bitmap of what an endpoint has settled of a segment.

    These sort by segment, as the indexes do: recovery goes through both side by side.
    """
    return _ID_ENDPOINT(SETTLED, first, endpoint)


def endpoint(number: int) -> bytes:
    """Return the key of an endpoint's definition."""
    return _ENDPOINT(ENDPOINT, number)


def mark(endpoint: int) -> bytes:
    """Return the key of an endpoint's deliverable mark: ids up to it may have been delivered before a crash."""
    return _ENDPOINT(MARK, endpoint)


def redeliveries(endpoint: int, message: int) -> bytes:
    """Return the key of the redelivery count of a message (a spool id) at an endpoint."""
    return _ENDPOINT_ID(REDELIVERIES, endpoint, message)


def outbound(endpoint: int, packet: int) -> bytes:
    """Return the key of an outbound QoS 2 packet identifier of a session."""
    return _ENDPOINT_PID(OUTBOUND, endpoint, packet)


def inbound(endpoint: int, packet: int) -> bytes:
    """Return the key of an inbound QoS 2 packet identifier of a session."""
    return _ENDPOINT_PID(INBOUND, endpoint, packet)


def session(vpn: str, client: str) -> bytes:
    """Return the key of a durable MQTT session."""
    return SESSION + _two(vpn, client.encode())


def retained(vpn: str, topic: bytes) -> bytes:
    """Return the key of a retained message."""
    return RETAINED + _two(vpn, topic)


def bridge(vpn: str, name: str) -> bytes:
    """Return the key of a bridge's positions."""
    return BRIDGE + _two(vpn, name.encode())


def will(vpn: str, client: str) -> bytes:
    """Return the key of the will of an MQTT client."""
    return WILL + _two(vpn, client.encode())


def known_link(vpn: str, number: int) -> bytes:
    """Return the key of a link of AMQP whose deliveries are known again."""
    return KNOWN_LINK + _two(vpn, number.to_bytes(4, "big"))


def number_of_link(key: bytes) -> int:
    """Return the number in a key made by `known_link`."""
    return int.from_bytes(key[-4:], "big")


def endpoint_counters(number: int) -> bytes:
    """Return the key of the counts of an endpoint."""
    return SHEET_ENDPOINT + number.to_bytes(4, "big")


def endpoint_of_counters(key: bytes) -> int:
    """Return the endpoint number in a key made by `endpoint_counters`."""
    return int.from_bytes(key[2:6], "big")


def bridge_counters(half: str, name: str) -> bytes:
    """Return the key of the counters of a bridge; `half` is one letter: the own half or the peer's."""
    return SHEET_BRIDGE + half.encode() + name.encode()


def bridge_of_counters(key: bytes) -> tuple[str, str]:
    """Return the letter and the name of a bridge, of a key made by `bridge_counters`."""
    text = key[2:].decode(errors="replace")
    return text[:1], text[1:]


def connector_counters(vpn: str, connector: str, link: str) -> bytes:
    """Return the key of the counts of a connector's link."""
    return SHEET_CONNECTOR + _two(vpn, _two(connector, link.encode()))


def of_vpn(prefix: bytes, vpn: str) -> bytes:
    """Return what all keys of one kind (SESSION, RETAINED, BRIDGE, WILL, KNOWN_LINK) in a message VPN begin with."""
    return prefix + _two(vpn, b"")


def vpn_and_rest(key: bytes) -> tuple[str, bytes]:
    """Return the message VPN and what follows, of a key made by `session`, `retained`, `bridge` or `will`."""
    vpn, _, rest = key[1:].partition(b"\0")
    return vpn.decode(), rest


def endpoint_of(key: bytes) -> int:
    """Return the endpoint number in a key of an endpoint's state, or of a bitmap."""
    if key[0] == SETTLED[0]:
        return int.from_bytes(key[9:13], "big")
    return int.from_bytes(key[1:5], "big")


def number_of(key: bytes) -> int:
    """Return the spool id in a key made by `bodies`, `index` or `settled`."""
    return int.from_bytes(key[1:9], "big")


def second_of(key: bytes) -> int:
    """Return the number behind the endpoint's: a spool id or a packet identifier."""
    return int.from_bytes(key[5:], "big")


ID_BYTES: Final = 8
"""Of a spool id in a value."""


def pack_id(number: int) -> bytes:
    """Return a spool id as a value: 8 bytes, big endian."""
    return _NUMBER.pack(number)


def unpack_id(value: bytes) -> int:
    """Return the spool id that `pack_id` made the value of. Raises struct.error if it is not 8 bytes."""
    number: int = _NUMBER.unpack(value)[0]
    return number


def _two(vpn: str, rest: bytes) -> bytes:
    """Return a message VPN's name, which has no NUL in it, and what follows."""
    return vpn.encode() + b"\0" + rest
