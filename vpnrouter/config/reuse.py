"""Let a new configuration share with an old one what is equal in both.

Equal parts that are one object are compared at no cost, and a running router compares the whole of two
configurations when it goes from one to the other, while messages wait.
"""

from typing import TypeVar

from vpnrouter.config.model import Model
from vpnrouter.config.secret import Secret

T = TypeVar("T")


def reuse(before: T, after: T) -> T:
    """`after`, with the objects of `before` where they are equal; `before` itself if all of it is.

    Names in another order, or a secret from another place, are no equal parts. Neither is changed.
    """
    if before is after:
        return before
    if type(before) is not type(after):
        return after
    if isinstance(before, Model) and isinstance(after, Model):
        return _model(before, after)
    if isinstance(before, dict) and isinstance(after, dict):
        made = {
            key: reuse(before[key], new) if key in before else new for key, new in after.items()
        }
        same = list(before) == list(after) and all(made[key] is before[key] for key in made)
        return before if same else made  # type: ignore[return-value]
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
