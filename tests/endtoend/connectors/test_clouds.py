"""Connectors to brokers of clouds: a mosquitto with their limits, and a login as they ask for it, stands in."""

from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

import pytest
import trustme

from vpnrouter.testing.modules import load_module

pytestmark = pytest.mark.peers

HOST: Final = "a1b2-ats.cloud.example.org"
DEAD: Final = "#DEAD_MSG_QUEUE"


class Cloud(NamedTuple):
    """What a service takes (docs/connectors.md, Clouds), and whether clients log in by a certificate."""

    qos: int
    largest_bytes: int
    keepalive_s: int
    retains: bool = True
    certificates: bool = True

    @property
    def limits(self) -> str:
        """As settings of mosquitto."""
        return (
            f"max_qos {self.qos}\nmax_packet_size {self.largest_bytes}\n"
            f"max_keepalive {self.keepalive_s}\nretain_available {str(self.retains).lower()}\n"
        )


CLOUDS: Final = {
    "AWS IoT Core": Cloud(qos=1, largest_bytes=131_072, keepalive_s=1_200),
    "Azure Event Grid": Cloud(qos=1, largest_bytes=524_288, keepalive_s=1_160, retains=False),
    "HiveMQ Cloud": Cloud(qos=2, largest_bytes=5_242_880, keepalive_s=65_535, certificates=False),
    "EMQX Cloud": Cloud(qos=2, largest_bytes=1_048_576, keepalive_s=65_535, certificates=False),
}


@pytest.fixture(scope="session")
def providers() -> ModuleType:
    """The module providers.py."""
    return load_module("providers", Path(__file__).with_name("providers.py"))


Stand = Callable[[Cloud], tuple[dict[str, Any], int]]


@pytest.fixture
def cloud(providers: ModuleType, sites: Any, free_port: Any, tmp_path: Path) -> Iterator[Stand]:
    """Begins a broker with the limits of a service; how to log in there, and a port without TLS for the test."""
    if reason := providers.missing("mosquitto"):
        pytest.skip(reason)
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    authority.issue_cert(HOST).private_key_and_cert_chain_pem.write_to_path(
        str(tmp_path / "server.pem")
    )
    thing = authority.issue_cert("thing", common_name="thing")
    (tmp_path / "thing.crt").write_bytes(thing.cert_chain_pems[0].bytes())
    (tmp_path / "thing.key").write_bytes(thing.private_key_pem.bytes())
    (tmp_path / "passwords").write_text("", encoding="utf-8")
    running = []

    def begin(service: Cloud) -> tuple[dict[str, Any], int]:
        other = free_port()
        files = "".join(
            f"{key} {tmp_path / name}\n"
            for key, name in (
                ("cafile", "ca.pem"),
                ("certfile", "server.pem"),
                ("keyfile", "server.pem"),
            )
        )
        asked = str(service.certificates).lower()
        more = f"{files}require_certificate {asked}\n{service.limits}listener {other} 127.0.0.1\n"
        running.append(providers.providing("mosquitto", sites.port, tmp_path, more))
        running[-1].__enter__()
        login: dict[str, Any] = {"username": "site", "password": "secret"}
        if service.certificates:
            files_ = {
                "certificate": str(tmp_path / "thing.crt"),
                "key": str(tmp_path / "thing.key"),
            }
            login = {"client_cert": files_}
        return login, other

    yield begin
    for one in running:
        one.__exit__(None, None, None)


@pytest.mark.parametrize("name", CLOUDS)
def test_what_a_cloud_takes(sites: Any, cloud: Stand, paho: Any, tmp_path: Path, name: str) -> None:
    """Messages cross both ways, a link that it cannot keep is refused, and what is too large is a dead letter."""
    service = CLOUDS[name]
    login, other = cloud(service)
    links = {
        "in": {"source": {"address": "in/#"}},
        "out": {"source": {"topic": "out/>"}},
        "exact": {"source": {"topic": "exact/>"}, "quality_of_service": "once-and-only-once"},
    }
    here = sites.connect(
        links,
        wait=False,
        queues={DEAD: {}},
        vpn={
            "bridging": {"tls_server_cert": {"ca": str(tmp_path / "ca.pem")}},
            "max_msg_size": 10_000_000,
        },
        url=f"mqtts://127.0.0.1:{sites.port}",
        tls={"server_name": HOST, "alpn": ["x-amzn-mqtt-ca"]},
        **login,
    )
    assert sites.state("up")["protocol"] == "MQTT 5"
    sites.until_link("out", state="up")
    if service.qos < 2:
        sites.until_link("exact", state="refused")
        (reason,) = [
            row["stateReason"] for row in sites.row()["links"] if row["linkName"] == "exact"
        ]
        assert "QoS" in reason
    else:
        sites.until_link("exact", state="up")
    ours, theirs = paho(here.port("mqtt"), "ours"), paho(other, "theirs")
    ours.subscribe("in/#", 1)
    theirs.subscribe("out/#", 1)
    sites.until_link("in", state="up")
    theirs.client.publish("in/a", b"1", qos=1).wait_for_publish(20)
    assert ours.next()[1] == b"1"
    ours.client.publish("out/a", b"kept", qos=1, retain=True).wait_for_publish(20)
    assert theirs.next()[1] == b"kept"
    ours.client.publish("out/a", bytes(service.largest_bytes + 1), qos=1).wait_for_publish(20)
    ours.client.publish("out/a", b"behind", qos=1).wait_for_publish(20)
    assert theirs.next()[1] == b"behind"
    here.holds("blue", DEAD, 1)
    (told,) = here.told("a message was rejected as a dead letter")
    assert f"larger than the {service.largest_bytes:,} bytes" in told
