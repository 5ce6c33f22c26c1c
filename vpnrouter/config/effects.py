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
from vpnrouter.settings.schema import Effect, Settings
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


def _rows(prefix: str, effect: Effect, keys: str, off: Effect | None = None) -> dict[Pattern, Row]:
    """Return a row for each of `keys` below `prefix`; both are dotted."""
    return {
        _pattern(f"{prefix}.{key}" if prefix else key): Row(effect, off) for key in keys.split()
    }


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


_LISTENER: Final = "listeners.*"

TABLE: Final[dict[Pattern, Row]] = {
    # What the router is, and what writes files, is set up once.
    **_rows("router", Effect.RESTART, "name data_dir umask"),
    **_declared("guaranteed_msging", GuaranteedMsging),
    # It is checked when a bridge is dialled.
    **_rows("bridging", Effect.IN_PLACE, "allowed_locations"),
    **_rows(
        "",
        Effect.RESTART,
        "trace trace.enabled trace.directory trace.sample trace.rotation.max_bytes"
        " trace.rotation.max_rows trace.rotation.max_seconds trace.retention.max_days"
        " trace.always trace.filters trace.traceparent trace.emit_traceparent"
        " trace.otlp.enabled trace.otlp.endpoint trace.otlp.headers trace.otlp.timeout_s"
        " trace.otlp.max_queue"
        " trace.retention.max_bytes",
    ),
    # Asked at each request.
    **_rows("management.users.*", Effect.IN_PLACE, "password role msg_vpns"),
    # The next line is written under what holds then.
    **_rows("logging", Effect.IN_PLACE, "format level rate_limit"),
    **_rows(
        "logging.levels",
        Effect.IN_PLACE,
        "system vpn client bridge queue management config trace",
    ),
    **_rows(_LISTENER, Effect.NEXT_LOGIN, "msg_vpn"),
    **_rows(_LISTENER, Effect.REBIND, "enabled tls"),
    **_rows(_LISTENER, Effect.IN_PLACE, "max_connection_count allowed_origins hosts failover_servers"),
    # A handshake that is over is not looked at again.
    **_rows(
        _LISTENER,
        Effect.IN_PLACE,
        "tls.certificate tls.key tls.key_password tls.min_version tls.client_ca tls.client_crl",
    ),
    **{
        pattern: row
        for kind in KINDS
        if kind.settings is not None
        for pattern, row in _declared(".".join(kind.pattern), kind.settings).items()
    },
}  # fmt: skip

IDENTITIES: Final[dict[Pattern, tuple[str, ...]]] = {
    ("listeners",): ("protocol", "bind"),
    **{kind.pattern[:-1]: kind.list_keys for kind in KINDS if kind.form is Form.RECORDS},
}
"""Lists whose items are objects of their own, and the keys that say which: another value there is
another object, removed and added. Any other list is one value."""


def effect_of(pattern: Pattern, after: object) -> Effect:
    """Return what a change at `pattern` to the value `after` does. KeyError for what has no row."""
    row = TABLE[pattern]
    return row.off if after is False and row.off is not None else row.effect
