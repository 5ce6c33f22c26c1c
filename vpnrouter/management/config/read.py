"""What a configuration in force says of one object, as a row."""

from collections.abc import Sequence

from vpnrouter.config.router import RouterConfig
from vpnrouter.management.attributes import Row
from vpnrouter.management.config.kind import Keys, Kind
from vpnrouter.management.config.store import Held, reached
from vpnrouter.management.paging import Key


def object_at(config: RouterConfig, kind: Kind, keys: Keys) -> Held:
    """What the models hold for an object, None if it or one above it is not there."""
    holder = holding(config, kind, keys[:-1])
    return None if holder is None else kind.store.model(holder, keys[-1])


def holding(config: RouterConfig, kind: Kind, above: Keys) -> Held:
    """The model that holds the objects of a kind; None if an object above them is not there."""
    holders: list[Held] = [config]
    for each, key in zip(kind.chain[:-1], above, strict=True):
        found = each.store.model(holders[-1 - each.above], key)
        if found is None:
            return None
        holders.append(found)
    return holders[-1 - kind.above]


def keys_in(config: RouterConfig, kind: Kind, above: Keys) -> Sequence[Key] | None:
    """The keys of all objects of a kind; None if an object above them is not there."""
    holder = holding(config, kind, above)
    return None if holder is None else list(kind.store.keys(holder))


def row_at(config: RouterConfig, kind: Kind, keys: Keys) -> Row | None:
    """The attributes of an object, secrets left out; None if it is not there."""
    found = object_at(config, kind, keys)
    if found is None:
        return None
    row: Row = dict(kind.known_by(keys))
    for each in kind.attributes.values():
        if each.write_only or each.name in row:
            continue
        row[each.name] = each.shown(reached(found, each.keys)) if each.keys else each.default
    return row
