"""Bridges whose TLS fails: each side says why, and bridges beside them carry messages."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
import trustme
import yaml

NOW: Final = datetime.now(UTC)
DAY: Final = timedelta(days=1)


class Certificates:
    """Two authorities in folders `ours` and `theirs`, and what they issued."""

    def __init__(self, folder: Path, tool: Any) -> None:
        self.folder = folder

        def certs(name: str, *options: str) -> None:
            tool("certs", "--output", str(folder / name), *options)

        certs("ours", "--name", "edge", "--name", "gone", "--client", "core")
        certs("ours", "--client", "stranger")
        certs("ours", "--revoke", str(folder / "ours" / "gone.pem"))
        certs("ours", "--name", "elsewhere", "--host", "elsewhere.example")
        certs("theirs", "--name", "edge", "--client", "core")
        self._dated("old", NOW - 2 * DAY, NOW - DAY)
        self._dated("early", NOW + DAY, NOW + 2 * DAY)
        self._dated("core-old", NOW - 2 * DAY, NOW - DAY, "core")

    def _dated(self, name: str, begins: datetime, ends: datetime, subject: str = "edge") -> None:
        """A certificate of ours with these dates."""
        folder = self.folder / "ours"
        authority = trustme.CA.from_pem(
            (folder / "ca.pem").read_bytes(), (folder / "ca.key").read_bytes()
        )
        made = authority.issue_cert(
            "127.0.0.1", common_name=subject, not_before=begins, not_after=ends
        )
        made.cert_chain_pems[0].write_to_path(folder / f"{name}.pem")
        made.private_key_pem.write_to_path(folder / f"{name}.key")

    def pair(self, name: str) -> dict[str, str]:
        """A certificate and its key, as configurations name them."""
        return {
            "certificate": str(self.folder / f"{name}.pem"),
            "key": str(self.folder / f"{name}.key"),
        }


LISTENERS: Final = {
    "good": "ours/edge",
    "untrusted": "theirs/edge",
    "expired": "ours/old",
    "not-yet": "ours/early",
    "wrong-name": "ours/elsewhere",
    "revoked": "ours/gone",
}
"""The certificate that each listener of edge shows."""

REFUSED: Final = {
    # name: listener dialled, client certificate shown, core says, edge says
    "untrusted": ("untrusted", "", "untrusted issuer", "it does not trust the issuer"),
    "expired": ("expired", "", "certificate has expired", "expired or not yet valid"),
    "not-yet": ("not-yet", "", "not yet valid", "bad certificate"),
    "wrong-name": ("wrong-name", "", "IP address mismatch", "bad certificate"),
    "revoked": ("revoked", "", "certificate revoked", "revoked"),
    "client-untrusted": ("good", "theirs/core", "refused our certificate", "untrusted issuer"),
    "client-expired": (
        "good",
        "ours/core-old",
        "403 Certificate Expired",
        "403 Certificate Expired",
    ),
    "client-unknown": (
        "good",
        "ours/stranger",
        # Why, the operator of the remote learns.
        "403 Forbidden",
        "403 Forbidden: the certificate names no client username",
    ),
    "tls-to-plain": (
        "plain",
        "",
        "the remote closed the connection without a word of TLS: the port does not speak TLS",
        "it speaks TLS, and this listener does not",
    ),
    "plain-to-tls": ("good", "", "closed by peer", "does not speak TLS"),
}
"""Each is a VPN of core with one bridge."""

LISTENER: Final = "the listener's"
"""The certificate of the router's first `links` listener, which a bridge shows that has none of its own."""

ACCEPTED: Final = {"good": "", "by-certificate": "ours/core", "by-listener": LISTENER}
"""Further VPNs of core with one bridge each, which is let in, and the certificate that it shows."""


def edge_text(certificates: Certificates) -> str:
    """Edge: a links listener for each certificate, and one without TLS."""
    trusts = {"client_ca": str(certificates.folder / "ours" / "ca.pem")}
    listeners: list[dict[str, Any]] = [
        {"protocol": "mqtt", "msg_vpn": "blue"},
        {"protocol": "http"},
    ]
    for name in LISTENERS.values():
        tls = certificates.pair(name) | (trusts if name == "ours/edge" else {})
        listeners.append({"protocol": "links", "tls": tls})
    listeners.append({"protocol": "link"})
    vpn = {
        "authentication": {"basic": {"enabled": True}, "client_cert": {"enabled": True}},
        "client_profiles": {"default": {"allow_bridge_connections_enabled": True}},
        "client_usernames": {"core": {"password": "core"}, "app": {"password": "app"}},
    }
    return yaml.safe_dump(
        {
            "router": {"name": "edge", "data_dir": "data-edge"},
            "listeners": [each | {"bind": "127.0.0.1:0"} for each in listeners],
            "msg_vpns": {"blue": vpn},
        }
    )


