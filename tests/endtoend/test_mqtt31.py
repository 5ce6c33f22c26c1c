"""MQTT 3.1, which old devices speak, with clients of other makers."""

import subprocess
from typing import Any

import pytest

CONFIG = """listeners: [{protocol: mqtt, bind: '127.0.0.1:0', msg_vpn: blue}]
msg_vpns:
  blue:
    acl_profiles:
      narrow:
        client_connect: {default_action: allow}
        publish_topic: {default_action: allow}
        subscribe_topic: {default_action: allow, exceptions: [secret]}
    client_usernames:
      old: {password: pw, acl_profile: narrow}
      open: {password: pw, password_required: false}
"""


@pytest.mark.parametrize("level", [3, 4])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_paho(start: Any, paho: Any, level: int, qos: int) -> None:
    """A client of MQTT 3.1 with a long id publishes and gets messages at each QoS, as one of 3.1.1 does."""
    port = start(CONFIG).port("mqtt")
    new = paho(port, "new", level=5, login=("old", "pw"))
    new.subscribe("to/new", qos)
    old = paho(port, "an-id-of-more-than-23-characters", level=level, login=("old", "pw"))
    assert new.code == old.code == 0
    old.subscribe("to/old", qos)
    old.client.publish("to/new", b"1", qos)
    assert new.next() == ("to/new", b"1")
    new.client.publish("to/old", b"2", qos)
    assert old.next() == ("to/old", b"2")


def test_sessions_and_refusals(start: Any, paho: Any) -> None:
    """A session is kept for a client of MQTT 3.1; a wrong password is code 4, a denied filter granted in vain."""
    port = start(CONFIG).port("mqtt")
    old = paho(port, "old", level=3, login=("old", "pw"), clean_session=False)
    old.subscribe("kept", 1)
    old.subscribe("secret", 1)
    old.stop()
    new = paho(port, "new", login=("open", "pw"))
    for topic in ("secret", "kept"):
        new.client.publish(topic, topic.encode(), 1).wait_for_publish(20)
    again = paho(port, "old", level=3, login=("old", "pw"), clean_session=False)
    assert again.next() == ("kept", b"kept")
    assert again.arrived.empty()
    assert paho(port, "x", level=3, login=("old", "no")).code == 0x86


def test_a_login_without_password(start: Any, paho: Any) -> None:
    """Only a client username that says so comes in by its name alone, and not with a wrong password."""
    port = start(CONFIG).port("mqtt")
    for level in (3, 4, 5):
        assert paho(port, f"a{level}", level=level, login=("open", None)).code == 0
        assert paho(port, f"b{level}", level=level, login=("old", None)).code == 0x86
        assert paho(port, f"c{level}", level=level, login=("open", "no")).code == 0x86
        assert paho(port, f"d{level}", level=level, login=("open", "pw")).code == 0


@pytest.mark.peers
def test_mosquitto(start: Any, mosquitto: Any) -> None:
    """mosquitto_sub and mosquitto_pub with -V mqttv31 subscribe and publish."""
    port = str(start(CONFIG).port("mqtt"))
    told = [*("-p", port, "-V", "mqttv31", "-u", "open", "-t", "t", "-q", "1")]
    subprocess.run([mosquitto("mosquitto_pub"), *told, "-m", "hello", "-r"], check=True, timeout=20)
    heard = subprocess.run(
        [mosquitto("mosquitto_sub"), *told, "-C", "1", "-W", "20"],
        check=True,
        timeout=30,
        capture_output=True,
        text=True,
    )
    assert heard.stdout == "hello\n"
