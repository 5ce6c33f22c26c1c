"""`vpnrouter run` as a process whose configuration is changed by its file and SIGHUP, and by the management API."""

import signal
from pathlib import Path
from typing import Any

import httpx
import yaml

ROUTER = """
listeners:
  - {protocol: mqtt, bind: "127.0.0.1:0"}
  - {protocol: http, bind: "127.0.0.1:0"}
msg_vpns:
  blue: {authentication: {basic: {enabled: false}}}
"""

EDGE = """
listeners:
  - {protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}
  - {protocol: link, bind: "127.0.0.1:0"}
msg_vpns:
  blue:
    authentication: {basic: {enabled: false}}
    client_profiles: {bridging: {allow_bridge_connections_enabled: true}}
    client_usernames: {core: {password: change-me, client_profile: bridging}}
"""

CORE = """
listeners:
  - {protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: yellow}
  - {protocol: http, bind: "127.0.0.1:0"}
msg_vpns:
  yellow:
    authentication: {basic: {enabled: false}}
    bridges:
      one: &bridge
        remote_connection: {retry_delay: 0}
        remote_authentication: {basic: {client_username: core, password: change-me}}
        remote_msg_vpns: [{name: blue, location: "127.0.0.1:LINK"}]
        remote_subscriptions: [one]
      other: {<<: *bridge, remote_subscriptions: [other]}
"""


class Api:
    """The configuration of a running router by HTTP."""

    def __init__(self, router: Any) -> None:
        self._url = f"http://127.0.0.1:{router.port('http')}/vpnrouter/v1/config"
        self.seen: dict[str, Any] = {}

    def look(self) -> Any:
        """The document in force."""
        answer = httpx.get(self._url, trust_env=False, timeout=60)
        assert answer.status_code == 200, answer.text
        self.seen = answer.json()["data"]
        return self.seen["document"]

    def replace(self, document: Any) -> httpx.Response:
        """Replace the document that was looked at."""
        body = {"document": document, "expected": self.seen["digest"]}
        return httpx.put(f"{self._url}/replace", json=body, trust_env=False, timeout=60)


def add_green(router: Any) -> None:
    """Add a message VPN with a user by the API."""
    api = Api(router)
    document = api.look()
    document["msg_vpns"]["green"] = {
        "client_usernames": {"ann": {"password": "secret of ann"}},
        "acl_profiles": {"default": {"client_connect": {"default_action": "allow"}}},
    }
    answer = api.replace(document)
    assert answer.status_code == 200, answer.text
    assert answer.json()["data"]["lines"] == ["msg_vpns.green: added"]


def test_a_change_outlives_a_restart(start: Any, paho: Any, tmp_path: Path) -> None:
    """What was changed is there at once, after a stop, after SIGHUP, and not with --no-overlay."""
    router = start(ROUTER)
    path = tmp_path / "edge.yaml"
    text = path.read_bytes()
    assert paho(router.port("mqtt"), login=("ann@green", "secret of ann")).code != 0
    add_green(router)
    assert paho(router.port("mqtt"), login=("ann@green", "secret of ann")).code == 0
    router.process.send_signal(signal.SIGHUP)
    router.says("SIGHUP: reloaded")
    assert paho(router.port("mqtt"), login=("ann@green", "secret of ann")).code == 0
    assert router.stop() == 0
    assert "secret of ann" not in "".join(router.err + router.out)
    assert path.read_bytes() == text
    router = start(ROUTER)
    assert paho(router.port("mqtt"), login=("ann@green", "secret of ann")).code == 0
    api = Api(router)
    assert api.look()["msg_vpns"]["green"]["client_usernames"]["ann"]["password"] == "***"
    assert api.seen["overlayFile"] == "data-edge/overlay.yaml"
    (tmp_path / "data-edge" / "overlay.yaml").unlink()
    router.err.clear()
    router.process.send_signal(signal.SIGHUP)
    router.says("msg_vpns.green: removed")
    assert router.stop() == 0


def test_a_router_that_is_killed_after_its_answer(start: Any, paho: Any) -> None:
    """Whoever has the answer has the change, whatever happens next."""
    router = start(ROUTER)
    add_green(router)
    router.kill()
    router = start(ROUTER)
    assert paho(router.port("mqtt"), login=("ann@green", "secret of ann")).code == 0
    assert router.stop() == 0


