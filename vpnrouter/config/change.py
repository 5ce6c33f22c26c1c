"""One difference between two configurations, and what it takes to bring it about."""

from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from vpnrouter.config.model import Model
from vpnrouter.config.secret import Secret
from vpnrouter.text import printable

SECRET: Final = "***"  # noqa: S105 - what is shown in place of one
_LONGEST_SHOWN: Final = 60


class Effect(Enum):
    """What a change does to a running router. The value is how it is told."""

    IN_PLACE = "at once"
    """Takes effect at once; nobody is disconnected."""

    NEXT_LOGIN = "for logins from now on"
    """Whoever is logged in keeps what held at the login."""

    DISCONNECT = "its clients are disconnected"
    """Holds at once, so those whom it shuts out are disconnected; nobody else."""

    RECONNECT = "reconnects after draining"
    """The bridge above it (of a message VPN's `bridging`: each of its TLS bridges) reconnects."""

    RECONNECT_IF_USED = "reconnects after draining if it is in use"
    """The bridge above it reconnects if this is the remote message VPN that it is connected to."""

    REBIND = "the listener is bound anew"
    """The listener closes if it was bound, and is bound if it is enabled."""

    ADDED = "added"
    """An object that was not there."""

    REMOVED = "removed"
    """An object that is no longer there. A message VPN, a client username and a bridge take their
    connections with them; a listener only takes no new ones."""

    RESTART = "needs restart"
    """The running router keeps what it started with."""


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
        """Shows no secret, nor any other value of the configuration at length."""
        return f"Change({describe(self)})"


def describe(change: Change) -> str:
    """One line for people, without secrets: `msg_vpns.blue.max_msg_size: 8 -> 4 (at once)`."""
    where = show_change_path(change.path)
    if change.kind in (Effect.ADDED, Effect.REMOVED):
        return f"{where}: {change.kind.value}"
    return f"{where}: {_shown(change.before)} -> {_shown(change.after)} ({change.kind.value})"


def show_change_path(path: ChangePath) -> str:
    """`msg_vpns.blue.bridges.from-x.remote_msg_vpns[red 192.0.2.1:55555].enabled`."""
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
