"""How a row of the table of kinds is written."""

from typing import Final

from vpnrouter import limits
from vpnrouter.config.document import Plain
from vpnrouter.config.model import Model
from vpnrouter.management.config.attribute import TEXT, Attribute
from vpnrouter.management.config.derive import Differences, derived
from vpnrouter.management.config.kind import Kind, by_name
from vpnrouter.management.config.store import Store

CHILDREN: Final = "objects of their own"
BESIDE: Final = "part of the key of each exception"
KEY: Final = "the object's key"

PASSWORD: Final = (0, limits.PASSWORD_BYTES)


def name_of(name: str, most: int, says: str, least: int = 1) -> Attribute:
    """An attribute of a key: a name of `least` to `most` characters."""
    return Attribute(
        name=name,
        form=TEXT,
        lengths=(least, most),
        required=True,
        identifying=True,
        says=says,
    )


def always_of(name: str, value: str, says: str, *, identifying: bool, required: bool) -> Attribute:
    """An attribute that has one value here and takes no other."""
    return Attribute(
        name=name,
        form=TEXT,
        default=value,
        choices=(value,),
        required=required,
        identifying=identifying,
        fixed=True,
        says=says,
    )


def kind_of(
    collection: str,
    title: str,
    noun: str,
    store: Store,
    *identity: Attribute,
    differences: Differences,
    path: str = "",
    more: tuple[Attribute, ...] = (),
    model: type[Model] | None = None,
    parent: Kind | None = None,
    **rest: Plain,
) -> Kind:
    """A row of the table: `identity` in the order of the key, the other attributes made from `model`, and `more`."""
    found = () if model is None else tuple(derived(model, differences))
    given = tuple(each for each in found if each.name not in {known.name for known in identity})
    return Kind(
        collection=collection,
        title=title,
        noun=noun,
        path=path or f"{{{identity[0].name}}}",
        store=store,
        attributes=by_name((*identity, *given, *more)),
        kept=tuple(tuple(path.split(".")) for path in differences.left),
        left=differences.left,
        model=model,
        parent=parent,
        **rest,
    )
