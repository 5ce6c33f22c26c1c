"""Two routers in memory with bridges between them, clients, queues and events, as the screens show them."""

from pathlib import Path
from types import SimpleNamespace

import trio
from management_routers import LiveRouter, routers

EDGE = """
listeners: [{protocol: link, bind: "127.0.0.1:55555"}]
msg_vpns:
  blue:
    client_usernames: {bridge: {password: pw}, sensor: {password: pw}}
    client_profiles: {default: {allow_bridge_connections_enabled: true, max_outbox_bytes: 4194304}}
    queues:
      dead: {}
      orders:
        {subscriptions: [orders/>], max_msg_spool_usage: 1, dead_msg_queue: dead, permission: consume}
      raw: {subscriptions: [raw], permission: consume, access_type: non-exclusive}
    bridges:
      from-core:
        remote_authentication: {basic: {client_username: bridge, password: pw}}
        remote_msg_vpns: [{name: yellow, router: core, location: "198.51.100.7:55555"}]
        remote_subscriptions: [weather/>]
  green:
    authentication: {basic: {enabled: false}}
    bridges:
      from-red:
        remote_authentication: {basic: {client_username: any}}
        remote_msg_vpns: [{name: red, router: gone, location: "198.51.100.9:55555"}]
"""

CORE = """
listeners: [{protocol: link, bind: "127.0.0.1:55556"}]
msg_vpns:
  yellow:
    client_usernames: {bridge: {password: pw}, sensor: {password: pw}}
    client_profiles: {default: {allow_bridge_connections_enabled: true}}
    bridges:
      to-edge:
        remote_authentication: {basic: {client_username: bridge, password: pw}}
        remote_msg_vpns: [{name: blue, router: edge, location: "198.51.100.3:55555"}]
        remote_subscriptions: [alerts/>]
"""

ORDER = b'{"order": %d, "city": "K\xc3\xb6ln", "items": [{"sku": "a-1", "count": 2}]}'


def sample(*looked_at: LiveRouter) -> None:
    """Let the routers note their counts, as they do about once a second."""
    for router in looked_at:
        for bridge in router.context.bridges.now().values():
            bridge.sample(router.mesh.now_ns)
        trio.run(router.context.meters.sample)


def traffic(edge: LiveRouter, core: LiveRouter, seconds: int) -> None:
    """Messages cross in both directions: 50 a second to edge, 4 a second to core."""
    for _ in range(seconds):
        for _ in range(50):
            core.clients["station"].publish("weather/x", b"x")
        for _ in range(4):
            edge.clients["sensor-01"].publish("alerts/x", b"x")
        edge.mesh.wait(1_000)
        sample(edge, core)


def edge_and_core(folder: Path) -> SimpleNamespace:
    """Edge has a bridge that is up, one that is down, a slow client, and a queue that nobody reads; core is well."""
    edge, core = routers(folder, edge=EDGE, core=CORE)
    for number in range(1, 9):
        edge.connect("blue", f"sensor-{number:02}", peer=f"192.0.2.{number}:40000", user="sensor")
    edge.clients["sensor-01"].subscribe("alerts/#")
    edge.clients["sensor-01"].subscribe("cmd/01")
    edge.clients["sensor-06"].subscribe("weather/x")
    edge.connect("blue", "away", "cmd/02", user="sensor").lose()
    edge.publish("sensor-01", "orders/1", *[ORDER % number for number in range(1, 251)])
    edge.publish("sensor-02", "raw", bytes(range(48)), b"\x1b[2Jplain text")
    for name in ("sensor-04", "sensor-05"):
        edge.clients[name].bind("$queue/raw")
    edge.publish("sensor-02", "nobody", b"x")
    edge.clients["sensor-03"].subscribe("bulk")
    for _ in range(400):
        edge.clients["sensor-02"].publish("bulk", bytes(16_000))
    core.connect("yellow", "station", user="sensor")
    sample(edge, core)
    traffic(edge, core, 3)
    edge.mesh.wait(2_000)
    return SimpleNamespace(edge=edge, core=core)
