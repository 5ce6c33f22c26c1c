"""How commands reach a running router: the options that say where it is and who asks."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

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


def connect(
    url: str, user: str, password_file: Path | None, ca_file: Path | None
) -> "ManagementClient":
    """A client for the router at `url`; asks for the password of `user` where a terminal is.

    Raises BadParameter for options that say nothing sensible.
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

    Raises BadParameter for a file that cannot be read, and where nobody can be asked.
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
