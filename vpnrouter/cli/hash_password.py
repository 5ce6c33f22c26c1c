"""`vpnrouter hash-password`: a password in, its hash for a configuration file out."""

import os
import sys
from typing import Annotated, Final

import typer

from vpnrouter.cli._output import print_lines

_SALT_BYTES: Final = 16
"""Bytes of salt, as RFC 9106, 3.1 recommends for password hashing."""


def command(
    *,
    scram: Annotated[
        bool,
        typer.Option(
            "--scram", help="A verifier for SCRAM-SHA-256, which bridges can log in with as well."
        ),
    ] = False,
) -> None:
    """Hash a password for a configuration.

    Asks for the password twice on a terminal; elsewhere reads the first line of standard input.
    Prints the hash, which may stand wherever a configuration takes a password.
    """
    from vpnrouter.config.secrets import hash_password, scram_verifier

    password = _read_password()
    hashed = scram_verifier if scram else hash_password
    try:
        print_lines(hashed(password, os.urandom(_SALT_BYTES)))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def _read_password() -> str:
    if sys.stdin.isatty():
        return str(typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
    line = sys.stdin.buffer.readline().rstrip(b"\r\n")
    if not line:
        message = "no password on standard input"
        raise typer.BadParameter(message)
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        message = "the password on standard input is not UTF-8"
        raise typer.BadParameter(message) from error
