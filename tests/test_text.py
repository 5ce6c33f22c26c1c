"""Texts of strangers are printed on one line, and without control characters."""

import json
import subprocess
import sys

import pytest

from vpnrouter import limits
from vpnrouter.text import ascii_json, printable, printable_lines

HOSTILE = {
    "ESC": "\x1b[2J",
    "OSC 0": "\x1b]0;owned\x07",
    "OSC 52": "\x1b]52;c;cm0gLXJm\x07",
    "C1 CSI": "\x9b2J",
    "C1 OSC": "\x9d0;owned\x9c",
    "NEL": "\x85",
    "DEL": "\x7f",
    "NUL": "\x00",
    "line feed": "\n",
    "carriage return": "\r",
    "bidi override": "\u202e",
    "bidi isolate": "\u2066",
    "line separator": "\u2028",
    "paragraph separator": "\u2029",
    "half a character": "\ud800",
    "tags that nobody sees": "\U000e0041",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_does_not_print_is_escaped(name: str) -> None:
    """No text begins a line of its own, moves the cursor, sets the clipboard or turns text around."""
    shown = printable(f"a{HOSTILE[name]}b")
    assert shown.isprintable()
    assert shown.startswith("a\\")
    assert shown.endswith("b")
    assert shown.encode()


def test_every_character_of_unicode() -> None:
    """Every character that is shown is printable, or a space that some scripts use."""
    spaces = set()
    for code in range(0x110000):
        shown = printable(chr(code))
        if not shown.isprintable():
            spaces.add(shown)
    assert {ord(one) for one in spaces} == {
        *(0xA0, 0x1680, 0x202F, 0x205F, 0x3000),
        *range(0x2000, 0x200B),
    }


def test_what_prints_stays() -> None:
    """Letters of any script, signs and spaces are shown as they are."""
    for text in ("", "plain", "Grüße →", "漢字\u3000か", "1\u202f000", "a\\x1b"):
        assert printable(text) == text


def test_texts_are_cut() -> None:
    """A text that is longer than the bound ends with an ellipsis there, escapes included."""
    assert len(printable("x" * (limits.PRINTED_CHARS + 1))) == limits.PRINTED_CHARS
    assert printable("x" * limits.PRINTED_CHARS)[-1] == "x"
    assert printable("\n" * 70_000, 10) == "\\n\\n\\n\\n\\…"
    assert printable("abc", 2) == "a…"


def test_whole_texts_keep_their_lines() -> None:
    """Line feeds and tabs of a payload stay; nothing else that a terminal obeys does, and nothing is cut."""
    text = "one\n\ttwo\r\x1b[31m" + "x" * 10_000
    assert printable_lines(text) == "one\n\ttwo\\r\\x1b[31m" + "x" * 10_000


@pytest.mark.parametrize("name", HOSTILE)
def test_json_is_exact_and_ascii(name: str) -> None:
    """JSON says any text exactly, and holds no character that a terminal obeys."""
    written = ascii_json({HOSTILE[name]: [HOSTILE[name]]})
    assert written.isascii()
    assert written.isprintable()
    assert json.loads(written) == {HOSTILE[name]: [HOSTILE[name]]}


def test_nothing_is_loaded_at_the_first_hostile_text() -> None:
    """Escaping opens no file: it works as well when no descriptor is left."""
    program = (
        "import sys; from vpnrouter.text import printable; before = set(sys.modules);"
        " printable('a\\x1b\\ud800'); assert set(sys.modules) == before"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
