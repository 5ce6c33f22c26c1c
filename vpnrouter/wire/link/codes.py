"""Lists the numbers of the link protocol: fields (LINK-8), and close and refusal codes (LINK-16, LINK-25, LINK-40).

Fields have five separate spaces: handshakes, refusals, BIND, BOUND and message extensions. Bit 7 of a field's type
byte is not part of its number: a receiver that does not know such a field must refuse instead of skipping it.

Where MQTT 5 has a reason code of the same meaning the number is the same, so a refusal raised once for any client
serves on a link as well. Codes that only a link needs begin at 0xC0. Append only.
"""

from __future__ import annotations

from typing import Final

MANDATORY: Final = 0x80

ROUTER: Final = 1
BRIDGE: Final = 2
LOCAL_VPN: Final = 3
REMOTE_VPN: Final = 4
REMOTE_ROUTER: Final = 5
CLIENT_USERNAME: Final = 6
PASSWORD: Final = 7
TLS: Final = 8
FEATURES: Final = 9
HEARTBEAT_MS: Final = 10
MAX_FRAME: Final = 11
CLIENT_NAME: Final = 12
INCARNATION: Final = 13
SCHEME: Final = 14
RESUME: Final = 15
LINK_PORT: Final = 16
LINKS_PORT: Final = 17
NONCE: Final = 18
SALT: Final = 19
ITERATIONS: Final = 20
PROOF: Final = 21
SIGNATURE: Final = 22

HANDSHAKE: Final = frozenset({*range(ROUTER, SIGNATURE + 1)})
"""Numbers known in HELLO, CHALLENGE, PROOF and WELCOME."""

RETRY_AFTER_MS: Final = 1

REFUSAL: Final = frozenset({RETRY_AFTER_MS})
"""Numbers known in REFUSE, CLOSE and DETACH."""

ACCEPTED: Final = 1
SELECTOR: Final = 2
LANES: Final = 3
ON_REJECT: Final = 4

BINDING: Final = frozenset({ACCEPTED, SELECTOR, LANES, ON_REJECT})
"""Numbers known in BIND."""

KEPT: Final = 1

ANSWERING: Final = frozenset({KEPT})
"""Numbers known in BOUND."""

WINDOW_CLOSED: Final = 1

STATUS: Final = frozenset({WINDOW_CLOSED})
"""Fields of FLOW_STATUS (LINK-50)."""

NONE: Final[frozenset[int]] = frozenset()
"""No number is known yet: UNBIND and REJECT."""

PATH: Final = 1
HOPS: Final = 2
TRACE: Final = 3
ORIGIN: Final = 4
RETAIN: Final = 5
EXPIRY_MS: Final = 8
MESSAGE_ID: Final = 9
SNAPSHOT: Final = 10
CONTENT: Final = 11


NORMAL: Final = 0x00
"""The bridge is done: disabled or removed by its owner."""

MALFORMED: Final = 0x81
"""Bytes that cannot be read as a frame."""

PROTOCOL_ERROR: Final = 0x82
"""A frame that can be read but is not allowed: order, repeated or missing field, value out of
range."""

VERSION_MISMATCH: Final = 0x84
"""The other major version."""

BAD_CREDENTIALS: Final = 0x86
"""Client username unknown or password wrong."""

NOT_AUTHORIZED: Final = 0x87
"""Known, but not allowed: username shut down, ACL, client profile without bridge connections."""

UNAVAILABLE: Final = 0x88
"""The message VPN exists and is not in service."""

BUSY: Final = 0x89
"""Too many passwords wait to be verified; the peer may try again."""

SHUTTING_DOWN: Final = 0x8B
"""The router stops; another remote may serve at once."""

HEARTBEAT_TIMEOUT: Final = 0x8D
"""Nothing came from the peer for too long."""

TAKEN_OVER: Final = 0x8E
"""The same bridge logged in again over a newer connection."""

FRAME_TOO_LARGE: Final = 0x95
"""A frame above the limit that its receiver announced."""

QUOTA_EXCEEDED: Final = 0x97
"""Too many clients, connections or subscriptions."""

ADMINISTRATIVE: Final = 0x98
"""An operator disconnected the link; the bridge may come back."""

RATE_EXCEEDED: Final = 0x9F
"""Too many failed logins; the peer may try again after a minute."""

UNSUPPORTED_FRAME: Final = 0xC0
"""A frame type that is unknown or was not agreed on."""

UNKNOWN_MANDATORY_FIELD: Final = 0xC1
"""A field that must be understood is not known here."""

NOT_A_LINK: Final = 0xC2
"""The first bytes are not those of a link; the connection is closed without an answer."""

WRONG_ROUTER: Final = 0xC3
"""The router reached is not the one that the bridge names."""

TLS_MISMATCH: Final = 0xC4
"""One side believes the connection is encrypted, the other not."""

HANDSHAKE_TIMEOUT: Final = 0xC5
"""No HELLO, or no answer to it, in time."""

VPN_NOT_ALLOWED: Final = 0xC6
"""No such message VPN: what routers said before strangers were told one thing only (LINK-18)."""

SELF_LINK: Final = 0xC7
"""A message VPN cannot be bridged to itself."""

REASONS: Final[dict[int, str]] = {
    NORMAL: "Bridge Shutdown",
    MALFORMED: "400 Malformed Frame",
    PROTOCOL_ERROR: "400 Protocol Error",
    VERSION_MISMATCH: "505 Bridge Version Mismatch",
    BAD_CREDENTIALS: "401 Unauthorized",
    NOT_AUTHORIZED: "403 Permission Denied",
    UNAVAILABLE: "503 Message VPN Unavailable",
    BUSY: "503 Too Many Logins",
    SHUTTING_DOWN: "503 Service Unavailable",
    HEARTBEAT_TIMEOUT: "408 Heartbeat Timeout",
    TAKEN_OVER: "409 Client Name Taken Over",
    FRAME_TOO_LARGE: "400 Message Too Long",
    QUOTA_EXCEEDED: "503 Too Many Clients",
    ADMINISTRATIVE: "503 Disconnected By Administrator",
    RATE_EXCEEDED: "403 Too Many Failed Logins",
    UNSUPPORTED_FRAME: "501 Frame Not Supported",
    UNKNOWN_MANDATORY_FIELD: "501 Field Not Supported",
    NOT_A_LINK: "400 Not A Link",
    WRONG_ROUTER: "404 Router Name Mismatch",
    TLS_MISMATCH: "400 TLS Mismatch",
    HANDSHAKE_TIMEOUT: "408 Handshake Timeout",
    VPN_NOT_ALLOWED: "403 Message VPN Not Allowed",
    SELF_LINK: "400 Message VPN Cannot Link To Itself",
}
"""The text sent with each code when whoever refuses has no more precise string of the field."""

GRANTED: Final = 0x00
"""Subscription added, changed or removed as asked."""

NO_SUBSCRIPTION_EXISTED: Final = 0x11
"""UNSUBSCRIBE of a filter that was not there; nothing is wrong."""

SUBSCRIPTION_PARSE_ERROR: Final = 0x8F
"""The filter breaks the topic grammar: "400 Subscription Parse Error"."""

SELECTOR_PARSE_ERROR: Final = 0x8F
"""A flow's selector breaks its grammar: "406 Invalid Selector"."""

UNKNOWN_QUEUE: Final = 0xC8
"""There is no such queue, or none any more: "503 Unknown Queue"."""

SUBSCRIPTION_CONFLICT: Final = 0xA2
"""The filter and flags cannot be served: "400 Subscription Attributes Conflict With Existing
Subscription"."""
