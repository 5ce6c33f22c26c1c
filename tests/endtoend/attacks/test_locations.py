"""A tenant's administrator makes the router connect for him: to where he is allowed, and nowhere else."""

import json
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

USERS = {
    "root": {"password": "pw", "role": "admin"},
    "tenant": {"password": "pw", "role": "admin", "msg_vpns": ["blue"]},
}

NEAR = (
    *("127.0.0.1", "localhost", "[::1]", "0.0.0.0", "255.255.255.255", "169.254.169.254"),
    *("[::ffff:127.0.0.1]", "[::127.0.0.1]", "[::ffff:0:127.0.0.1]", "[2002:7f00:1::1]"),
    *("[64:ff9b::7f00:1]", "[64:ff9b::a9fe:a9fe]", "[64:ff9b:1::1]", "[2001:0:7f00:1::1]"),
    *("[fec0::1]", "[fd00:ec2::254]", "100.100.100.200", "168.63.129.16"),
)


class Served:
    """A router, and ports of this machine: one that is open and one that is closed."""

    def __init__(self, process: Any, door: socket.socket, closed: int) -> None:
        self.process = process
        self.door = door
        self.open_port = int(door.getsockname()[1])
        self.closed_port = closed

    def client(self, user: str) -> httpx.Client:
        """A client of the management API."""
        url = f"http://127.0.0.1:{self.process.port('http')}"
        return httpx.Client(base_url=url, auth=(user, "pw"), timeout=30)

    def bridge(self, user: str, name: str, location: str) -> httpx.Response:
        """Have a bridge made."""
        with self.client(user) as client:
            row = {
                "bridgeName": name,
                "bridgeVirtualRouter": "auto",
                "enabled": True,
                "remoteAuthenticationBasicClientUsername": "u",
                "remoteAuthenticationBasicPassword": "pw",
            }
            client.post("/SEMP/v2/config/msgVpns/blue/bridges", json=row).raise_for_status()
            remote = {
                "remoteMsgVpnName": "v",
                "remoteMsgVpnLocation": location,
                "enabled": True,
            }
            path = f"/SEMP/v2/config/msgVpns/blue/bridges/{name},auto/remoteMsgVpns"
            return client.post(path, json=remote)

    def connector(self, user: str, name: str, location: str) -> httpx.Response:
        """Have a connector made."""
        row = {"connectorName": name, "providerUrl": f"mqtt://{location}"}
        with self.client(user) as client:
            return client.post("/SEMP/v2/config/msgVpns/blue/connectors", json=row)

    def fail_over(self, user: str, name: str, location: str) -> httpx.Response:
        """Have a connector made whose second address it is."""
        row = {
            "connectorName": name,
            "providerUrl": "mqtt://nowhere.invalid",
            "providerFailoverUrls": [f"mqtt://{location}"],
            "providerConnectRetryDelay": 0,
        }
        with self.client(user) as client:
            return client.post("/SEMP/v2/config/msgVpns/blue/connectors", json=row)

    def by_proxy(self, user: str, name: str, location: str) -> httpx.Response:
        """Have a connector made that goes by a proxy there, to a place where everybody may go."""
        row = {
            "connectorName": name,
            "providerUrl": "mqtt://nowhere.invalid",
            "providerProxyUrl": f"http://{location}",
            "providerConnectRetryDelay": 0,
        }
        with self.client(user) as client:
            return client.post("/SEMP/v2/config/msgVpns/blue/connectors", json=row)

    def through_proxy(self, user: str, name: str, location: str) -> httpx.Response:
        """Have a connector made that goes there by a proxy."""
        row = {
            "connectorName": name,
            "providerUrl": f"mqtt://{location}",
            "providerProxyUrl": "http://192.0.2.1:3128",
        }
        with self.client(user) as client:
            return client.post("/SEMP/v2/config/msgVpns/blue/connectors", json=row)

    def reason(self, path: str, attribute: str, about: str) -> str:
        """What the tenant reads of why there is no connection, once that is about a location."""
        deadline = time.monotonic() + 30
        with self.client("tenant") as client:
            while True:
                row = client.get(f"/SEMP/v2/monitor/msgVpns/blue/{path}").json()
                found = str(row["data"][attribute])
                if about in found:
                    return found
                assert time.monotonic() < deadline, found


