"""A secret in every place that takes one: what was planted stands in the person's file and the overlay alone."""

import json
import re
import signal
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import httpx
import pyarrow.parquet as pq
import pytest
import trustme
import yaml
from cryptography.hazmat.primitives import serialization

from vpnrouter.config.model import Model
from vpnrouter.config.model_schema import keys_of, kind_of
from vpnrouter.config.router import RouterConfig
from vpnrouter.config.secrets import Secret

MARK = "planted"
"""Stands in every secret, and in nothing else."""

CONFIG = "/SEMP/v2/config/msgVpns/blue"
BRIDGE = f"{CONFIG}/bridges/from-nowhere,auto"


def places(model: type[Model], path: str = "") -> Iterator[str]:
    """Every place of the models that takes a secret."""
    for key, field in keys_of(model).items():
        here = f"{path}.{key}".removeprefix(".")
        if _holds_secret(field.annotation):
            yield here
        else:
            inner = kind_of(field.annotation).model
            if inner is not None:
                yield from places(inner, here)


def _holds_secret(annotation: object) -> bool:
    if isinstance(annotation, type) and issubclass(annotation, Secret):
        return True
    return any(map(_holds_secret, get_args(annotation)))


class Planter:
    """Makes a secret for a place, remembers the place, and makes keys that are opened by secrets."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._leaf = trustme.CA().issue_cert("localhost")
        self.planted: set[str] = set()

    def secret(self, place: str) -> str:
        """The secret of a place."""
        self.planted.add(place)
        return f"{MARK}-{len(self.planted)}-{place.replace('.', '-')[-40:]}"

    def opened(self, place: str, name: str = "password") -> dict[str, str]:
        """A certificate whose key is opened by the secret of a place."""
        secret = self.secret(place)
        number = len(self.planted)
        certificate, key = f"cert-{number}.pem", f"key-{number}.pem"
        self._leaf.cert_chain_pems[0].write_to_path(str(self._folder / certificate))
        loaded = serialization.load_pem_private_key(self._leaf.private_key_pem.bytes(), None)
        text = loaded.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(secret.encode()),
        )
        (self._folder / key).write_bytes(text)
        return {"certificate": certificate, "key": key, name: secret}


def document(plant: Planter, form: str) -> dict[str, Any]:
    """A configuration with a secret in every place."""
    bridge = "msg_vpns.bridges"
    provider = {
        "url": "mqtts://127.0.0.1:9",
        "username": "z",
        "password": plant.secret("msg_vpns.connectors.provider.password"),
        "client_cert": plant.opened("msg_vpns.connectors.provider.client_cert.password"),
        "proxy": {
            "url": "http://127.0.0.1:9",
            "username": "p",
            "password": plant.secret("msg_vpns.connectors.provider.proxy.password"),
        },
        "connect": {"retry_delay": 0},
    }
    remote = {
        "name": "nowhere",
        "location": "127.0.0.1:9",
        "client_username": "x",
        "password": plant.secret(f"{bridge}.remote_msg_vpns.password"),
        "client_cert": plant.opened(f"{bridge}.remote_msg_vpns.client_cert.password"),
        "tls_enabled": True,
    }
    authentication = {
        "basic": {
            "client_username": "y",
            "password": plant.secret(f"{bridge}.remote_authentication.basic.password"),
        },
        "client_cert": plant.opened(f"{bridge}.remote_authentication.client_cert.password"),
    }
    return {
        "router": {"name": "edge", "data_dir": "data"},
        "listeners": [
            {"protocol": "mqtt", "bind": "127.0.0.1:0", "msg_vpn": "blue"},
            {"protocol": "http", "bind": "127.0.0.1:0"},
            {
                "protocol": "https",
                "bind": "127.0.0.1:0",
                "tls": plant.opened("listeners.tls.key_password", "key_password"),
            },
        ],
        "logging": {"format": form, "level": "debug", "rate_limit": 0},
        "trace": {
            "directory": "traces",
            "sample": 1.0,
            "otlp": {
                "enabled": True,
                "endpoint": "http://127.0.0.1:9/v1/traces",
                "headers": {"authorization": plant.secret("trace.otlp.headers")},
                "timeout_s": 1,
            },
            "upload": {
                "url": "s3://bucket/traces",
                "endpoint": "http://127.0.0.1:9",
                "region": "us-east-1",
                "access_key": plant.secret("trace.upload.access_key"),
                "secret_key": plant.secret("trace.upload.secret_key"),
                "timeout_s": 1,
            },
        },
        "management": {
            "users": {
                "root": {"password": plant.secret("management.users.password"), "role": "admin"}
            }
        },
        "msg_vpns": {
            "blue": {
                "client_usernames": {
                    "app": {"password": plant.secret("msg_vpns.client_usernames.password")}
                },
                "acl_profiles": {
                    "default": {
                        "client_connect": {"default_action": "allow"},
                        "publish_topic": {"default_action": "allow"},
                        "subscribe_topic": {"default_action": "allow"},
                    }
                },
                "queues": {"q": {"permission": "delete"}},
                "connectors": {
                    "to-nowhere": {
                        "provider": provider,
                        "links": {"in": {"source": {"address": "a"}}},
                    },
                    "hook": {
                        "provider": {
                            "url": "https://127.0.0.1:9",
                            "token": plant.secret("msg_vpns.connectors.provider.token"),
                            "connect": {"retry_delay": 0},
                        },
                        "links": {"out": {"source": {"queue": "q"}}},
                    },
                },
                "bridges": {
                    "from-nowhere": {
                        "remote_connection": {"retry_delay": 0},
                        "remote_authentication": authentication,
                        "remote_msg_vpns": [remote],
                        "remote_subscriptions": ["a"],
                    }
                },
            }
        },
    }


@pytest.fixture(params=["readable", "json"])
def secretive(request: pytest.FixtureRequest, router_process: Any, tmp_path: Path) -> Iterator[Any]:
    """A router with secrets everywhere."""
    plant = Planter(tmp_path)
    written = document(plant, request.param)
    path = tmp_path / "edge.yaml"
    path.write_text(yaml.safe_dump(written), encoding="utf-8")
    process = router_process(path, own=True)
    assert plant.planted == set(places(RouterConfig)), "a place for a secret without one"
    yield SimpleNamespace(process=process, path=path, document=written, folder=tmp_path)
    process.kill()


def edits(client: httpx.Client) -> Iterator[httpx.Response]:
    """Changes by the API with secrets in them, right and wrong."""
    secret = f"{MARK}-by-api"
    bodies: list[tuple[str, str, Any]] = [
        ("POST", f"{CONFIG}/clientUsernames", {"clientUsername": "new", "password": secret}),
        ("POST", f"{CONFIG}/clientUsernames", {"clientUsername": "new", "password": secret}),
        ("PATCH", f"{CONFIG}/clientUsernames/new", {"password": f"{secret}-2"}),
        ("PUT", f"{CONFIG}/clientUsernames/new", {"password": f"{secret}-3", "no": 1}),
        ("PATCH", BRIDGE, {"remoteAuthenticationBasicPassword": secret}),
        ("PATCH", BRIDGE, {"remoteAuthenticationBasicPassword": [secret]}),
        ("PATCH", BRIDGE, {"remoteAuthenticationBasicPassword": {"env": secret}}),
        ("PATCH", BRIDGE, {"remoteAuthenticationBasicPassword": secret * 1_000}),
        ("PATCH", BRIDGE, {"remoteAuthenticationBasicPassword": f"$scrypt${secret}"}),
        ("PATCH", BRIDGE, {"remoteAuthenticationClientCertPassword": secret}),
        ("PATCH", f"{CONFIG}/nope/{secret}", {"password": secret}),
        ("POST", f"{CONFIG}/bridges", {"bridgeName": "b", "password": secret}),
        ("PATCH", "/vpnrouter/v1/config", {"password": secret}),
    ]
    for method, path, body in bodies:
        yield client.request(method, path.replace(f"/{secret}", ""), json=body)
    shown = client.get("/vpnrouter/v1/config").json()["data"]
    for changed in (secret, [secret], {"file": f"/{secret}", "x": 1}, 5, f"$scrypt$ln=1${secret}"):
        wanted = json.loads(json.dumps(shown["document"]))
        bridge = wanted["msg_vpns"]["blue"]["bridges"]["from-nowhere"]
        bridge["remote_msg_vpns"][0]["password"] = changed
        wanted["management"]["users"]["second"] = {"password": f"{secret}-user"}
        for method, path in (("POST", "examine"), ("PUT", "replace")):
            body = {"document": wanted}
            yield client.request(method, f"/vpnrouter/v1/config/{path}", json=body)
    again = client.get("/vpnrouter/v1/config").json()["data"]
    assert again["digest"] != shown["digest"]
    yield client.put("/vpnrouter/v1/config/return", json={"digest": shown["digest"]})
    yield client.post(
        f"{CONFIG}/clientUsernames",
        content=f'{{"password": "{secret}", broken',
        headers={"content-type": "application/json"},
    )


def looks(client: httpx.Client) -> Iterator[httpx.Response]:
    """Everything that can be looked at."""
    names = {
        "msgVpnName": "blue",
        "queueName": "q",
        "clientUsername": "app",
        "bridgeName": "from-nowhere",
        "bridgeVirtualRouter": "auto",
        "bridgeKey": "from-nowhere,auto",
        "remoteMsgVpnName": "nowhere",
        "remoteMsgVpnLocation": "127.0.0.1:9",
        "remoteMsgVpnInterface": "",
        "aclProfileName": "default",
        "clientProfileName": "default",
    }
    for path, methods in client.get("/SEMP/v2/openapi.json").json()["paths"].items():
        if "get" in methods:
            named = re.sub(r"{([^}:]+)[^}]*}", lambda found: names.get(found[1], "x"), path)
            yield client.get(named)
    yield client.get("/vpnrouter/v1/events?count=1000")
    yield client.get("/vpnrouter/v1/events?after=0&count=1000")


def reloads(router: Any, patiently: Any) -> None:
    """Files with other secrets, and files that are refused because of them."""
    text = router.path.read_text(encoding="utf-8")
    app = router.document["msg_vpns"]["blue"]["client_usernames"]["app"]["password"]
    key = router.document["listeners"][2]["tls"]["key_password"]
    for changed in (
        text.replace(app, f"{app}-other"),
        text.replace(app, f"[{app}]"),
        text.replace(app, f"{app}: {{"),
        text.replace(app, f'"$scrypt${app}"'),
        text.replace(key, f"{key}-wrong"),
        text,
    ):
        before = len(router.process.err)
        router.path.write_text(changed, encoding="utf-8")
        router.process.process.send_signal(signal.SIGHUP)
        patiently(
            lambda before=before: any(
                "reloaded" in line or "stays as it was" in line
                for line in router.process.err[before:]
            ),
            "a reload",
        )


def commands(router: Any, tool: Any) -> Iterator[str]:
    """What commands say that look at the router or its file."""
    password = router.folder / "password"
    password.write_text(router.document["management"]["users"]["root"]["password"])
    mesh = router.folder / "mesh.yaml"
    url = f"http://127.0.0.1:{router.process.port('http')}"
    entry = {"url": url, "user": "root", "password": {"file": "password"}, "config": "edge.yaml"}
    mesh.write_text(yaml.safe_dump({"routers": {"edge": entry}}), encoding="utf-8")
    login = ["--user", "root", "--password-file", str(password)]
    asked = ["--at", "edge/blue", "--topic", "a"]
    for words in (
        ["check", str(router.path)],
        ["explain", str(router.path), *asked, "--json"],
        ["explain", "--url", url, *login, *asked, "--json"],
        ["plan", str(mesh), "--json"],
        ["show", "bridges", "--url", url, *login, "--json"],
        ["events", "--url", url, *login],
    ):
        done = tool(*words, code=None, cwd=router.folder)
        assert "Traceback" not in done.stderr
        yield done.stdout + done.stderr


def test_secrets_stay_where_they_are_written(
    secretive: Any,
    paho: Callable[..., Any],
    patiently: Any,
    tool: Any,
) -> None:
    """Not in logs, answers, metrics, events, traces, commands, the process list, nor any other file."""
    router = secretive
    process = router.process
    said: list[str] = []
    app = router.document["msg_vpns"]["blue"]["client_usernames"]["app"]["password"]
    root = router.document["management"]["users"]["root"]["password"]
    client = paho(process.port("mqtt"), "c", login=("app", app))
    assert client.code == 0
    client.subscribe("t")
    client.publish("t", b"x")
    assert client.next() == ("t", b"x")
    for login in (("app", f"{MARK}-wrong"), ("nobody", app), ("app", root)):
        assert paho(process.port("mqtt"), "d", login=login).code != 0
    url = f"http://127.0.0.1:{process.port('http')}"
    with httpx.Client(base_url=url, timeout=60, trust_env=False) as nobody:
        for name, word in (("root", app), (f"{MARK}-user", "x"), ("root", "")):
            said.append(nobody.get("/metrics", auth=(name, word)).text)
        nobody.auth = ("root", root)
        statuses = []
        for answer in (*edits(nobody), *looks(nobody)):
            statuses.append(answer.status_code)
            said += [answer.text, str(answer.headers)]
    assert {200, 400} <= set(statuses)
    assert not any(code >= 500 for code in statuses)
    said += commands(router, tool)
    reloads(router, patiently)
    said.append(Path(f"/proc/{process.process.pid}/cmdline").read_text())
    overlay = router.folder / "data" / "overlay.yaml"
    assert MARK in overlay.read_text(encoding="utf-8"), (
        "a bridge shows its secret to the other side"
    )
    assert f"{MARK}-by-api-2" not in overlay.read_text(encoding="utf-8"), "it is kept as a hash"
    assert process.stop() == 0
    said += [*process.out, *process.err]
    for text in said:
        found = text.find(MARK)
        assert found < 0, text[max(0, found - 300) : found + 100]
    overlays = list(overlay.parent.glob("*overlay.yaml*"))
    assert all(stat.S_IMODE(each.stat().st_mode) == 0o600 for each in overlays)
    mine = {router.path, *overlays, router.folder / "password"}
    for path in router.folder.rglob("*"):
        if path.is_file() and path not in mine:
            assert MARK.encode() not in path.read_bytes(), path
    rows = [
        pq.ParquetFile(path).read().to_pylist() for path in router.folder.rglob("part-*.parquet")
    ]
    assert rows
    assert MARK not in repr(rows)
