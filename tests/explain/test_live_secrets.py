"""Secrets of running routers, which are written as variables and files of other machines, and are not given away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from vpnrouter.config.document_values import mask
from vpnrouter.config.load import load
from vpnrouter.config.secrets import hash_password, scram_verifier
from vpnrouter.explain.explain import explain
from vpnrouter.explain.live import live_mesh
from vpnrouter.explain.request import ExplainRequest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from vpnrouter.config.router import Loaded

SALT = bytes(16)
FORMS: dict[str, Any] = {
    "text": "right",
    "env": {"env": "ONLY_THERE"},
    "file": {"file": "/run/secrets/only-there"},
    "env-here": {"env": "ALSO_HERE"},
    "file-here": {"file": "secret.txt"},
}
STORED = {
    **FORMS,
    "scrypt": hash_password("right", SALT, ln=4),
    "scram": scram_verifier("right", SALT, 4_096),
}


def edge(password: Any = "right", **more: Any) -> dict[str, Any]:
    """A router with a queue, from which a bridge of core takes; core logs in as `taker`."""
    return {
        "router": {"name": "edge"},
        "listeners": [{"protocol": "link", "bind": "127.0.0.1:55555"}],
        "msg_vpns": {
            "blue": {
                "client_usernames": {"taker": {"password": password}},
                "client_profiles": {"default": {"allow_bridge_connections_enabled": True}},
            }
        },
        **more,
    }


def core(password: Any = "right", **more: Any) -> dict[str, Any]:
    """A router with a bridge from edge."""
    return {
        "router": {"name": "core"},
        "msg_vpns": {
            "yellow": {
                "authentication": {"basic": {"enabled": False}},
                "queues": {"all": {"subscriptions": [">"]}},
                "bridges": {
                    "in": {
                        "remote_authentication": {
                            "basic": {"client_username": "taker", "password": password}
                        },
                        "remote_msg_vpns": [
                            {"name": "blue", "router": "edge", "location": "127.0.0.1:55555"}
                        ],
                        "remote_subscriptions": [">"],
                    }
                },
                **more,
            }
        },
    }


class Router:
    """The management API of a router that runs elsewhere; `rows` are those of its clients."""

    def __init__(self, document: Any, *rows: dict[str, Any]) -> None:
        self._document = document
        self._rows = rows

    def config(self) -> dict[str, Any]:
        return {
            "document": mask(self._document),
            "routerName": self._document["router"]["name"],
            "positions": [],
        }

    def clients(self, **_: Any) -> list[dict[str, Any]]:
        return list(self._rows)

    def queues(self) -> list[dict[str, Any]]:
        return []

    bridges = connectors = queues

    def subscriptions(self, **_: Any) -> list[dict[str, Any]]:
        return []


def arrivals(*routers: Router, files: tuple[Loaded, ...] = ()) -> list[str]:
    """Who gets a message that is published in edge; over the bridge it comes to the queue `all`."""
    live = live_mesh(routers)  # type: ignore[arg-type]
    asked = ExplainRequest("edge", "blue", "a/b", client_username="taker")
    told = explain([*files, *live.mesh], asked, live)
    return [one.name for one in told.arrivals]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which the same names mean something else."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ALSO_HERE", "wrong")
    (tmp_path / "secret.txt").write_text("wrong", encoding="utf-8")


@pytest.mark.parametrize("shown", FORMS)
@pytest.mark.parametrize("stored", STORED)
def test_a_bridge_logs_in(stored: str, shown: str) -> None:
    """Whatever either side's secret is: it was not given away, and counts as right."""
    assert arrivals(Router(core(FORMS[shown])), Router(edge(STORED[stored]))) == ["all"]


