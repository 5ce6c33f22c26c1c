"""`vpnrouter sub FILTER…`: subscribe at any MQTT or AMQP 1.0 broker, and print what comes."""

from __future__ import annotations

import base64
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final, final

import typer

from vpnrouter.cli import _broker_options as options
from vpnrouter.cli._amqp_link import BrokerLink, link_to
from vpnrouter.cli._mqtt_link import describe_reason, stamp_of
from vpnrouter.cli._output import print_bytes, print_lines, print_notes
from vpnrouter.core.mqtt.subscribe import SELECTOR
from vpnrouter.errors import OperationError
from vpnrouter.text import ascii_json, camel, printable_lines
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.packets import Ack, Packet, Publish, Suback, Subscribe, SubscriptionRequest
from vpnrouter.wire.mqtt.properties import Properties
from vpnrouter.wire.mqtt.reason import (
    IMPLEMENTATION_SPECIFIC_ERROR,
    PACKET_IDENTIFIER_NOT_FOUND,
    PUBACK,
    PUBCOMP,
    PUBREC,
    PUBREL,
    SUCCESS,
)

if TYPE_CHECKING:
    from vpnrouter.wire.mqtt.packets import Connect


_HEX_COLUMNS: Final = 16


class Format(StrEnum):
    """How a message is printed."""

    TOPIC = "topic"
    TEXT = "text"
    JSON = "json"
    HEX = "hex"
    RAW = "raw"


def printed(packet: Publish, form: Format, now_ns: int) -> bytes:
    """What `sub` writes of one message that came at `now_ns` (since 1970).

    `topic`: topic and payload on one line; `text`: the payload and a line feed; `json`: one object on
    one line; `hex`: topic and a dump; `raw`: the payload, byte for byte. In the first two, bytes that are
    no text and control characters are written as escapes: what others sent must not steer a terminal.
    """
    match form:
        case Format.RAW:
            return packet.payload
        case Format.JSON:
            return ascii_json(as_json(packet, now_ns)).encode() + b"\n"
        case Format.HEX:
            return f"{_line(packet.topic)}\n{dump(packet.payload)}".encode()
        case Format.TEXT:
            return shown_payload(packet.payload) + b"\n"
        case Format.TOPIC:
            return f"{_line(packet.topic)} {_line(packet.payload)}\n".encode()


def as_json(packet: Publish, now_ns: int) -> dict[str, Any]:
    """Everything about a message; `payload` where it is UTF-8, else `payloadBase64`."""
    moment = datetime.fromtimestamp(now_ns / 1e9, UTC)
    row: dict[str, Any] = {
        "time": f"{moment:%Y-%m-%dT%H:%M:%S}.{now_ns // 1_000_000 % 1_000:03}Z",
        "topic": packet.topic.decode(),
    }
    try:
        row["payload"] = packet.payload.decode()
    except UnicodeDecodeError:
        row["payloadBase64"] = base64.b64encode(packet.payload).decode()
    row |= {"qos": packet.qos, "retain": packet.retain, "dup": packet.dup}
    row |= {camel(name): _plain(value) for name, value in packet.properties.present().items()}
    sent_ns = stamp_of(packet.payload)
    if sent_ns:
        row["latencyMs"] = round((now_ns - sent_ns) / 1e6, 3)
    return row


def dump(payload: bytes) -> str:
    """Lines of offset, bytes in hexadecimal and as characters."""
    lines = []
    for at in range(0, len(payload), _HEX_COLUMNS):
        part = payload[at : at + _HEX_COLUMNS]
        characters = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in part)
        lines.append(f"  {at:08x}  {part.hex(' '):<{3 * _HEX_COLUMNS - 1}}  {characters}\n")
    return "".join(lines)


def shown_payload(payload: bytes) -> bytes:
    """A payload as text that is safe for a terminal: line feeds and tabs stay, other control characters are escaped."""
    return printable_lines(payload.decode(errors="backslashreplace")).encode()


def _line(data: bytes) -> str:
    return printable_lines(data.decode(errors="backslashreplace")).replace("\n", "\\n")


def _plain(value: object) -> object:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


_REFUSED_FROM: Final = 0x80

_SUBSCRIBE_ID: Final = 1

_ANSWER_S: Final = 30.0
"""Seconds that a broker has to answer SUBSCRIBE: a queue's consumer may have to wait for a commit."""

