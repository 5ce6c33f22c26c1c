"""Rows of an answer: envelope, pages, order, conditions and attributes, as a request asks for them.

A page costs what it shows. A cursor is the key of the last object shown, so that an object which comes or goes between
pages makes no other one appear twice or be left out.

`select` says which attributes the rows of the answer have:

    select=bridgeName,inbound*      these alone
    select=-average*                all but these
    select=rx*,-rxByte*             these without those

`where` has conditions, all of which the rows of the answer meet:

    where=inboundState!=ready-in-sync,bridgeName==from-*,uptime<60

Operators are == != < > <= >=. After == and != a text may hold `*` for any characters; texts are not
ordered. A value may not hold a comma.

`sort` has the attributes by which the rows are sorted:

    sort=-msgCount,queueName

A `-` before a name puts the highest first. Truth values count as 0 and 1, texts go by their code points.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, get_type_hints
from urllib.parse import quote

import trio
from fastapi import Depends, Query, Request
from starlette.responses import Response

from vpnrouter import limits
from vpnrouter.errors import RequestError
from vpnrouter.limits import SORT_CHARACTERS
from vpnrouter.management.errors import invalid

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


Row = dict[str, Any]
"""Attribute name in camelCase → text, number, truth value, or numbers by name."""

_JSON_TYPES: Final[dict[object, dict[str, object]]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer", "format": "int64"},
    dict[str, int]: {"type": "object", "additionalProperties": {"type": "integer"}},
}


def camel(name: str) -> str:
    """Return `lastRxAgeMs` for `last_rx_age_ms`."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


@cache
def _columns(kind: type[DataclassInstance]) -> tuple[tuple[str, str], ...]:
    """Return the plain attributes of a status class, snake and camel; lists of further objects are left out."""
    hints = get_type_hints(kind)
    return tuple(
        (field.name, camel(field.name))
        for field in fields(kind)
        if hints[field.name] in _JSON_TYPES
    )


def row_of(status: DataclassInstance) -> Row:
    """Return the row of one status object."""
    return {name: getattr(status, attribute) for attribute, name in _columns(type(status))}


def names_of(kind: type[DataclassInstance]) -> tuple[str, ...]:
    """Return the attribute names of a class of status objects, as a row has them."""
    return tuple(name for _, name in _columns(kind))


def schema_of(kind: type[DataclassInstance]) -> dict[str, object]:
    """Return the JSON schema of a row."""
    hints = get_type_hints(kind)
    return {
        "type": "object",
        "properties": {name: _JSON_TYPES[hints[attribute]] for attribute, name in _columns(kind)},
    }


Links = Mapping[str, str]
"""`uri` and `…Uri` of an object's children."""


def segment(*names: str) -> str:
    """Return a path segment of a compound key: its parts encoded, joined by commas."""
    return ",".join(quote(name, safe="") for name in names)


def root_of(request: Request) -> str:
    """Return scheme and host as the client wrote them."""
    return str(request.base_url).rstrip("/")


def object_reply(request: Request, row: Row, links: Links) -> Response:
    """Return one object."""
    return _reply(200, {"data": row, "links": links, "meta": _meta(request, 200)})


def list_reply(
    request: Request,
    rows: Sequence[Row],
    links: Sequence[Links],
    count: int,
    cursor: str | None = None,
) -> Response:
    """Return one page of objects; `count` is how many there are in all pages."""
    meta = _meta(request, 200) | {"count": count}
    if cursor is not None:
        following = request.url.include_query_params(cursor=cursor)
        meta["paging"] = {"cursorQuery": quote(cursor, safe=""), "nextPageUri": str(following)}
    return _reply(200, {"data": list(rows), "links": list(links), "meta": meta})


def rows_reply(
    request: Request, rows: Sequence[Mapping[str, object]], more: Mapping[str, object]
) -> Response:
    """Return rows that have no links, with what `more` says of them in `meta`."""
    meta = _meta(request, 200) | {"count": len(rows)} | dict(more)
    return _reply(200, {"data": list(rows), "links": [], "meta": meta})


def done_reply(request: Request) -> Response:
    """Return the reply to a deletion, which has no data."""
    return _reply(200, {"meta": _meta(request, 200)})


def long_reply(request: Request, row: Row) -> Response:
    """Return one object that is large, without links. To be called in a thread: it leaves others their turn."""
    body = {"data": row, "links": {}, "meta": _meta(request, 200)}
    # The encoder that is written in C would hold the interpreter until it is through.
    text = "".join(json.JSONEncoder(separators=(",", ":")).iterencode(body))
    return Response(text, 200, {"cache-control": "no-store"}, media_type="application/json")


