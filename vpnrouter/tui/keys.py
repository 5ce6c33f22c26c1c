"""Declares keys once for bindings, the line at the foot of a screen, and the help."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from textual.binding import Binding, BindingType

from vpnrouter.settings.kinds import plain_kinds
from vpnrouter.tui.format import Line, Piece


class Key(NamedTuple):
    """A key of a screen. One that `changes` the router needs the right to do so.

    `shown` is one word for the foot, "" for none; `help` says what it does.
    """

    key: str
    action: str
    shown: str
    help: str
    changes: bool = False


NAMES: Final = {
    "question_mark": "?",
    "slash": "/",
    "enter": "⏎",
    "escape": "esc",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "left": "←",
    "right": "→",
}
"""How keys are written that Textual names by a word."""

EVERYWHERE: Final = (
    Key("1", "open('overview')", "", "overview: trouble and message VPNs"),
    Key("2", "open('bridges')", "", "bridges"),
    Key("3", "open('queues')", "", "queues"),
    Key("4", "open('clients')", "", "clients"),
    Key("5", "open('topology')", "", "topology map"),
    Key("6", "open('events')", "", "event log"),
    Key("7", "open('traces')", "", "live traces"),
    Key("8", "open('subscriptions')", "", "subscriptions: who gets this topic?"),
    Key("9", "open('explain')", "", "explain where a message goes"),
    Key("0", "open('connectors')", "", "connectors to foreign brokers"),
    # Only a router that has such kinds has the key.
    *([Key("o", "open('objects')", "", "objects of other kinds")] if plain_kinds() else []),
    Key("left_square_bracket", "router(-1)", "", "the router before, where several are given"),
    Key("right_square_bracket", "router(1)", "", "the next router"),
    Key("r", "look_now", "", "look now, and try a lost router again"),
    Key("escape", "back", "back", "back to the screen before"),
    Key("question_mark", "help", "help", "this help"),
    Key("q", "quit", "quit", "quit"),
)
"""Keys of every screen."""

MOVING: Final = (
    ("↑ ↓ j k", "move, or scroll"),
    ("PgUp PgDn", "a screenful; at the end of a page of a list: the next page"),
    ("g G", "first and last row"),
    ("⏎", "open what the row is about"),
    ("Tab", "to the next table of the screen"),
)
"""Keys of every table."""


def key_names(key: Key) -> str:
    """The names of a key, as people read them."""
    return " ".join(NAMES.get(each, each) for each in key.key.split(","))


def bindings_of(keys: Iterable[Key]) -> list[BindingType]:
    """The keys as Textual's bindings."""
    return [Binding(key.key, key.action, key.help, show=False) for key in keys]


def foot(keys: Sequence[Key], *, may_change: bool) -> Line:
    """The keys that are shown below a screen; those that this user may not use are grey."""
    pieces: list[Piece] = []
    for key in (*keys, *EVERYWHERE):
        if key.shown:
            allowed = may_change or not key.changes
            pieces += [
                (key_names(key), "key" if allowed else "dim"),
                (f" {key.shown}  ", "" if allowed else "dim"),
            ]
    return tuple(pieces)
