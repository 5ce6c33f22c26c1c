"""Declares the options that say where a router is and who connects, and finds objects by name."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from vpnrouter.cli._completion import vpn_names
from vpnrouter.errors import OperationError

if TYPE_CHECKING:
    from vpnrouter.management.client import ManagementClient

DEFAULT_URL: Final = "http://127.0.0.1:8080"

Url = Annotated[str, typer.Option(envvar="VPNROUTER_URL", help="The router's http listener.")]

User = Annotated[str, typer.Option(help="A user of its management.")]

PasswordFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="File with the user's password.")
]

CaFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Authority of an https listener (PEM).")
]


def msg_vpn_option(noun: str) -> Any:  # noqa: ANN401 (as typer has it)
    """The option that says in which message VPN the queue, bridge or client of a command is."""
    return typer.Option(
        metavar="VPN",
        help=f"Its message VPN; needed where several have a {noun} of that name.",
        autocompletion=vpn_names,
    )


def connect(
    url: str, user: str, password_file: Path | None, ca_file: Path | None
) -> "ManagementClient":
    """A client for the router at `url`; asks for the password of `user` where a terminal is.

    Raises BadParameter for options that are wrong or do not go together.
    """
    from vpnrouter.management.client import ManagementClient

    password = password_of(user, password_file)
    try:
        return ManagementClient(
            url, user, password, ca_file="" if ca_file is None else str(ca_file)
        )
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--url") from error


def password_of(user: str, password_file: Path | None) -> str:
    """The password of `user` from its file, or asked for where a terminal is; "" for no user.

    Raises BadParameter for a file that cannot be read, and where there is no terminal to ask at.
    """
    if password_file is None:
        if not user:
            return ""
        if not sys.stdin.isatty():
            raise typer.BadParameter("a user needs its password", param_hint="--password-file")
        return str(typer.prompt("Password", hide_input=True, err=True))
    if not user:
        raise typer.BadParameter("whose password it is is missing", param_hint="--user")
    try:
        return password_file.read_text(encoding="utf-8").partition("\n")[0].rstrip("\r")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise typer.BadParameter(
            f"cannot read {password_file}: {why}", param_hint="--password-file"
        ) from error


def msg_vpn_of(rows: Sequence[dict[str, Any]], noun: str, name: str, msg_vpn: str = "") -> str:
    """The message VPN of the queue, bridge or client `name` among `rows`, which are of `msg_vpn` or, for "", of all.

    Raises OperationError where none has that name, or several have it.
    """
    names = [row[f"{noun}Name"] for row in rows]
    found = [row["msgVpnName"] for row, each in zip(rows, names, strict=True) if each == name]
    if not found:
        where = f" in message VPN {msg_vpn}" if msg_vpn else ""
        have = f"there are: {', '.join(dict.fromkeys(names)) or 'none'}"
        if noun == "client":
            have = "vpnrouter show clients has them"  # too many to be listed
        raise OperationError(f"there is no {noun} {name}{where}; {have}")
    if len(found) > 1:
        raise OperationError(
            f"message VPNs {', '.join(found)} each have a {noun} {name}; --msg-vpn says which"
        )
    return str(found[0])
