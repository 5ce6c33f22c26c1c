"""Copies, compares and digests plain documents, and masks the secrets in them.

Which keys hold secrets is read from the models. `{env: NAME}` and `{file: PATH}` say where a secret is
and not what it is: they stay as they are.

None of this holds the interpreter's lock for long: these functions run in a thread beside a router.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

from vpnrouter import limits
from vpnrouter.config.effects import IDENTITIES, SECRET, Pattern
from vpnrouter.config.model import Model
from vpnrouter.config.model_schema import kinds_of
from vpnrouter.config.parse import Plain
from vpnrouter.config.problem import Path, show_path
from vpnrouter.config.router import RouterConfig
from vpnrouter.settings.kinds import ANY

_SCALARS: Final = (str, bool, int, float, type(None))

# The encoder that is written in C would hold the lock until it is through.
_ENCODER: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def copy_plain(value: object) -> Plain:
    """Return a copy of its own of plain data; what an alias shared is shared no more.

    Raises ValueError for what a configuration cannot hold: another kind of value, keys that are not text,
    too deep, too large.
    """
    left = [limits.CONFIG_VALUES]
    return _copied(value, (), left)


def _copied(value: object, path: Path, left: list[int]) -> Plain:
    left[0] -= 1
    if left[0] < 0:
        raise ValueError(f"more than {limits.CONFIG_VALUES} values")
    if type(value) in _SCALARS:
        return value
    if len(path) >= limits.CONFIG_DEPTH:
        raise ValueError(f"{show_path(path[:3])}…: nested deeper than {limits.CONFIG_DEPTH} levels")
    if isinstance(value, list):
        return [_copied(item, (*path, index), left) for index, item in enumerate(value)]
    if not isinstance(value, dict):
        raise ValueError(f"{show_path(path)}: a configuration holds no {type(value).__name__}")  # noqa: TRY004
    copied: dict[str, Plain] = {}
    for key, item in value.items():
        if not isinstance(key, str):
            raise ValueError(f"{show_path(path)}: a key must be text")  # noqa: TRY004
        left[0] -= 1
        copied[key] = _copied(item, (*path, key), left)
    return copied


def same(one: Plain, other: Plain) -> bool:
    """Return whether two values are the same for a strict model: 1, 1.0 and true are three values."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return len(one) == len(other) and all(
            key in other and same(value, other[key]) for key, value in one.items()
        )
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    # `.nan` is not equal to itself.
    return repr(one) == repr(other) if isinstance(one, float) else bool(one == other)


def compact(value: Plain) -> str:
    """Return plain data as JSON, always the same for the same data, whatever the order of its keys."""
    return "".join(_ENCODER.iterencode(value))


def digest_of(value: Plain) -> str:
    """Return the hexadecimal SHA-256 of plain data: 64 characters."""
    return hashlib.sha256(compact(value).encode()).hexdigest()


_REFERENCES: Final = ("env", "file")


def mask(document: Plain, *, references: bool = False) -> Plain:
    """Return a copy of a plain document, or of a merge patch for one, that shows no secret.

    Whatever stands at the place of a secret is masked, right or wrong, unless it is null, or a reference that is not
    to be masked as well: with `references` the copy says nothing that only the router's own machine knows.
    """
    masked = copy_plain(document)
    for secret in _secrets(masked):
        value = secret.owner[secret.key]
        if value is not None and (references or not _is_reference(value)):
            secret.owner[secret.key] = SECRET
    return masked


def unmask(document: Plain, known: Plain) -> list[Path]:
    """Put the secrets of `known` into `document` where it says `***`, in place.

    An item of a list of objects is found by what identifies it (a remote message VPN by name and location),
    wherever it stands now. Returns the paths for which `known` has no secret: they still say `***`.
    """
    known_secrets = {secret.where: secret.owner[secret.key] for secret in _secrets(known)}
    left: list[Path] = []
    for secret in _secrets(document):
        if secret.owner[secret.key] == SECRET:
            value = known_secrets.get(secret.where)
            if value is None:
                left.append(secret.path)
            else:
                secret.owner[secret.key] = value
    return left


_VARIABLE: Final = re.compile(
    r"\$\{?[A-Z_][A-Z0-9_]*\}?|\$\{[^}]+\}|%[A-Z_][A-Z0-9_]*%|(env|file):\S+|\{\{.*\}\}"
)
"""What shells, Compose files and templates write for a variable."""


def variables(document: Plain) -> list[Path]:
    """Return the paths of secrets that look like a variable, which nobody puts a value in place of here."""
    return [
        secret.path
        for secret in _secrets(document)
        if isinstance(written := secret.owner[secret.key], str) and _VARIABLE.fullmatch(written)
    ]


def _is_reference(value: Plain) -> bool:
    if not isinstance(value, dict) or len(value) != 1:
        return False
    ((kind, name),) = value.items()
    return kind in _REFERENCES and isinstance(name, str)


class _Place(NamedTuple):
    """Where a walk is: as a path, as a pattern of effects.py, and by what identifies items of lists."""

    path: Path = ()
    pattern: Pattern = ()
    where: tuple[str | tuple[str, ...], ...] = ()

    def key(self, name: str) -> _Place:
        return _Place((*self.path, name), (*self.pattern, name), (*self.where, name))

    def member(self, name: str) -> _Place:
        return _Place((*self.path, name), (*self.pattern, ANY), (*self.where, name))

    def item(self, index: int, identity: tuple[str, ...]) -> _Place:
        return _Place((*self.path, index), (*self.pattern, ANY), (*self.where, identity))


class _Found(NamedTuple):
    """A secret that is written: `owner[key]`."""

    path: Path
    where: tuple[str | tuple[str, ...], ...]
    owner: Plain
    key: str


def _secrets(document: Plain) -> Iterator[_Found]:
    yield from _of_model(document, RouterConfig, _Place())


def _of_model(value: Plain, model: type[Model], place: _Place) -> Iterator[_Found]:
    """Yield the secrets of a mapping. It recurses as deep as the models."""
    if not isinstance(value, dict):
        return
    kinds = kinds_of(model)
    for key, inner in value.items():
        kind = kinds.get(key)
        if kind is None:
            continue
        below = place.key(key)
        if kind.form == "secret":
            yield _Found(below.path, below.where, value, key)
        elif kind.form == "named" and isinstance(inner, dict):
            for name, member in inner.items():
                at = below.member(name)
                if kind.model is None:
                    # Values by name that are no objects: the headers of an exporter, secrets all of them.
                    yield _Found(at.path, at.where, inner, name)
                else:
                    yield from _of_model(member, kind.model, at)
        elif kind.form == "list" and kind.model is not None and isinstance(inner, list):
            for index, (identity, item) in enumerate(_identified(inner, below.pattern)):
                yield from _of_model(item, kind.model, below.item(index, identity))
        elif kind.form == "model" and kind.model is not None:
            yield from _of_model(inner, kind.model, below)


def _identified(items: list[Plain], pattern: Pattern) -> Iterator[tuple[tuple[str, ...], Plain]]:
    """Yield each item with what tells it from the others: some of its values, and a number among equal ones."""
    keys = IDENTITIES.get(pattern, ())
    seen: Counter[tuple[str, ...]] = Counter()
    for item in items:
        written = item if isinstance(item, dict) else {}
        identity = tuple(str(written.get(key)) for key in keys)
        seen[identity] += 1
        yield (*identity, str(seen[identity])), item
