"""Publishing to a broker: as fast as it takes them or at a rate, and what became of each message."""

import time
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any, Final, final

from vpnrouter import limits
from vpnrouter.cli._mqtt_link import MqttLink, said
from vpnrouter.cli._mqtt_source import Message, Messages
from vpnrouter.errors import OperationError
from vpnrouter.wire.mqtt.encode import encode, encode_publish
from vpnrouter.wire.mqtt.packets import Ack
from vpnrouter.wire.mqtt.reason import PUBACK, PUBCOMP, PUBREC, PUBREL

FAILED: Final = 0x80
"""Reason codes from here on say that the message was not taken (MQTT 5, 2.4)."""

_MOST_PACKET_ID: Final = 65_535

_LOOKS_S: Final = 0.05
"""Seconds between two looks at the connection while stdin has nothing."""


@dataclass(slots=True)
class Outcome:
    """What became of the messages. `acknowledged` and `refused` are counts by reason; `unanswered` were sent
    with QoS 1 or 2 and not answered; `told` are lines about single refused messages.
    """

    sent: int = 0
    acknowledged: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    unanswered: int = 0
    seconds: float = 0.0
    told: list[str] = field(default_factory=list)
    failure: str = ""

    @property
    def good(self) -> bool:
        """Whether everything was taken, as far as anybody says."""
        return not (self.refused or self.unanswered or self.failure)

    def as_json(self) -> dict[str, Any]:
        """For machines."""
        return {
            "sentMsgCount": self.sent,
            "acknowledged": dict(self.acknowledged),
            "refused": dict(self.refused),
            "unansweredMsgCount": self.unanswered,
            "seconds": round(self.seconds, 3),
            "failure": self.failure,
        }


@final
class Publisher:
    """Publishes `messages` over `link`. `block` are encoded properties; `rate` is messages a second, 0 for as
    fast as they are taken; `patience_s` is how long to wait for an answer.
    """

    def __init__(
        self,
        link: MqttLink,
        messages: Messages,
        *,
        qos: int = 0,
        retain: bool = False,
        block: bytes = b"",
        rate: float = 0.0,
        patience_s: float = 60.0,
    ) -> None:
        self.outcome = Outcome()
        self._link = link
        self._messages = messages
        self._qos = qos
        self._retain = retain
        self._block = block
        self._rate = rate
        self._patience_s = patience_s
        properties = link.connack.properties
        self._most_bytes = properties.maximum_packet_size or limits.MQTT_CLIENT_PACKET_BYTES
        window = properties.receive_maximum or _MOST_PACKET_ID
        self._window = min(window, limits.MQTT_CLIENT_WINDOW)
        self._in_flight: dict[int, int] = {}
        """Packet id → number of the message."""
        self._free = deque(range(1, self._window + 1))
        self._answers = 0
        self._replies: list[bytes] = []
        self._last: Message | None = None
        self._last_frame = b""

    def run(self) -> None:
        """Publish everything; the outcome holds also when it ends by OperationError or ^C."""
        begin_s = time.monotonic()
        try:
            self._publish(begin_s)
            self._await_answers()
        except OperationError as error:
            self.outcome.failure = str(error)
        finally:
            self.outcome.unanswered = len(self._in_flight)
            self.outcome.seconds = time.monotonic() - begin_s

    def _publish(self, begin_s: float) -> None:
        wait_s = 0.0
        while True:
            due = limits.MQTT_CLIENT_CHUNK_BYTES
            if self._rate:
                elapsed_s = time.monotonic() - begin_s
                due = int(elapsed_s * self._rate) + 1 - self._messages.taken
            if self._qos:
                due = min(due, len(self._free))
            more, ended = self._batch(due, wait_s)
            if more:
                self._link.send(b"".join(more))
            if ended:
                return
            wait_s = 0.0 if more else _LOOKS_S
            if self._free:
                # A moment that is past means a mere look.
                self._hear(begin_s + self._messages.taken / self._rate if self._rate else 0.0)
            else:
                self._hear_an_answer()

    def _batch(self, due: int, wait_s: float) -> tuple[list[bytes], bool]:
        """Frames of the next messages, at most `due` and not many bytes; whether there are no more."""
        frames: list[bytes] = []
        size = 0
        while len(frames) < due and size < limits.MQTT_CLIENT_CHUNK_BYTES:
            try:
                message = self._messages.take(wait_s if not frames else 0.0)
            except EOFError:
                return frames, True
            if message is None:
                break
            frame = self._frame(message)
            if frame:
                frames.append(frame)
                size += len(frame)
        return frames, False

    def _frame(self, message: Message) -> bytes:
        """The PUBLISH, b"" for one that the broker would not take."""
        if message is self._last:
            self.outcome.sent += 1
            return self._last_frame
        topic, payload = message
        packet_id = self._free[0] if self._qos else 0
        frame = encode_publish(
            topic,
            payload,
            self._link.level,
            self._block,
            self._qos,
            self._retain,
            packet_id=packet_id,
        )
        if len(frame) > self._most_bytes:
            self._refuse(
                self._messages.taken,
                f"{len(frame):,} bytes, and the broker takes {self._most_bytes:,}",
            )
            return b""
        self.outcome.sent += 1
        if self._qos:
            self._free.popleft()
            self._in_flight[packet_id] = self._messages.taken
        else:
            self._last, self._last_frame = message, frame
        return frame

    def _hear(self, until_s: float) -> None:
        for packet in self._link.receive(until_s):
            if isinstance(packet, Ack):
                self._answers += 1
                self._answered(packet)
        if self._replies:
            self._link.send(b"".join(self._replies))
            self._replies.clear()

    def _answered(self, ack: Ack) -> None:
        number = self._in_flight.get(ack.packet_id)
        if number is None:
            return
        if ack.packet_type == PUBREC and ack.reason_code < FAILED:
            self._replies.append(encode(Ack(PUBREL, ack.packet_id), self._link.level))
            self._count(number, ack)
        elif ack.packet_type in {PUBACK, PUBREC}:
            self._count(number, ack)
            self._let_go(ack.packet_id)
        elif ack.packet_type == PUBCOMP:
            self._let_go(ack.packet_id)

    def _let_go(self, packet_id: int) -> None:
        del self._in_flight[packet_id]
        self._free.append(packet_id)

    def _count(self, number: int, ack: Ack) -> None:
        reason = said(ack.reason_code, ack.properties)
        if ack.reason_code >= FAILED:
            self._refuse(number, reason)
        else:
            self.outcome.acknowledged[reason] += 1

    def _refuse(self, number: int, reason: str) -> None:
        self.outcome.refused[reason] += 1
        if len(self.outcome.told) < limits.MQTT_CLIENT_TOLD:
            self.outcome.told.append(f"message {number} refused: {reason}")

    def _await_answers(self) -> None:
        if not self._qos:
            # Nobody answers QoS 0: at least the broker has read it all, and has not said no by closing.
            self._link.settle()
        while self._in_flight:
            self._hear_an_answer()

    def _hear_an_answer(self) -> None:
        end_s = time.monotonic() + self._patience_s
        before = self._answers
        while self._answers == before:
            self._hear(end_s)
            if self._answers == before and time.monotonic() >= end_s:
                count = len(self._in_flight)
                raise OperationError(
                    f"{count:,} messages were not answered within {self._patience_s:.0f} s"
                )