def error_reply(
    request: Request, error: RequestError, headers: Mapping[str, str] | None = None
) -> Response:
    """Return the reply that says why a request is refused or failed."""
    meta = _meta(request, error.http_status)
    meta["error"] = {"code": error.code, "description": str(error), "status": error.status}
    return _reply(error.http_status, {"meta": meta}, headers)


def _meta(request: Request, response_code: int) -> dict[str, object]:
    return {
        "request": {"method": request.method, "uri": str(request.url)},
        "responseCode": response_code,
    }


def _reply(status: int, body: object, headers: Mapping[str, str] | None = None) -> Response:
    # Counters of a moment are nothing to keep in a cache.
    sent = {"cache-control": "no-store"} | dict(headers or {})
    return Response(
        json.dumps(body, separators=(",", ":")), status, sent, media_type="application/json"
    )


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


_CONDITION: Final = re.compile(r"(?P<name>[A-Za-z]+)(?P<operator>==|!=|<=|>=|<|>)(?P<value>.*)")

_TRUTH: Final = {"true": True, "false": False}


class Condition(NamedTuple):
    """One comparison of an attribute with a value as it was written."""

    name: str
    operator: str
    value: str


def parse_where(text: str, attributes: Collection[str]) -> tuple[Condition, ...]:
    """Return the conditions of a `where`; raises RequestError for what is none or names no known attribute."""
    if not text:
        return ()
    parts = text.split(",")
    if len(parts) > limits.MANAGEMENT_CONDITIONS:
        raise invalid(f"where: more than {limits.MANAGEMENT_CONDITIONS} conditions")
    conditions = []
    for part in parts:
        matched = _CONDITION.fullmatch(part)
        if matched is None:
            raise invalid(f"where: {part!r} is no condition such as enabled==true")
        condition = Condition(*matched.group("name", "operator", "value"))
        if condition.name not in attributes:
            raise invalid(f"where: there is no attribute {condition.name}")
        conditions.append(condition)
    return tuple(conditions)


def meets(row: Row, conditions: tuple[Condition, ...]) -> bool:
    """Return whether the row meets all conditions; raises RequestError for a value of the wrong kind."""
    return all(_holds(row[condition.name], condition) for condition in conditions)


def _holds(actual: object, condition: Condition) -> bool:
    name, operator, value = condition
    if isinstance(actual, bool):
        if value not in _TRUTH or operator not in {"==", "!="}:
            raise invalid(f"where: {name} is compared by == or != with true or false")
        return (actual is _TRUTH[value]) == (operator == "==")
    if isinstance(actual, int):
        return _holds_of_number(actual, condition)
    if not isinstance(actual, str) or operator not in {"==", "!="}:
        raise invalid(f"where: {name} cannot be compared by {operator}")
    return matches(value, actual) == (operator == "==")


def _holds_of_number(actual: int, condition: Condition) -> bool:
    try:
        number = int(condition.value)
    except ValueError:
        raise invalid(f"where: {condition.name} is compared with a number") from None
    match condition.operator:
        case "==":
            return actual == number
        case "!=":
            return actual != number
        case "<":
            return actual < number
        case "<=":
            return actual <= number
        case ">":
            return actual > number
    return actual >= number


def matches(pattern: str, text: str) -> bool:
    """Return whether `pattern`, in which `*` stands for any characters, is the whole of `text`."""
    first, *rest = pattern.split("*")
    if not rest:
        return pattern == text
    *middle, last = rest
    if not (text.startswith(first) and text.endswith(last)):
        return False
    at, end = len(first), len(text) - len(last)
    # The leftmost place of each piece leaves most room for the next: no going back, linear time.
    for piece in middle:
        start = text.find(piece, at, end)
        if start < 0:
            return False
        at = start + len(piece)
    return at <= end


Key = tuple[str, ...]
"""The names that tell one object of a collection from the others."""

CHUNK: Final = 32
"""Objects looked at before the router's other tasks have their turn: about a millisecond."""

MANY: Final = 1_000
"""Keys that are put in order at once with whatever was done before."""


class Page(NamedTuple):
    """Rows with their keys, how many objects there are in all pages, and where the next one begins."""

    rows: list[tuple[Key, Row]]
    total: int
    cursor: str | None


async def page_of(
    keys: Sequence[Key],
    row: Callable[[Key], Row | None],
    most: int,
    cursor: str,
    conditions: tuple[Condition, ...],
) -> Page:
    """Return at most `most` rows after `cursor` ("" for the first page) that meet the conditions.

    `row` gives None for an object that is gone meanwhile. Raises RequestError for a cursor that is
    none.
    """
    if len(keys) > MANY:
        # Making so many took its time already.
        await trio.lowlevel.checkpoint()
    ordered = sorted(keys)
    start = bisect_right(ordered, key_of(cursor)) if cursor else 0
    count = 0 if conditions else len(ordered)
    rows: list[tuple[Key, Row]] = []
    # Without conditions only this page is looked at; with them all objects are, for the count.
    begin, end = (0, len(ordered)) if conditions else (start, start + most)
    for place in range(begin, min(end, len(ordered))):
        if (place - begin) % CHUNK == CHUNK - 1:
            await trio.lowlevel.checkpoint()
        key = ordered[place]
        item = row(key)
        if item is None or not meets(item, conditions):
            continue
        if conditions:
            count += 1
        if place >= start and len(rows) <= most:
            rows.append((key, item))
    more = len(rows) > most if conditions else end < len(ordered)
    last = ordered[end - 1] if more and not conditions else rows[most - 1][0] if more else None
    return Page(rows[:most], count, None if last is None else cursor_of(last))


