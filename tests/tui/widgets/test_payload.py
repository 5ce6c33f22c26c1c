import json

import pytest

from vpnrouter.limits import TUI_LINES, TUI_PAYLOAD_SHOWN
from vpnrouter.tui.widgets.payload import PayloadView, best_view, payload_lines


def written(payload: bytes, view: PayloadView, width: int = 80) -> list[str]:
    """Lines without styles."""
    lines = payload_lines(payload, view, width)
    return ["".join(piece for piece, _ in line) for line in lines]


@pytest.mark.parametrize(
    ("payload", "view"),
    [
        (b'{"a": 1}', PayloadView.JSON),
        (b"  [1, 2]", PayloadView.JSON),
        (b"{not json", PayloadView.TEXT),
        (b"12", PayloadView.TEXT),
        ("Köln".encode(), PayloadView.TEXT),
        (b"\xff\xfe\x00", PayloadView.HEX),
        (b"a\x00b", PayloadView.HEX),
        (b"", PayloadView.TEXT),
        (b"[" * 100_000, PayloadView.TEXT),
        (b"x" + "ö".encode() * TUI_PAYLOAD_SHOWN, PayloadView.TEXT),
    ],
    ids=range(10),
)
def test_best_view(payload: bytes, view: PayloadView) -> None:
    """Objects and lists as JSON, UTF-8 as text, the rest as bytes."""
    assert best_view(payload) is view


def test_json_is_indented_and_keeps_its_letters() -> None:
    """As a person would write it."""
    assert written('{"city":"Köln"}'.encode(), PayloadView.JSON) == ["{", '  "city": "Köln"', "}"]


def test_what_is_no_json_says_so() -> None:
    """The other views are named."""
    assert written(b"abc", PayloadView.JSON) == ["not JSON; t shows it as text, x as bytes"]
    big = json.dumps("x" * TUI_PAYLOAD_SHOWN).encode()
    assert "too many to show as JSON" in written(big, PayloadView.JSON)[0]


def test_hex() -> None:
    """Offset, bytes, and what of them can be read."""
    lines = written(bytes(range(0x30, 0x42)) + b"\x00", PayloadView.HEX)
    assert (
        lines[0]
        == "00000000  " + " ".join(f"{n:02x}" for n in range(0x30, 0x40)) + "  0123456789:;<=>?"
    )
    assert lines[1].split() == ["00000010", "40", "41", "00", "@A·"]
    assert len(lines[0]) <= 80
    assert len(written(bytes(16), PayloadView.HEX, 60)) == 2, "a narrow screen has 8 in a line"


def test_text_commands_nothing() -> None:
    """Escape sequences of a publisher are written out."""
    assert written(b"\x1b[2Jabc\r\nd", PayloadView.TEXT) == ["\\x1b[2Jabc", "d"]


def test_long_payloads_are_cut_and_it_is_said() -> None:
    """What is left out is counted."""
    lines = written(b"x" * (TUI_PAYLOAD_SHOWN + 5), PayloadView.TEXT)
    assert lines[-1] == "… 5 bytes more"
    assert sum(map(len, lines[:-1])) == TUI_PAYLOAD_SHOWN
    many = written(b"\n" * (TUI_LINES + 10), PayloadView.TEXT)
    assert len(many) == TUI_LINES
    assert "lines more" in many[-1]
    assert written(b"", PayloadView.TEXT) == ["no payload"]
