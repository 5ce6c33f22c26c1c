"""The order of rows that a request asks for.

`sort` has the attributes by which the rows are sorted:

    sort=-msgCount,queueName

A `-` before a name puts the highest first. Truth values count as 0 and 1, texts go by their code points.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from vpnrouter import limits
from vpnrouter.limits import SORT_CHARACTERS
from vpnrouter.management.errors import invalid


class Order(NamedTuple):
    """One attribute to sort by."""

    name: str
    descending: bool


def parse_sort(text: str, attributes: Collection[str]) -> tuple[Order, ...]:
    """Return the attributes of a `sort`. Raises RequestError for an unknown attribute, or one that is there twice."""
    if not text:
        return ()
    parts = text.split(",")
    if len(parts) > limits.MANAGEMENT_CONDITIONS:
        raise invalid(f"sort: more than {limits.MANAGEMENT_CONDITIONS} attributes")
    orders = [Order(part.removeprefix("-"), part.startswith("-")) for part in parts]
    names = [order.name for order in orders]
    for name in names:
        if name not in attributes:
            raise invalid(f"sort: there is no attribute {name}")
    if len(set(names)) < len(names):
        raise invalid("sort: an attribute is there twice")
    return tuple(orders)


def sort_key(value: object, order: Order) -> object:
    """Return the key by which a value is compared, for JSON. Raises RequestError for a value without order."""
    if isinstance(value, (bool, int)):
        return -int(value) if order.descending else int(value)
    if isinstance(value, str):
        text = value[:SORT_CHARACTERS]
        if not order.descending:
            return text
        # The end of a text counts as higher than any character: if one text begins with the other, the longer is first.
        return (*(-ord(one) for one in text), 1)
    raise invalid(f"sort: {order.name} has no order")
