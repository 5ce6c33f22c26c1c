"""Counts what the message spool holds, for `vpnrouter spool repair`: it tells by these what a lost file had."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from vpnrouter import limits
from vpnrouter.core.guaranteed.endpoint import endpoints_of
from vpnrouter.core.guaranteed.endpoint_settings import SESSION
from vpnrouter.core.mqtt.session import MqttSession
from vpnrouter.spool.stored_counts import (
    MESSAGES,
    RETAINED,
    SESSION_MESSAGES,
    SESSIONS,
    Counted,
    encode_counts,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.spool.store import Store

EVERY_S: Final = 60.0
"""Seconds between two countings."""

_PAUSE_S: Final = 0.05


def held_counts(vpns: Iterable[MessageVpn]) -> Iterator[Counted | None]:
    """Yield how many messages each endpoint of these message VPNs holds, and their sessions and retained messages.

    None between them: something was looked at that has no line of its own.
    """
    for vpn in list(vpns):
        waiting = 0
        for (kind, name), endpoint in list(endpoints_of(vpn).items()):
            if not endpoint.durable or endpoint.deleted:
                continue
            if kind == SESSION:
                waiting += endpoint.spooled_count
                yield None
            else:
                count = endpoint.spooled_count
                yield Counted(MESSAGES, vpn.name, name, endpoint.number, count, kind)
        sessions = 0
        for client in list(vpn.clients.values()):
            sessions += isinstance(client, MqttSession) and client.durable
            yield None
        kept = len(vpn.retained) if vpn.retained.account is not None else 0
        yield Counted(SESSIONS, vpn.name, "", 0, sessions)
        yield Counted(SESSION_MESSAGES, vpn.name, "", 0, waiting)
        yield Counted(RETAINED, vpn.name, "", 0, kept)


def count_now(store: Store, vpns: Iterable[MessageVpn]) -> None:
    """Let the store write the counts when it is closed."""
    store.counts = encode_counts(row for row in held_counts(vpns) if row is not None)


async def keep_counts(store: Store, vpns: Callable[[], Iterable[MessageVpn]]) -> None:
    """Write the counts once in EVERY_S, counting a part at a time, until cancelled."""
    while True:
        await trio.sleep(EVERY_S)
        lines: list[bytes] = []
        for at, row in enumerate(held_counts(vpns())):
            if row is not None:
                lines.append(encode_counts([row]))
            if at % limits.SHEETS_AT_ONCE == limits.SHEETS_AT_ONCE - 1:
                await trio.sleep(_PAUSE_S)
        await trio.to_thread.run_sync(partial(store.write_counts, b"".join(lines)))
