"""vpnrouter.server.net.dial: addresses and TLS versions over all kinds of transports."""

import ssl
from pathlib import Path
from typing import Any

import pytest
import trio
import trustme

from vpnrouter.management.server_hooks import ServerHooks
from vpnrouter.management.status.clients import Clients
from vpnrouter.management.status.stats_baseline import EndpointBaselines
from vpnrouter.server.net.dial import shown_address, transport_of

LISTENERS = """
listeners:
  - {{protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}}
  - {{protocol: mqtt, bind: "[::1]:0", msg_vpn: blue}}
  - {{protocol: mqtts, bind: "127.0.0.1:0", msg_vpn: blue,
      tls: {{certificate: "{pem}", key: "{key}"}}}}
msg_vpns: {{blue: {{authentication: {{basic: {{enabled: false}}}}}}}}
"""


@pytest.mark.parametrize("index", [0, 1, 2])
async def test_a_client(running: Any, client_type: Any, tmp_path: Path, index: int) -> None:
    """Host and port of the client's own socket; the TLS version where there is one."""
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")
    pem, key = tmp_path / "c.pem", tmp_path / "c.key"
    pem.write_bytes(b"".join(blob.bytes() for blob in certificate.cert_chain_pems))
    certificate.private_key_pem.write_to_path(key)
    async with running(LISTENERS.format(pem=pem, key=key)) as node:
        host, _, port = node.addresses[index][1].rpartition(":")
        plain = await trio.open_tcp_stream(host.strip("[]"), int(port))
        stream: Any = plain
        if index == 2:
            context = ssl.create_default_context()
            authority.configure_trust(context)
            stream = trio.SSLStream(plain, context, server_hostname="localhost")
        client = client_type(stream)
        await client.connect("c")
        clients = Clients(node.book, ServerHooks(transport=transport_of), EndpointBaselines())
        row = clients.client("blue", "c")
        assert row is not None
        assert row.client_address == shown_address(*plain.socket.getsockname()[:2])
        assert row.tls_version == ("TLSv1.3" if index == 2 else "")
        session = node.router.vpns["blue"].clients["c"]
        connection = session.connection
        await stream.aclose()
        with trio.fail_after(20):
            while "c" in node.router.vpns["blue"].clients:  # noqa: ASYNC110 - nobody tells
                await trio.sleep(0.005)
        assert transport_of(connection)[0] == host.strip("[]")
