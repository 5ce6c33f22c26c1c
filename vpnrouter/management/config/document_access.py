"""How the objects of a kind stand in what holds them: by name, in a list of mappings, as a list of texts.

Each store knows two forms: models, which are read, and plain data of a document, which is changed. What a
person may write short (a key without a value, a text for a mapping) is understood in plain data, and
written out where something in it changes.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from vpnrouter.config.parse import Plain
from vpnrouter.config.problem import Path
from vpnrouter.management.answers.pages import Key
from vpnrouter.management.errors import not_allowed

Held = Any
"""A model, what one of its fields has, or None."""


class DocumentAccess(Protocol):
    """How objects stand in `holder`: a model, which is read, or a mapping, which is changed."""

    @property
    def home(self) -> tuple[str, ...]:
        """The keys that lead from the holder to the objects."""

    def keys(self, holder: Held) -> Iterator[Key]:
        """Return the keys of all objects of a model."""

    def model(self, holder: Held, key: Key) -> Held:
        """Return the object in a model, None if it is not there."""

    def find(self, holder: Plain, key: Key) -> Plain:
        """Return the object in plain data, None if it is not there."""

    def add(self, holder: Plain, key: Key, value: Plain) -> None:
        """Put an object into plain data, which does not hold it."""

    def put(self, holder: Plain, key: Key, value: Plain) -> None:
        """Replace an object in plain data."""

    def drop(self, holder: Plain, key: Key) -> None:
        """Take an object out of plain data."""

    def path(self, holder: Plain, key: Key) -> Path:
        """Return the keys and indexes from the holder to an object of plain data, or to where it would stand."""


def reached(model: Held, keys: Sequence[str]) -> Held:
    """Return what models hold at the end of `keys`, None where one of them is not there."""
    for key in keys:
        if model is None:
            return None
        model = getattr(model, key)
    return model


def opened(holder: Plain, keys: Sequence[str]) -> Plain:
    """Return the mapping at the end of `keys`, made where it is not there."""
    for key in keys:
        if holder.get(key) is None:
            holder[key] = {}
        holder = holder[key]
    return holder


def _listed(holder: Plain, home: tuple[str, ...]) -> Plain:
    within = opened(holder, home[:-1])
    if within.get(home[-1]) is None:
        within[home[-1]] = []
    return within[home[-1]]


class MappingAccess:
    """Objects by name; `rest` is what each key has behind the name, always the same."""

    def __init__(self, *home: str, rest: Key = (), built_in: str = "") -> None:
        self.home = home
        self._rest = rest
        self._built_in = built_in

    def keys(self, holder: Held) -> Iterator[Key]:
        """Yield the key of each object: its name, with `rest` behind it."""
        return ((name, *self._rest) for name in reached(holder, self.home))

    def model(self, holder: Held, key: Key) -> Held:
        """Return the object of that name, None where there is none or its key has another rest."""
        return reached(holder, self.home).get(key[0]) if key[1:] == self._rest else None

    def find(self, holder: Plain, key: Key) -> Plain:
        """Return the object of that name, or None; an empty or a built-in one is made a mapping."""
        objects = opened(holder, self.home)
        name = key[0]
        if key[1:] != self._rest or (name not in objects and name != self._built_in):
            return None
        if objects.get(name) is None:
            objects[name] = {}
        return objects[name]

    def add(self, holder: Plain, key: Key, value: Plain) -> None:
        """Write the object under its name; a mapping that is missing is made first."""
        opened(holder, self.home)[key[0]] = value

    def put(self, holder: Plain, key: Key, value: Plain) -> None:
        """Replace the object under its name."""
        self.add(holder, key, value)

    def drop(self, holder: Plain, key: Key) -> None:
        """Take the name out of the mapping."""
        del opened(holder, self.home)[key[0]]

    def path(self, holder: Plain, key: Key) -> Path:
        """Return the keys of the mapping and the object's name."""
        return (*self.home, key[0])


