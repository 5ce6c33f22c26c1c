"""Bounds of the terminal interface, a process of its own; docs/limits.md lists them with the router's."""

from typing import Final

TUI_ROUTERS: Final = 16
"""Routers that one terminal interface looks at. Beyond: it does not start and says so."""

TUI_ROWS: Final = 500
"""Message VPNs, and bridges, of one router that are held at a time: those of the overview and the map.
Beyond: the first ones by name are shown, and those bridges that are down."""

TUI_TROUBLES: Final = 200
"""Lines of trouble in the overview. Beyond: the least of them are left out."""

TUI_QUEUES_LOOKED_AT: Final = 200
"""Queues with messages of one router that the overview looks at for trouble. Beyond: the first by name."""

TUI_PAGES: Final = 1_000
"""Pages of one list whose beginnings are remembered, of 100 rows each. Beyond: the list goes no further;
a filter brings what is wanted to the front."""

TUI_HISTORIES: Final = 4_096
"""Counters whose growth is kept. Beyond: those not seen for longest are forgotten, and begin anew."""

TUI_HISTORY: Final = 64
"""Rates that are kept of one counter, for its sparkline: half a minute at two looks a second. Beyond: the
oldest go."""

TUI_TAIL: Final = 1_000
"""Events, and traces, that are kept to scroll through. Beyond: the oldest go."""

TUI_TAIL_ROWS: Final = 100
"""Events or traces asked for at a time. Beyond: the next look brings them."""

TUI_PAYLOAD_SHOWN: Final = 65_536
"""Bytes of a payload that are shown. Beyond: it is cut, and a line says how much is left out."""

TUI_ANSWER: Final = 33_554_432
"""Bytes of one answer of a router that are read. Beyond: it is given up; a payload that large is for
`vpnrouter queue browse`."""

TUI_TEXT: Final = 1_000
"""Characters of one name or text that are drawn in a line. Beyond: it is cut; no terminal is that wide."""

TUI_LINES: Final = 10_000
"""Lines of a payload or an explanation that can be scrolled through. Beyond: they are left out, and the last
line says so."""
