"""A process of MQTT publishers: every client of the scene, paced by lines on standard input.

Arguments: rows, and the addresses by place as JSON. Each line {"until": N} asks for all flights
before flight N; the answer {"until": N, "published": {NAME: TOTAL}} follows when they have left.
"""

import json
import select
import sys
from collections.abc import Mapping

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
        """Publish its own flights among first..end-1, QoS 0, and see them off."""
        routes = self._flights.route_of[first:end].tolist()
        mine = self._mine[first:end].tolist()
        payloads = self._flights.payloads(first, end, self._place)
        for route, own, payload in zip(routes, mine, payloads, strict=True):
            if not own:
                continue
            told = self._client.publish(self._topics[route], payload)
            if told.rc != mqtt.MQTT_ERR_SUCCESS:
                raise OperationError(f"{self.name} cannot publish: {mqtt.error_string(told.rc)}")
            self.count += 1
        drain(self._client)


def connected(client_id: str, address: tuple[str, int]) -> mqtt.Client:
    """A client that the router has welcomed.

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
    """The client's socket, for waiting.

    Raises:
        OperationError: it has none any more.
    """
    socket = client.socket()
    if socket is None:
        raise OperationError("connection lost")
    return int(socket.fileno())


def drain(client: mqtt.Client) -> None:
    """Wait until everything has been handed to the system."""
    while client.want_write():
        select.select([], [descriptor(client)], [])
        code = client.loop_write()
        if code != mqtt.MQTT_ERR_SUCCESS:
            raise OperationError(f"connection lost: {mqtt.error_string(code)}")


def main() -> None:
    """Serve one demonstration until standard input ends."""
    rows, addresses = int(sys.argv[1]), json.loads(sys.argv[2])
    serve(read_flights(rows), addresses)


def serve(flights: Flights, addresses: Mapping[str, tuple[str, int]]) -> None:
    """Connect everybody, say so, and publish what is asked for."""
    stations = [PublisherClient(flights, one, addresses[one.place]) for one in scenario.PUBLISHERS]
    print(json.dumps({"ready": True}), flush=True)
    done = 0
    for line in sys.stdin:
        until = json.loads(line)["until"]
        for station in stations:
            station.publish(done, until)
        done = until
        counts = {one.name: one.count for one in stations}
        print(json.dumps({"until": until, "published": counts}), flush=True)
