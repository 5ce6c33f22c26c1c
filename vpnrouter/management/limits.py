"""Bounds of the management API; docs/limits.md lists them with the router's."""

from typing import Final

METRICS_QUEUES: Final = 10_000
"""Queues and topic endpoints that /metrics has series of, some 10 each. Beyond: the rest is left out and counted by
`vpnrouter_metrics_left_out`."""

METRICS_BRIDGES: Final = 2_000
"""Bridges that /metrics has series of, some 40 each. Beyond: the rest is left out and counted by
`vpnrouter_metrics_left_out`."""

METRICS_MSG_VPNS: Final = 2_000
"""Message VPNs that /metrics has series of. Beyond: the rest is left out, with its bridges and queues, and counted by
`vpnrouter_metrics_left_out`."""

SORT_CHARACTERS: Final = 100
"""Characters of a text that `sort` compares: names have fewer, and a cursor, which repeats them, still fits into an
address. Beyond: texts that begin alike are sorted by the names of their objects."""

METRICS_WAITING: Final = 4
"""Scrapes that wait for the one that is being made. Beyond: 503, try again."""

METRICS_LABELS: Final = 20_000
"""Objects whose labels are kept as text between two scrapes. Beyond: all are written anew at the next one."""

METRICS_ID_TIMES: Final = 4_096
"""Moments of which the router knows which message of the spool was the newest, for ages without reading messages.
Beyond: every second one is forgotten, so that ages get less exact the older they are."""

TRACE_TAILS: Final = 8
"""Different filters by which traces are looked at live at a time. Beyond: 503, try again."""

TRACE_TAIL_ROWS: Final = 2_000
"""Trace rows that are kept for one who looks. Beyond: the oldest go, and are counted as missed."""

TRACE_TAIL_RATE: Final = 500
"""Trace rows a second that are copied for one who looks; each costs the router's interpreter some ten microseconds.
Beyond: rows are counted as missed."""

TRACE_TAIL_TOPICS: Final = 5_000
"""Topics of one block of traces that are compared with a filter. Beyond: rows with the rest are counted as missed."""

TRACE_TAIL_PAGE: Final = 1_000
"""Trace rows in one answer. Beyond: they come with the next one."""

EVENTS_PAGE: Final = 1_000
"""Events in one answer. Beyond: they come with the next one."""

BODIES_OF_A_USER: Final = 128
"""Requests with a body that one user has under way: half of MANAGEMENT_CONNECTIONS, so that bodies that do not
come keep no other user out. Beyond: 503, try again."""

CLEARED_COUNTS: Final = 10_000
"""Clients, and as many queues, whose counts were cleared while they went on. Beyond: the one that was cleared
longest ago shows again what it counted from the beginning."""

MATCHES: Final = 1_000
"""Subscriptions in the answers to which ones match a topic. Beyond: the rest, by holder and name, is left out."""

DOCUMENT_BYTES: Final = 8_388_608
"""Bytes of the body of a request that brings a whole configuration, as many as a file may have. Beyond: 400."""

DOCUMENTS_READ: Final = 4
"""Such bodies that are read at a time. Beyond: 503, try again."""

DOCUMENT_PROBLEMS: Final = 100
"""Problems that are told of a configuration that is refused. Beyond: the rest is counted."""

DOCUMENT_POSITIONS: Final = 100_000
"""Parts of a configuration of which GET /vpnrouter/v1/config says where they are written. Beyond: those that
are nested deepest are left out."""

NAME_SHOWN_CHARS: Final = 60
"""Characters of a name in a request that are repeated in the answer that refuses it. Beyond: cut."""
