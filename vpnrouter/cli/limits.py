"""Bounds of the commands; docs/limits.md lists them with the router's."""

from typing import Final

SHOW_BLOCK_ROWS: Final = 500
"""Rows that `show` prints in one go and holds in memory; the next ones get columns at least as wide. Beyond:
another block."""

SHOW_COMPLETIONS: Final = 200
"""Names from a router that completion offers. Beyond: left out; more letters bring them."""

MQTT_CLIENT_CHUNK_BYTES: Final = 262_144
"""Bytes that `pub` and `sub` read at a time, and that `pub` sends at a time at QoS 0."""

MQTT_CLIENT_PACKET_BYTES: Final = 268_435_460
"""The largest packet that MQTT has, which `sub` takes unless --max-packet says less. Beyond: the connection is
ended."""

MQTT_CLIENT_WINDOW: Final = 1_000
"""QoS 1 and 2 messages that `pub` has in flight, or fewer where the broker says so. Beyond: it waits. Their
answers fit a socket's buffer, so that neither side waits for the other."""

MQTT_CLIENT_TOLD: Final = 10
"""Refused messages that `pub` tells one by one. Beyond: counted by reason."""
