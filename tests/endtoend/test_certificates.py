"""Certificates and authorities of running routers are replaced by SIGHUP while messages pass."""

import signal
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import trustme
import yaml

ROTATIONS = 5


class Files:
    """What the routers read: a server certificate, a client certificate, and whom each side trusts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.servers = trustme.CA()
        self.clients = trustme.CA()
        self.servers.cert_pem.write_to_path(str(folder / "servers.pem"))
        self.clients.cert_pem.write_to_path(str(folder / "clients.pem"))
        leaf = self.clients.issue_cert(common_name="core", organization_name="o")
        leaf.private_key_and_cert_chain_pem.write_to_path(str(folder / "core.pem"))
        self.shown = ""
        self.rotate()

    def rotate(self) -> None:
        """Put another certificate in the place of the listeners' one."""
        leaf = self.servers.issue_cert("localhost")
        leaf.private_key_and_cert_chain_pem.write_to_path(str(self.folder / "edge.pem"))
        self.shown = leaf.cert_chain_pems[0].bytes().decode()

    def trusting(self) -> ssl.SSLContext:
        """The context of a client that shows a certificate of `clients`."""
        context = ssl.create_default_context()
        self.servers.configure_trust(context)
        context.load_cert_chain(str(self.folder / "core.pem"))
        return context

    def seen(self, port: int) -> str:
        """The certificate that a listener shows to a new connection."""
        return ssl.get_server_certificate(("127.0.0.1", port)).strip()


def edge_text() -> str:
    """Router edge: mqtts, links and https with one certificate; clients of one authority."""
    tls = {"certificate": "edge.pem", "key": "edge.pem"}
    asking = tls | {"client_ca": "clients.pem"}
    return yaml.safe_dump(
        {
            "listeners": [
                {"protocol": "mqtts", "bind": "127.0.0.1:0", "msg_vpn": "blue", "tls": asking},
                {"protocol": "links", "bind": "127.0.0.1:0", "tls": asking},
                {"protocol": "https", "bind": "127.0.0.1:0", "tls": tls},
                {"protocol": "mqtt", "bind": "127.0.0.1:0", "msg_vpn": "blue"},
            ],
            "logging": {"levels": {"client": "info"}},
            "msg_vpns": {
                "blue": {
                    "authentication": {
                        "basic": {"enabled": False},
                        "client_cert": {"enabled": True},
                    },
                    "client_profiles": {"bridging": {"allow_bridge_connections_enabled": True}},
                    "client_usernames": {"core": {"client_profile": "bridging"}},
                }
            },
        }
    )


def core_text(port: int) -> str:
    """Router core: a bridge that logs in at edge by its certificate."""
    bridge = {
        "remote_connection": {"retry_delay": 0},
        "remote_authentication": {
            "scheme": "client-certificate",
            "client_cert": {"certificate": "core.pem", "key": "core.pem"},
        },
        "remote_msg_vpns": [{"name": "blue", "location": f"localhost:{port}", "tls_enabled": True}],
        "remote_subscriptions": [">"],
    }
    yellow = {
        "authentication": {"basic": {"enabled": False}},
        "bridging": {"tls_server_cert": {"ca": "servers.pem"}},
        "bridges": {"from-blue": bridge},
    }
    listeners = [
        {"protocol": "mqtt", "bind": "127.0.0.1:0", "msg_vpn": "yellow"},
        {"protocol": "http", "bind": "127.0.0.1:0"},
    ]
    return yaml.safe_dump({"listeners": listeners, "msg_vpns": {"yellow": yellow}})


@pytest.fixture
def site(start: Callable[..., Any], tmp_path: Path) -> tuple[Files, Any, Any]:
    """The files, edge, and core with its bridge up."""
    files = Files(tmp_path)
    edge = start(edge_text(), "edge")
    core = start(core_text(edge.port("links")), "core")
    core.bridges_up()
    return files, edge, core