def test_one_bridge_changed_leaves_the_other_alone(
    start: Any, paho: Any, patiently: Any, tmp_path: Path
) -> None:
    """Its session and counters go on; a change that is refused leaves both as they are."""
    edge = start(EDGE, "edge")
    core = start(CORE.replace("LINK", str(edge.port("link"))), "core")
    core.bridges_up(2)
    subscriber, publisher = paho(core.port("mqtt"), "s"), paho(edge.port("mqtt"), "p")
    subscriber.subscribe("#")
    publisher.publish("one", b"1")
    publisher.publish("other", b"2")
    assert {subscriber.next(), subscriber.next()} == {("one", b"1"), ("other", b"2")}
    before = core.bridge("other", dataRxMsgCount=1)
    api = Api(core)
    document = api.look()
    bridge = document["msg_vpns"]["yellow"]["bridges"]["one"]
    bridge["remote_connection"]["heartbeat_interval"] = 4_000
    bridge["remote_subscriptions"] = ["one", "three"]
    answer = api.replace(document)
    assert answer.status_code == 200, answer.text
    assert len(answer.json()["data"]["lines"]) == 2

    def crossed() -> bool:
        publisher.publish("three", b"3")
        return ("three", b"3") in list(subscriber.arrived.queue)

    patiently(crossed, "the new subscription attracts")
    publisher.publish("other", b"4")
    while subscriber.next() != ("other", b"4"):
        pass
    after = core.bridge("other", dataRxMsgCount=2)
    assert after["uptime"] >= before["uptime"]
    assert after["failureCount"] == before["failureCount"] == 0
    assert len(core.told("bridge other", ": up")) == 1
    assert not core.told("bridge other", "down")
    document = api.look()
    shown = document["msg_vpns"]["yellow"]["bridges"]
    assert shown["one"]["remote_authentication"]["basic"]["password"] == "***"
    overlay = (tmp_path / "data-core" / "overlay.yaml").read_bytes()
    assert list(yaml.safe_load(overlay)["msg_vpns"]["yellow"]["bridges"]) == ["one"]
    shown["one"]["remote_subscriptions"] = ["a//b/>>"]
    shown["other"]["no_such"] = 1
    assert api.replace(document).status_code == 400
    del shown["other"]["no_such"]
    document["listeners"].append({"protocol": "link", "bind": "192.0.2.1:5"})
    shown["one"]["remote_subscriptions"] = []
    answer = api.replace(document)
    assert answer.status_code == 400
    assert "cannot listen on 192.0.2.1:5" in answer.text
    publisher.publish("one", b"5")
    while subscriber.next() != ("one", b"5"):
        pass
    assert (tmp_path / "data-core" / "overlay.yaml").read_bytes() == overlay
    assert core.stop() == 0
    assert edge.stop() == 0
    assert "change-me" not in "".join(core.err)


OWNERS = """
listeners:
  - {protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}
  - {protocol: http, bind: "127.0.0.1:0"}
msg_vpns:
  blue:
    client_usernames: {boss: {password: p}, low: {password: p}}
"""


def test_a_session_is_its_owners_over_everything(start: Any, paho: Any) -> None:
    """No other username gets it, a new ACL holds for what it has stored, and it ends with its client username."""

    def client(username: str, name: str) -> Any:
        login = (username, "p")
        return paho(router.port("mqtt"), name, login=login, level=4, clean_session=False)

    router = start(OWNERS)
    boss = client("boss", "victim")
    boss.subscribe("secret/#", 1)
    boss.stop()
    assert client("low", "victim").code != 0
    sender = client("low", "sender")
    for number in range(3):
        sender.client.publish(f"secret/{number}", b"x", qos=1).wait_for_publish(60)
    router.kill()
    router = start(OWNERS)
    assert client("low", "victim").code != 0
    api = Api(router)
    document = api.look()
    rule = {"default_action": "allow", "exceptions": ["secret/1"]}
    document["msg_vpns"]["blue"]["acl_profiles"] = {"default": {"subscribe_topic": rule}}
    assert api.replace(document).status_code == 200
    boss = client("boss", "victim")
    assert [boss.next()[0] for _ in range(2)] == ["secret/0", "secret/2"]
    document = api.look()
    del document["msg_vpns"]["blue"]["client_usernames"]["boss"]
    assert api.replace(document).status_code == 200
    boss.disconnected.get(timeout=60)
    heir = client("low", "victim")
    assert heir.code == 0
    sender = client("low", "sender")
    sender.client.publish("secret/4", b"x", qos=1).wait_for_publish(60)
    heir.subscribe("end")
    sender.publish("end", b"")
    assert heir.next()[0] == "end"
    assert router.stop() == 0


BLUE = "{authentication: {basic: {enabled: false}}}"
PLAIN = f'listeners: [{{protocol: mqtt, bind: "127.0.0.1:0"}}]\nmsg_vpns:\n  blue: {BLUE}\n'


def test_a_message_vpn_comes_and_goes(start: Any, paho: Any, tmp_path: Path) -> None:
    """SIGHUP adds and removes a message VPN; clients of another one notice nothing."""
    router = start(PLAIN)
    path = tmp_path / "edge.yaml"
    text = path.read_text(encoding="utf-8")
    port = router.port("mqtt")
    stays = paho(port, "stays", login=("c@blue", ""))
    stays.subscribe("#")
    path.write_text(f"{text}  green: {BLUE}\n", encoding="utf-8")
    router.process.send_signal(signal.SIGHUP)
    router.says(f"vpnrouter: SIGHUP: reloaded {path}: 1 change\n")
    assert "vpnrouter: SIGHUP: msg_vpns.green: added\n" in router.err
    goes = paho(port, "goes", login=("c@green", ""))
    assert goes.code == 0
    path.write_text(text, encoding="utf-8")
    router.process.send_signal(signal.SIGHUP)
    router.says("msg_vpns.green: removed")
    assert goes.disconnected.get(timeout=20) == 0x98
    stays.publish("a", b"x")
    assert stays.next() == ("a", b"x")
    assert router.stop() == 0


def test_a_file_that_is_refused(start: Any, paho: Any, tmp_path: Path) -> None:
    """Each problem is told with its place, and the router goes on as it was."""
    router = start(PLAIN)
    path = tmp_path / "edge.yaml"
    path.write_text(path.read_text(encoding="utf-8") + "  green: {nothing: 1}\n", encoding="utf-8")
    router.process.send_signal(signal.SIGHUP)
    router.says(f"vpnrouter: SIGHUP: {path}:5:")
    router.says("is refused; everything stays as it was")
    assert paho(router.port("mqtt"), "c", login=("c@blue", "")).code == 0
    assert router.stop() == 0
    assert "Traceback" not in "".join(router.err)
