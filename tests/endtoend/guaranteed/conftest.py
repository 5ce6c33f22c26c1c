"""Two or more routers with guaranteed bridges, and what users of bridges between routers ask of them.

Each demand, and the tests that hold it. Those of this folder are named by their file alone.

No acknowledged message is lost, whatever the link or the remote does:
    test_flows.py (a burst over a healthy bridge, bursts while the remote is killed or silent, links that are reset,
    ended, half open; fail-over and fail-back); ../crash/test_crash_bridge.py (SIGKILL of either side at random and
    at each step).
A publisher is told when its message is not taken, and when it is at the other side, where it waits for that:
    test_full_queues.py.
What waited drains by itself, soon after the remote is back:
    test_flows.py (nobody publishes or consumes meanwhile).
Exactly once at QoS 2, and neither a storm of repeated packets nor a forgotten PUBREL:
    test_flows.py; at each step of the exchange and over a crash ../../core/mqtt/test_exchange.py,
    ../../core/mqtt/test_outbound.py, ../crash/test_crash_router.py.
Retained messages keep their flag, are cleared, are not sent again and do not come back:
    test_retained.py for guaranteed and Direct messages by QoS.
The dead message queue says why and keeps the topic, once for each message, without loops:
    test_dead_letters.py; ../../core/guaranteed/test_dead_letters.py.
Bounds: what goes when there is no room, and messages wait on disk and not in memory:
    test_full_queues.py; a last value queue: ../../core/guaranteed/test_endpoint.py; the replay log forgets its oldest:
    ../../core/guaranteed/test_replay_log.py.
The remote's limits hold, and one message that cannot pass stops no other:
    test_dead_letters.py; the window: test_flows.py::test_changed_while_it_runs,
    ../../bridges/test_flow_sender.py::test_the_window_and_its_changes;
    Direct messages: ../bridges/test_traffic.py::test_a_message_too_long_for_the_other_side.
A full queue is felt by the publisher, over one bridge and over several:
    test_full_queues.py.
Acknowledged is on disk, also when the power goes:
    ../crash/test_power_cut.py::test_power_cuts; that it would tell if the log were not synced:
    ../crash/test_power_cut.py::test_unsynced_log_is_found. A full disk: ../crash/test_disk_full.py.
"""

import threading
from collections.abc import Callable
from typing import Any, Final, final

import paho.mqtt.client as mqtt
import pytest
import yaml
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from vpnrouter.testing.network import FaultyNetwork

PATIENCE_S: Final = 120.0
RECEIVE_MAXIMUM: Final = 2_000
"""What the router announces; paho does not look at it."""


def vpn(**written: Any) -> dict[str, Any]:
    """A message VPN that lets everybody in, bridges too."""
    return {
        "authentication": {"basic": {"enabled": False}},
        "client_profiles": {"default": {"allow_bridge_connections_enabled": True}},
        **written,
    }


def bridge(location: str, msg_vpn: str, queue: str = "", **written: Any) -> dict[str, Any]:
    """A bridge from `msg_vpn`, bound to `queue` of it; `remote` in `written` adds to its remote message VPN."""
    remote: dict[str, Any] = {"name": msg_vpn, "location": location, **written.pop("remote", {})}
    if queue:
        remote["queue_binding"] = queue
    return {
        "guaranteed_retry_interval": 50,
        "remote_connection": {"retry_delay": 0, "heartbeat_interval": 200},
        "remote_authentication": {"basic": {"client_username": "bridge"}},
        "remote_msg_vpns": [remote],
        **written,
    }


def queue(*subscriptions: str, **written: Any) -> dict[str, Any]:
    """A queue."""
    return {"subscriptions": list(subscriptions), **written}


@final
class Publisher:
    """A paho client that publishes numbers. `answers` has the reason code for each that is answered."""

    def __init__(self, client: mqtt.Client) -> None:
        self.answers: dict[int, int] = {}
        self._numbers: dict[int, int] = {}
        self._changed = threading.Condition()
        self._client = client
        client.on_publish = self._answered

    def _answered(self, _client: Any, _data: Any, mid: int, reason: Any, _properties: Any) -> None:
        with self._changed:
            # The answer may be here before `publish` has told the identifier.
            self._changed.wait_for(lambda: mid in self._numbers, PATIENCE_S)
            self.answers[self._numbers.pop(mid)] = reason.value
            self._changed.notify_all()

    def publish(
        self, topic: str, *numbers: int, qos: int = 1, size: int = 1, **options: Any
    ) -> None:
        """Publish numbers, padded to `size`, and wait for no answer."""
        for number in numbers:
            told = self._client.publish(topic, str(number).rjust(size), qos, **options)
            with self._changed:
                self._numbers[told.mid] = number
                self._changed.notify_all()

    def send(self, topic: str, payload: bytes, number: int, *, qos: int, retain: bool) -> None:
        """Publish something else than its number, and wait until it is accepted."""
        told = self._client.publish(topic, payload, qos, retain)
        with self._changed:
            self._numbers[told.mid] = number
            self._changed.notify_all()
        assert self.answered(number) == [0]

    def answered(self, *numbers: int) -> list[int]:
        """The answers to these, once they are there."""
        with self._changed:
            here = self._changed.wait_for(
                lambda: all(number in self.answers for number in numbers), PATIENCE_S
            )
            assert here, f"{len(numbers)} published, {len(self.answers)} answered"
            return [self.answers[number] for number in numbers]

    def accepted(self, topic: str, *numbers: int, **options: Any) -> None:
        """Publish numbers, and wait until all of them are accepted."""
        self.publish(topic, *numbers, **options)
        assert self.answered(*numbers) == [0] * len(numbers)