async def sorted_page(
    keys: Sequence[Key],
    row: Callable[[Key], Row | None],
    most: int,
    cursor: str,
    conditions: tuple[Condition, ...],
    order: tuple[Order, ...],
) -> Page:
    """Return a page sorted by attributes, then by names: at most `most` rows that come after `cursor` in this order.

    All objects are looked at, and only those of the page are kept. An object whose value changes between two pages
    may come twice, or not at all. Raises RequestError for a cursor of another order.
    """
    after = _place_of(cursor, len(order)) if cursor else None
    places: list[_Place] = []
    rows: dict[Key, Row] = {}
    count = 0
    for number, key in enumerate(keys):
        if number % CHUNK == CHUNK - 1:
            await trio.lowlevel.checkpoint()
        item = row(key)
        if item is None or not meets(item, conditions):
            continue
        count += 1
        place = (tuple([sort_key(item[each.name], each) for each in order]), key)
        try:
            if (after is not None and place <= after) or (
                len(places) > most and place > places[-1]
            ):
                continue
        except TypeError:
            raise invalid("cursor: not one that this API gave for this order") from None
        insort(places, place)
        rows[key] = item
        if len(places) > most + 1:
            del rows[places.pop()[1]]
    more = len(places) > most
    last = cursor_of([places[most - 1][0], places[most - 1][1]]) if more else None
    return Page([(key, rows[key]) for _, key in places[:most]], count, last)


_Place = tuple[tuple[object, ...], Key]
"""The sort key of an object: the keys of its attributes, and its names."""


def _place_of(cursor: str, attributes: int) -> Any:  # noqa: ANN401 - it comes from the request, and is checked when it is compared
    decoded = _decoded(cursor)
    if (
        not isinstance(decoded, list)
        or len(decoded) != 2
        or not all(isinstance(part, list) for part in decoded)
        or len(decoded[0]) != attributes
    ):
        raise invalid("cursor: not one that this API gave for this order")
    values = tuple([tuple(each) if isinstance(each, list) else each for each in decoded[0]])
    return values, tuple(decoded[1])


def cursor_of(key: Sequence[object]) -> str:
    """Return the cursor behind the object of this key."""
    return base64.urlsafe_b64encode(json.dumps(key).encode()).decode("ascii")


def key_of(cursor: str) -> Key:
    """Return the key in a cursor. Raises RequestError for what is no cursor."""
    names = _decoded(cursor)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise invalid("cursor: not one that this API gave")
    return tuple(names)


