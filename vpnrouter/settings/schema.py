"""Declares attributes once: range, default, effect of a change, and names elsewhere.

A class of `Settings` is an object that can be configured, or a group of attributes in one:

    class Queue(Endpoint, effect=Effect.IN_PLACE):
        max_ttl: int = attribute(0, least=0, most=4_294_967_295)
        \"\"\"Seconds that a message may wait …\"\"\"

Of such a class are made: the model that checks what is written (`config/model.py`), the effects of changes
(`config/effects.py`), what the core holds to (`apply_settings`), the attributes of the SEMP API
(`management/config/from_model.py`), and what monitoring shows (`shown`). The string under an attribute
is what the reference and the API say of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from types import MappingProxyType
from typing import (
    Any,
    ClassVar,
    Final,
    Literal,
    NamedTuple,
    Protocol,
    TypeVar,
    get_args,
    get_type_hints,
)


class Effect(Enum):
    """What a change does to a running router. The value is how it is told."""

    IN_PLACE = "at once"
    """Takes effect at once; nobody is disconnected."""

    NEXT_LOGIN = "for logins from now on"
    """Whoever is logged in keeps what held at the login."""

    DISCONNECT = "its clients are disconnected"
    """Holds at once, so those whom it shuts out are disconnected; nobody else."""

    RECONNECT = "reconnects after draining"
    """The bridge or connector above it (of a message VPN's `bridging`: each of its TLS bridges) reconnects."""

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


Value = Any
"""A value of an attribute, or what an attribute is made with."""


@dataclass(frozen=True, slots=True)
class Text:
    """A kind of text: its length in characters, and a check that raises ValueError with what is wrong."""

    least: int
    most: int
    check: Callable[[str], str] = str


MEGABYTES: Final = 1_000_000
"""Scale of what is written in megabytes and held in bytes."""

LONGEST: Final = 4_294_967_295
"""Seconds that most times may be at most, and what most counts may."""

TopicSyntax = Literal["smf", "mqtt"]

CHILDREN: Final = "objects of their own"
BESIDE: Final = "part of the key of each exception"
KEY: Final = "the object's key"
IN_FILE: Final = "in the file alone"
"""Why something is no attribute of its object in SEMP."""

_SAME: Final = ""


class Secret(Protocol):
    """A secret that is used and never shown."""

    def reveal(self) -> str:
        """The value itself: the secret, or its hash."""


class Token(Secret, Protocol):
    """A secret that somebody else has issued, and that is longer than a password."""


class Destination(Protocol):
    """Where a connection is made to."""

    @property
    def host(self) -> str:
        """A name or an IP address, without brackets."""

    @property
    def port(self) -> int:
        """The TCP port."""


class Password(Secret, Protocol):
    """A password, or its hash, that is compared with what a client gives."""

    @property
    def is_hash(self) -> bool:
        """Whether it is a hash, which costs time to compare with."""

    def verify(self, given: bytes) -> bool:
        """Whether `given` is the password."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """What is declared of one attribute, or of a group of them (`group`).

    `off` is the effect where a switch goes to false. `text` holds for a text, and for each item of a list. The
    running object has the value under the name `held` ("": its own name, joined with those of its groups; None:
    elsewhere), as one of `codes`, or times `scale` and at least `held_least`; `monitored` says whether monitoring
    shows it; `file` that it names a file of the router, `hashed` that it is a password, which
    may be given as a hash. In SEMP the name is `semp_name` where it is not its own in
    camel case, and the default `semp_default` where that differs; `ours` is not in the field at all; `child` says
    why it is no attribute there; `semp_required` that a request has to have it. `like` is the attribute that it was
    made of. `dials` is for the address of what the router connects to: it gives the destination of an object and its
    text, None where the text names none. What is `sent` is a secret that whoever is dialled gets to see, and what
    `guards` it says how: both are the operator's together with the destination (config/locations.py).

    A `key` identifies an object in its list: it has no default and no change. What is `required` has no default either.
    `optional` marks a group that may be None. `items` is the class of the objects in a list, or of those by name. Where
    values have names these are of the kind `named`. The order of a list counts where it is `ordered`, and it has at
    most `longest` items. `check` raises ValueError for a value, or an item, that will not do. `alias` is the name in a
    document, where that is a word of Python.
    """

    default: Value = None
    group: type[Settings] | None = None
    least: float | None = None
    most: float | None = None
    text: Text | None = None
    examples: tuple[Any, ...] = ()
    effect: Effect | None = None
    off: Effect | None = None
    held: str | None = _SAME
    codes: Mapping[str, Any] = field(default_factory=dict)
    scale: int = 1
    held_least: int = 0
    monitored: bool = True
    file: bool = False
    hashed: bool = False
    semp_name: str = ""
    semp_default: Value = None
    ours: bool = False
    child: str = ""
    semp_required: bool = False
    key: bool = False
    required: bool = False
    optional: bool = False
    items: type[Settings] | None = None
    named: Text | None = None
    longest: int | None = None
    ordered: bool = True
    check: Callable[[Any], Any] | None = None
    alias: str | None = None
    like: tuple[type[Settings], str] | None = None
    dials: Callable[[Any, str], Destination | None] | None = None
    sent: bool = False
    guards: bool = False

    def to_held(self, value: Value) -> Value:
        """What the running object has for a written value."""
        if self.codes:
            return self.codes[value]
        if self.text is not None and value is None:
            return ""
        return value if self.scale == 1 else max(self.held_least, value * self.scale)

    def to_written(self, held: Value) -> Value:
        """What is written for a value of the running object; "" for none."""
        if self.codes:
            return next(word for word, code in self.codes.items() if code == held)
        return held if self.scale == 1 else held // self.scale


def attribute(default: Value, **more: Value) -> Value:
    """An attribute; `more` is what `Attribute` has."""
    return Attribute(default=default, **more)


def group(of: type[Settings], **more: Value) -> Value:
    """A group of attributes, which has all their defaults."""
    return Attribute(group=of, **more)


def like(owner: type[Settings], name: str, **changes: Value) -> Value:
    """An attribute that another class declares too, but for `changes` and the effect, which are its own."""
    changed: dict[str, Any] = {"effect": None, "off": None, "like": (owner, name)} | changes
    return replace(owner.declared[name], **changed)


def numbered(choices: Value, first: int = 0) -> Mapping[str, int]:
    """Codes of the words of a `Literal`: their places in it, counted from `first`."""
    return {word: number for number, word in enumerate(get_args(choices), first)}


class AttributePath(NamedTuple):
    """An attribute at its place in an object: the keys that lead to it, and what it has of its groups."""

    path: tuple[str, ...]
    attribute: Attribute
    effect: Effect | None
    held: str | None
    ours: bool

    @property
    def name(self) -> str:
        """The name with those of its groups: `redelivery_delay_enabled`."""
        return "_".join(self.path)


def _places(declared: Mapping[str, Attribute], above: AttributePath) -> Iterator[AttributePath]:
    for name, one in declared.items():
        path = (*above.path, name)
        held = None if above.held is None else one.held
        place = AttributePath(path, one, one.effect or above.effect, held, one.ours or above.ours)
        if one.optional:
            yield place._replace(held=None)
        if one.group is not None:
            yield from _places(one.group.declared, place)
        else:
            yield place._replace(held="_".join(path) if held == _SAME else held)


class Settings:
    """Base of what is declared. `effect` holds for all attributes of the class, inherited ones too, that have none of
    their own.

    An attribute in a group that names no effect has that of the group. With `held` False a running object has only
    those that name what they are called there.
    """

    declared: ClassVar[Mapping[str, Attribute]] = MappingProxyType({})
    """The attributes and groups by their names, inherited ones first."""

    places: ClassVar[tuple[AttributePath, ...]] = ()
    """All attributes, those in groups included, in the order in which they are declared. A group that is optional
    is one too.
    """

    short: ClassVar[str] = ""
    """The key that a text alone is the value of: `- FILTER` for `- {topic: FILTER}`."""

    def __init_subclass__(
        cls, effect: Effect | None = None, *, held: bool = True, **more: Value
    ) -> None:
        """Collect what the class declares: the values in its body are no attributes of its instances."""
        super().__init_subclass__(**more)
        found = {}
        for name, value in list(vars(cls).items()):
            if isinstance(value, Attribute):
                known = value.held if held else value.held or None
                found[name] = replace(value, effect=value.effect or effect, held=known)
                delattr(cls, name)
        if found:
            inherited = {
                name: replace(one, effect=one.effect or effect)
                for name, one in cls.declared.items()
            }
            cls.declared = MappingProxyType({**inherited, **found})
            cls.places = tuple(
                _places(cls.declared, AttributePath((), Attribute(), None, _SAME, ours=False))
            )


def keys_of(of: type[Settings]) -> tuple[str, ...]:
    """The keys that identify an object of a class in its list."""
    return tuple(name for name, one in of.declared.items() if one.key)


def types_of(of: type[Settings]) -> Mapping[str, Value]:
    """The types of the attributes and groups of a class, by name."""
    hints = get_type_hints(of)
    return {name: hints[name] for name in of.declared}


def held_defaults(of: type[Settings]) -> dict[str, Value]:
    """What the running object has of an object that says nothing, by name."""
    return {
        place.held: place.attribute.to_held(place.attribute.default)
        for place in of.places
        if place.held is not None
    }


T = TypeVar("T")


def apply_settings(running: T, *configured: Settings) -> T:
    """Return the running object, which has now what is written, in its own units.

    Several running objects may share a class of settings: each takes what it has an attribute for.
    """
    for each in configured:
        for place in each.places:
            if place.held is not None and hasattr(running, place.held):
                value: Value = each
                for key in place.path:
                    value = getattr(value, key)
                setattr(running, place.held, place.attribute.to_held(value))
    return running


def shown(of: type[Settings], running: object) -> dict[str, Value]:
    """What monitoring shows of the attributes that the running object has, by name."""
    return {
        place.name: place.attribute.to_written(getattr(running, place.held))
        for place in of.places
        if place.held is not None and place.attribute.monitored
    }


def showing(
    of: type[Settings], shared_with: type[Settings] | None = None
) -> Callable[[type[T]], type[T]]:
    """Let a class that becomes a dataclass have the attributes that monitoring shows, or those that another has too."""
    held = None if shared_with is None else {each.held for each in shared_with.places}

    def complete(cls: type[T]) -> type[T]:
        for place in of.places:
            one = place.attribute
            if place.held is None or not one.monitored or not (held is None or place.held in held):
                continue
            if not hasattr(cls, place.name):
                default = one.to_written(one.to_held(one.default))
                cls.__annotations__[place.name] = type(default)
                setattr(cls, place.name, default)
        return cls

    return complete


def is_optional(hint: Value) -> bool:
    """Whether a type takes None."""
    return type(None) in get_args(hint)