def reloaded(router: Any, patiently: Any) -> None:
    """Have the files read again."""
    before = len(router.told("SIGHUP: reloaded"))
    router.process.send_signal(signal.SIGHUP)
    patiently(lambda: len(router.told("SIGHUP: reloaded")) > before, "the files are read again")


def let_in(context: ssl.SSLContext, port: int) -> bool:
    """Whether a client with this context gets an answer to its CONNECT."""
    try:
        with (
            socket.create_connection(("localhost", port), 20) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as secured,
        ):
            secured.sendall(b"\x10\x0d\x00\x04MQTT\x05\x02\x00\x3c\x00\x00\x00")
            return secured.recv(4)[3:4] == b"\0"
    except OSError:
        return False


def test_certificates_rotate_under_load(
    site: tuple[Files, Any, Any], paho: Any, publishing: Any, patiently: Any
) -> None:
    """All kinds of listeners show the new one; nobody is disconnected and no message is missing."""
    files, edge, core = site
    context = files.trusting()
    here = paho(core.port("mqtt"), "here")
    here.subscribe("load")
    there = paho(edge.port("mqtts"), "there", tls=context)
    assert there.code == 0
    with httpx.Client(verify=context, trust_env=False, timeout=60) as api:
        url = f"https://localhost:{edge.port('https')}/health/live"
        assert api.get(url).status_code == 200
        load = publishing(there, "load")
        for _ in range(ROTATIONS):
            files.rotate()
            reloaded(edge, patiently)
            for protocol in ("mqtts", "links", "https"):
                assert files.seen(edge.port(protocol)) == files.shown.strip()
            assert api.get(url).status_code == 200
            late = paho(edge.port("mqtts"), "late", tls=files.trusting())
            assert late.code == 0
            late.client.disconnect()
        sent = load.stop()
    assert sent > 50
    assert [here.next() for _ in range(sent)] == [("load", b"%d" % n) for n in range(sent)]
    bridge = core.bridge("from-blue")
    assert (bridge["failureCount"], bridge["health"], bridge["encrypted"]) == (0, "up", True)
    assert there.disconnected.empty()
    assert here.disconnected.empty()
    assert not [line for line in edge.told("CLIENT_DISCONNECT") if "late" not in line]
    assert not edge.told("bridge", "down")


def test_an_authority_that_is_removed(
    site: tuple[Files, Any, Any], paho: Any, patiently: Any
) -> None:
    """Who is in stays in; whoever comes with its certificates from now on does not get in."""
    files, edge, core = site
    context = files.trusting()
    port = edge.port("mqtts")
    stays = paho(port, "stays", tls=context)
    stays.subscribe("t")
    trustme.CA().cert_pem.write_to_path(str(files.folder / "clients.pem"))
    reloaded(edge, patiently)
    assert not let_in(files.trusting(), port)
    stays.publish("t", b"still here")
    assert stays.next() == ("t", b"still here")
    assert core.bridge("from-blue")["failureCount"] == 0
    # The bridge is in as well, until it has to connect again.
    with httpx.Client(base_url=f"http://127.0.0.1:{core.port('http')}", trust_env=False) as api:
        path = "/SEMP/v2/action/msgVpns/yellow/bridges/from-blue,auto/disconnect"
        assert api.put(path, json={}).status_code == 200
    why = ""

    def refused() -> bool:
        nonlocal why
        row = core.bridge("from-blue")
        why = row["remotes"][0]["lastConnectionFailureReason"]
        return row["health"] == "down" and "issuer" in why

    patiently(refused, "the bridge is refused because of its authority")
    # With the authority back in its place it gets in by itself.
    files.clients.cert_pem.write_to_path(str(files.folder / "clients.pem"))
    reloaded(edge, patiently)
    core.bridge("from-blue", health="up")
    assert let_in(files.trusting(), port)
    assert stays.disconnected.empty()
