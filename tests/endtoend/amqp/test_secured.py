"""AMQP clients of other makers log in with passwords, by SCRAM and with certificates, over TLS and WebSocket."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trustme

pytestmark = pytest.mark.slow

CONFIG = """
listeners:
  - {protocol: amqp, bind: "127.0.0.1:0", msg_vpn: blue}
  - {protocol: amqpws, bind: "127.0.0.1:0"}
  - {protocol: amqps, bind: "127.0.0.1:0", msg_vpn: blue,
     tls: {certificate: server.pem, key: server.pem, client_ca: ca.pem}}
msg_vpns:
  blue:
    authentication: {client_cert: {enabled: true}}
    client_usernames:
      ann: {password: secret}
      certified: {password: none}
    queues:
      q: {owner: ann, permission: consume}
"""


@pytest.fixture
def router(start: Any, tmp_path: Path) -> Any:
    """A router with TLS."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    server = authority.issue_cert("localhost", "127.0.0.1")
    server.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "server.pem"))
    client = authority.issue_cert(common_name="certified")
    client.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "client.pem"))
    return start(CONFIG)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
@pytest.mark.parametrize("protocol", ["amqp", "amqpws"])
def test_jms_with_a_password(router: Any, peers: Any, protocol: str, mechanism: str) -> None:
    """Over WebSocket the listener serves all message VPNs: the client names its own."""
    port = router.port(protocol)
    client = peers(port, f"{protocol}://127.0.0.1:{port}?amqp.saslMechanisms={mechanism}")
    user = "ann" if protocol == "amqp" else "ann@blue"
    client.environment = {"JMS_USER": user, "JMS_PASSWORD": "secret"}
    client.send("jms", "queue://q", "hello")
    assert client.receive("jms", "queue://q", 1) == ["text:hello"]
    client.environment["JMS_PASSWORD"] = "wrong"
    done = client.ended([*client.command("jms"), "receive", "queue://q", "1"])
    assert done.returncode == 1
    assert "JMSSecurityRuntimeException" in done.stderr


def test_proton_with_a_certificate(router: Any, peers: Any, tmp_path: Path) -> None:
    """EXTERNAL over TLS; the certificate names the client username."""
    port = router.port("amqps")
    client = peers(port, f"amqps://localhost:{port}")
    client.environment = {
        "PROTON_CERTIFICATE": str(tmp_path / "client.pem"),
        "PROTON_CA": str(tmp_path / "ca.pem"),
    }
    client.send("proton", "queue://q", "hello")
    assert client.receive("proton", "queue://q", 1) == ["text:hello"]
