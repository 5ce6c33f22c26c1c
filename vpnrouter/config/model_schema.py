"""Tells which keys a place in a document may have, and what they take.

Read from the models themselves, so that messages and the reference file cannot drift from them.
"""

import types
from functools import cache
from typing import Annotated, Literal, NamedTuple, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from vpnrouter.config.model import Model
from vpnrouter.config.problem import Path
from vpnrouter.config.secrets import Secret


class Kind(NamedTuple):
    """What a key takes.

    `form` is one of model, named (objects by name), list, choice, secret, text, number, integer,
    switch. `model` is the model of a model, of named objects or of a list's items; `choices` those
    of a choice.
    """

    form: str
    model: type[Model] | None = None
    choices: tuple[str, ...] = ()
    optional: bool = False


_SCALARS: dict[object, str] = {str: "text", int: "integer", float: "number", bool: "switch"}


def kind_of(annotation: object) -> Kind:
    """Return the kind of a field from its annotation."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return kind_of(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        inner = [kind for kind in get_args(annotation) if kind is not types.NoneType]
        return kind_of(inner[0])._replace(optional=True)
    if origin is dict:
        return Kind("named", kind_of(get_args(annotation)[1]).model)
    if origin is tuple:
        return Kind("list", kind_of(get_args(annotation)[0]).model)
    if origin is Literal:
        return Kind("choice", choices=get_args(annotation))
    if isinstance(annotation, type):
        if issubclass(annotation, Model):
            return Kind("model", annotation)
        if issubclass(annotation, Secret):
            return Kind("secret")
        return Kind(_SCALARS[annotation])
    raise TypeError(annotation)


def bounds_of(field: FieldInfo) -> tuple[float, float] | None:
    """Return the smallest and the largest allowed number; None for a field without bounds."""
    least = [item.ge for item in field.metadata if hasattr(item, "ge")]
    most = [item.le for item in field.metadata if hasattr(item, "le")]
    return (least[0], most[0]) if least and most else None


def keys_of(model: type[Model]) -> dict[str, FieldInfo]:
    """Return the fields of a model by the keys of a document: a key that is a word of Python has a field of
    another name.
    """
    return {field.alias or name: field for name, field in model.model_fields.items()}


@cache
def kinds_of(model: type[Model]) -> dict[str, Kind]:
    """Return what each key of a model takes; for walks over large documents."""
    return {key: kind_of(field.annotation) for key, field in keys_of(model).items()}


def model_at(root: type[Model], path: Path) -> type[Model] | None:
    """Return the model of the mapping at `path`; None where something else stands there, or nothing
    known.
    """
    model: type[Model] | None = root
    named = False
    for step in path:
        if model is None:
            return None
        if named:
            named = False
            continue
        field = keys_of(model).get(step) if isinstance(step, str) else None
        if field is None:
            return None
        kind = kind_of(field.annotation)
        model = kind.model
        named = kind.form in ("named", "list")
    return None if named else model


def field_at(root: type[Model], path: Path) -> FieldInfo | None:
    """Return the field at `path`; None where a name, an index or nothing known stands at its end."""
    if not path or not isinstance(path[-1], str):
        return None
    model = model_at(root, path[:-1])
    return keys_of(model).get(path[-1]) if model is not None else None


def grouped_key(model: type[Model], key: str) -> str | None:
    """Return the grouped form of a flat name: `redelivery_delay_enabled` as `redelivery: {delay:
    {enabled: …}}`.
    """
    for name, field in model.model_fields.items():
        kind = kind_of(field.annotation)
        if kind.form != "model" or kind.model is None or not key.startswith(f"{name}_"):
            continue
        rest = key.removeprefix(f"{name}_")
        if rest in kind.model.model_fields:
            return f"{name}: {{{rest}: …}}"
        inner = grouped_key(kind.model, rest)
        if inner is not None:
            return f"{name}: {{{inner}}}"
    return None
