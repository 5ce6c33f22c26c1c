"""A process of MQTT subscribers: those of one router, counting what arrives. One of them answers.

Arguments: the router, and the addresses by place as JSON. Lines {"received": {NAME: TOTAL}} follow
while messages arrive. Any line on standard input asks for the end: {"tallies": {NAME: {ORIGIN:
{TOPIC: COUNT}}}}.
"""

import json
import selectors
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

import paho.mqtt.client as mqtt

from vpnrouter.demo import scenario
from vpnrouter.demo.publishing import connected, descriptor, drain
from vpnrouter.demo.scenario import topic
from vpnrouter.errors import OperationError

_TELL_S: Final = 0.02
_BATCH: Final = 500
_UNREADABLE: Final = "?"


class SubscriberClient:
    """One subscriber and what it heard, by origin and topic."""

    def __init__(self, subscriber: scenario.Subscriber, address: tuple[str, int]) -> None:
        self.name = subscriber.name
        self.count = 0
        self.tally: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._granted = False
        self.client = connected(f"subscriber-{subscriber.name}", address)
        self.client.on_message = self._hear
        self._answers = subscriber.answers
        self.client.on_subscribe = self._subscribed
        self.client.subscribe(subscriber.filter, qos=0)
        while not self._granted:
            self._checked(self.client.loop(timeout=1.0))

    def listen(self) -> None:
        """Take the messages that have arrived, or the first of them, and see the answers off."""
        for _ in range(_BATCH):
            before = self.count
            self._checked(self.client.loop_read())
            if self.count == before:
                break
        drain(self.client)

    def _hear(self, client: mqtt.Client, userdata: object, message: mqtt.MQTTMessage) -> None:
        self.count += 1
        told = read(message.payload)
        self.tally[origin(told)][message.topic] += 1
        if self._answers and is_late(told):
            # From within the client's own reading, so it leaves with the next drain.
            self._checked(client.publish(*alert(told)).rc)

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
    """What a message says; nothing where it cannot be read."""
    try:
        told = json.loads(payload)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def origin(told: Mapping[str, Any]) -> str:
    """Where a message says that it was published."""
    return str(told.get("from", _UNREADABLE))


def is_late(told: Mapping[str, Any]) -> bool:
    """Whether it is a late flight of blue."""
    return told.get("from") == scenario.BLUE and (told.get("dep_delay") or 0) >= scenario.LATE_MIN


def alert(told: Mapping[str, Any]) -> tuple[str, bytes]:
    """Topic and payload of the answer to a late flight."""
    route = (told["carrier"], told["origin"], told["dest"])
    says = {"from": scenario.YELLOW, "flight": told["flight"], "late_min": told["dep_delay"]}
    return topic(route, "alerts"), json.dumps(says, separators=(",", ":")).encode()


def main() -> None:
    """Serve one demonstration until asked for the end."""
    router, addresses = sys.argv[1], json.loads(sys.argv[2])
    serve(
        [one for one in scenario.SUBSCRIBERS if scenario.router_of(one.place) == router], addresses
    )


def serve(
    subscribers: Sequence[scenario.Subscriber], addresses: Mapping[str, tuple[str, int]]
) -> None:
    """Connect everybody, say so, and count."""
    ears = [SubscriberClient(one, addresses[one.place]) for one in subscribers]
    print(json.dumps({"ready": True}), flush=True)
    selector = selectors.DefaultSelector()
    for ear in ears:
        selector.register(descriptor(ear.client), selectors.EVENT_READ, ear)
    selector.register(sys.stdin, selectors.EVENT_READ, None)
    told = {ear.name: 0 for ear in ears}
    told_s = 0.0
    asked = False
    while not asked:
        for key, _ in selector.select(_TELL_S):
            if key.data is None:
                asked = True
            else:
                key.data.listen()
        now_s = time.monotonic()
        counts = {ear.name: ear.count for ear in ears}
        if counts != told and now_s - told_s >= _TELL_S:
            print(json.dumps({"received": counts}), flush=True)
            told, told_s = counts, now_s
    print(json.dumps({"tallies": {ear.name: ear.tally for ear in ears}}), flush=True)
    # Whoever asked would take an end before all others have told for a failure.
    sys.stdin.read()
