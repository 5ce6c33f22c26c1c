"""Secrets of a plain document: masked where it is shown, put back where it comes back so.

Which keys hold secrets is read from the models. `{env: NAME}` and `{file: PATH}` say where a secret is
and not what it is: they stay as they are.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

from vpnrouter.config.change import SECRET
from vpnrouter.config.document import Plain
from vpnrouter.config.effects import ANY, IDENTITIES, Pattern
from vpnrouter.config.model import Model
from vpnrouter.config.plain import copy_plain
from vpnrouter.config.problem import Path
from vpnrouter.config.router import RouterConfig
from vpnrouter.config.shape import kinds_of

_REFERENCES: Final = ("env", "file")


def mask(document: Plain) -> Plain:
    """A copy of a plain document, or of a merge patch for one, that shows no secret.

    Whatever stands at the place of a secret is masked, right or wrong, unless it is a reference or null.
    """
    masked = copy_plain(document)
    for found in _secrets(masked):
        value = found.owner[found.key]
        if value is not None and not _is_reference(value):
            found.owner[found.key] = SECRET
    return masked


def unmask(document: Plain, known: Plain) -> list[Path]:
    """Put the secrets of `known` into `document` where it says `***`, in place.

    An item of a list of objects is found by what identifies it (a remote message VPN by name and location),
    wherever it stands now. Returns the paths for which `known` has no secret: they still say `***`.
    """
    stands = {found.where: found.owner[found.key] for found in _secrets(known)}
    left: list[Path] = []
    for found in _secrets(document):
        if found.owner[found.key] == SECRET:
            value = stands.get(found.where)
            if value is None:
                left.append(found.path)
            else:
                found.owner[found.key] = value
    return left


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

    def key(self, name: str) -> "_Place":
        return _Place((*self.path, name), (*self.pattern, name), (*self.where, name))

    def member(self, name: str) -> "_Place":
        return _Place((*self.path, name), (*self.pattern, ANY), (*self.where, name))

    def item(self, index: int, identity: tuple[str, ...]) -> "_Place":
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
    """As deep as the models."""
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
    """Each item with what tells it from the others: some of its values, and a number among equal ones."""
    keys = IDENTITIES.get(pattern, ())
    seen: Counter[tuple[str, ...]] = Counter()
    for item in items:
        written = item if isinstance(item, dict) else {}
        identity = tuple(str(written.get(key)) for key in keys)
        seen[identity] += 1
        yield (*identity, str(seen[identity])), item
