"""The attributes of a kind, made of the model that holds it: a key added there is an attribute here."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic.fields import FieldInfo

from vpnrouter.config.model import Model
from vpnrouter.config.shape import bounds_of, keys_of, kind_of
from vpnrouter.management.config.attribute import (
    NUMBER,
    OBJECT,
    RECORDS,
    TEXT,
    TEXTS,
    TRUTH,
    Attribute,
)
from vpnrouter.management.rows import camel
from vpnrouter.settings.schema import CHILDREN, Place, Settings

_WHOLE: Final = "_threshold"
"""How the keys end whose mapping is one attribute in the field, an object, and not one for each key."""

_FORMS: Final = {"text": TEXT, "secret": TEXT, "choice": TEXT, "integer": NUMBER, "switch": TRUTH}


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """Where a kind is not what its model says.

    `names` are attributes of another name, by the keys of the model joined by dots; `defaults` the
    field's where it starts otherwise; `ours` what the field does not have (a name or the beginning of
    names, with `*`); `left` is no attribute, and why; `read_at_create` must be given then.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    lengths: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    ours: frozenset[str] = frozenset()
    left: Mapping[str, str] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    files: frozenset[str] = frozenset()
    hashed: frozenset[str] = frozenset()


def differences_of(of: type[Settings], children: tuple[str, ...] = ()) -> Differences:
    """What a class of settings declares of its attributes in SEMP; `children` are objects of their own in its model."""
    found = of.places

    def name_of(place: Place) -> str:
        return place.attribute.semp_name or camel(place.name)

    texts = [
        (each, each.attribute.text)
        for each in found
        if not isinstance(each.attribute.default, tuple) and not each.attribute.file
    ]
    return Differences(
        names={
            ".".join(each.path): each.attribute.semp_name
            for each in found
            if each.attribute.semp_name
        },
        defaults={
            name_of(each): each.attribute.semp_default
            for each in found
            if each.attribute.semp_default is not None
        },
        lengths={
            name_of(each): (0 if each.attribute.default is None else text.least, text.most)
            for each, text in texts
            if text is not None
        },
        ours=frozenset(name_of(each) for each in found if each.ours),
        left=dict.fromkeys(children, CHILDREN)
        | {".".join(each.path): each.attribute.child for each in found if each.attribute.child},
        hashed=frozenset(name_of(each) for each in found if each.attribute.hashed),
        files=frozenset(name_of(each) for each in found if each.attribute.file),
    )


def derived(model: type[Model], differences: Differences) -> Iterator[Attribute]:
    """The attributes of a kind, in the order of the model; what is `left` is left out.

    Raises TypeError for a key that can be no attribute and is not `left`.
    """
    yield from _derived(model, (), differences)


def _derived(
    model: type[Model], above: tuple[str, ...], differences: Differences
) -> Iterator[Attribute]:
    for key, info in keys_of(model).items():
        keys = (*above, key)
        path = ".".join(keys)
        if path in differences.left:
            continue
        kind = kind_of(info.annotation)
        if kind.form == "model" and kind.model is not None and not key.endswith(_WHOLE):
            yield from _derived(kind.model, keys, differences)
        else:
            yield _attribute(model, info, keys, differences)


def _attribute(
    model: type[Model], info: FieldInfo, keys: tuple[str, ...], differences: Differences
) -> Attribute:
    kind = kind_of(info.annotation)
    name = differences.names.get(".".join(keys), camel("_".join(keys)))
    form = _FORMS.get(kind.form)
    if kind.form == "list":
        form = TEXTS if kind.model is None else RECORDS
    if kind.form == "model":
        form = OBJECT
    if form is None:
        raise TypeError(f"{'.'.join(keys)} is no attribute")
    bounds = bounds_of(info)
    default = None if info.is_required() else info.get_default(call_default_factory=True)
    if kind.optional:
        default = ""
    elif form in {TEXTS, RECORDS}:
        default = []
    elif form == OBJECT and kind.model is not None:
        default = {camel(key): each.default for key, each in keys_of(kind.model).items()}
    return Attribute(
        name=name,
        form=form,
        keys=keys,
        default=differences.defaults.get(name, default),
        written_default=default,
        bounds=None if bounds is None else (int(bounds[0]), int(bounds[1])),
        lengths=differences.lengths.get(name),
        choices=kind.choices,
        blank=kind.optional,
        required=name in differences.required,
        write_only=kind.form == "secret",
        hashed=name in differences.hashed,
        file=name in differences.files,
        ours=_is_ours(name, differences.ours),
        record=kind.model,
        of=model,
        key=keys[-1],
    )


def _is_ours(name: str, ours: frozenset[str]) -> bool:
    return name in ours or any(each.endswith("*") and name.startswith(each[:-1]) for each in ours)