class RecordsAccess:
    """Mappings in a list; `fields` of them are the key, `rest` what it has behind these."""

    def __init__(self, *home: str, fields: tuple[str, ...], rest: Key = ()) -> None:
        self.home = home
        self._fields = fields
        self._rest = rest

    def keys(self, holder: Held) -> Iterator[Key]:
        """Yield the key of each mapping: the values of `fields`, with `rest` behind them."""
        return (
            (*(getattr(each, field) for field in self._fields), *self._rest)
            for each in reached(holder, self.home)
        )

    def model(self, holder: Held, key: Key) -> Held:
        """Return the model of the list that has this key, None where there is none."""
        for own_key, each in zip(self.keys(holder), reached(holder, self.home), strict=True):
            if own_key == key:
                return each
        return None

    def find(self, holder: Plain, key: Key) -> Plain:
        """Return the mapping that has this key, or None; its short form is replaced by the mapping."""
        items = _listed(holder, self.home)
        index = self._index(items, key)
        if index is None:
            return None
        if not isinstance(items[index], dict):
            items[index] = {self._fields[0]: items[index]}
        return items[index]

    def add(self, holder: Plain, key: Key, value: Plain) -> None:
        """Append the object to the list, with the fields of its key."""
        known = dict(zip(self._fields, key, strict=False))
        _listed(holder, self.home).append(known | value)

    def put(self, holder: Plain, key: Key, value: Plain) -> None:
        """Replace the mapping that has this key, if there is one."""
        items = _listed(holder, self.home)
        index = self._index(items, key)
        if index is not None:
            items[index] = dict(zip(self._fields, key, strict=False)) | value

    def drop(self, holder: Plain, key: Key) -> None:
        """Take the mapping that has this key out of the list, if there is one."""
        items = _listed(holder, self.home)
        index = self._index(items, key)
        if index is not None:
            del items[index]

    def path(self, holder: Plain, key: Key) -> Path:
        """Return the keys of the list and the object's index, the list's length for a new object."""
        items = _listed(holder, self.home)
        index = self._index(items, key)
        return (*self.home, len(items) if index is None else index)

    def _index(self, items: Plain, key: Key) -> int | None:
        count = len(self._fields)
        if key[count:] != self._rest:
            return None
        for index, item in enumerate(items):
            mapping = item if isinstance(item, dict) else {self._fields[0]: item}
            if tuple(mapping.get(field) for field in self._fields) == key[:count]:
                return index
        return None


class TextsAccess:
    """Texts in a list. With `syntax`, the key beside the list that names their dialect comes first in each
    key: the field has a dialect for each of them, here all of a list share one.
    """

    def __init__(self, *home: str, syntax: str = "") -> None:
        self.home = home
        self._syntax = (*home[:-1], syntax) if syntax else ()

    def keys(self, holder: Held) -> Iterator[Key]:
        """Yield the key of each text, once: the syntax first where there is one, then the text."""
        first = (reached(holder, self._syntax),) if self._syntax else ()
        return ((*first, each) for each in dict.fromkeys(reached(holder, self.home)))

    def model(self, holder: Held, key: Key) -> Held:
        """Return the key itself if the list has its text and syntax, else None."""
        if self._syntax and reached(holder, self._syntax) != key[0]:
            return None
        return key if key[-1] in reached(holder, self.home) else None

    def find(self, holder: Plain, key: Key) -> Plain:
        """Return {} if the list has the text in the syntax of the key, else None."""
        exists = key[-1] in _listed(holder, self.home)
        return {} if exists and self._written_syntax(holder) == key[:-1] else None

    def add(self, holder: Plain, key: Key, value: Plain) -> None:
        """Append the text to the list; an empty list takes over the syntax of the key.

        Raises RequestError for another syntax than that of the texts which are there.
        """
        items = _listed(holder, self.home)
        syntax = self._written_syntax(holder)
        if syntax != key[:-1]:
            if items:
                raise not_allowed(
                    f"the others here are of syntax {syntax[0]}; all of one list have one syntax"
                )
            opened(holder, self._syntax[:-1])[self._syntax[-1]] = key[0]
        items.append(key[-1])

    def put(self, holder: Plain, key: Key, value: Plain) -> None:
        """Do nothing, since a text has nothing to replace."""

    def drop(self, holder: Plain, key: Key) -> None:
        """Take the text out of the list."""
        items = _listed(holder, self.home)
        items[:] = [item for item in items if item != key[-1]]

    def path(self, holder: Plain, key: Key) -> Path:
        """Return the keys of the list and the text's index, the list's length for a new text."""
        items = _listed(holder, self.home)
        return (*self.home, items.index(key[-1]) if key[-1] in items else len(items))

    def _written_syntax(self, holder: Plain) -> Key:
        if not self._syntax:
            return ()
        return (opened(holder, self._syntax[:-1]).get(self._syntax[-1]) or "smf",)