_LAST_S: Final = 5.0
"""Seconds to finish what was begun at QoS 2 before leaving."""

Write = Callable[[Sequence[Publish], int], None]
"""Takes messages and the time that they came at, in nanoseconds since 1970. It returns when they are written, so that
they may be acknowledged.
"""


@final
class Subscriber:
    """Receives over `link` what the `requests` ask for; at most `count` messages, 0 for no end.

    `accept` says whether messages of QoS 1 and 2 are acknowledged or rejected: MQTT 5 gives a rejected one
    back with reason code 0x83, upon which our routers put it into the dead message queue.
    """

    def __init__(
        self,
        link: BrokerLink,
        requests: list[SubscriptionRequest],
        write: Write,
        *,
        properties: Properties | None = None,
        count: int = 0,
        accept: bool = True,
    ) -> None:
        self.total = 0
        self.bytes = 0
        self.latencies_ns: list[int] = []
        """Of the messages since they were last cleared that say when they were published."""
        self._link = link
        self._requests = requests
        self._write = write
        self._properties = properties
        self._count = count
        self._reason = SUCCESS if accept else IMPLEMENTATION_SPECIFIC_ERROR
        self._recorded: set[int] = set()
        """Packet ids of QoS 2 that are received and not yet released."""

    @property
    def done(self) -> bool:
        """Whether `count` messages are there."""
        return bool(self._count) and self.total >= self._count

    def subscribe(self) -> list[str]:
        """Subscribe; returns what was granted, a line a filter. Raises OperationError for a refusal."""
        self._link.send_packet(Subscribe(_SUBSCRIBE_ID, self._requests, self._properties))
        end_s = time.monotonic() + _ANSWER_S
        while time.monotonic() < end_s:
            packets = self._link.receive(end_s)
            # Retained messages may come before the answer (MQTT 3.8.4).
            self._take(packets)
            for packet in packets:
                if isinstance(packet, Suback):
                    return self._granted(packet)
        raise OperationError(f"SUBSCRIBE was not answered within {_ANSWER_S:.0f} s")

    def receive(self, until_s: float) -> None:
        """Receive and write what comes next; returns at `until_s` (of time.monotonic) at the latest."""
        self._take(self._link.receive(until_s))

    def finish(self) -> None:
        """Disconnect, after the exchanges of QoS 2 that have begun are complete."""
        end_s = time.monotonic() + _LAST_S
        while self._recorded and time.monotonic() < end_s:
            self._take(self._link.receive(end_s))
        self._link.end()

    def _granted(self, packet: Suback) -> list[str]:
        lines, refused = [], []
        for request, code in zip(self._requests, packet.reason_codes, strict=False):
            if code >= _REFUSED_FROM:
                refused.append(f"{request.filter}: {describe_reason(code, packet.properties)}")
            else:
                less = f", {request.qos} was asked for" if code < request.qos else ""
                lines.append(f"subscribed to {request.filter} (QoS {code}{less})")
        if refused:
            raise OperationError("refused " + "; ".join(refused))
        return lines

    def _take(self, packets: Sequence[Packet]) -> None:
        now_ns = time.time_ns()
        new: list[Publish] = []
        replies: list[Packet] = []
        for packet in packets:
            if isinstance(packet, Publish):
                self._arrived(packet, new, replies)
            elif isinstance(packet, Ack) and packet.packet_type == PUBREL:
                known = packet.packet_id in self._recorded
                self._recorded.discard(packet.packet_id)
                code = SUCCESS if known else PACKET_IDENTIFIER_NOT_FOUND
                replies.append(Ack(PUBCOMP, packet.packet_id, code))
        if new:
            self._write(new, now_ns)
            for packet in new:
                self.bytes += len(packet.payload)
                sent_ns = stamp_of(packet.payload)
                if sent_ns:
                    self.latencies_ns.append(now_ns - sent_ns)
        if replies:
            level = self._link.level
            self._link.send(b"".join([encode(reply, level) for reply in replies]))

    def _arrived(self, packet: Publish, new: list[Publish], replies: list[Packet]) -> None:
        if packet.qos == 2 and packet.packet_id in self._recorded:
            replies.append(Ack(PUBREC, packet.packet_id))
            return
        if self.done:
            return  # not acknowledged: it is for somebody else, or for the next time
        self.total += 1
        new.append(packet)
        if packet.qos == 1:
            replies.append(Ack(PUBACK, packet.packet_id, self._reason))
        elif packet.qos == 2:
            replies.append(Ack(PUBREC, packet.packet_id, self._reason))
            if self._reason == SUCCESS:
                self._recorded.add(packet.packet_id)


