"""Says what a repair of the message spool lost: by queue where that is known, else by kind."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple, final

from vpnrouter.core.guaranteed.endpoint_definition import EndpointDefinition, read_definitions
from vpnrouter.core.guaranteed.endpoint_settings import QUEUE
from vpnrouter.core.mqtt.restore import StoredSession
from vpnrouter.core.mqtt.session import ENDPOINT_PREFIX, SEPARATOR
from vpnrouter.errors import SpoolError
from vpnrouter.spool import keys
from vpnrouter.spool.rocks_store import RocksStore
from vpnrouter.spool.store import Batch
from vpnrouter.spool.stored_counts import MESSAGES, RETAINED, SESSION_MESSAGES, SESSIONS

if TYPE_CHECKING:
    from pathlib import Path

    from vpnrouter.spool.repair import Losses
    from vpnrouter.spool.store import Store
    from vpnrouter.spool.stored_counts import StoredCounts


class Lost(NamedTuple):
    """What a repair cannot get back: how `many` of `what`, None if that is not known. Names are empty where unknown."""

    what: str
    msg_vpn: str
    endpoint: str
    many: int | None
    note: str = ""

    def row(self) -> dict[str, object]:
        """Return it for JSON. `messages` is the count of messages, None for anything else."""
        return {
            "what": self.what,
            "msg_vpn": self.msg_vpn,
            "endpoint": self.endpoint,
            "count": self.many,
            "messages": self.many if self.what in _OF_MESSAGES else None,
            "note": self.note,
        }

    def text(self) -> str:
        """Return a line for people."""
        vpn = f"message VPN {self.msg_vpn}" if self.msg_vpn else ""
        place = " in ".join(name for name in (self.endpoint, vpn) if name)
        many = f"{self.what}, how many is not known"
        if self.many is not None:
            many = f"{self.many:,} {self.what}"
        note = f" ({self.note})" if self.note else ""
        return f"lost: {place}{': ' if place else ''}{many}{note}"


_OF_MESSAGES: Final = (MESSAGES, SESSION_MESSAGES)


def lost_rows(losses: Losses, fresh: Path) -> list[Lost]:
    """Return what is lost, by what is in the repaired spool and what the damaged one had counted."""
    store = RocksStore(fresh, create=False)
    try:
        _define_queues(losses, store)
        return _Naming(losses, store).rows()
    finally:
        store.close()


def _define_queues(losses: Losses, store: Store) -> None:
    """Define queues again that were counted and whose definition is lost: their messages would go with the next start.

    No new endpoint gets the number of one that has messages: it would get these.
    """
    known, following = read_definitions(store)
    numbers = {one.number for one in known}
    names = {(one.vpn, one.name) for one in known if one.kind == QUEUE}
    batch = Batch()
    rows = [] if losses.counts is None else losses.counts.rows
    for row in rows:
        named = (row.msg_vpn, row.endpoint)
        if row.kind == QUEUE and row.number not in numbers and named not in names:
            one = EndpointDefinition(row.number, row.msg_vpn, QUEUE, row.endpoint, True)
            batch.put(keys.endpoint(row.number), one.encode())
    free = 1 + max([*losses.left, *losses.messages, *(row.number for row in rows)], default=0)
    if free > following:
        batch.put(keys.endpoint(0), free.to_bytes(4, "big"))
    if not batch.empty:
        store.commit(batch)


@final
class _Naming:
    """Compares what a repaired store holds with what the damaged one had."""

    def __init__(self, losses: Losses, store: Store) -> None:
        self._losses = losses
        self._store = store
        # Message VPN and name of what the new store has, by the number of its messages.
        self._names = {one.number: (one.vpn, one.name) for one in read_definitions(store)[0]}
        self._sessions = self._read_sessions()
        self._kept = {**self._names, **self._sessions}
        self._lost = {number: count for number, count in losses.messages.items() if number > 0}
        # The next start removes messages of endpoints that nobody knows.
        for number, count in losses.left.items():
            if number not in self._kept and count:
                self._lost[number] = self._lost.get(number, 0) + count
        self._notes: dict[int, str] = {}
        if losses.counts is not None:
            for row in losses.counts.rows:
                if row.what == MESSAGES:
                    self._kept.setdefault(row.number, (row.msg_vpn, row.endpoint))

    def rows(self) -> list[Lost]:
        losses = self._losses
        counted: list[Lost] = []
        if losses.counts is not None and (losses.rows_lost or losses.exact):
            counted = self._compare(losses.counts)
        rows = [self._endpoint(number) for number in sorted(self._lost)]
        if not losses.exact:
            rows += self._of_nobody()
        for unknown in losses.unknown:
            if losses.exact and unknown.what == MESSAGES and not losses.settled_lost:
                # They are counted.
                continue
            rows.append(Lost(unknown.what, "", "", None, "; ".join(unknown.kinds)))
        return rows + counted

    def _endpoint(self, number: int) -> Lost:
        vpn, name = self._kept.get(number, ("", f"endpoint {number}, whose definition is lost"))
        return Lost(MESSAGES, vpn, name, self._lost[number], self._notes.get(number, ""))

    def _of_nobody(self) -> list[Lost]:
        rows = []
        lost = sum(count for number, count in self._losses.messages.items() if number <= 0)
        if lost:
            rows.append(Lost(MESSAGES, "", "endpoints that are not known", lost))
        if self._losses.unclaimed:
            text = "endpoints that are not known, at most, as consumed messages count"
            rows.append(Lost(MESSAGES, "", text, self._losses.unclaimed))
        return rows

    def _compare(self, counts: StoredCounts) -> list[Lost]:
        """Add what is missing of the counted messages of endpoints; return what is missing of anything else."""
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(counts.taken_s))
        since = "" if self._losses.exact else ", with those that were consumed since"
        if self._losses.settled_lost:
            since += ", or more: consumed ones may have come back in their place"
        present = self._present()
        rows = []
        for row in counts.rows:
            note = f"of {row.many:,} at {when}{since}"
            if row.what == MESSAGES:
                left = self._losses.left.get(row.number, 0) if row.number in self._names else 0
                if row.many - left > self._lost.get(row.number, 0):
                    self._lost[row.number] = row.many - left
                    self._notes[row.number] = note
                continue
            missing = row.many - present.get((row.what, row.msg_vpn), 0)
            if missing > 0:
                rows.append(Lost(row.what, row.msg_vpn, "", missing, note))
        return rows

    def _present(self) -> dict[tuple[str, str], int]:
        """Return how many sessions, messages of sessions and retained messages the new store has, by message VPN."""
        found: dict[tuple[str, str], int] = {}

        def add(what: str, vpn: str, count: int) -> None:
            found[what, vpn] = found.get((what, vpn), 0) + count

        for key, _ in self._store.scan(keys.SESSION):
            vpn, rest = keys.vpn_and_rest(key)
            add(SESSIONS, vpn, SEPARATOR.encode() not in rest)
        for number, (vpn, _) in self._sessions.items():
            # What is lost of a session that is known is told by its name.
            add(SESSION_MESSAGES, vpn, self._losses.left.get(number, 0) + self._lost.get(number, 0))
        for key, _ in self._store.scan(keys.RETAINED):
            add(RETAINED, keys.vpn_and_rest(key)[0], 1)
        return found

    def _read_sessions(self) -> dict[int, tuple[str, str]]:
        found = {}
        for key, value in self._store.scan(keys.SESSION):
            vpn, rest = keys.vpn_and_rest(key)
            client, separator, _ = rest.decode(errors="replace").partition(SEPARATOR)
            if separator:
                continue
            try:
                found[StoredSession(value).number] = (vpn, ENDPOINT_PREFIX + client)
            except SpoolError:
                continue
        return found