WAYS = {
    "bridge": (Served.bridge, "bridges/{},auto", "inboundFailureReason"),
    "connector": (Served.connector, "connectors/{}", "failure"),
    "fail-over": (Served.fail_over, "connectors/{}", "failure"),
    "proxy": (Served.by_proxy, "connectors/{}", "failure"),
}
"""What may be made that connects, its path, and the attribute that says why it does not."""

each_way = pytest.mark.parametrize("way", WAYS)


@pytest.fixture
def serve(router_process: Any, tmp_path: Path) -> Iterator[Callable[..., Served]]:
    """`serve(allowed)` starts a router of which `tenant` may change message VPN blue."""
    doors: list[socket.socket] = []
    processes: list[Any] = []

    def start(*allowed: str) -> Served:
        door = socket.create_server(("127.0.0.1", 0))
        door.settimeout(0.3)
        with socket.create_server(("127.0.0.1", 0)) as other:
            closed = int(other.getsockname()[1])
        doors.append(door)
        document = {
            "router": {"name": "edge", "data_dir": str(tmp_path / "data")},
            "listeners": [{"protocol": "http", "bind": "127.0.0.1:0"}],
            "management": {"users": USERS},
            "bridging": {"allowed_locations": list(allowed)},
            "msg_vpns": {"blue": {}, "red": {}},
        }
        path = tmp_path / "edge.yaml"
        path.write_text(yaml.safe_dump(document), encoding="utf-8")
        processes.append(router_process(path))
        return Served(processes[-1], door, closed)

    yield start
    for process in processes:
        process.kill()
    for door in doors:
        door.close()


@each_way
def test_the_routers_own_machine(serve: Callable[..., Served], way: str) -> None:
    """Each spelling of the router's own machine is refused when configured, alike for open and closed ports."""
    served = serve()
    make = WAYS[way][0]
    for number, host in enumerate(NEAR):
        answers = [
            make(served, "tenant", f"b{number}{port}", f"{host}:{port}")
            for port in (served.open_port, served.closed_port)
        ]
        for answer in answers:
            assert answer.status_code == 400, (host, answer.text)
            said = answer.json()["meta"]["error"]["description"]
            assert "is no allowed location" in said
    # The message VPN is the tenant's, whoever makes the change; another one is not.
    assert make(served, "root", "by-root", f"127.0.0.1:{served.open_port}").status_code == 400


@each_way
def test_names_are_looked_at_when_they_are_dialled(serve: Callable[..., Served], way: str) -> None:
    """A host that turns out to be this machine is not dialled, and the reason tells nothing of its ports."""
    served = serve()
    make, path, attribute = WAYS[way]
    # The system reads 127.1 as 127.0.0.1; as a location it is a name like any other.
    reasons = []
    for name, port in (("one", served.open_port), ("two", served.closed_port)):
        assert make(served, "tenant", name, f"127.1:{port}").status_code == 200
        found = served.reason(path.format(name), attribute, "127.1")
        reasons.append(found.replace(str(port), "PORT"))
    assert reasons[0] == reasons[1]
    assert "127.1:PORT is no allowed location" in reasons[0]
    with pytest.raises(TimeoutError):
        served.door.accept()


def test_a_proxy_is_no_way_round(serve: Callable[..., Served]) -> None:
    """What may not be dialled may not be asked of a proxy either."""
    served = serve()
    for number, host in enumerate(NEAR):
        answer = served.through_proxy("tenant", f"c{number}", f"{host}:{served.open_port}")
        assert answer.status_code == 400, host


@each_way
def test_what_the_file_allows(serve: Callable[..., Served], way: str) -> None:
    """A network in `bridging.allowed_locations` is dialled."""
    served = serve("127.0.0.0/8", "nowhere.invalid")
    make = WAYS[way][0]
    assert make(served, "tenant", "one", f"127.0.0.1:{served.open_port}").status_code == 200
    served.door.settimeout(30)
    served.door.accept()[0].close()
    assert make(served, "tenant", "two", "192.0.2.1:55555").status_code == 400


