"""The processes of MQTT clients: publishers, and the subscribers of one router, which count what arrives.

Each speaks in lines of JSON. Publishers get the number of rows and the addresses by place as arguments; each line
{"until": N} requests all flights before flight N, and the answer {"until": N, "published": {NAME: TOTAL}} follows when
they are sent. Subscribers get the router and the addresses; lines {"received": {NAME: TOTAL}} follow while messages
arrive, and any line on standard input requests the end: {"tallies": {NAME: {ORIGIN: {TOPIC: COUNT}}}}.
"""

import json
import select
import selectors
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

from vpnrouter.demo import scenario
from vpnrouter.demo.scenario import Flights, published, read_flights, topic
from vpnrouter.errors import OperationError


class PublisherClient:
    """One publisher: its client and the flights that are its own."""

    def __init__(
        self, flights: Flights, publisher: scenario.Publisher, address: tuple[str, int]
    ) -> None:
        self.name = publisher.name
        self.count = 0
        self._flights = flights
        self._place = publisher.place
        self._mine = published(flights, publisher)
        self._topics = [topic(route) for route in flights.routes]
        self._client = connected(f"publisher-{publisher.name}", address)

    def publish(self, first: int, end: int) -> None:
        """Publish its own flights among first..end-1, QoS 0, and wait until they are sent."""
        routes = self._flights.route_of[first:end].tolist()
        mine = self._mine[first:end].tolist()
        payloads = self._flights.payloads(first, end, self._place)
        for route, own, payload in zip(routes, mine, payloads, strict=True):
            if not own:
                continue
            published = self._client.publish(self._topics[route], payload)
            if published.rc != mqtt.MQTT_ERR_SUCCESS:
                raise OperationError(
                    f"{self.name} cannot publish: {mqtt.error_string(published.rc)}"
                )
            self.count += 1
        drain(self._client)


def connected(client_id: str, address: tuple[str, int]) -> mqtt.Client:
    """Return an MQTT client that is connected.

    Raises:
        OperationError: it was refused.
    """
    client = mqtt.Client(CallbackAPIVersion.VERSION2, client_id=client_id, protocol=mqtt.MQTTv5)
    # No keep-alive: this process reads only between its tasks.
    client.connect(*address, keepalive=0)
    while not client.is_connected():
        code = client.loop(timeout=1.0)
        if code != mqtt.MQTT_ERR_SUCCESS:
            raise OperationError(f"{client_id} cannot connect: {mqtt.error_string(code)}")
    return client


def descriptor(client: mqtt.Client) -> int:
    """Return the client's socket, for waiting.

    Raises:
        OperationError: it has none any more.
    """
    socket = client.socket()
    if socket is None:
        raise OperationError("connection lost")
    return int(socket.fileno())


def drain(client: mqtt.Client) -> None:
    """Wait until the system has everything."""
    while client.want_write():
        select.select([], [descriptor(client)], [])
        code = client.loop_write()
        if code != mqtt.MQTT_ERR_SUCCESS:
            raise OperationError(f"connection lost: {mqtt.error_string(code)}")


def publishers() -> None:
    """Serve one demonstration until standard input ends."""
    rows, addresses = int(sys.argv[1]), json.loads(sys.argv[2])
    _serve_publishers(read_flights(rows), addresses)


def _serve_publishers(flights: Flights, addresses: Mapping[str, tuple[str, int]]) -> None:
    stations = [
        PublisherClient(flights, publisher, addresses[publisher.place])
        for publisher in scenario.PUBLISHERS
    ]
    print(json.dumps({"ready": True}), flush=True)
    done = 0
    for line in sys.stdin:
        until = json.loads(line)["until"]
        for station in stations:
            station.publish(done, until)
        done = until
        counts = {one.name: one.count for one in stations}
        print(json.dumps({"until": until, "published": counts}), flush=True)


_REPORT_S: Final = 0.02
_BATCH: Final = 500
_UNREADABLE: Final = "?"


