"""A clean stop: clients and links hear why, and what waits for them leaves if the kernel takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vpnrouter.core.mqtt.session import MqttSession
from vpnrouter.server.flush import flush_ready
from vpnrouter.wire.mqtt import reason

if TYPE_CHECKING:
    from vpnrouter.core.router import Router
    from vpnrouter.server.host import Host


def say_goodbye(router: Router, host: Host) -> None:
    """Disconnect everybody and close all sockets."""
    for vpn in router.vpns.values():
        for subscriber in list(vpn.clients.values()):
            if isinstance(subscriber, MqttSession) and subscriber.connection is not None:
                subscriber.connection.fail(reason.SERVER_SHUTTING_DOWN, "the router stops")
    flush_ready(router.plane)
    host.close_all()
