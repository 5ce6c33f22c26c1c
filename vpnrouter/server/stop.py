"""A clean stop: clients and links hear why, and what waits for them leaves if the kernel takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vpnrouter.core.mqtt.session import MqttSession
from vpnrouter.server.flush import flush_ready
from vpnrouter.wire.link import codes
from vpnrouter.wire.mqtt import reason

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vpnrouter.bridges.link import Link
    from vpnrouter.core.router import Router
    from vpnrouter.server.host import Host


def say_goodbye(router: Router, host: Host, links: Iterable[Link]) -> None:
    """Disconnect everybody, `links` are the bridges' among them, and close all plain sockets."""
    barrier = router.plane.barrier
    for vpn in router.vpns.values():
        for subscriber in list(vpn.clients.values()):
            if isinstance(subscriber, MqttSession) and subscriber.connection is not None:
                connection = subscriber.connection
                try:
                    connection.fail(reason.SERVER_SHUTTING_DOWN, "the router stops")
                except Exception as error:  # noqa: BLE001 - given to the barrier: the others hear why
                    barrier.end(connection, error)
    for link in links:
        try:
            link.goodbye(codes.SHUTTING_DOWN, codes.REASONS[codes.SHUTTING_DOWN])
        except Exception as error:  # noqa: BLE001 - the same
            barrier.end(link, error)
    flush_ready(router.plane)
    host.close_all()
