"""Producers, consumers and the checker against a broker of 100 lines that crashes, sound and unsound.

A sound broker passes whatever happens; each way to be unsound is found. That is what makes the findings of the
crash tests (tests/endtoend/crash) worth something.
"""

import random
from collections.abc import Callable
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter.testing.history import Fault, History, check, describe
from vpnrouter.testing.mqtt_clients import Consumer, Producer
from vpnrouter.wire.mqtt.packets import (
    Ack,
    Connack,
    Packet,
    Publish,
    Suback,
    Subscribe,
)
from vpnrouter.wire.mqtt.reason import PUBACK, PUBCOMP, PUBREC, PUBREL

ENDPOINTS: Final = {"one": "q1", "two": "q2"}
"""Consumers and the endpoints that they read; every message goes to both endpoints."""

MOST_ROUNDS: Final = 240


def copied(state: Any) -> Any:
    """The same again, as far as it can change: containers, not the packets in them."""
    if isinstance(state, dict):
        return {key: copied(value) for key, value in state.items()}
    if isinstance(state, list):
        return [copied(value) for value in state]
    return set(state) if isinstance(state, set) else state


class Broker:
    """State that is synced now and then; a crash brings the synced state back.

    `fault` is what it does wrong: "" nothing, "early" answers before the sync, "unflagged" redelivers without
    DUP, "revives" forgets settlements, "half" stores at one endpoint what it rejects, "swaps" delivers the
    second message first, "twice" forgets identifiers of QoS 2 in a crash.
    """

    def __init__(self, draws: random.Random, fault: str = "") -> None:
        self.draws = draws
        self.fault = fault
        self.state: dict[str, Any] = {
            "sessions": set(),
            "taken": set(),  # (client, packet id) of inbound QoS 2
            "q1": {},  # number of the message → packet
            "q2": {},
            "next": 1,
            "out": {"one": {}, "two": {}},  # packet id → number; None when PUBREL is due
        }
        self.synced = copied(self.state)
        self.maybe_delivered: dict[str, int] = {"q1": 0, "q2": 0}
        self.open: set[str] = set()
        self.answers: list[tuple[str, Packet]] = []

    def connect(self, client: str) -> list[Packet]:
        """The client is here; what is open at it comes again."""
        known = client in self.state["sessions"]
        self.state["sessions"].add(client)
        self.open.add(client)
        said: list[Packet] = [Connack(session_present=known)]
        out = self.state["out"].get(client, {})
        for packet_id, number in sorted(out.items(), key=lambda each: each[1] or 0):
            if number is None:
                said.append(Ack(PUBREL, packet_id))
            elif number in self.state[ENDPOINTS[client]]:
                said.append(self.packet(client, packet_id, number, dup=self.fault != "unflagged"))
        return said

    def packet(self, client: str, packet_id: int, number: int, dup: bool) -> Publish:
        """A delivery."""
        sent = self.state[ENDPOINTS[client]][number]
        return Publish(sent.topic, sent.payload, sent.qos, dup=dup, packet_id=packet_id)

    def hear(self, client: str, packet: Packet) -> None:
        """A packet of a client; its answer waits for the sync."""
        say = self.answers.append
        if isinstance(packet, Subscribe):
            say((client, Suback(packet.packet_id, [2])))
        elif isinstance(packet, Publish):
            say((client, self.publish(client, packet)))
        elif isinstance(packet, Ack) and packet.packet_type == PUBREL:
            self.state["taken"].discard((client, packet.packet_id))
            say((client, Ack(PUBCOMP, packet.packet_id)))
        elif isinstance(packet, Ack):
            out = self.state["out"][client]
            number = out.get(packet.packet_id)
            if number is not None:
                self.state[ENDPOINTS[client]].pop(number, None)
            if packet.packet_type == PUBREC:
                out[packet.packet_id] = None
                say((client, Ack(PUBREL, packet.packet_id)))
            else:
                out.pop(packet.packet_id, None)

    def publish(self, client: str, packet: Publish) -> Ack:
        """Store a message everywhere or nowhere."""
        answer = PUBACK if packet.qos == 1 else PUBREC
        key = (client, packet.packet_id)
        if packet.topic == b"barrier" or key in self.state["taken"]:
            return Ack(answer, packet.packet_id)
        if self.draws.random() < 0.1:
            if self.fault == "half":
                self.state["q1"][self.number()] = packet
            return Ack(answer, packet.packet_id, 0x97)
        if packet.qos == 2:
            self.state["taken"].add(key)
        number = self.number()
        self.state["q1"][number] = self.state["q2"][number] = packet
        return Ack(answer, packet.packet_id)

    def number(self) -> int:
        """The next number of a message."""
        self.state["next"] += 1
        return int(self.state["next"])

    def sync(self) -> list[tuple[str, Packet]]:
        """Everything so far is safe; what may be said now."""
        kept = {name: self.synced[name] for name in ENDPOINTS.values()}
        self.synced = copied(self.state)
        if self.fault == "revives":
            for name, before in kept.items():
                self.synced[name] = {**before, **self.synced[name]}
        return self.release()

    def release(self) -> list[tuple[str, Packet]]:
        """Answers, and messages that no one has yet."""
        said, self.answers = self.answers, []
        for client in sorted(self.open & ENDPOINTS.keys()):
            name, out = ENDPOINTS[client], self.state["out"][client]
            here = [each for each in self.synced[name] if each in self.state[name]]
            fresh = [number for number in here if number not in out.values()][: 8 - len(out)]
            if self.fault == "swaps":
                fresh.reverse()
            for number in fresh:
                packet_id = next(each for each in range(1, 99) if each not in out)
                dup = number <= self.maybe_delivered[name] and self.fault != "unflagged"
                # Synced before it is said: at QoS 2 the identifier is what tells one delivery from two.
                out[packet_id] = self.synced["out"][client][packet_id] = number
                said.append((client, self.packet(client, packet_id, number, dup)))
        return [(client, packet) for client, packet in said if client in self.open]

    def crash(self) -> None:
        """Back to the synced state; all connections and answers are gone."""
        self.state = copied(self.synced)
        for client, out in self.state["out"].items():
            for packet_id in [each for each, number in out.items() if number is not None]:
                if self.state[ENDPOINTS[client]].get(out[packet_id], Publish(b"", b"")).qos == 1:
                    del out[packet_id]  # delivered anew, under another identifier
        if self.fault == "twice":
            self.state["taken"].clear()
        self.maybe_delivered = dict.fromkeys(self.maybe_delivered, self.state["next"])
        self.open.clear()
        self.answers.clear()


