"""The only place where commands write lines: data on stdout, narration on stderr.

Each text becomes one printable line, so that no name can command the terminal. Tables are printed by
vpnrouter/cli/_format.py, which needs rich.
"""

import sys
from collections.abc import Iterable, Mapping
from typing import Any

from vpnrouter.text import ascii_json, printable

_WHOLE = 1 << 30
"""Characters of a line: none is cut here, since paths and lists of names are needed whole."""


def print_lines(*lines: object) -> None:
    """Write lines of data to stdout."""
    for line in lines:
        print(printable(str(line), _WHOLE), flush=True)


def print_notes(*lines: object) -> None:
    """Write lines of narration to stderr."""
    for line in lines:
        print(printable(str(line), _WHOLE), file=sys.stderr, flush=True)


def print_json(value: object, indent: int | None = None) -> None:
    """Write one JSON value to stdout, in ASCII."""
    print(ascii_json(value, indent), flush=True)


def print_json_rows(rows: Iterable[Mapping[str, Any]]) -> None:
    """Write a JSON list to stdout, object by object as they come."""
    before = "[\n"
    for row in rows:
        text = ascii_json(row, 2).replace("\n", "\n  ")
        print(f"{before}  {text}", end="")
        before = ",\n"
    print("[]" if before == "[\n" else "\n]", flush=True)


def print_bytes(data: bytes) -> None:
    """Write bytes to stdout as they are. The caller makes sure that they cannot harm a terminal."""
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
