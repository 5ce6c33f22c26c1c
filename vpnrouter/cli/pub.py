"""`vpnrouter pub TOPIC [MESSAGE]`: publish to any MQTT or AMQP 1.0 broker, and say what became of it."""

from __future__ import annotations

import os
import random
import select
import sys
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final, Protocol, final

import typer

from vpnrouter import limits
from vpnrouter.cli import _broker_options as options
from vpnrouter.cli._amqp_link import BrokerLink, link_to
from vpnrouter.cli._mqtt_link import STAMP_BYTES, describe_reason, stamped
from vpnrouter.cli._output import print_json, print_lines, print_notes
from vpnrouter.errors import OperationError
from vpnrouter.wire.mqtt.encode import encode, encode_publish
from vpnrouter.wire.mqtt.packets import Ack
from vpnrouter.wire.mqtt.reason import PUBACK, PUBCOMP, PUBREC, PUBREL

_LINE_BYTES: Final = 65_536

_TIME: Final = "{time}"
_TIME_NS: Final = "{time_ns}"
_NUMBER: Final = "{seq}"

Message = tuple[bytes, bytes]
"""Topic and payload."""


class Payloads(Protocol):
    """Where payloads come from."""

    def take(self, wait_s: float) -> bytes | None:
        """The next payload; None when there is none within `wait_s` seconds. Raises EOFError at the end."""


@final
class Same:
    """One payload again and again."""

    def __init__(self, payload: bytes) -> None:
        self._payload = payload

    def take(self, wait_s: float) -> bytes:
        """Give the payload, at once."""
        return self._payload


@final
class Random:
    """Payloads of `size` random bytes, each another one."""

    def __init__(self, size: int, draws: random.Random) -> None:
        self._size = size
        self._draws = draws

    def take(self, wait_s: float) -> bytes:
        """Give `size` new random bytes, at once."""
        return self._draws.randbytes(self._size)


@final
class Lines:
    """Each line of a file descriptor, without its end, as soon as it is there."""

    def __init__(self, descriptor: int, most: int) -> None:
        self._descriptor = descriptor
        self._most = most
        self._lines: list[bytes] = []
        self._rest = b""
        self._ended = False

    def take(self, wait_s: float) -> bytes | None:
        """Give the next line; None when none is there within `wait_s` seconds.

        Raises EOFError at the end, OperationError for a line that is longer than a message may be.
        """
        if not self._lines and not self._ended:
            ready, _, _ = select.select([self._descriptor], [], [], wait_s)
            if ready:
                self._read()
        if self._lines:
            return self._lines.pop()
        if self._ended:
            raise EOFError
        return None

    def _read(self) -> None:
        chunk = os.read(self._descriptor, _LINE_BYTES)
        *whole, self._rest = (self._rest + chunk).split(b"\n")
        if not chunk:
            self._ended = True
            if self._rest:
                whole.append(self._rest)
        if len(self._rest) > self._most:
            raise OperationError(f"a line of stdin is longer than {self._most:,} bytes")
        self._lines = [line.removesuffix(b"\r") for line in reversed(whole)]


