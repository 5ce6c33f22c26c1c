"""Says what a change of each key does to a running router.

Every key of the models has a row (a test walks them), so that a new key makes its author decide.
Where the field takes a bridge down for a change (maxTtl, credentials, deliver-to-one priority,
window), this router does not; where the field leaves those logged in alone
(allowBridgeConnectionsEnabled and the other permissions of a client profile) or disables a client username
for a moment (aclProfileName, clientProfileName), this one lets what is taken away go at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from vpnrouter.config.model import Model
from vpnrouter.config.secrets import Secret
from vpnrouter.settings.endpoint import GuaranteedMsging
from vpnrouter.settings.kinds import KINDS, Form
from vpnrouter.settings.logging import Logging
from vpnrouter.settings.router import Router, RouterBridging
from vpnrouter.settings.schema import Effect, Settings
from vpnrouter.settings.trace import Trace
from vpnrouter.text import printable

SECRET: Final = "***"  # noqa: S105 - what is shown in place of one
_LONGEST_SHOWN: Final = 60


class Item(NamedTuple):
    """An item of a list in a path: what identifies it, and which one it is of several alike (0 the
    first).
    """

    identity: tuple[str, ...]
    nth: int = 0

    def __str__(self) -> str:
        again = f" #{self.nth + 1}" if self.nth else ""
        return f"[{' '.join(self.identity)}{again}]"


ChangePath = tuple[str | Item, ...]
"""Keys and names, and an `Item` where a list has its items."""


@dataclass(frozen=True, slots=True)
class Change:
    """One difference. `before` and `after` are values of the models; None where nothing stood.

    An object that is added or removed is one change, whatever is in it.
    """

    path: ChangePath
    before: object
    after: object
    kind: Effect

    def __repr__(self) -> str:
        """Return a text without secrets and without long values of the configuration."""
        return f"Change({describe(self)})"


NEEDS_RESTART: Final = "needs restart: "
"""Begins a line about a difference that was not applied."""


def describe(change: Change) -> str:
    """Return one line for people, without secrets: `msg_vpns.blue.max_msg_size: 8 -> 4 (at once)`."""
    where = show_change_path(change.path)
    if change.kind in (Effect.ADDED, Effect.REMOVED):
        return f"{where}: {change.kind.value}"
    return f"{where}: {_shown(change.before)} -> {_shown(change.after)} ({change.kind.value})"


def show_change_path(path: ChangePath) -> str:
    """Return a path such as `msg_vpns.blue.bridges.from-x.remote_msg_vpns[red 192.0.2.1:55555].enabled`."""
    text = ""
    for step in path:
        shown = printable(str(step))
        text += shown if isinstance(step, Item) or not text else f".{shown}"
    return text


def _shown(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, Secret):
        return SECRET
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (Model, dict)):
        # Values by name may be secrets.
        return "{…}"
    if isinstance(value, tuple) and not isinstance(value, Item):
        text = printable(f"[{', '.join(_shown(item) for item in value)}]")
        many = any(isinstance(item, Model) for item in value) or len(text) > _LONGEST_SHOWN
        return f"{len(value)} items" if many and value else text
    return printable(str(value), _LONGEST_SHOWN)


Pattern = tuple[str, ...]
"""Keys from the top of the configuration, `ANY` for names of objects and items of lists."""


class Row(NamedTuple):
    """The effect of a change; `off` instead where a switch goes to false."""

    effect: Effect
    off: Effect | None = None


def _declared(prefix: str, of: type[Settings]) -> dict[Pattern, Row]:
    """Return the rows of all attributes that a class declares. Raises TypeError for one without an effect."""
    rows = {}
    for place in of.places:
        if place.effect is None:
            raise TypeError(f"{prefix}.{place.name} does not say what a change of it does")
        if place.attribute.ordered and not place.attribute.key:
            rows[*_pattern(prefix), *place.path] = Row(place.effect, place.attribute.off)
    return rows


def _pattern(dotted: str) -> Pattern:
    return tuple(dotted.split("."))


TABLE: Final[dict[Pattern, Row]] = {
    **_declared("router", Router),
    **_declared("guaranteed_msging", GuaranteedMsging),
    **_declared("bridging", RouterBridging),
    # The block as a whole may come and go.
    ("trace",): Row(Effect.RESTART),
    **_declared("trace", Trace),
    **_declared("logging", Logging),
    **{
        pattern: row
        for kind in KINDS
        if kind.settings is not None
        for pattern, row in _declared(".".join(kind.pattern), kind.settings).items()
    },
}

IDENTITIES: Final[dict[Pattern, tuple[str, ...]]] = {
    kind.pattern[:-1]: kind.list_keys for kind in KINDS if kind.form is Form.RECORDS
}
"""Lists whose items are objects of their own, and the keys that say which: another value there is
another object, removed and added. Any other list is one value."""


def effect_of(pattern: Pattern, after: object) -> Effect:
    """Return what a change at `pattern` to the value `after` does. KeyError for what has no row."""
    row = TABLE[pattern]
    return row.off if after is False and row.off is not None else row.effect
