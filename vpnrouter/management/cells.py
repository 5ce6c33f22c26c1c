"""Cuts texts to columns of a terminal."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size

ELLIPSIS = "…"


def cut(string: str, width: int, *, middle: bool = False) -> str:
    """A printable text in at most `width` columns of a terminal. What is left out of a longer one is an ellipsis, at
    its end, or in its `middle`: names that begin alike differ there.
    """
    if cell_len(string) <= width:
        return string
    if width <= 1:
        return ELLIPSIS[:width]
    behind = width // 2 if middle else 0
    before = set_cell_size(string, width - behind - 1).rstrip(" ")
    tail = set_cell_size(string[::-1], behind).rstrip(" ")[::-1]
    return f"{before}{ELLIPSIS}{tail}"
