"""The differences between two configurations of one router, each with what it takes.

Pure: it compares values. A file that a configuration names (a certificate, a password's file) may
have other content under the same name; a reload reads such files always.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, TypeVar

from vpnrouter.config.change import Change, ChangePath, Effect, Item
from vpnrouter.config.effects import ANY, IDENTITIES, TABLE, Pattern, effect_of
from vpnrouter.config.model import Model
from vpnrouter.config.router import RouterConfig

Step = TypeVar("Step", str, Item)


def changes(before: RouterConfig, after: RouterConfig) -> list[Change]:
    """Every difference, in the order of the models' keys; empty for equal configurations.

    Listeners and remote subscriptions in another order are no difference.
    """
    return list(_of_models(_Place((), ()), before, after))


class _Place(NamedTuple):
    """Where two values stand: the path of a change, and its pattern in the table."""

    path: ChangePath
    pattern: Pattern

    def key(self, name: str) -> "_Place":
        return _Place((*self.path, name), (*self.pattern, name))

    def member(self, step: str | Item) -> "_Place":
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
    made = [*(item for item in before if item in after), *(i for i in after if i not in before)]
    if made != list(after):
        yield Change(place.path, tuple(before), tuple(after), effect_of(place.pattern, after))


def _of_members(
    place: _Place, old: Mapping[Step, Model], new: Mapping[Step, Model]
) -> Iterator[Change]:
    """Removed objects, then those in both, then added ones."""
    for step, model in old.items():
        if step not in new:
            member = place.member(step)
            yield Change(member.path, model, None, _kind(member, Effect.REMOVED))
    for step, model in old.items():
        # One object in both (reuse.py) is asked for nothing.
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
    found: dict[Item, Model] = {}
    for item in items:
        identity = tuple(str(getattr(item, key)) for key in keys)
        found[Item(identity, seen[identity])] = item
        seen[identity] += 1
    return found
