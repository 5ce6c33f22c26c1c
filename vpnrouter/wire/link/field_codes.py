"""Numbers of the fields in handshakes, refusals, BIND, BOUND and message extensions (LINK-8).

Five separate spaces. Bit 7 of a field's type byte is not part of its number: it says that a
receiver which does not know the number must refuse instead of skipping.
"""

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
