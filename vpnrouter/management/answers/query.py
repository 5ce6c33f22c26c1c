"""The query of a request for one object or a collection, and the answer to it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

from fastapi import Depends, Query, Request
from starlette.responses import Response

from vpnrouter import limits
from vpnrouter.management.answers.conditions import parse_where
from vpnrouter.management.answers.order import parse_sort
from vpnrouter.management.answers.pages import Key, Page, nested_page, page_of, sorted_page
from vpnrouter.management.answers.replies import list_reply, object_reply
from vpnrouter.management.answers.rows import Links, Row, names_of
from vpnrouter.management.answers.selection import cut, parse_select
from vpnrouter.management.errors import invalid

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


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
        return object_reply(request, cut(row, parse_select(self.select, known)), links)


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
        return await self.page(request, keys, row, links, names_of(kind))

    async def page(
        self,
        request: Request,
        keys: Sequence[Key],
        row: Callable[[Key], Row | None],
        links: Callable[[Key], Links],
        known: Collection[str],
    ) -> Response:
        """Return one page, as `reply` does, of objects whose attributes have the names in `known`."""
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
        [cut(each, selected) for _, each in page.rows],
        [links(key) for key, _ in page.rows],
        page.total,
        page.cursor,
    )


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
