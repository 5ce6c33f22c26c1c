"""Declares the options of `pub` and `sub` that say where the broker is and who connects."""

import os
import secrets
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import unquote, urlsplit

import typer

DEFAULT_URL: Final = "mqtt://127.0.0.1:1883"

PORT: Final = 1883
TLS_PORT: Final = 8883

_STRING_BYTES: Final = 65_535


class Protocol(StrEnum):
    """What is spoken with the broker."""

    MQTT = "mqtt"
    AMQP = "amqp"


DEFAULT_PORTS: Final = {
    (Protocol.MQTT, False): PORT,
    (Protocol.MQTT, True): TLS_PORT,
    (Protocol.AMQP, False): 5_672,
    (Protocol.AMQP, True): 5_671,
}
"""By protocol and whether with TLS."""


class Version(StrEnum):
    """Versions of MQTT."""

    V5 = "5"
    V311 = "3.1.1"


Url = Annotated[
    str,
    typer.Option(
        envvar="VPNROUTER_MQTT_URL",
        metavar="URL",
        help="The broker: mqtt://[USER@]HOST[:PORT], or mqtts:// for TLS; or amqp:// and amqps://.",
    ),
]
Host = Annotated[str, typer.Option(help="The broker's host, instead of the URL's.")]
Port = Annotated[int, typer.Option(min=0, max=65_535, help="Its port, instead of the URL's.")]
User = Annotated[str, typer.Option(help="The client username; user@vpn names its VPN as well.")]
PasswordFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="File with the user's password.")
]
PasswordEnv = Annotated[
    str, typer.Option(metavar="NAME", help="Environment variable with the user's password.")
]
CaFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Authority of the broker (PEM); means TLS.")
]
Cert = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Certificate of this client (PEM); means TLS.")
]
Key = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Its key, where it is in another file.")
]
ClientId = Annotated[
    str, typer.Option("--client-id", metavar="ID", help="The MQTT client id; random without it.")
]
Keepalive = Annotated[int, typer.Option(min=0, max=65_535, help="Seconds, 0 for none.")]
ProtocolOption = Annotated[
    Protocol | None,
    typer.Option("--protocol", help="mqtt or amqp (AMQP 1.0); the scheme of the URL says it, too."),
]
MqttVersion = Annotated[Version, typer.Option("--mqtt", help="The version of MQTT to speak.")]


@dataclass(frozen=True, slots=True)
class Broker:
    """Where to connect, and as whom. `level` is 4 (MQTT 3.1.1) or 5; `tls` is None for plain TCP."""

    host: str
    port: int
    client_id: str
    level: int = 5
    username: str | None = None
    password: bytes | None = None
    keep_alive_s: int = 60
    tls: ssl.SSLContext | None = None
    protocol: Protocol = Protocol.MQTT

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.protocol}{'s' if self.tls else ''}://{host}:{self.port}"


def broker_of(
    verb: str,
    url: str,
    host: str,
    port: int,
    user: str,
    password_file: Path | None,
    password_env: str,
    ca_file: Path | None,
    cert: Path | None,
    key: Path | None,
    client_id: str,
    keepalive: int,
    version: Version,
    protocol: Protocol | None = None,
) -> Broker:
    """The broker that the options of command `verb` mean. Raises BadParameter for what makes no sense."""
    scheme, url_host, url_port, url_user = _parts(url)
    spoken = protocol or Protocol(scheme.removesuffix("s"))
    if url != DEFAULT_URL and spoken != scheme.removesuffix("s"):
        raise typer.BadParameter(f"{scheme}: is not {spoken}", param_hint="--protocol")
    tls = _context(ca_file, cert, key) if scheme.endswith("s") or ca_file or cert else None
    if key is not None and cert is None:
        raise typer.BadParameter("whose key it is is missing", param_hint="--cert")
    username = user or url_user
    password = _password(password_file, password_env)
    if password is not None and not username:
        raise typer.BadParameter("whose password it is is missing", param_hint="--user")
    return Broker(
        host or url_host,
        port or (0 if url == DEFAULT_URL else url_port) or DEFAULT_PORTS[spoken, tls is not None],
        # Two clients of one id would throw each other out.
        client_id or f"vpnrouter-{verb}-{secrets.token_hex(4)}",
        level=5 if version is Version.V5 else 4,
        username=username or None,
        password=password,
        keep_alive_s=keepalive,
        tls=tls,
        protocol=spoken,
    )


_SCHEMES: Final = frozenset(f"{one}{tls}" for one in Protocol for tls in ("", "s"))


def _parts(url: str) -> tuple[str, str, int, str]:
    try:
        parts = urlsplit(url)
        port = parts.port or 0
    except ValueError:
        parts, port = urlsplit(""), 0
    if parts.scheme not in _SCHEMES or not parts.hostname or parts.path not in {"", "/"}:
        message = (
            f"{url.rpartition('@')[2]} is not of the form mqtt://[USER@]HOST[:PORT] or mqtts://…"
        )
        raise typer.BadParameter(message, param_hint="--url")
    if parts.password is not None:
        # The list of processes is for everybody to read.
        message = "a password has no place on a command line; --password-file or --password-env"
        raise typer.BadParameter(message, param_hint="--url")
    return parts.scheme, parts.hostname, port, unquote(parts.username or "")


def _password(file: Path | None, variable: str) -> bytes | None:
    if file is not None and variable:
        raise typer.BadParameter("one of both is enough", param_hint="--password-env")
    if variable:
        value = os.environ.get(variable)
        if value is None:
            raise typer.BadParameter(f"{variable} is not set", param_hint="--password-env")
        return value.encode()
    if file is None:
        return None
    try:
        return file.read_bytes().partition(b"\n")[0].rstrip(b"\r")
    except OSError as error:
        message = f"cannot read {file}: {error.strerror}"
        raise typer.BadParameter(message, param_hint="--password-file") from error


def _context(ca_file: Path | None, cert: Path | None, key: Path | None) -> ssl.SSLContext:
    wrong = ca_file
    try:
        context = ssl.create_default_context(cafile=ca_file)
        wrong = cert
        if cert is not None:
            # An empty password keeps an encrypted key from asking at the terminal.
            context.load_cert_chain(cert, key, password="")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        message = f"cannot use {wrong}: {why}"
        hint = "--ca-file" if wrong is ca_file else "--cert"
        raise typer.BadParameter(message, param_hint=hint) from error
    return context


def user_properties(given: list[str] | None) -> list[tuple[str, str]]:
    """`k=v` as pairs, in order. Raises BadParameter for what has no `=`."""
    pairs = []
    for each in given or ():
        name, equals, value = each.partition("=")
        if not equals:
            raise typer.BadParameter(f"{each} is not NAME=VALUE", param_hint="--user-property")
        pairs.append((name, value))
    return pairs


def check_texts(texts: Sequence[str], hint: str) -> None:
    """Raise BadParameter for topics or filters that have no form on the wire (MQTT 5, 1.5.4 and 4.7.3)."""
    for text in texts:
        try:
            size = len(text.encode())
        except UnicodeEncodeError:
            raise typer.BadParameter("not UTF-8", param_hint=hint) from None
        if not 0 < size <= _STRING_BYTES or "\0" in text:
            message = f"wants 1 to {_STRING_BYTES:,} bytes, none of them 0"
            raise typer.BadParameter(message, param_hint=hint)
