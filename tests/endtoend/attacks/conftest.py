"""One router for all attacks: two message VPNs, users of every kind, listeners of every kind."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import trustme
import yaml

from vpnrouter.config.secrets import hash_password

MARK = "redmark"
"""Stands in every name of the message VPN that not everybody sees."""

RED = f"{MARK}-vpn"

HASHED = hash_password("pw", bytes(16))

USERS = {
    "root": {"password": "pw", "role": "admin"},
    "viewer": {"password": "pw"},
    "blue-admin": {"password": "pw", "role": "admin", "msg_vpns": ["blue"]},
    "blue-viewer": {"password": "pw", "msg_vpns": ["blue"]},
    "hashed": {"password": HASHED, "role": "admin"},
}


def vpn(mark: str) -> dict[str, Any]:
    """A message VPN with something of every kind, named after `mark`."""
    return {
        "authentication": {"basic": {"enabled": False}},
        "event": {"publish": {"client_enabled": True}},
        "client_profiles": {f"{mark}-profile": {}},
        "acl_profiles": {f"{mark}-acl": {"publish_topic": {"exceptions": [f"{mark}/acl"]}}},
        "client_usernames": {
            f"{mark}-user": {"password": "pw", "client_profile": f"{mark}-profile"}
        },
        "queues": {f"{mark}-queue": {"permission": "delete", "subscriptions": [f"{mark}/queue"]}},
        "topic_endpoints": {f"{mark}-endpoint": {"permission": "delete"}},
        "bridges": {
            f"{mark}-bridge": {
                "remote_connection": {"retry_delay": 255},
                "remote_authentication": {
                    "basic": {"client_username": f"{mark}-login", "password": "pw"}
                },
                "remote_msg_vpns": [{"name": f"{mark}-remote", "location": "127.0.0.1:9"}],
                "remote_subscriptions": [f"{mark}/bridge"],
            }
        },
    }


class Attacked:
    """The router under attack."""

    def __init__(self, process: Any, folder: Path, authority: trustme.CA) -> None:
        self.process = process
        self.folder = folder
        self.authority = authority
        self.url = f"http://127.0.0.1:{process.port('http')}"
        self.pid: int = process.process.pid

    def client(self, user: str = "", source: str = "127.0.0.1", **more: Any) -> httpx.Client:
        """A client that logs in as `user`, "" for nobody, from an address of this machine."""
        return httpx.Client(
            base_url=self.url,
            auth=(user, "pw") if user else None,
            transport=httpx.HTTPTransport(local_address=source),
            timeout=30,
            **more,
        )

    def state(self) -> dict[str, Any]:
        """What must not change: the configuration, the overlay, sessions, messages, connections."""
        found: dict[str, Any] = {}
        with self.client("root") as client:
            found["config"] = client.get("/vpnrouter/v1/config").json()["data"]
            for kind, keys in (
                ("queues", ("msgVpnName", "queueName", "msgCount", "msgSpoolUsage")),
                ("clients", ("msgVpnName", "clientName", "connected", "rxMsgCount")),
                ("subscriptions", ("msgVpnName", "name", "subscriptionTopic")),
            ):
                rows = client.get(f"/vpnrouter/v1/{kind}?count=100").json()["data"]
                found[kind] = [[row.get(key) for key in keys] for row in rows]
        overlay = self.folder / "data-edge" / "overlay.yaml"
        found["overlay"] = overlay.read_bytes() if overlay.exists() else b""
        return found

    def descriptors(self) -> list[str]:
        """The files and sockets that the router has open."""
        found = []
        for each in Path(f"/proc/{self.pid}/fd").iterdir():
            # One that was closed since is not open.
            with contextlib.suppress(FileNotFoundError):
                found.append(str(each.readlink()))
        return found


@pytest.fixture(scope="package")
def attacked(router_process: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    """A router with users, message VPNs `blue` and RED, and listeners mqtt (blue, RED), http, https."""
    folder = tmp_path_factory.mktemp("attacked")
    authority = trustme.CA()
    leaf = authority.issue_cert("localhost")
    leaf.private_key_and_cert_chain_pem.write_to_path(str(folder / "edge.pem"))
    tls = {"certificate": "edge.pem", "key": "edge.pem"}
    document = {
        "router": {"name": "edge", "data_dir": "data-edge"},
        "listeners": [
            {"protocol": "mqtt", "bind": "127.0.0.1:0", "msg_vpn": "blue"},
            {"protocol": "mqtt", "bind": "127.0.0.1:0", "msg_vpn": RED},
            {"protocol": "http", "bind": "127.0.0.1:0"},
            {"protocol": "https", "bind": "127.0.0.1:0", "tls": tls},
        ],
        "logging": {"rate_limit": 0, "level": "debug"},
        "trace": {"directory": "traces", "sample": 1.0},
        "management": {"users": USERS},
        "msg_vpns": {"blue": vpn("blue"), RED: vpn(MARK)},
    }
    path = folder / "edge.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    process = router_process(path)
    yield Attacked(process, folder, authority)
    process.kill()
    said = "".join(process.err)
    assert "Traceback" not in said, said[said.find("Traceback") :][:6_000]


@pytest.fixture
def peopled(attacked: Attacked, paho: Callable[..., Any]) -> Any:
    """The router with a client and a waiting message in each message VPN; `say` makes both busy."""
    clients = {}
    for index, mark in enumerate(("blue", MARK)):
        client = paho(attacked.process.port("mqtt", index), f"{mark}-client")
        client.subscribe(f"{mark}/topic")
        clients[mark] = client

    def say() -> None:
        for mark, client in clients.items():
            client.publish(f"{mark}/topic", f"{mark} payload".encode())
            client.publish(f"{mark}/queue", f"{mark} payload".encode())

    return SimpleNamespace(router=attacked, clients=clients, say=say)
