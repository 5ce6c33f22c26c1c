"""vpnrouter.server.net.loop: the same router where there is no epoll."""

from __future__ import annotations

import select
from typing import Any

import pytest
import trio

EDGE = """
listeners:
  - {protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}
  - {protocol: link, bind: "127.0.0.1:0"}
msg_vpns:
  blue:
    authentication: {basic: {enabled: false}}
    client_profiles: {bridging: {allow_bridge_connections_enabled: true}}
    client_usernames: {bridge: {password: secret, client_profile: bridging}}
"""

CORE = """
listeners: [{protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: yellow}]
msg_vpns:
  yellow:
    authentication: {basic: {enabled: false}}
    bridges:
      from-blue:
        remote_authentication: {basic: {client_username: bridge, password: secret}}
        remote_msg_vpns: [{name: blue, location: "127.0.0.1:PORT"}]
        remote_subscriptions: ["weather/>"]
"""


async def test_two_routers_without_epoll(
    running: Any, client_of: Any, port: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients and a bridge work when every socket is served by tasks."""
    monkeypatch.delattr(select, "epoll")
    async with running(EDGE, "edge") as edge:
        text = CORE.replace("PORT", str(port(edge, "link")))
        async with running(text, "core") as core:
            with trio.fail_after(20):
                while not core.bridges[0].record.is_up:  # noqa: ASYNC110 - a state tells nobody
                    await trio.sleep(0.01)
            subscriber, publisher = await client_of(core), await client_of(edge)
            await subscriber.connect("s")
            await subscriber.subscribe("#")
            await publisher.connect("p")
            await publisher.publish("other", b"stays")
            await publisher.publish("weather/oslo", b"rain")
            assert await subscriber.payload() == b"rain"
