"""`vpnrouter pub TOPIC [MESSAGE]`: publish to any MQTT broker, and say what became of it."""

import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from vpnrouter import limits
from vpnrouter.cli import _mqtt_options as options
from vpnrouter.cli._told import note, say, say_json

if TYPE_CHECKING:
    from vpnrouter.cli._mqtt_link import MqttLink
    from vpnrouter.cli._mqtt_publisher import Outcome
    from vpnrouter.cli._mqtt_source import Payloads

_FAILED: Final = 1
_INTERRUPTED: Final = 130


def command(
    topic: Annotated[str, typer.Argument(help="Where to; $queue/NAME is one queue.")],
    message: Annotated[
        str | None, typer.Argument(help="The payload, as text.", show_default=False)
    ] = None,
    file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The payload is what this file holds.")
    ] = None,
    lines: Annotated[
        bool, typer.Option("--lines", help="Each line of stdin is a message, as it comes.")
    ] = False,
    size: Annotated[
        int | None,
        typer.Option(min=0, max=268_435_455, metavar="BYTES", help="Random payloads of this size."),
    ] = None,
    qos: Annotated[int, typer.Option("--qos", "-q", min=0, max=2, help="0, 1 or 2.")] = 0,
    retain: Annotated[bool, typer.Option("--retain", "-r", help="The topic keeps it.")] = False,
    count: Annotated[
        int | None,
        typer.Option(min=0, help="Messages, 0 for no end; 1 without it, and of stdin all lines."),
    ] = None,
    rate: Annotated[
        float, typer.Option(min=0.0, help="Messages a second; as fast as possible without it.")
    ] = 0.0,
    template: Annotated[
        bool,
        typer.Option("--template", help="Fill {seq}, {time} and {time_ns} into topic and payload."),
    ] = False,
    stamp: Annotated[
        bool,
        typer.Option("--stamp", help="Put the time before the payload; sub shows the latency."),
    ] = False,
    user_property: Annotated[
        list[str] | None, typer.Option("--user-property", "-D", metavar="NAME=VALUE")
    ] = None,
    content_type: Annotated[str | None, typer.Option(metavar="TYPE")] = None,
    response_topic: Annotated[str | None, typer.Option(metavar="TOPIC")] = None,
    correlation: Annotated[str | None, typer.Option(metavar="DATA")] = None,
    expiry: Annotated[
        int | None, typer.Option(min=0, max=4_294_967_295, help="Seconds that it is good for.")
    ] = None,
    wait: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="How long to wait for an answer.")
    ] = 60.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
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
    """Publish to any MQTT broker, and say what was acknowledged and what was refused, and why.

    Exit code 0 when nothing was refused, 1 when something was, was not answered, or the connection was
    lost. At QoS 0 nobody answers: then the broker has read it and kept the connection.
    """
    from vpnrouter.cli._mqtt_link import MqttLink
    from vpnrouter.cli._mqtt_publisher import Publisher
    from vpnrouter.cli._mqtt_source import Messages
    from vpnrouter.wire.mqtt.packets import Connect

    broker = options.broker_of(
        *("pub", url, host, port, user, password_file, password_env),
        *(ca_file, cert, key, client_id, keepalive, mqtt),
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
    with MqttLink(broker, connect) as link:
        _check(link, qos, retain)
        publisher = Publisher(
            *(link, messages),
            qos=qos,
            retain=retain,
            block=block,
            rate=rate,
            patience_s=wait,
        )
        try:
            publisher.run()
        except KeyboardInterrupt:
            _tell(publisher.outcome, qos, as_json=as_json)
            raise typer.Exit(_INTERRUPTED) from None
        if not publisher.outcome.failure:
            link.end()
    _tell(publisher.outcome, qos, as_json=as_json)
    if not publisher.outcome.good:
        raise typer.Exit(_FAILED)


def _payloads(message: str | None, file: Path | None, lines: bool, size: int | None) -> "Payloads":
    from vpnrouter.cli._mqtt_source import Lines, Random, Same

    given = [message is not None, file is not None, lines, size is not None]
    if sum(given) != 1:
        said = "give one of MESSAGE, --file, --lines and --size"
        raise typer.BadParameter(said, param_hint="MESSAGE")
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
        said = f"cannot read {file}: {error.strerror}"
        raise typer.BadParameter(said, param_hint="--file") from error


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


def _check(link: "MqttLink", qos: int, retain: bool) -> None:
    from vpnrouter.errors import OperationError

    properties = link.connack.properties
    most = properties.maximum_qos
    if most is not None and qos > most:
        raise OperationError(f"the broker takes messages up to QoS {most}, and this is QoS {qos}")
    if retain and properties.retain_available == 0:
        raise OperationError("the broker keeps no retained messages")


def _tell(outcome: "Outcome", qos: int, *, as_json: bool) -> None:
    for line in outcome.told:
        note(f"vpnrouter: {line}")
    refused = sum(outcome.refused.values())
    if refused > len(outcome.told):
        note(f"vpnrouter: … {refused - len(outcome.told):,} more refused")
    if outcome.failure:
        note(f"vpnrouter: {outcome.failure}")
    if as_json:
        say_json(outcome.as_json())
        return
    rate = outcome.sent / outcome.seconds if outcome.seconds else 0.0
    pace = f" in {outcome.seconds:.1f} s, {rate:,.0f} a second" if outcome.sent > 1 else ""
    say(f"sent {outcome.sent:,} at QoS {qos}{pace}")
    for reason, number in sorted(outcome.acknowledged.items()):
        say(f"acknowledged {number:,}: {reason}")
    for reason, number in sorted(outcome.refused.items()):
        say(f"refused {number:,}: {reason}")
    if outcome.unanswered:
        say(f"not answered {outcome.unanswered:,}")
