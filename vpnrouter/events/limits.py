"""Bounds of the event log."""

from typing import Final

EVENTS_KEPT: Final = 1_000
"""Newest events of each name that the management API can be asked for; clients that come and go, and
strangers who try to, push none of the others out. Beyond: the oldest are forgotten."""

EVENT_DENIALS: Final = 5
"""Refused logins to the management API that are told in a second. Beyond: counted, and told with the next."""

EVENT_TEXT_CHARS: Final = 1_000
"""Characters of an event's text. Beyond: it is cut, and ends with `…`."""

EVENT_NAME_CHARS: Final = 256
"""Characters of the name of what an event is about, such as a client's, which may have 65,535. Beyond: cut."""

EVENTS_STANDING: Final = 20_000
"""One-shot events that were raised and not cleared. Beyond: the oldest count as cleared."""

EVENT_LINE_BYTES: Final = 4_096
"""Bytes of a line on stderr: what a pipe that has room takes whole, without making the router wait. Beyond:
the text is cut."""

EVENT_LINES_WAITING: Final = 10_000
"""Lines that wait while nobody reads stderr. Beyond: lost, counted, and told when somebody reads again."""

EVENT_LINES_A_SECOND: Final = 100
"""Lines a second of events of one name, where `logging.rate_limit` says nothing else. Beyond: counted and
told a second later; the management API has them all."""

EVENTS_TO_PUBLISH: Final = 10_000
"""Events that wait to be published in their message VPNs. Beyond: not published, and counted."""

EVENT_CHUNK: Final = 500
"""Endpoints that are looked at for thresholds before other tasks have their turn: about half a millisecond."""