def played(seed: int, fault: str = "") -> History:
    """A run of two producers and two consumers with crashes and lost connections, to the drained end."""
    draws = random.Random(seed)
    history = History()
    broker = Broker(draws, fault)
    topics = {"t": tuple(ENDPOINTS.values())}
    producers = [
        Producer(f"p{qos}", history, draws, topics, qos=qos, window=6, burst=2, limit=16)
        for qos in (1, 2)
    ]
    consumers = [
        Consumer(
            name, history, draws, endpoint=endpoint, topic_filter="t", qos=2, barrier="barrier"
        )
        for name, endpoint in ENDPOINTS.items()
    ]
    sessions: dict[str, Any] = {each.name: each for each in (*producers, *consumers)}
    mail: list[tuple[str, Packet]] = []

    def lose(names: set[str]) -> None:
        mail[:] = [each for each in mail if each[0] not in names]
        broker.answers = [each for each in broker.answers if each[0] not in names]
        broker.open -= names
        for name in names:
            sessions[name].closed()

    for round_number in range(MOST_ROUNDS):
        rough = round_number < MOST_ROUNDS // 2
        if rough and draws.random() < 0.1:
            history.noted("crash")
            broker.crash()
            lose(set(sessions))
        elif rough and draws.random() < 0.1:
            lose({draws.choice(sorted(sessions))})
        for name, session in sessions.items():
            if name not in broker.open:
                connack, *rest = broker.connect(name)
                for packet in session.opened(connack):
                    broker.hear(name, packet)
                broker.answers.extend((name, packet) for packet in rest)
            for packet in session.due():
                broker.hear(name, packet)
        if fault == "early":
            mail.extend(broker.release())
        if not rough or draws.random() < 0.5:
            mail.extend(broker.sync())
        if rough and draws.random() < 0.4:
            continue  # on its way, and lost if there is a crash before it arrives
        arrived, mail[:] = mail[:], []
        for name, packet in arrived:
            for answer in sessions[name].received(packet):
                broker.hear(name, answer)
        if all(each.done for each in producers) and not broker.state["q1"] | broker.state["q2"]:
            break
    return history


@given(st.integers(0, 2**32))
def test_sound_broker_passes(seed: int) -> None:
    """Crashes and lost connections leave nothing to find where every promise is kept."""
    history = played(seed)
    found = check(history, refusing=True)
    assert not found, describe(found, history)


@pytest.mark.parametrize(
    ("fault", "kinds"),
    [
        ("early", {Fault.LOSS}),
        ("unflagged", {Fault.DUPLICATE}),
        ("revives", {Fault.RESURRECTION}),
        ("half", {Fault.PARTIAL}),
        ("swaps", {Fault.REORDER}),
        ("twice", {Fault.DUPLICATE}),
    ],
)
def test_unsound_broker_is_found(fault: str, kinds: set[Fault]) -> None:
    """Some run of twenty shows what a broker does wrong, under its name."""
    found = {each.fault for seed in range(20) for each in check(played(seed, fault), refusing=True)}
    assert kinds <= found


def test_runs_are_repeatable() -> None:
    """A seed is one run."""
    play: Callable[[], list[str]] = lambda: [str(event) for event in played(5).events]  # noqa: E731
    assert play() == play()
