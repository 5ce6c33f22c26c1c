"""What bridges hear when a router stops."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import trio

from vpnrouter.bridges.bridge import Inbound
from vpnrouter.server.run import say_goodbye

EDGE = """
listeners: [{protocol: link, bind: "127.0.0.1:0"}]
msg_vpns:
  blue:
    authentication: {basic: {enabled: false}}
    client_profiles: {default: {allow_bridge_connections_enabled: true}}
"""

CORE = """
msg_vpns:
  yellow:
    bridges:
      from-blue:
        remote_authentication: {basic: {client_username: core}}
        remote_msg_vpns: [{name: blue, location: "127.0.0.1:LINK"}]
        remote_subscriptions: [">"]
"""


class NoSockets:
    """A host whose sockets stay, so that what was said can be read."""

    def close_all(self) -> None:
        """Keep them."""


async def up(node: Any) -> Any:
    """Wait until the node's bridge is in sync; its record."""
    record = node.bridges[0].record
    with trio.fail_after(20):
        while record.inbound_state is not Inbound.READY_IN_SYNC:  # noqa: ASYNC110 - tells nobody
            await trio.sleep(0.01)
    return record


async def test_the_dialling_side_hears_why(running: Any, port: Any) -> None:
    """A remote that stops closes its links with its reason, kept in the bridge's record."""
    async with (
        running(EDGE, "edge") as edge,
        running(CORE.replace("LINK", str(port(edge, "link"))), "core") as core,
    ):
        record = await up(core)
        host: Any = NoSockets()
        say_goodbye(edge.router, host, list(edge.book.serving.values()))
        assert edge.book.serving == {}
        with trio.fail_after(20):
            while record.failures == 0:  # noqa: ASYNC110 - tells nobody
                await trio.sleep(0.01)
        assert record.inbound_failure_reason == "503 Service Unavailable"


async def test_the_accepting_side_hears_why(running: Any, port: Any, tmp_path: Path) -> None:
    """A router that stops closes the links of its own bridges as well, and says why."""
    traced = EDGE + f"trace: {{directory: {tmp_path}/traces, sample: 1.0}}\n"
    async with running(traced, "edge") as edge:
        async with running(CORE.replace("LINK", str(port(edge, "link"))), "core") as core:
            await up(core)
        with trio.fail_after(20):
            while edge.book.serving:  # noqa: ASYNC110 - tells nobody
                await trio.sleep(0.01)
        assert edge.router.vpns["blue"].clients == {}
    (path,) = (tmp_path / "traces").rglob("part-*.parquet")
    events = pq.ParquetFile(path).read().to_pylist()
    assert [row["reason"] for row in events if row["event"] == "link_down"] == [
        "503 Service Unavailable"
    ]