def _decoded(cursor: str) -> object:
    try:
        decoded: object = json.loads(base64.b64decode(cursor, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError):
        return None
    return decoded


def parse_select(text: str, attributes: Collection[str]) -> frozenset[str] | None:
    """Return the names selected, None for all; raises RequestError for a pattern that fits no attribute."""
    if not text:
        return None
    patterns = text.split(",")
    if len(patterns) > limits.MANAGEMENT_SELECTED:
        raise invalid(f"select: more than {limits.MANAGEMENT_SELECTED} names")
    chosen: set[str] = set()
    dropped: set[str] = set()
    for pattern_text in patterns:
        pattern = pattern_text.removeprefix("-")
        names = {name for name in attributes if matches(pattern, name)}
        if not names:
            raise invalid(f"select: there is no attribute {pattern}")
        (dropped if pattern_text.startswith("-") else chosen).update(names)
    if all(pattern_text.startswith("-") for pattern_text in patterns):
        chosen = set(attributes)
    return frozenset(chosen - dropped)


async def nested_page(
    groups: Sequence[Key],
    opened: Callable[[Key], Sequence[tuple[Key, Row]]],
    most: int,
    cursor: str,
    conditions: tuple[Condition, ...],
    total: int,
) -> Page:
    """Return at most `most` rows after `cursor` ("" for the first page) that meet the conditions.

    `groups` are in order; `opened` gives what is in one of them, in order, by keys that are that of the group
    and one name more. `total` is how many rows there are where there are no conditions. Raises RequestError for a
    cursor that is none.
    """
    after = key_of(cursor) if cursor else ()
    first = bisect_left(groups, after[:-1])
    rows: list[tuple[Key, Row]] = []
    count = 0 if conditions else total
    for place in range(0 if conditions else first, len(groups)):
        if place % CHUNK == CHUNK - 1:
            await trio.lowlevel.checkpoint()
        for key, row in opened(groups[place]):
            if conditions:
                if not meets(row, conditions):
                    continue
                count += 1
            if key > after and len(rows) <= most:
                rows.append((key, row))
        if len(rows) > most and not conditions:
            break
    more = len(rows) > most
    return Page(rows[:most], count, cursor_of(rows[most - 1][0]) if more else None)


PAGE_ROWS: Final = 10
"""Objects in an answer that says nothing of `count`, the field's default."""

_SELECT: Final = (
    "Names of the attributes to give, separated by commas; `*` stands for any characters, \
a `-` before a name leaves it out"
)
_SORT: Final = "Names of the attributes to sort by, separated by commas; a `-` before a name puts the highest first"
_WHERE: Final = "Conditions separated by commas, such as `inboundState!=ready-in-sync`"


@dataclass(frozen=True, slots=True)
class ObjectQuery:
    """The query of a request for one object."""

    select: str = ""

    def reply(
        self, request: Request, row: Row, links: Links, kind: type[DataclassInstance]
    ) -> Response:
        """Return the object, as far as it is selected."""
        known = names_of(kind)
        return object_reply(request, _cut(row, parse_select(self.select, known)), links)


@dataclass(frozen=True, slots=True)
class ListQuery:
    """The query of a request for a collection."""

    count: int
    cursor: str
    where: str
    select: str
    sort: str = ""

    async def reply(
        self,
        request: Request,
        keys: Sequence[Key],
        row: Callable[[Key], Row | None],
        links: Callable[[Key], Links],
        kind: type[DataclassInstance],
    ) -> Response:
        """Return one page of the objects of these keys; `row` gives None for one that is gone."""
        known = names_of(kind)
        selected = parse_select(self.select, known)
        conditions = parse_where(self.where, known)
        order = parse_sort(self.sort, known)
        if order:
            page = await sorted_page(keys, row, self.count, self.cursor, conditions, order)
        else:
            page = await page_of(keys, row, self.count, self.cursor, conditions)
        return _shown(request, page, links, selected)

    async def nested(
        self,
        request: Request,
        groups: Sequence[Key],
        opened: Callable[[Key], Sequence[tuple[Key, Row]]],
        total: int,
        links: Callable[[Key], Links],
        kind: type[DataclassInstance],
    ) -> Response:
        """Answer with a page of objects inside other objects, by names alone (`nested_page`)."""
        if self.sort:
            raise invalid("sort: these are given in the order of their names")
        known = names_of(kind)
        selected = parse_select(self.select, known)
        conditions = parse_where(self.where, known)
        page = await nested_page(groups, opened, self.count, self.cursor, conditions, total)
        return _shown(request, page, links, selected)


def _shown(
    request: Request, page: Page, links: Callable[[Key], Links], selected: frozenset[str] | None
) -> Response:
    return list_reply(
        request,
        [_cut(each, selected) for _, each in page.rows],
        [links(key) for key, _ in page.rows],
        page.total,
        page.cursor,
    )


def _cut(row: Row, selected: frozenset[str] | None) -> Row:
    # What is no attribute of the kind, such as the remotes inside a bridge, goes with "all" alone.
    if selected is None:
        return row
    return {name: value for name, value in row.items() if name in selected}


def _only(request: Request, allowed: frozenset[str]) -> None:
    """Raise RequestError for a query parameter that is not `allowed`, such as a misspelt one."""
    for name in request.query_params:
        if name not in allowed:
            raise invalid(f"there is no query parameter {name}")


async def _one(
    request: Request, select: Annotated[str, Query(description=_SELECT)] = ""
) -> ObjectQuery:
    _only(request, frozenset({"select"}))
    return ObjectQuery(select)


async def _many(
    request: Request,
    count: Annotated[
        int, Query(ge=1, le=limits.MANAGEMENT_PAGE_ROWS, description="Objects in the answer")
    ] = PAGE_ROWS,
    cursor: Annotated[str, Query(description="From `meta.paging` of the page before")] = "",
    where: Annotated[str, Query(description=_WHERE)] = "",
    select: Annotated[str, Query(description=_SELECT)] = "",
    sort: Annotated[str, Query(description=_SORT)] = "",
) -> ListQuery:
    _only(request, frozenset({"count", "cursor", "where", "select", "sort"}))
    return ListQuery(count, cursor, where, select, sort)


# All of them are coroutines: what is no coroutine would run in a thread, and the router's state is
# its own thread's alone.
ObjectQueryDep = Annotated[ObjectQuery, Depends(_one)]
ListQueryDep = Annotated[ListQuery, Depends(_many)]
