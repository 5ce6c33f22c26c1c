"""Finds the differences between two configurations of one router, and shares what is equal in both.

Equal parts that are one object are compared at no cost, and a running router compares the whole of two
configurations when it goes from one to the other, while messages wait.

Pure: it compares values. A file that a configuration names (a certificate, a password's file) may
have other content under the same name; a reload reads such files always.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, TypeVar

from vpnrouter.config.effects import (
    IDENTITIES,
    TABLE,
    Change,
    ChangePath,
    Item,
    Pattern,
    effect_of,
)
from vpnrouter.config.model import Model
from vpnrouter.config.router import RouterConfig
from vpnrouter.config.secrets import Secret
from vpnrouter.settings.kinds import ANY
from vpnrouter.settings.schema import Effect

T = TypeVar("T")


def reuse(before: T, after: T) -> T:
    """Return `after`, with the objects of `before` where they are equal; `before` itself if all are.

    Names in another order, or a secret from another place, are no equal parts. Neither is changed.
    """
    if before is after:
        return before
    if type(before) is not type(after):
        return after
    if isinstance(before, Model) and isinstance(after, Model):
        return _model(before, after)
    if isinstance(before, dict) and isinstance(after, dict):
        values = {
            key: reuse(before[key], new) if key in before else new for key, new in after.items()
        }
        same = list(before) == list(after) and all(values[key] is before[key] for key in values)
        return before if same else values  # type: ignore[return-value]
    if isinstance(before, tuple) and isinstance(after, tuple):
        if len(before) != len(after):
            return after
        items = tuple(map(reuse, before, after))
        same = all(one is other for one, other in zip(before, items, strict=True))
        return before if same else items  # type: ignore[return-value]
    if isinstance(before, Secret) and isinstance(after, Secret):
        return before if before == after and before.origin == after.origin else after
    return before if before == after else after


def _model(before: T, after: T) -> T:
    old, new = vars(before), vars(after)
    shared = {}
    same = True
    for name, value in new.items():
        kept = reuse(old[name], value)
        same = same and kept is old[name]
        if kept is not value:
            shared[name] = kept
    if same:
        return before
    return after.model_copy(update=shared) if shared else after  # type: ignore[attr-defined]


Step = TypeVar("Step", str, Item)


def changes(before: RouterConfig, after: RouterConfig) -> list[Change]:
    """Return every difference, in the order of the models' keys; empty for equal configurations.

    Listeners and remote subscriptions in another order are no difference.
    """
    return list(_of_models(_Place((), ()), before, after))


class _Place(NamedTuple):
    """Where two values stand: the path of a change, and its pattern in the table."""

    path: ChangePath
    pattern: Pattern

    def key(self, name: str) -> _Place:
        return _Place((*self.path, name), (*self.pattern, name))

    def member(self, step: str | Item) -> _Place:
        return _Place((*self.path, step), (*self.pattern, ANY))


def _of_models(place: _Place, before: Model, after: Model) -> Iterator[Change]:
    for name, field in type(before).model_fields.items():
        old, new = getattr(before, name), getattr(after, name)
        if old != new:
            yield from _of_values(place.key(field.alias or name), old, new)


def _of_values(place: _Place, old: object, new: object) -> Iterator[Change]:
    if isinstance(old, Model) and isinstance(new, Model):
        yield from _of_models(place, old, new)
    elif isinstance(old, dict) and isinstance(new, dict) and place.pattern not in TABLE:
        yield from _of_members(place, old, new)
    elif isinstance(old, tuple) and isinstance(new, tuple) and place.pattern in IDENTITIES:
        yield from _of_items(place, old, new)
    else:
        yield Change(place.path, old, new, effect_of(place.pattern, new))


def _of_items(place: _Place, old: tuple[Model, ...], new: tuple[Model, ...]) -> Iterator[Change]:
    keys = IDENTITIES[place.pattern]
    before, after = _by_identity(old, keys), _by_identity(new, keys)
    yield from _of_members(place, before, after)
    if place.pattern not in TABLE:
        return
    # The list as the changes above make it: what is new comes last.
    items = [*(item for item in before if item in after), *(i for i in after if i not in before)]
    if items != list(after):
        yield Change(place.path, tuple(before), tuple(after), effect_of(place.pattern, after))


def _of_members(
    place: _Place, old: Mapping[Step, Model], new: Mapping[Step, Model]
) -> Iterator[Change]:
    """Yield removed objects, then those in both, then added ones."""
    for step, model in old.items():
        if step not in new:
            member = place.member(step)
            yield Change(member.path, model, None, _kind(member, Effect.REMOVED))
    for step, model in old.items():
        # One object in both (`reuse`) is asked for nothing.
        if step in new and model is not new[step] and model != new[step]:
            yield from _of_models(place.member(step), model, new[step])
    for step, model in new.items():
        if step not in old:
            member = place.member(step)
            yield Change(member.path, None, model, _kind(member, Effect.ADDED))


def _kind(member: _Place, usual: Effect) -> Effect:
    row = TABLE.get(member.pattern)
    return usual if row is None else row.effect


def _by_identity(items: Iterable[Model], keys: tuple[str, ...]) -> dict[Item, Model]:
    seen: Counter[tuple[str, ...]] = Counter()
    models: dict[Item, Model] = {}
    for item in items:
        identity = tuple(str(getattr(item, key)) for key in keys)
        models[Item(identity, seen[identity])] = item
        seen[identity] += 1
    return models