def test_names_that_are_given_another_address(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of the addresses that a name has at the moment of dialling, those of this machine are left out."""
    import trio

    from vpnrouter.config.load import load
    from vpnrouter.config.locations import Locations
    from vpnrouter.errors import OperationError
    from vpnrouter.server.net import dial as connect

    (tmp_path / "r.yaml").write_text(
        f"router: {{name: r, data_dir: {tmp_path}}}\nmanagement: {{users: {{t: {{password: pw,"
        " role: admin, msg_vpns: [blue]}}}\nmsg_vpns: {blue: {}}\n"
    )
    (tmp_path / "overlay.yaml").write_text("msg_vpns: {blue: {max_msg_spool_usage: 1}}\n")
    door = socket.create_server(("127.0.0.1", 0))
    door.settimeout(0.2)
    port = door.getsockname()[1]
    given = socket.getaddrinfo("127.0.0.1", port, type=socket.SOCK_STREAM)
    monkeypatch.setattr(connect, "_names", lambda host, port: given)

    async def dial(rules: Locations) -> connect.Transport:
        dialler = connect.Dialler(None)  # type: ignore[arg-type]
        dialler.locations = rules
        location = f"rebound.example:{port}"
        return await dialler.open("rebound.example", port, None, lambda: None, ("blue", location))

    with pytest.raises(OperationError, match="is no allowed location"):
        trio.run(dial, Locations(load(tmp_path / "r.yaml")))
    with pytest.raises(TimeoutError):
        door.accept()
    transport = trio.run(dial, Locations())
    assert transport.sock.getpeername()[1] == port
    transport.sock.close()
    door.close()


def test_addresses_of_the_machine_in_its_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """An address that the machine has itself is not dialled, whichever it is; others are."""
    import trio

    from vpnrouter.config.locations import Locations
    from vpnrouter.errors import OperationError
    from vpnrouter.server.net import dial as connect

    rules = Locations()
    monkeypatch.setattr(rules, "asks", lambda *_: True)
    own = {"198.51.100.7"}
    monkeypatch.setattr(connect, "_is_own", lambda found: connect._ip(found) in own)
    dialled: list[str] = []

    async def connected(found: Any, _: str) -> Any:
        dialled.extend(map(connect._ip, found))
        raise TimeoutError

    monkeypatch.setattr(connect, "_connect", connected)

    async def dial(host: str) -> None:
        dialler = connect.Dialler(None)  # type: ignore[arg-type]
        dialler.locations = rules
        await dialler.open(host, 1883, None, lambda: None, ("blue", host))

    with pytest.raises(OperationError, match="is no allowed location"):
        trio.run(dial, "198.51.100.7")
    with pytest.raises(OperationError, match="cannot connect"):
        trio.run(dial, "198.51.100.8")
    assert dialled == ["198.51.100.8"]
    monkeypatch.undo()
    found = [("127.0.0.1", True), ("192.0.2.1", False)]
    for address, is_own in found:
        (first, *_) = socket.getaddrinfo(address, 1, type=socket.SOCK_STREAM)
        assert connect._is_own(first) == is_own


SECRETS = {
    "of a file": {"file": "SECRET"},
    "of the environment": {"env": "SECRET"},
    "as text": "the-operators",
}

BLUE = {
    "connectors": {
        "theirs": {
            "enabled": False,
            "provider": {"url": "mqtts://partner.example", "username": "u", "password": "SECRET"},
        }
    },
    "bridges": {
        "theirs": {
            "enabled": False,
            "remote_authentication": {"basic": {"client_username": "u", "password": "SECRET"}},
            "remote_msg_vpns": [
                {"name": "v", "location": "partner.example:55443", "tls_enabled": True}
            ],
        }
    },
}
"""What the operator has written in message VPN blue."""

CONNECTOR = "connectors/theirs"
BRIDGE = "bridges/theirs,auto"
REMOTES = f"{BRIDGE}/remoteMsgVpns"
MINE = {"remoteMsgVpnName": "v", "remoteMsgVpnLocation": "mine.example:55443", "tlsEnabled": True}
THERE = f"{REMOTES}/v,partner.example%3A55443,"

WHERE = "is not where the router's file has its password sent"

MOVES: list[tuple[str, str, dict[str, Any], str]] = [
    ("PATCH", CONNECTOR, {"providerUrl": "mqtts://mine.example"}, WHERE),
    ("PATCH", CONNECTOR, {"providerUrl": "mqtt://partner.example"}, WHERE),
    ("PATCH", CONNECTOR, {"providerUrl": "mqtts://partner.example:1"}, WHERE),
    ("PATCH", CONNECTOR, {"providerFailoverUrls": ["mqtts://mine.example"]}, WHERE),
    ("PATCH", CONNECTOR, {"maxTtl": 3, "providerKeepalive": 9}, ""),
    ("PATCH", CONNECTOR, {"providerUrl": "mqtts://mine.example", "providerPassword": "p"}, ""),
    # A secret stays where the others get their defaults.
    ("PUT", CONNECTOR, {"providerUrl": "mqtts://mine.example", "providerUsername": "u"}, WHERE),
    ("POST", REMOTES, MINE, WHERE),
    ("POST", REMOTES, {**MINE, "clientUsername": "me", "password": "mine"}, ""),
    ("PATCH", THERE, {"tlsEnabled": False}, WHERE),
    ("PATCH", THERE, {"connectOrder": 2}, ""),
    ("PATCH", BRIDGE, {"remoteAuthenticationBasicMechanism": "plain"}, WHERE),
    ("PATCH", BRIDGE, {"maxTtl": 3}, ""),
]
"""What a tenant's administrator may ask for, and why it is refused; "" where it is not."""


@pytest.mark.parametrize("kind", SECRETS)
def test_secrets_of_the_file(router_process: Any, tmp_path: Path, kind: str) -> None:
    """A password of the router's own file goes where that says, and nowhere else that a tenant names."""
    secret = tmp_path / "secret"
    secret.write_text("the-operators", encoding="utf-8")
    value = json.dumps(SECRETS[kind]).replace('"file": "SECRET"', f'"file": "{secret}"')
    written = json.loads(json.dumps(BLUE).replace('"SECRET"', value))
    for number, (method, place, body, why) in enumerate(MOVES):
        document = {
            "router": {"name": "edge", "data_dir": str(tmp_path / f"data-{number}")},
            "listeners": [{"protocol": "http", "bind": "127.0.0.1:0"}],
            "management": {"users": USERS},
            "msg_vpns": {"blue": written},
        }
        path = tmp_path / "edge.yaml"
        path.write_text(yaml.safe_dump(document), encoding="utf-8")
        process = router_process(path, more={"SECRET": "the-operators"})
        url = f"http://127.0.0.1:{process.port('http')}/SEMP/v2/config/msgVpns/blue/{place}"
        answer = httpx.request(method, url, json=body, auth=("tenant", "pw"), trust_env=False)
        process.kill()
        assert answer.status_code == (400 if why else 200), (method, place, body, answer.text)
        assert why in answer.text
        assert "the-operators" not in answer.text


def test_secrets_that_an_overlay_of_before_misdirects(tmp_path: Path) -> None:
    """What an overlay has had sent elsewhere is told, and is not dialled."""
    import trio

    from vpnrouter.config.load import load
    from vpnrouter.config.locations import Locations
    from vpnrouter.errors import OperationError
    from vpnrouter.server.net import dial as connect

    document = {
        "router": {"name": "edge", "data_dir": str(tmp_path)},
        "management": {"users": USERS},
        "msg_vpns": {"blue": BLUE},
    }
    path = tmp_path / "edge.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    moved = {"provider": {"url": "mqtts://mine.example"}}
    overlay = {"msg_vpns": {"blue": {"connectors": {"theirs": moved}}}}
    (tmp_path / "overlay.yaml").write_text(yaml.safe_dump(overlay), encoding="utf-8")
    loaded = load(path)
    (problem,) = [str(one) for one in loaded.warnings if WHERE in str(one)]
    assert "msg_vpns.blue.connectors.theirs.provider.url" in problem

    async def dial() -> None:
        dialler = connect.Dialler(None)  # type: ignore[arg-type]
        dialler.locations = Locations(loaded)
        asked = ("blue", "mqtts://mine.example")
        await dialler.open("mine.example", 8883, None, lambda: None, asked)

    with pytest.raises(OperationError, match="is no allowed location"):
        trio.run(dial)
