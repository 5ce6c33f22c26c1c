"""`vpnrouter hash-password`: a password in, its hash for a configuration file out."""

import os
import sys
from typing import Final

import typer

from vpnrouter.cli._told import say

_SALT_BYTES: Final = 16
"""Bytes of salt, as RFC 9106, 3.1 recommends for password hashing."""


def command() -> None:
    """Hash a password for a configuration.

    Asks for the password twice on a terminal; elsewhere reads the first line of standard input.
    Prints the hash, which may stand wherever a configuration takes a password.
    """
    from vpnrouter.config.passwords import hash_password

    password = _read_password()
    try:
        say(hash_password(password, os.urandom(_SALT_BYTES)))
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
