"""Measures a broker's resident memory per connected client that does nothing."""

from __future__ import annotations

import contextlib
import time

from bench.clients import connect
from bench.machine import raise_descriptor_limit, resident_bytes
from bench.products import Site

CONNECTIONS = 10_000
PER_SOURCE = 5_000
"""Connections from one local address: the usual range of local ports has some 28,000."""
SPARE_DESCRIPTORS = 200
SETTLE_SECONDS = 1.0


def run(site: Site, connections: int = CONNECTIONS) -> dict[str, object]:
    """Bytes per connection, first with clients that are only connected, then with one subscription
    each.
    """
    allowed = raise_descriptor_limit(connections + SPARE_DESCRIPTORS)
    if allowed < connections + SPARE_DESCRIPTORS:
        return {
            "faults": [
                f"only {allowed} open files are allowed here, {connections} connections are not"
            ]
        }
    dialect = site.dialect
    with contextlib.ExitStack() as stack:
        # What a broker loads at the first client is no matter of the ten thousandth.
        stack.enter_context(
            contextlib.closing(connect(dialect, site.subscribe_at, "first", tls=site.tls))
        )
        time.sleep(SETTLE_SECONDS)
        before = resident_bytes(site.pids)
        begin = time.perf_counter()
        socks = []
        for number in range(connections):
            source = f"127.0.0.{2 + number // PER_SOURCE}"
            sock = connect(dialect, site.subscribe_at, f"idle-{number}", source, site.tls)
            socks.append(stack.enter_context(contextlib.closing(sock)))
        took = time.perf_counter() - begin
        time.sleep(SETTLE_SECONDS)
        connected = resident_bytes(site.pids)
        for number, sock in enumerate(socks):
            dialect.subscribe(sock, [dialect.topic(number)])
        time.sleep(SETTLE_SECONDS)
        subscribed = resident_bytes(site.pids)
    return {
        "connections": connections,
        "bytes_per_connection": (connected - before) / connections,
        "bytes_per_subscribed_connection": (subscribed - before) / connections,
        "connects_per_second": connections / took,
        "faults": [],
    }