@final
class Messages:
    """Messages of `topic` from `payloads`, at most `count` (0 for no end).

    With `template`, `{seq}` (from 1), `{time}` (ISO 8601, UTC) and `{time_ns}` (since 1970) in topic and
    payload are filled in. With `stamp` the payload begins with its time, see _mqtt_link.py; of `size`
    random bytes it takes the first.
    """

    def __init__(
        self,
        topic: str,
        payloads: Payloads,
        *,
        count: int = 1,
        template: bool = False,
        stamp: bool = False,
    ) -> None:
        self._topic = topic
        self._topic_bytes = topic.encode()
        self._payloads = payloads
        self._count = count
        self._template = template
        self._stamp = stamp
        self.taken = 0
        self._last: Message = (b"", b"")

    def take(self, wait_s: float) -> Message | None:
        """The next message, the same object as long as it is the same; None when there is none within
        `wait_s` seconds. Raises EOFError at the end.
        """
        if self._count and self.taken >= self._count:
            raise EOFError
        payload = self._payloads.take(wait_s)
        if payload is None:
            return None
        self.taken += 1
        topic = self._topic_bytes
        if self._template:
            now_ns = time.time_ns()
            topic = self._filled(topic, now_ns)
            payload = self._filled(payload, now_ns)
        if self._stamp:
            if isinstance(self._payloads, Random):
                payload = payload[STAMP_BYTES:]
            payload = stamped(payload, time.time_ns())
        last_topic, last_payload = self._last
        if payload is not last_payload or topic is not last_topic:
            self._last = (topic, payload)
        return self._last

    def _filled(self, text: bytes, now_ns: int) -> bytes:
        """Replace the three placeholders and nothing else, since JSON is full of braces."""
        if b"{" not in text:
            return text
        moment = datetime.fromtimestamp(now_ns / 1e9, UTC)
        values = {
            _NUMBER: str(self.taken),
            _TIME: f"{moment:%Y-%m-%dT%H:%M:%S}.{now_ns // 1_000_000 % 1_000:03}Z",
            _TIME_NS: str(now_ns),
        }
        for name, value in values.items():
            text = text.replace(name.encode(), value.encode())
        return text


FAILED: Final = 0x80
"""Reason codes from here on say that the message was not taken (MQTT 5, 2.4)."""

_MOST_PACKET_ID: Final = 65_535

_LOOKS_S: Final = 0.05
"""Seconds between two reads of the connection while stdin has nothing."""


@dataclass(slots=True)
class Outcome:
    """What became of the messages. `acknowledged` and `refused` are counts by reason; `unanswered` were sent
    with QoS 1 or 2 and not answered; `refusals` are lines about the first refused messages.
    """

    sent: int = 0
    acknowledged: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    unanswered: int = 0
    seconds: float = 0.0
    refusals: list[str] = field(default_factory=list)
    failure: str = ""

    @property
    def good(self) -> bool:
        """True when nothing was refused or left unanswered, and nothing failed."""
        return not (self.refused or self.unanswered or self.failure)

    def as_json(self) -> dict[str, Any]:
        """The outcome as plain data for JSON."""
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
        link: BrokerLink,
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
        """Publish everything. The outcome is complete also after an OperationError or ^C."""
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
                self._take_answers(
                    begin_s + self._messages.taken / self._rate if self._rate else 0.0
                )
            else:
                self._wait_for_answer()

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

    def _take_answers(self, until_s: float) -> None:
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
        reason = describe_reason(ack.reason_code, ack.properties)
        if ack.reason_code >= FAILED:
            self._refuse(number, reason)
        else:
            self.outcome.acknowledged[reason] += 1

    def _refuse(self, number: int, reason: str) -> None:
        self.outcome.refused[reason] += 1
        if len(self.outcome.refusals) < limits.MQTT_CLIENT_TOLD:
            self.outcome.refusals.append(f"message {number} refused: {reason}")

    def _await_answers(self) -> None:
        if not self._qos:
            # Nobody answers QoS 0: at least the broker has read it all, and has not said no by closing.
            self._link.settle()
        while self._in_flight:
            self._wait_for_answer()

    def _wait_for_answer(self) -> None:
        end_s = time.monotonic() + self._patience_s
        before = self._answers
        while self._answers == before:
            self._take_answers(end_s)
            if self._answers == before and time.monotonic() >= end_s:
                count = len(self._in_flight)
                raise OperationError(
                    f"{count:,} messages were not answered within {self._patience_s:.0f} s"
                )


_FAILED: Final = 1
_INTERRUPTED: Final = 130


