"""A connector to mosquitto, which has a bridge back to the router for the same topics."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.peers

BRIDGE = """
connection back
address 127.0.0.1:{port}
remote_clientid their-bridge
bridge_protocol_version {version}
restart_timeout 1
topic t/# both 1
"""


@pytest.fixture
def mosquitto(tmp_path: Path) -> Iterator[Callable[[int, str], None]]:
    """`mosquitto(port, more)` starts the broker on a port; the test is skipped where it is not installed."""
    program = shutil.which("mosquitto") or "/usr/sbin/mosquitto"
    if not Path(program).exists():
        pytest.skip("mosquitto is not installed: apt-get install mosquitto")
    started: list[subprocess.Popen[bytes]] = []

    def start(port: int, more: str) -> None:
        path = tmp_path / "mosquitto.conf"
        path.write_text(
            f"listener {port} 127.0.0.1\nallow_anonymous true\n{more}", encoding="utf-8"
        )
        process = subprocess.Popen([program, "-c", str(path)], stderr=subprocess.DEVNULL)
        started.append(process)

    yield start
    for process in started:
        process.terminate()
        process.wait(20)


@pytest.mark.parametrize("version", ["mqttv311", "mqttv50"])
def test_both_ends_are_configured(
    sites: Any, paho: Any, mosquitto: Any, patiently: Any, version: str
) -> None:
    """Each message is delivered once at either side, and nothing goes round."""
    links = {"in": {"source": {"address": "t/#"}}, "out": {"source": {"topic": "t/>"}}}
    here = sites.connect(links, wait=False, client_names=["their-bridge"])
    mosquitto(sites.port, BRIDGE.format(port=here.port("mqtt"), version=version))
    sites.state("up")
    patiently(
        lambda: any(
            row["clientName"] == "their-bridge" and row["subscriptionCount"]
            for row in here.api().clients("blue")
        ),
        "the bridge of mosquitto has subscribed",
    )
    ours, theirs = paho(here.port("mqtt"), "ours"), paho(sites.port, "theirs")
    for client in (ours, theirs):
        client.subscribe("t/#", 1)
    for count in range(50):
        for client, name in ((ours, "ours"), (theirs, "theirs")):
            client.client.publish(f"t/{name}", b"%d" % count, qos=1).wait_for_publish(20)
    for client in (ours, theirs):
        found = [client.next() for _ in range(100)]
        for name in ("ours", "theirs"):
            assert [payload for topic, payload in found if topic == f"t/{name}"] == [
                b"%d" % count for count in range(50)
            ]
    # What comes behind shows that nothing else is on its way round.
    ours.client.publish("t/last", b"", qos=1).wait_for_publish(20)
    assert (ours.next(), theirs.next()) == (("t/last", b""), ("t/last", b""))
    theirs.client.publish("t/last", b"", qos=1).wait_for_publish(20)
    assert (ours.next(), theirs.next()) == (("t/last", b""), ("t/last", b""))
    (row,) = (row for row in here.api().clients("blue") if row["clientName"] == "their-bridge")
    assert row["txMsgCount"] == 0
    # What it published came by the connector, too, or had gone out by it.
    assert row["discarded"]["refused"] >= 102
    assert sites.row()["rxMsgCount"] == 51