_FAILED: Final = 1

_LOOKS_S: Final = 1.0
"""Seconds between two lines of --stats."""

_RECEIVE_MAXIMUM: Final = 1_000


class Retained(StrEnum):
    """What to do about retained messages (MQTT 5, 3.8.3.1)."""

    SEND = "send"
    NEW = "new"
    NEVER = "never"


Filters = Annotated[
    list[str],
    typer.Argument(
        metavar="FILTER...",
        help="Topic filters; $share/GROUP/FILTER shares, $queue/NAME consumes from a queue.",
        show_default=False,
    ),
]
Qos = Annotated[int, typer.Option("--qos", "-q", min=0, max=2, help="0, 1 or 2.")]
Form = Annotated[
    Format | None,
    typer.Option("--format", "-f", help="How to print a message.", show_default="topic"),
]
Count = Annotated[int, typer.Option(min=0, help="End after so many messages.")]
Timeout = Annotated[float, typer.Option(min=0.0, metavar="SECONDS", help="End after so long.")]
Stats = Annotated[
    bool,
    typer.Option("--stats", help="Rates and latency each second, instead of the messages."),
]
Reject = Annotated[
    bool, typer.Option("--reject", help="Give messages back instead of acknowledging them.")
]
RetainedOption = Annotated[
    Retained, typer.Option(help="Retained messages: all, of new subscriptions, or none.")
]
NoLocal = Annotated[bool, typer.Option("--no-local", help="None of one's own.")]
RetainAsPublished = Annotated[
    bool, typer.Option("--retain-as-published", help="Keep the retain flag.")
]
UserProperty = Annotated[
    list[str] | None,
    typer.Option(
        "--user-property",
        "-D",
        metavar="NAME=VALUE",
        help="Of the subscription, such as selector=… or replay-from=….",
    ),
]
SessionExpiry = Annotated[
    int,
    typer.Option(
        min=0, max=4_294_967_295, metavar="SECONDS", help="Keep the session; wants --client-id."
    ),
]