Topic = Annotated[str, typer.Argument(help="Where to; $queue/NAME is one queue.")]
MessageOption = Annotated[
    str | None, typer.Argument(help="The payload, as text.", show_default=False)
]
File = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The payload is what this file holds.")
]
LinesOption = Annotated[
    bool, typer.Option("--lines", help="Each line of stdin is a message, as it comes.")
]
Size = Annotated[
    int | None,
    typer.Option(min=0, max=268_435_455, metavar="BYTES", help="Random payloads of this size."),
]
Qos = Annotated[int, typer.Option("--qos", "-q", min=0, max=2, help="0, 1 or 2.")]
Retain = Annotated[bool, typer.Option("--retain", "-r", help="The topic keeps it.")]
Count = Annotated[
    int | None,
    typer.Option(min=0, help="Messages, 0 for no end; 1 without it, and of stdin all lines."),
]
Rate = Annotated[
    float, typer.Option(min=0.0, help="Messages a second; as fast as possible without it.")
]
Template = Annotated[
    bool,
    typer.Option("--template", help="Fill {seq}, {time} and {time_ns} into topic and payload."),
]
Stamp = Annotated[
    bool,
    typer.Option("--stamp", help="Put the time before the payload; sub shows the latency."),
]
UserProperty = Annotated[
    list[str] | None, typer.Option("--user-property", "-D", metavar="NAME=VALUE")
]
ContentType = Annotated[str | None, typer.Option(metavar="TYPE")]
ResponseTopic = Annotated[str | None, typer.Option(metavar="TOPIC")]
Correlation = Annotated[str | None, typer.Option(metavar="DATA")]
Expiry = Annotated[
    int | None, typer.Option(min=0, max=4_294_967_295, help="Seconds that it is good for.")
]
Wait = Annotated[
    float, typer.Option(min=0.1, metavar="SECONDS", help="How long to wait for an answer.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")]


def command(
    topic: Topic,
    message: MessageOption = None,
    file: File = None,
    lines: LinesOption = False,
    size: Size = None,
    qos: Qos = 0,
    retain: Retain = False,
    count: Count = None,
    rate: Rate = 0.0,
    template: Template = False,
    stamp: Stamp = False,
    user_property: UserProperty = None,
    content_type: ContentType = None,
    response_topic: ResponseTopic = None,
    correlation: Correlation = None,
    expiry: Expiry = None,
    wait: Wait = 60.0,
    as_json: AsJson = False,
    url: options.Url = options.DEFAULT_URL,
    host: options.Host = "",
    port: options.Port = 0,
    user: options.User = "",
    password_file: options.PasswordFile = None,
    password_env: options.PasswordEnv = "",
    ca_file: options.CaFile = None,
    cert: options.Cert = None,
    key: options.Key = None,
    client_id: options.ClientId = "",
    keepalive: options.Keepalive = 60,
    mqtt: options.MqttVersion = options.Version.V5,
    protocol: options.ProtocolOption = None,
) -> None:
    """Publish to any MQTT or AMQP 1.0 broker, and say what was acknowledged and what was refused, and why.

    Exit code 0 when nothing was refused, 1 when something was, was not answered, or the connection was
    lost. At QoS 0 nobody answers: then the broker has read it and kept the connection.
    """
    from vpnrouter.wire.mqtt.packets import Connect

    broker = options.broker_of(
        *("pub", url, host, port, user, password_file, password_env),
        *(ca_file, cert, key, client_id, keepalive, mqtt, protocol),
    )
    options.check_texts([topic], "TOPIC")
    if "#" in topic or "+" in topic:
        raise typer.BadParameter("a topic has no wildcards", param_hint="TOPIC")
    payloads = _payloads(message, file, lines, size)
    most = count if count is not None else 0 if lines else 1
    messages = Messages(topic, payloads, count=most, template=template, stamp=stamp)
    block = _block(broker.level, user_property, content_type, response_topic, correlation, expiry)
    connect = Connect(
        broker.client_id,
        keep_alive_s=broker.keep_alive_s,
        protocol_level=broker.level,
        username=broker.username,
        password=broker.password,
    )
    with link_to(broker, connect) as link:
        _check(link, qos, retain)
        publisher = Publisher(
            *(link, messages),
            qos=qos,
            retain=retain,
            block=block,
            rate=rate,
            patience_s=wait,
        )
        code = _publish(publisher, link)
    _print_outcome(publisher.outcome, qos, as_json=as_json)
    if code:
        raise typer.Exit(code)


