"""Where a replay is to begin, as somebody writes it."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from vpnrouter import limits
from vpnrouter.core.guaranteed import reasons
from vpnrouter.core.guaranteed.replay import start_replay
from vpnrouter.errors import Refused
from vpnrouter.text import printable

if TYPE_CHECKING:
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.guaranteed.replay import Replay

BEGINNING: Final = "beginning"
ID_PREFIX: Final = "id:"

MOST_ID: Final = (1 << 64) - 1

_MOMENT: Final = re.compile(
    r"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d))?", re.ASCII
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def parse_moment(text: str) -> int:
    """The nanoseconds since 1970 of an RFC 3339 date and time, or of a date: its midnight, UTC. At least 1.

    Raises ValueError for anything else.
    """
    upper = text.upper()
    if _MOMENT.fullmatch(upper) is None:
        raise ValueError(
            f"{printable(text, limits.REPEATED_CHARACTERS)} is no date and time of the form 2026-01-31T12:00:00Z"
        )
    moment = datetime.fromisoformat(upper)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(1, (moment - _EPOCH) // timedelta(microseconds=1) * 1_000)


def parse_start(text: str) -> tuple[int, int]:
    """Nanoseconds since 1970, and a message id, each 0 for none: `beginning`, a date, or `id:N` for behind N.

    Raises ValueError for anything else.
    """
    if text == BEGINNING:
        return 0, 0
    if text.startswith(ID_PREFIX):
        digits = text[len(ID_PREFIX) :]
        if digits.isascii() and digits.isdecimal() and len(digits) <= 20:
            number = int(digits)
            if 0 < number <= MOST_ID:
                return 0, number
        raise ValueError(f"{printable(digits, limits.REPEATED_CHARACTERS)} is no message id")
    return parse_moment(text), 0


def replay_to(endpoint: Endpoint, from_ns: int, after_id: int, log_name: str = "") -> Replay:
    """Replay to `endpoint` from the log of its message VPN; see start_replay.

    Raises Refused with the field's reason, also where the log has another name than `log_name`.
    """
    log = endpoint.spool.replay_logs.get(endpoint.vpn.name)
    if log is not None and log_name and log.endpoint.name != log_name:
        raise Refused(reasons.REPLAY_DISABLED)
    return start_replay(log, endpoint, from_ns, after_id)