def command(
    filters: Filters,
    qos: Qos = 0,
    form: Form = None,
    count: Count = 0,
    timeout: Timeout = 0.0,
    stats: Stats = False,
    reject: Reject = False,
    retained: RetainedOption = Retained.SEND,
    no_local: NoLocal = False,
    retain_as_published: RetainAsPublished = False,
    user_property: UserProperty = None,
    session_expiry: SessionExpiry = 0,
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
    """Subscribe at any MQTT or AMQP 1.0 broker, and print what comes until ^C, --count or --timeout ends it.

    A message of QoS 1 or 2 is acknowledged when it is printed. Exit code 0, also by ^C; 1 when a
    subscription was refused, the connection was lost, or fewer than --count came within --timeout.
    """
    from vpnrouter.wire.mqtt.properties import Properties

    broker = options.broker_of(
        *("sub", url, host, port, user, password_file, password_env),
        *(ca_file, cert, key, client_id, keepalive, mqtt, protocol),
    )
    options.check_texts(filters, "FILTER")
    given = options.user_properties(user_property)
    new = [reject, retained is not Retained.SEND, no_local, retain_as_published, given]
    if broker.level != 5 and any(new):
        raise typer.BadParameter(
            "MQTT 3.1.1 has no rejection, subscription options and properties", param_hint="--mqtt"
        )
    if broker.protocol is options.Protocol.AMQP:
        _check_amqp(retained, retain_as_published, session_expiry, given)
    if session_expiry and not client_id:
        raise typer.BadParameter("a session needs a name", param_hint="--client-id")
    requests = _requests(filters, qos, retained, no_local, retain_as_published)
    with link_to(broker, _connect(broker, count, session_expiry), credit=count) as link:
        subscriber = Subscriber(
            *(link, requests, _writer(form, stats)),
            properties=Properties(user_properties=given),
            count=count,
            accept=not reject,
        )
        _receive(subscriber, link, timeout, stats)
    if timeout and count and not subscriber.done:
        came = f"{subscriber.total:,} of {count:,} messages came within {timeout:g} s"
        print_notes(f"vpnrouter: {came}")
        raise typer.Exit(_FAILED)


def _check_amqp(
    retained: Retained, retain_as_published: bool, session_expiry: int, given: list[tuple[str, str]]
) -> None:
    """Raise BadParameter for what AMQP has no words for."""
    for wrong, option in (
        (retained is not Retained.SEND, "--retained"),
        (retain_as_published, "--retain-as-published"),
        (session_expiry > 0, "--session-expiry"),
        ([name for name, _ in given if name != SELECTOR], "--user-property"),
    ):
        if wrong:
            raise typer.BadParameter("has no meaning in AMQP", param_hint=option)


def _receive(subscriber: Subscriber, link: BrokerLink, timeout: float, stats: bool) -> None:
    """Subscribe and print what comes, until it is complete, the time is over, or ^C."""
    try:
        for line in subscriber.subscribe():
            print_notes(f"vpnrouter: {line}")
        _run(subscriber, timeout, stats)
        subscriber.finish()
    except KeyboardInterrupt:
        link.end()
    finally:
        if stats:
            _summary(subscriber)


def _requests(
    filters: list[str], qos: int, retained: Retained, no_local: bool, retain_as_published: bool
) -> list[SubscriptionRequest]:
    from vpnrouter.wire.mqtt.packets import SubscriptionRequest

    handling = list(Retained).index(retained)
    return [
        # No local of a shared subscription is an error of the protocol (MQTT-3.8.3-4).
        SubscriptionRequest(
            each,
            qos,
            no_local and not each.startswith("$share/"),
            retain_as_published,
            handling,
        )
        for each in filters
    ]


def _connect(broker: options.Broker, count: int, session_expiry: int) -> Connect:
    from vpnrouter.wire.mqtt.packets import Connect
    from vpnrouter.wire.mqtt.properties import Properties

    properties = Properties(
        session_expiry_interval=session_expiry or None,
        # Messages beyond the count should not be sent here: another consumer may take them.
        receive_maximum=min(count or _RECEIVE_MAXIMUM, _RECEIVE_MAXIMUM),
    )
    return Connect(
        broker.client_id,
        clean_start=not session_expiry,
        keep_alive_s=broker.keep_alive_s,
        protocol_level=broker.level,
        username=broker.username,
        password=broker.password,
        properties=properties,
    )


class _Writer:
    """Prints messages to stdout; what it was given is written when it returns."""

    def __init__(self, form: Format) -> None:
        # Control characters must not reach a terminal.
        self._form = Format.TEXT if form is Format.RAW and sys.stdout.isatty() else form

    def __call__(self, packets: Sequence[Publish], now_ns: int) -> None:
        print_bytes(b"".join([printed(packet, self._form, now_ns) for packet in packets]))


def _writer(form: Format | None, stats: bool) -> _Writer | _Silent:
    if stats and form is None:
        return _Silent()
    return _Writer(form or Format.TOPIC)


class _Silent:
    """Prints nothing, since only counts are shown."""

    def __call__(self, packets: Sequence[Publish], now_ns: int) -> None:
        pass


def _run(subscriber: Subscriber, timeout: float, stats: bool) -> None:
    begin_s = time.monotonic()
    end_s = begin_s + timeout if timeout else float("inf")
    next_s = begin_s + _LOOKS_S
    total = size = 0
    while not subscriber.done and time.monotonic() < end_s:
        subscriber.receive(min(end_s, next_s))
        now_s = time.monotonic()
        if now_s >= next_s:
            if stats:
                elapsed_s = now_s - next_s + _LOOKS_S
                _rates(
                    (subscriber.total - total) / elapsed_s,
                    (subscriber.bytes - size) / elapsed_s,
                    subscriber,
                )
            subscriber.latencies_ns.clear()
            total, size, next_s = subscriber.total, subscriber.bytes, now_s + _LOOKS_S


def _rates(messages: float, size: float, subscriber: Subscriber) -> None:
    line = f"{messages:,.0f} messages/s, {size / 1e6:,.1f} MB/s, {subscriber.total:,} in all"
    found = sorted(subscriber.latencies_ns)
    if found:
        half, most = found[len(found) // 2], found[len(found) * 99 // 100]
        line += f", latency {half / 1e6:.2f} ms, of one in a hundred {most / 1e6:.2f} ms or more"
    print_lines(line)


def _summary(subscriber: Subscriber) -> None:
    print_lines(f"received {subscriber.total:,} messages, {subscriber.bytes:,} bytes")
