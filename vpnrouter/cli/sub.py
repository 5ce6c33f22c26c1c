"""`vpnrouter sub FILTER…`: subscribe at any MQTT broker, and print what comes."""

import sys
import time
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

import typer

from vpnrouter.cli import _mqtt_options as options
from vpnrouter.cli._mqtt_shown import Format, printed
from vpnrouter.cli._told import note, say, say_bytes

if TYPE_CHECKING:
    from vpnrouter.cli._mqtt_subscriber import Subscriber
    from vpnrouter.wire.mqtt.packets import Connect, Publish, SubscriptionRequest

_FAILED: Final = 1

_LOOKS_S: Final = 1.0
"""Seconds between two lines of --stats."""

_RECEIVE_MAXIMUM: Final = 1_000


class Retained(StrEnum):
    """What to do about retained messages (MQTT 5, 3.8.3.1)."""

    SEND = "send"
    NEW = "new"
    NEVER = "never"


def command(
    filters: Annotated[
        list[str],
        typer.Argument(
            metavar="FILTER...",
            help="Topic filters; $share/GROUP/FILTER shares, $queue/NAME consumes from a queue.",
            show_default=False,
        ),
    ],
    qos: Annotated[int, typer.Option("--qos", "-q", min=0, max=2, help="0, 1 or 2.")] = 0,
    form: Annotated[
        Format | None,
        typer.Option("--format", "-f", help="How to print a message.", show_default="topic"),
    ] = None,
    count: Annotated[int, typer.Option(min=0, help="End after so many messages.")] = 0,
    timeout: Annotated[
        float, typer.Option(min=0.0, metavar="SECONDS", help="End after so long.")
    ] = 0.0,
    stats: Annotated[
        bool,
        typer.Option("--stats", help="Rates and latency each second, instead of the messages."),
    ] = False,
    reject: Annotated[
        bool, typer.Option("--reject", help="Give messages back instead of acknowledging them.")
    ] = False,
    retained: Annotated[
        Retained, typer.Option(help="Retained messages: all, of new subscriptions, or none.")
    ] = Retained.SEND,
    no_local: Annotated[bool, typer.Option("--no-local", help="None of one's own.")] = False,
    retain_as_published: Annotated[
        bool, typer.Option("--retain-as-published", help="Keep the retain flag.")
    ] = False,
    user_property: Annotated[
        list[str] | None,
        typer.Option(
            "--user-property",
            "-D",
            metavar="NAME=VALUE",
            help="Of the subscription, such as selector=… or replay-from=….",
        ),
    ] = None,
    session_expiry: Annotated[
        int,
        typer.Option(
            min=0, max=4_294_967_295, metavar="SECONDS", help="Keep the session; wants --client-id."
        ),
    ] = 0,
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
) -> None:
    """Subscribe at any MQTT broker, and print what comes until ^C, --count or --timeout ends it.

    A message of QoS 1 or 2 is acknowledged when it is printed. Exit code 0, also by ^C; 1 when a
    subscription was refused, the connection was lost, or fewer than --count came within --timeout.
    """
    from vpnrouter.cli._mqtt_link import MqttLink
    from vpnrouter.cli._mqtt_subscriber import Subscriber
    from vpnrouter.wire.mqtt.properties import Properties

    broker = options.broker_of(
        *("sub", url, host, port, user, password_file, password_env),
        *(ca_file, cert, key, client_id, keepalive, mqtt),
    )
    options.check_texts(filters, "FILTER")
    given = options.user_properties(user_property)
    new = [reject, retained is not Retained.SEND, no_local, retain_as_published, given]
    if broker.level != 5 and any(new):
        said = "MQTT 3.1.1 has no rejection, subscription options and properties"
        raise typer.BadParameter(said, param_hint="--mqtt")
    if session_expiry and not client_id:
        raise typer.BadParameter("a session needs a name", param_hint="--client-id")
    requests = _requests(filters, qos, retained, no_local, retain_as_published)
    with MqttLink(broker, _connect(broker, count, session_expiry)) as link:
        subscriber = Subscriber(
            *(link, requests, _writer(form, stats)),
            properties=Properties(user_properties=given),
            count=count,
            accept=not reject,
        )
        try:
            for line in subscriber.subscribe():
                note(f"vpnrouter: {line}")
            _run(subscriber, timeout, stats)
            subscriber.finish()
        except KeyboardInterrupt:
            link.end()
        finally:
            if stats:
                _summary(subscriber)
    if timeout and count and not subscriber.done:
        said = f"{subscriber.total:,} of {count:,} messages came within {timeout:g} s"
        note(f"vpnrouter: {said}")
        raise typer.Exit(_FAILED)


def _requests(
    filters: list[str], qos: int, retained: Retained, no_local: bool, retain_as_published: bool
) -> "list[SubscriptionRequest]":
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


def _connect(broker: options.Broker, count: int, session_expiry: int) -> "Connect":
    from vpnrouter.wire.mqtt.packets import Connect
    from vpnrouter.wire.mqtt.properties import Properties

    properties = Properties(
        session_expiry_interval=session_expiry or None,
        # What is not wanted any more should not be on its way: others may want it.
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

    def __call__(self, packets: "Sequence[Publish]", now_ns: int) -> None:
        say_bytes(b"".join([printed(packet, self._form, now_ns) for packet in packets]))


def _writer(form: Format | None, stats: bool) -> "_Writer | _Silent":
    if stats and form is None:
        return _Silent()
    return _Writer(form or Format.TOPIC)


class _Silent:
    """Prints nothing: only counts are wanted."""

    def __call__(self, packets: "Sequence[Publish]", now_ns: int) -> None:
        pass


def _run(subscriber: "Subscriber", timeout: float, stats: bool) -> None:
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


def _rates(messages: float, size: float, subscriber: "Subscriber") -> None:
    said = f"{messages:,.0f} messages/s, {size / 1e6:,.1f} MB/s, {subscriber.total:,} in all"
    found = sorted(subscriber.latencies_ns)
    if found:
        half, most = found[len(found) // 2], found[len(found) * 99 // 100]
        said += f", latency {half / 1e6:.2f} ms, of one in a hundred {most / 1e6:.2f} ms or more"
    say(said)


def _summary(subscriber: "Subscriber") -> None:
    say(f"received {subscriber.total:,} messages, {subscriber.bytes:,} bytes")
