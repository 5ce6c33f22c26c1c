"""Colours of the page: text can be read on whatever it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import vpnrouter.report.page.page as module

TEMPLATES = Path(module.__file__).parent / "templates"
LEAST = 4.5
"""WCAG 2.1, success criterion 1.4.3, for text of usual size."""

THEMES = {
    "light": ("page.css", ":root {"),
    "dark": ("page.css", "prefers-color-scheme: dark"),
    "print": ("print.css", "--paper"),
}
GROUNDS = ("paper", "card", "faint")
TONES = ("accent", "amber", "alarm", "violet", "green", "blue")


def colours(theme: str) -> dict[str, str]:
    """The colours of a theme by name, those of the light one where it has none of its own."""
    file, begin = THEMES[theme]
    text = (TEMPLATES / file).read_text(encoding="utf-8")
    block = text[text.index(begin) :]
    own = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6})\b", block[: block.index("}")]))
    assert len(own) > 12
    return own if theme == "light" else colours("light") | own


def luminance(colour: str) -> float:
    """The relative luminance of a colour, 0 to 1."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * one for one in colour[1:])
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", THEMES)
def test_text_can_be_read(theme: str) -> None:
    """Text, soft text, and each tone on all grounds and on the soft form of itself."""
    known = colours(theme)
    pairs = [(text, ground) for text in ("ink", "soft", *TONES) for ground in GROUNDS]
    pairs += [(tone, f"{tone}-soft") for tone in TONES]
    low = {}
    for text, ground in pairs:
        dark, bright = sorted((luminance(known[text]), luminance(known[ground])))
        ratio = (bright + 0.05) / (dark + 0.05)
        if ratio < LEAST:
            low[text, ground] = round(ratio, 2)
    assert low == {}
