"""Makes the attributes of an object type from the model that holds it."""

from collections.abc import Iterator, Mapping
from typing import Final

from pydantic.fields import FieldInfo

from vpnrouter.config.model import Model
from vpnrouter.config.model_schema import bounds_of, keys_of, kind_of
from vpnrouter.management.config.attribute import (
    NUMBER,
    OBJECT,
    RECORDS,
    TEXT,
    TEXTS,
    TRUTH,
    Attribute,
)
from vpnrouter.settings.schema import CHILDREN, KEY, AttributePath, Settings
from vpnrouter.settings.schema import Attribute as Declared
from vpnrouter.text import camel

_WHOLE: Final = "_threshold"
"""How the keys end whose mapping is one attribute in the field, an object, and not one for each key."""

_NOTHING: Final = Declared()

_FORMS: Final = {"text": TEXT, "secret": TEXT, "choice": TEXT, "integer": NUMBER, "switch": TRUTH}


def left_out(of: type[Settings], children: tuple[str, ...] = ()) -> dict[str, str]:
    """Return what is no attribute of a kind, by its keys with dots between, and why; `children` are objects of their
    own.
    """
    return dict.fromkeys(children, CHILDREN) | {
        ".".join(place.path): KEY if place.attribute.key else place.attribute.child
        for place in of.places
        if place.attribute.key or place.attribute.child
    }


def derived(
    of: type[Settings], model: type[Model], children: tuple[str, ...] = ()
) -> Iterator[Attribute]:
    """Yield the attributes of a kind, in the order of the model; what is `left_out` is not among them.

    Raises TypeError for a key that can be no attribute.
    """
    declared = {place.path: place for place in of.places}
    yield from _derived(model, (), declared, frozenset(left_out(of, children)))


def _derived(
    model: type[Model],
    above: tuple[str, ...],
    declared: Mapping[tuple[str, ...], AttributePath],
    left_out: frozenset[str],
) -> Iterator[Attribute]:
    for key, info in keys_of(model).items():
        keys = (*above, key)
        if ".".join(keys) in left_out:
            continue
        kind = kind_of(info.annotation)
        if kind.form == "model" and kind.model is not None and not key.endswith(_WHOLE):
            yield from _derived(kind.model, keys, declared, left_out)
        else:
            place = declared.get(keys) or AttributePath(keys, _NOTHING, None, None, ours=False)
            yield _attribute(model, info, place)


def _attribute(model: type[Model], info: FieldInfo, place: AttributePath) -> Attribute:
    one = place.attribute
    kind = kind_of(info.annotation)
    form = _FORMS.get(kind.form)
    if kind.form == "list":
        form = TEXTS if kind.model is None else RECORDS
    if kind.form == "model":
        form = OBJECT
    if form is None:
        raise TypeError(f"{'.'.join(place.path)} is no attribute")
    bounds = bounds_of(info)
    default = None if info.is_required() else info.get_default(call_default_factory=True)
    if kind.optional:
        default = ""
    elif form in {TEXTS, RECORDS}:
        default = []
    elif form == OBJECT and kind.model is not None:
        default = {camel(key): each.default for key, each in keys_of(kind.model).items()}
    lengths = None
    if one.text is not None and form == TEXT and not one.file:
        lengths = (0 if one.default is None else one.text.least, one.text.most)
    return Attribute(
        name=one.semp_name or camel(place.name),
        form=form,
        keys=place.path,
        default=default if one.semp_default is None else one.semp_default,
        written_default=default,
        bounds=None if bounds is None else (int(bounds[0]), int(bounds[1])),
        lengths=lengths,
        choices=kind.choices,
        blank=kind.optional,
        required=one.semp_required,
        write_only=kind.form == "secret",
        hashed=one.hashed,
        file=one.file,
        ours=place.ours,
        record=kind.model,
        of=model,
        key=place.path[-1],
    )