@final
class Kit:
    """Documents, routers and clients of a test."""

    vpn = staticmethod(vpn)
    bridge = staticmethod(bridge)
    queue = staticmethod(queue)

    def __init__(self, start: Any, paho: Any, patiently: Any, network: FaultyNetwork) -> None:
        self.start = start
        self._paho = paho
        self._patiently = patiently
        self.network = network

    def up(self, name: str, msg_vpn: str, written: dict[str, Any], link: Any = None) -> Any:
        """Router `name` with one message VPN; `link` leads to it from now on."""
        kinds: list[dict[str, str]] = [
            {"protocol": "http"},
            {"protocol": "mqtt", "msg_vpn": msg_vpn},
            {"protocol": "link"},
        ]
        listeners = [{**kind, "bind": "127.0.0.1:0"} for kind in kinds]
        document = {"listeners": listeners, "msg_vpns": {msg_vpn: written}}
        router = self.start(yaml.safe_dump(document), name)
        if link is not None:
            link.target = ("127.0.0.1", router.port("link"))
        return router

    def publisher(self, router: Any, name: str) -> Publisher:
        """A client that publishes, with many messages in flight, as one has that wants to be fast."""
        return Publisher(self.client(router, name, inflight=RECEIVE_MAXIMUM).client)

    def client(self, router: Any, name: str = "", **options: Any) -> Any:
        """A client that consumes; subscribe first, and ask for the messages then."""
        return self._paho(router.port("mqtt"), name, **options)

    def consumer(self, router: Any, queue: str, name: str = "consumer", **options: Any) -> Any:
        """A client that takes from a queue."""
        client = self._paho(router.port("mqtt"), name, **options)
        client.client.subscribe(f"$queue/{queue}", 1)
        return client

    def edge(self, link: Any = None, **written: Any) -> Any:
        """Router edge: message VPN blue with queue to-core, and what else is written."""
        queues = {"to-core": queue("orders/>"), **written.pop("queues", {})}
        return self.up("edge", "blue", vpn(queues=queues, **written), link)

    def core(self, link: Any, bridge: dict[str, Any] | None = None, **written: Any) -> Any:
        """Router core: message VPN yellow with queue orders, and bridge from-blue, bound to to-core of blue."""
        queues = {"orders": queue("orders/>"), **written.pop("queues", {})}
        from_blue = self.bridge(link.address, "blue", "to-core", **(bridge or {}))
        bridges = {"from-blue": from_blue, **written.pop("bridges", {})}
        return self.up("core", "yellow", vpn(queues=queues, bridges=bridges, **written))

    def both(self, bridge: dict[str, Any] | None = None, **written: Any) -> tuple[Any, Any, Any]:
        """Edge, core once its bridge is bound, and the link between them; `written` is put into core."""
        link = self.network.link()
        one, two = self.edge(link), self.core(link, bridge, **written)
        two.bridge("from-blue", boundToQueue=True)
        return one, two, link

    @property
    def until(self) -> Callable[[Callable[[], bool], str], None]:
        """Wait until something is true."""
        found: Callable[[Callable[[], bool], str], None] = self._patiently
        return found


@pytest.fixture
def kit(start: Any, paho: Any, patiently: Any, network: FaultyNetwork) -> Kit:
    """Documents, routers and clients; all of them end with the test."""
    return Kit(start, paho, patiently, network)


def v5(packet: int = PacketTypes.PUBLISH, **properties: Any) -> Properties:
    """Properties of a packet."""
    made = Properties(packet)  # type: ignore[no-untyped-call]
    for name, value in properties.items():
        setattr(made, name, value)
    return made


@pytest.fixture
def properties() -> Callable[..., Properties]:
    """`properties(MessageExpiryInterval=1)`: of a PUBLISH."""
    return v5


@pytest.fixture
def messages() -> Callable[[Any], list[mqtt.MQTTMessage]]:
    """`messages(client)`: a list that whole messages go to from now on, instead of `arrived`."""

    def keep(client: Any) -> list[mqtt.MQTTMessage]:
        found: list[mqtt.MQTTMessage] = []
        client.client.on_message = lambda _c, _u, message: found.append(message)
        return found

    return keep