@pytest.mark.parametrize(
    ("stored", "expected"), [("text", ["all"]), ("scram", ["all"]), ("scrypt", [])]
)
def test_one_router_runs_and_the_other_is_a_file(
    configured: Callable[..., Loaded], stored: str, expected: list[str]
) -> None:
    """What is not known counts as right, but over a link without TLS no scrypt hash serves, whatever the password."""

    def loaded(document: dict[str, Any]) -> Loaded:
        name = document.pop("router")["name"]
        return configured(yaml.safe_dump(document), name)

    there = edge(STORED[stored])
    assert arrivals(Router(core(FORMS["env"])), files=(loaded(there),)) == expected
    assert arrivals(Router(edge(STORED["env"])), files=(loaded(core()),)) == ["all"]


PROVIDER = {"url": "mqtt://127.0.0.1:1", "username": "me"}
LINKS = {"in": {"source": {"address": "x/#"}}}
TLS = {"certificate": "/etc/only-there.pem", "key": "/etc/only-there.key"}


@pytest.mark.parametrize("form", ["env", "file", "env-here", "file-here"])
@pytest.mark.parametrize(
    "place",
    ["connector", "connector-key", "listener-key", "user", "collector"],
)
def test_other_secrets(place: str, form: str) -> None:
    """They are not asked for, and no file of a certificate is looked for here."""
    secret = FORMS[form]
    provider: dict[str, Any] = dict(PROVIDER)
    more: dict[str, Any] = {}
    if place == "connector":
        provider["password"] = secret
    elif place == "connector-key":
        provider |= {"url": "mqtts://127.0.0.1:1", "client_cert": {**TLS, "password": secret}}
    elif place == "listener-key":
        tls = {**TLS, "key_password": secret, "client_ca": "/etc/only-there.ca"}
        more["listeners"] = [
            *edge()["listeners"],
            {"protocol": "mqtts", "bind": "127.0.0.1:8883", "tls": tls},
        ]
    elif place == "user":
        more["management"] = {"users": {"ann": {"password": secret}}}
    else:
        otlp = {"enabled": True, "headers": {"authorization": secret}}
        more["trace"] = {"directory": "/var/only-there", "otlp": otlp}
    connectors = {"there": {"provider": provider, "links": LINKS}}
    assert arrivals(Router(core(connectors=connectors)), Router(edge(**more))) == ["all"]


@pytest.mark.parametrize(
    ("logged_in", "expected"), [("taker", ["all"]), ("other", []), ("", [])], ids=str
)
def test_a_certificate_that_is_not_here(logged_in: str, expected: list[str]) -> None:
    """The remote tells whom it names: as whom the bridge has logged in there."""
    far = edge("right")
    far["listeners"] = [
        {
            "protocol": "links",
            "bind": "127.0.0.1:55555",
            "tls": {**TLS, "client_ca": "/etc/only-there.ca"},
        }
    ]
    far["msg_vpns"]["blue"]["authentication"] = {"client_cert": {"enabled": True, "ca": "/etc/ca"}}
    near = core(bridging={"tls_server_cert": {"validate_name_enabled": False}})
    bridge = near["msg_vpns"]["yellow"]["bridges"]["in"]
    bridge["remote_authentication"] = {
        "scheme": "client-certificate",
        "client_cert": {**TLS, "password": FORMS["env"]},
    }
    bridge["remote_msg_vpns"][0]["tls_enabled"] = True
    row = {
        "msgVpnName": "blue",
        "clientName": "#bridge/core/yellow/in",
        "clientUsername": logged_in,
    }
    assert arrivals(Router(near), Router(far, *([row] if logged_in else []))) == expected


def test_a_file_says_what_it_is(configured: Callable[..., Loaded], tmp_path: Path) -> None:
    """Over files the variables of this machine are read, as the router would."""
    path = tmp_path / "wrong.yaml"
    path.write_text(
        "router: {name: r}\nmsg_vpns: {v: {client_usernames: {u: {password: {env: ALSO_HERE}}}}}\n",
        encoding="utf-8",
    )
    password = load(str(path), overlay=False).config.msg_vpns["v"].client_usernames["u"].password
    assert password is not None
    assert password.reveal() == "wrong"
