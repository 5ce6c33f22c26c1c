"""Messages that a real provider refuses, by a code or by ending the connection: the rest crosses, within seconds."""

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

import pytest

from vpnrouter.testing.modules import load_module

pytestmark = [pytest.mark.slow, pytest.mark.peers]

WITHIN_S: Final = 10
"""What is behind a message that the provider refuses has crossed by then."""

DEAD: Final = "#DEAD_MSG_QUEUE"
ATTEMPTS: Final = 3
LARGE: Final = bytes(3_000)
SMALL_PACKETS: Final = "max_packet_size 2000\n"


class Kind(NamedTuple):
    """What a provider refuses: its own settings, the topic and payload, and what the dead letter says, by version.

    A version that is not there takes the message, or cannot say that it does not.
    """

    provider: str
    settings: Any
    topic: str
    payload: bytes
    why: dict[str, str]
    retain: bool = False


CLOSED: Final = "the provider ended the connection"
SILENT: Final = "the provider has not answered a message"

KINDS: Final[dict[str, Kind]] = {
    "mosquitto, forbidden": Kind(
        "mosquitto", "acl_file {folder}/acl\n", "out/forbidden", b"bad", {"5": "0x87"}
    ),
    "mosquitto, large message": Kind(
        "mosquitto", "message_size_limit 2000\n", "out/a", LARGE, {"5": "0x95"}
    ),
    "mosquitto, large packet": Kind(
        "mosquitto", SMALL_PACKETS, "out/a", LARGE, {"5": "larger than", "3.1.1": CLOSED}
    ),
    "mosquitto, control character": Kind(
        "mosquitto", "", "out/\x01", b"bad", {"5": CLOSED, "3.1.1": CLOSED}
    ),
    "mosquitto, character that is none": Kind(
        "mosquitto", "", "out/\ufffe", b"bad", {"5": CLOSED, "3.1.1": CLOSED}
    ),
    "mosquitto, retained": Kind(
        "mosquitto", "retain_available false\n", "out/a", b"bad", {"3.1.1": CLOSED}, retain=True
    ),
    "ourselves, forbidden": Kind(
        "ourselves",
        {
            "acl_profiles": {
                "default": {
                    "publish_topic": {"default_action": "allow", "exceptions": ["out/forbidden"]}
                }
            }
        },
        "out/forbidden",
        b"bad",
        {"5": "0x87", "3.1.1": ""},
    ),
    "ourselves, large message": Kind(
        "ourselves", {"max_msg_size": 2000}, "out/a", LARGE, {"5": "0x97", "3.1.1": CLOSED}
    ),
    "ourselves, levels": Kind(
        "ourselves",
        {"max_topic_levels": 3},
        "out/a/b/c",
        b"bad",
        {"5": "", "3.1.1": ""},
    ),
    "ourselves, full queue": Kind(
        "ourselves",
        {
            "queues": {
                "full": {
                    "subscriptions": ["out/full"],
                    "max_msg_size": 1,
                }
            }
        },
        "out/full",
        b"bad",
        {"5": "", "3.1.1": ""},
    ),
    "nats, space in the topic": Kind("nats", "", "out/a b", b"bad", {"3.1.1": CLOSED}),
    "rabbitmq, large message": Kind(
        "rabbitmq", "max_message_size = 2000\n", "out/a", LARGE, {"3.1.1": SILENT}
    ),
}

CELLS: Final = [(name, version) for name, kind in KINDS.items() for version in kind.why]


@pytest.fixture(scope="session")
def providers() -> ModuleType:
    """The module providers.py."""
    return load_module("connector_providers", Path(__file__).parent / "providers.py")


@pytest.fixture
def provide(providers: Any, sites: Any, tmp_path: Path) -> Iterator[Callable[[Kind], None]]:
    """`provide(kind)` runs its provider with its settings; the test is skipped where that is not installed."""
    with contextlib.ExitStack() as stack:

        def begin(kind: Kind) -> None:
            if why := providers.missing(kind.provider):
                pytest.skip(why)
            if kind.provider == "ourselves":
                sites.provide(**kind.settings)
                return
            (tmp_path / "acl").write_text("topic readwrite #\ntopic deny out/forbidden\n")
            text = kind.settings.format(folder=tmp_path)
            stack.enter_context(providers.providing(kind.provider, sites.port, tmp_path, text))

        yield begin


@pytest.mark.parametrize("quality", ["duplicates-ok", "once-and-only-once"])
@pytest.mark.parametrize(("name", "version"), CELLS)
def test_the_rest_crosses(
    sites: Any, paho: Any, provide: Any, patiently: Any, name: str, version: str, quality: str
) -> None:
    """What is behind crosses within seconds, both ways, once; what was refused is a dead letter that says why."""
    kind = KINDS[name]
    if quality == "once-and-only-once" and kind.provider in ("nats", "rabbitmq"):
        quality = "duplicates-ok"
    provide(kind)
    once = {"quality_of_service": quality}
    links = {
        "in": {"source": {"address": "in/#"}, **once},
        "out": {"source": {"topic": "out/>"}, **once},
    }
    here = sites.connect(links, queues={DEAD: {}}, mqtt_version=version, answer_timeout=2)
    near, far = (
        paho(here.port("mqtt"), "near"),
        paho(sites.port, "far", level=5 if version == "5" else 4),
    )
    near.subscribe("in/#", 1)
    far.subscribe("out/#", 1)
    begin = time.monotonic()
    for number in range(5):
        far.client.publish(f"in/{number}", b"in-%d" % number, qos=1)
        near.client.publish(f"out/{number}", b"before-%d" % number, qos=1)
    bad = near.client.publish(kind.topic, kind.payload, qos=1, retain=kind.retain)
    bad.wait_for_publish(20)
    for number in range(5):
        far.client.publish(f"in/{number}", b"again-%d" % number, qos=1)
        near.client.publish(f"out/{number}", b"behind-%d" % number, qos=1)
    expected = {b"%s-%d" % (word, number) for word in (b"before", b"behind") for number in range(5)}
    came = {b"%s-%d" % (word, number) for word in (b"in", b"again") for number in range(5)}
    patiently(lambda: {one for _, one in list(far.arrived.queue)} >= expected, "the rest crosses")
    took = time.monotonic() - begin
    patiently(lambda: {one for _, one in list(near.arrived.queue)} >= came, "what comes in")
    patiently(lambda: len(here.api().msgs("blue", DEAD, 10)) == 1, "the dead letter")
    (dead,) = here.api().msgs("blue", DEAD, 10)
    assert here.api().payload("blue", DEAD, dead["msgId"]) == kind.payload
    texts = [
        row["text"]
        for row in here.api().events(1_000)
        if row["event"] == "VPN_CONNECTOR_MESSAGE_REFUSED"
    ]
    (text,) = texts
    assert kind.why[version] in text
    arrived = Counter(one for _, one in list(near.arrived.queue))
    crossed = Counter(one for _, one in list(far.arrived.queue))
    # Where duplicates are allowed, a connection that ends before an acknowledgement costs one.
    most = 1 if quality == "once-and-only-once" else 1 + ATTEMPTS
    assert max(arrived.values()) <= most, "something came in twice"
    assert max(crossed.values()) <= most, "something left twice"
    # Of a provider that is silent it is known only after a while.
    assert took < (3 * WITHIN_S if kind.why[version] == SILENT else WITHIN_S)
