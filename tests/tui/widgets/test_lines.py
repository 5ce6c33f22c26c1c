"""Lines, payloads and sparklines."""

import asyncio
import json
from typing import Any

import pytest
from textual.app import App, ComposeResult

from vpnrouter.limits import TUI_LINES, TUI_PAYLOAD_SHOWN
from vpnrouter.tui.format import STYLES, text
from vpnrouter.tui.widgets.lines import Lines, style_of
from vpnrouter.tui.widgets.payload import PayloadView, best_view, payload_lines
from vpnrouter.tui.widgets.sparkline import sparkline


class Shown(App[None]):
    """Lines alone."""

    def __init__(self) -> None:
        super().__init__()
        self.lines = Lines(focusable=True)

    def compose(self) -> ComposeResult:
        yield self.lines


def test_scrolls_and_paints_what_changed() -> None:
    """Ten lines on a screen of four."""

    async def main() -> None:
        app = Shown()
        async with app.run_test(size=(20, 4)) as pilot:
            lines = app.lines
            lines.focus()

            def drawn() -> list[str]:
                return [lines.render_line(y).text.rstrip() for y in range(4)]

            lines.show([text(f"line {n}") for n in range(10)])
            assert drawn() == ["line 0", "line 1", "line 2", "line 3"]
            seen: list[Any] = []
            for key in ("j", "G", "k", "pageup", "g"):
                await pilot.press(key)
                seen.append(drawn()[0])
            assert seen == ["line 1", "line 6", "line 5", "line 2", "line 0"]
            before = lines.painted
            lines.show([text("line 0"), text("other"), *(text(f"line {n}") for n in range(2, 10))])
            assert lines.painted == before + 1
            await pilot.press("G")
            lines.show([text("one")])
            assert drawn() == ["one", "", "", ""], "what is shorter is seen from its end"

    asyncio.run(main())


def test_styles_are_known() -> None:
    """Each name means something, and several are one over the other."""
    for name in STYLES:
        style_of(name)
    both = style_of("cursor+bad")
    assert both.bgcolor == style_of("cursor").bgcolor
    assert both.color == style_of("bad").color


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


def test_long_payloads_are_cut_and_it_is_said() -> None:
    """What is left out is counted."""
    lines = written(b"x" * (TUI_PAYLOAD_SHOWN + 5), PayloadView.TEXT)
    assert lines[-1] == "… 5 bytes more"
    assert sum(map(len, lines[:-1])) == TUI_PAYLOAD_SHOWN
    many = written(b"\n" * (TUI_LINES + 10), PayloadView.TEXT)
    assert len(many) == TUI_LINES
    assert "lines more" in many[-1]
    assert written(b"", PayloadView.TEXT) == ["no payload"]


def test_the_highest_is_full_and_none_is_empty() -> None:
    """Heights go by the highest rate that is shown."""
    assert sparkline([0, 1, 4, 8], 4) == " ▂▅█"


def test_newest_on_the_right() -> None:
    """Older ones go, and a short history leaves room on the left."""
    assert sparkline([9, 9, 1, 1], 2) == "██"
    assert sparkline([3], 4) == "   █"
    assert sparkline([], 3) == "   "
    assert sparkline([1, 2], 0) == ""


def test_the_least_is_seen() -> None:
    """One message beside a million draws something."""
    assert sparkline([1, 1_000_000], 2)[0] == "▁"