class SubscriberClient:
    """One subscriber and what it received, by origin and topic."""

    def __init__(self, subscriber: scenario.Subscriber, address: tuple[str, int]) -> None:
        self.name = subscriber.name
        self.count = 0
        self.tally: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._granted = False
        self.client = connected(f"subscriber-{subscriber.name}", address)
        self.client.on_message = self._on_message
        self._answers = subscriber.answers
        self.client.on_subscribe = self._subscribed
        self.client.subscribe(subscriber.filter, qos=0)
        while not self._granted:
            self._checked(self.client.loop(timeout=1.0))

    def receive(self) -> None:
        """Take the messages that have arrived, or the first of them, and send the answers."""
        for _ in range(_BATCH):
            before = self.count
            self._checked(self.client.loop_read())
            if self.count == before:
                break
        drain(self.client)

    def _on_message(self, client: mqtt.Client, userdata: object, message: mqtt.MQTTMessage) -> None:
        self.count += 1
        flight = read(message.payload)
        self.tally[origin(flight)][message.topic] += 1
        if self._answers and is_late(flight):
            # From within the client's own reading, so it leaves with the next drain.
            self._checked(client.publish(*alert(flight)).rc)

    def _subscribed(
        self, client: mqtt.Client, userdata: object, mid: int, codes: Sequence[Any], _: object
    ) -> None:
        if any(code.is_failure for code in codes):
            raise OperationError(f"{self.name} may not subscribe: {codes[0]}")
        self._granted = True

    def _checked(self, code: int) -> None:
        if code != mqtt.MQTT_ERR_SUCCESS:
            raise OperationError(f"{self.name} lost its connection: {mqtt.error_string(code)}")


def read(payload: bytes | bytearray) -> Mapping[str, Any]:
    """Return the fields of a message; none where it cannot be read."""
    try:
        flight = json.loads(payload)
    except ValueError:
        return {}
    return flight if isinstance(flight, dict) else {}


def origin(flight: Mapping[str, Any]) -> str:
    """Return the place that a message names as its origin."""
    return str(flight.get("from", _UNREADABLE))


def is_late(flight: Mapping[str, Any]) -> bool:
    """Return whether it is a late flight of blue."""
    return (
        flight.get("from") == scenario.BLUE and (flight.get("dep_delay") or 0) >= scenario.LATE_MIN
    )


def alert(flight: Mapping[str, Any]) -> tuple[str, bytes]:
    """Return topic and payload of the answer to a late flight."""
    route = (flight["carrier"], flight["origin"], flight["dest"])
    answer = {"from": scenario.YELLOW, "flight": flight["flight"], "late_min": flight["dep_delay"]}
    return topic(route, "alerts"), json.dumps(answer, separators=(",", ":")).encode()


def subscribers() -> None:
    """Serve one demonstration until the end is requested."""
    router, addresses = sys.argv[1], json.loads(sys.argv[2])
    _serve_subscribers(
        [
            subscriber
            for subscriber in scenario.SUBSCRIBERS
            if scenario.router_of(subscriber.place) == router
        ],
        addresses,
    )


def _serve_subscribers(
    subscribers: Sequence[scenario.Subscriber], addresses: Mapping[str, tuple[str, int]]
) -> None:
    clients = [
        SubscriberClient(subscriber, addresses[subscriber.place]) for subscriber in subscribers
    ]
    print(json.dumps({"ready": True}), flush=True)
    selector = selectors.DefaultSelector()
    for client in clients:
        selector.register(descriptor(client.client), selectors.EVENT_READ, client)
    selector.register(sys.stdin, selectors.EVENT_READ, None)
    reported = {client.name: 0 for client in clients}
    reported_s = 0.0
    stopping = False
    while not stopping:
        for key, _ in selector.select(_REPORT_S):
            if key.data is None:
                stopping = True
            else:
                key.data.receive()
        now_s = time.monotonic()
        counts = {client.name: client.count for client in clients}
        if counts != reported and now_s - reported_s >= _REPORT_S:
            print(json.dumps({"received": counts}), flush=True)
            reported, reported_s = counts, now_s
    print(json.dumps({"tallies": {client.name: client.tally for client in clients}}), flush=True)
    # Ending before the other processes have reported would count as a failure.
    sys.stdin.read()