def core_text(certificates: Certificates, ports: dict[str, int]) -> str:
    """Core: a VPN for each refused bridge, and two whose bridges are let in."""
    rows = {name: row[:2] for name, row in REFUSED.items()}
    rows |= {name: ("good", shown) for name, shown in ACCEPTED.items()}
    ours = certificates.folder / "ours"
    vpns = {}
    for name, (listener, shown) in rows.items():
        remote = {
            "name": "blue",
            "location": f"127.0.0.1:{ports[listener]}",
            "tls_enabled": name != "plain-to-tls",
        }
        login: dict[str, Any] = {"basic": {"client_username": "core", "password": "core"}}
        if shown:
            login = {"scheme": "client-certificate"}
        if shown not in {"", LISTENER}:
            login["client_cert"] = certificates.pair(shown)
        server_cert = {"ca": str(ours / "ca.pem")}
        if name == "revoked":
            server_cert["crl"] = str(ours / "crl.pem")
        vpns[name] = {
            "authentication": {"basic": {"enabled": False}},
            "bridging": {"tls_server_cert": server_cert},
            "bridges": {
                name: {
                    "topic_syntax": "mqtt",
                    "remote_authentication": login,
                    "remote_msg_vpns": [remote],
                    "remote_subscriptions": ["out/#"],
                }
            },
        }
    listeners: list[dict[str, Any]] = [
        {"protocol": "http", "bind": "127.0.0.1:0"},
        {"protocol": "links", "bind": "127.0.0.1:0", "tls": certificates.pair("ours/core")},
    ]
    listeners += [{"protocol": "mqtt", "bind": "127.0.0.1:0", "msg_vpn": name} for name in ACCEPTED]
    return yaml.safe_dump(
        {
            "router": {"name": "core", "data_dir": "data-core"},
            "listeners": listeners,
            "msg_vpns": vpns,
        },
        sort_keys=False,
    )


@pytest.fixture(scope="module")
def routers(
    router_process: Any, tool: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Any]:
    """Edge and core, started once for all tests here."""
    folder = tmp_path_factory.mktemp("tls")
    certificates = Certificates(folder, tool)
    (folder / "edge.yaml").write_text(edge_text(certificates), encoding="utf-8")
    edge = router_process(folder / "edge.yaml")
    ports = {name: edge.port("links", index) for index, name in enumerate(LISTENERS)}
    ports["plain"] = edge.port("link")
    (folder / "core.yaml").write_text(core_text(certificates, ports), encoding="utf-8")
    core = router_process(folder / "core.yaml")
    yield edge, core, ports
    core.kill()
    edge.kill()


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal(routers: Any, patiently: Any, name: str) -> None:
    """The bridge names its reason in a line and in the API, and so does the listener that it dialled."""
    edge, core, ports = routers
    listener, _, core_says, edge_says = REFUSED[name]
    patiently(lambda: bool(core.told(f"VPN {name} bridge {name} ", core_says)), f"{core.err}")
    row = core.bridge(name, health="down")
    assert row["inboundFailureReason"]
    assert core_says in row["remotes"][0]["lastConnectionFailureReason"]
    if edge_says:
        # A HELLO that was read is told with the bridge; what came before has the listener's name.
        plain = listener == "plain"
        mine = "" if plain or edge_says.startswith("403") else f"127.0.0.1:{ports[listener]}"
        patiently(lambda: bool(edge.told(mine, edge_says)), f"{edge.err}")


def test_others_work(routers: Any, paho: Any) -> None:
    """Beside all these the bridges by password and by certificate are up, encrypted at both ends, and carry."""
    edge, core, _ = routers
    near = paho(edge.port("mqtt"), "near", login=("app", "app"))
    for index, name in enumerate(ACCEPTED):
        row = core.bridge(name, inboundState="ready-in-sync")
        assert row["encrypted"]
        assert edge.bridge(f"#bridge/core/{name}/{name}")["encrypted"]
        far = paho(core.port("mqtt", index), "far")
        far.subscribe("#")
        near.publish("out/x", name.encode())
        assert far.next() == ("out/x", name.encode())
    for router in (edge, core):
        assert not router.told("Traceback"), router.err
