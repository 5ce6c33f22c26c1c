"""Bounds of `explain`; docs/limits.md lists them with the router's."""

from typing import Final

EXPLAIN_CONFIGS: Final = 1_000
"""Configurations that one explanation takes together. Beyond: wrong use."""

EXPLAIN_PAYLOAD_BYTES: Final = 67_108_864
"""Bytes of the message that explain sends through its copy of the mesh, 64 MiB. Beyond: wrong use."""

EXPLAIN_PROPERTIES: Final = 64
"""User properties of that message. Beyond: wrong use."""

EXPLAIN_SUBSCRIPTIONS: Final = 100_000
"""Subscriptions of clients that one explanation takes, asked for or of live routers. Beyond: the rest is left
out, and the answer says so."""

EXPLAIN_ROUNDS: Final = 10_000
"""Rounds in which bytes go between the routers of the copy before it must be quiet. Beyond: the answer says that
messages were still under way."""

EXPLAIN_COMMITS: Final = 10_000
"""Commits of one spool of the copy in one round. Beyond: the rest goes on in the next round."""

EXPLAIN_PASSES: Final = 64
"""How often the bridges that are down are tried, each pass with those up that the one before brought up; a
bridge that finds its remote by v:ROUTER needs another one to be up. Beyond: they stay down."""

EXPLAIN_WAIT_MS: Final = 1_500
"""Milliseconds of the copy's own clock that pass after the message was published, for what is tried again."""

EXPLAIN_EVENTS: Final = 100_000
"""Trace events of one message that are put together. Beyond: the later ones are left out, and the answer says
so."""

EXPLAIN_MISSES: Final = 20
"""Queues, topic endpoints, bridges and clients of one message VPN of which it is told why the message did not
come there, each. Beyond: their number is told; `--all` tells them all."""

EXPLAIN_TRACE_FILES: Final = 1_000_000
"""Trace files that are searched for one message. Beyond: the later ones are left out, and the answer says so."""