def _publish(publisher: Publisher, link: BrokerLink) -> int:
    """Publish everything, then disconnect unless the connection failed. Returns the exit code."""
    try:
        publisher.run()
    except KeyboardInterrupt:
        return _INTERRUPTED
    if not publisher.outcome.failure:
        link.end()
    return 0 if publisher.outcome.good else _FAILED


def _payloads(message: str | None, file: Path | None, lines: bool, size: int | None) -> Payloads:
    sources = [message is not None, file is not None, lines, size is not None]
    if sum(sources) != 1:
        raise typer.BadParameter(
            "give one of MESSAGE, --file, --lines and --size", param_hint="MESSAGE"
        )
    if message is not None:
        # What was no UTF-8 on the command line goes out as it came in.
        return Same(message.encode(errors="surrogateescape"))
    if size is not None:
        return Random(size, random.Random())  # noqa: S311 (payloads, no secrets)
    if lines:
        return Lines(sys.stdin.fileno(), limits.MQTT_CLIENT_PACKET_BYTES)
    try:
        return Same(b"" if file is None else file.read_bytes())
    except OSError as error:
        why = f"cannot read {file}: {error.strerror}"
        raise typer.BadParameter(why, param_hint="--file") from error


def _block(
    level: int,
    user_property: list[str] | None,
    content_type: str | None,
    response_topic: str | None,
    correlation: str | None,
    expiry: int | None,
) -> bytes:
    from vpnrouter.wire.mqtt.properties import Properties
    from vpnrouter.wire.mqtt.publish_block import message_block

    properties = Properties(
        user_properties=options.user_properties(user_property),
        content_type=content_type,
        response_topic=response_topic,
        correlation_data=None if correlation is None else correlation.encode(),
        message_expiry_interval=expiry,
    )
    if level != 5 and properties.present():
        raise typer.BadParameter("MQTT 3.1.1 has no properties", param_hint="--mqtt")
    try:
        return message_block(properties)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def _check(link: BrokerLink, qos: int, retain: bool) -> None:
    from vpnrouter.errors import OperationError

    properties = link.connack.properties
    most = properties.maximum_qos
    if most is not None and qos > most:
        raise OperationError(f"the broker takes messages up to QoS {most}, and this is QoS {qos}")
    if retain and properties.retain_available == 0:
        raise OperationError("the broker keeps no retained messages")


def _print_outcome(outcome: Outcome, qos: int, *, as_json: bool) -> None:
    for line in outcome.refusals:
        print_notes(f"vpnrouter: {line}")
    refused = sum(outcome.refused.values())
    if refused > len(outcome.refusals):
        print_notes(f"vpnrouter: … {refused - len(outcome.refusals):,} more refused")
    if outcome.failure:
        print_notes(f"vpnrouter: {outcome.failure}")
    if as_json:
        print_json(outcome.as_json())
        return
    rate = outcome.sent / outcome.seconds if outcome.seconds else 0.0
    pace = f" in {outcome.seconds:.1f} s, {rate:,.0f} a second" if outcome.sent > 1 else ""
    print_lines(f"sent {outcome.sent:,} at QoS {qos}{pace}")
    for reason, number in sorted(outcome.acknowledged.items()):
        print_lines(f"acknowledged {number:,}: {reason}")
    for reason, number in sorted(outcome.refused.items()):
        print_lines(f"refused {number:,}: {reason}")
    if outcome.unanswered:
        print_lines(f"not answered {outcome.unanswered:,}")
