"""Serves collections of status objects: lists them, gets one of them, and lists what an object holds.

A `Collection` or `Children` declares what is served; FastAPI makes paths and the API's description from it.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple
from urllib.parse import unquote

from fastapi import APIRouter, Depends, Path, Request
from starlette.responses import Response

from vpnrouter.management.access import Caller
from vpnrouter.management.answers.pages import Key
from vpnrouter.management.answers.query import ListQueryDep, ObjectQueryDep
from vpnrouter.management.answers.replies import object_reply, root_of
from vpnrouter.management.answers.rows import Links, Row, row_of, segment
from vpnrouter.management.api_context import ApiContext
from vpnrouter.management.dependencies import (
    CallerDep,
    ContextDep,
    MsgVpnDep,
    answers,
    audit_action,
    body_of,
)
from vpnrouter.management.errors import forbidden, not_found

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

MONITOR: Final = "/SEMP/v2/monitor"

ACTION: Final = "/SEMP/v2/action"

OURS: Final = "/vpnrouter/v1"
"""Prefix of paths that SEMP does not have."""

OF_MSG_VPN: Final = "/msgVpns/{msgVpnName}"


async def _operator(caller: CallerDep) -> Caller:
    if not caller.may_change:
        raise forbidden(f"User {caller.name} may look and not change")
    return caller


OperatorDep = Annotated[Caller, Depends(_operator)]
"""The caller of a request, who may change things."""


class Found(NamedTuple):
    """The objects of a collection in one message VPN."""

    names: Callable[[], Iterable[str]]
    status: Callable[[str], "DataclassInstance | None"]
    """Returns the object of a name, None where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """Objects of one type that each message VPN has, under `/SEMP/v2/monitor/msgVpns/{msgVpnName}/{path}`."""

    path: str
    tag: str
    """The type's name in errors and in the API's description."""
    key: str
    """Path parameter that identifies an object."""
    key_description: str | None = None
    kind: "type[DataclassInstance]"
    one: str
    many: str
    article: str = "a"
    description: str
    open: Callable[[ApiContext, str], Found]
    parse: Callable[[str], str | None] = unquote
    """Returns the object's name for a key as sent, None for a key that no object can have."""
    suffix: tuple[str, ...] = ()
    """What follows the name in a compound key."""
    links: Callable[[str, str], dict[str, str]] = lambda _uri, _name: {}
    """Further links of an object, from the URI of its message VPN and its name."""
    children: tuple[str, ...] = ()
    """Paths below an object that it links to."""

    def links_of(self, root: str, key: Key) -> Links:
        """Return the links of the object with key (message VPN, name)."""
        msg_vpn, name = key
        msg_vpn_uri = f"{root}{MONITOR}/msgVpns/{segment(msg_vpn)}"
        uri = f"{msg_vpn_uri}/{self.path}/{segment(name, *self.suffix)}"
        below = {f"{child}Uri": f"{uri}/{child}" for child in self.children}
        return {"uri": uri} | below | self.links(msg_vpn_uri, name)

    def missing(self, msg_vpn: str, key: str) -> Exception:
        """Return the error for an object that does not exist."""
        return not_found(f"{self.tag} {key} in msgVpn {msg_vpn}")


def name_in_path(collection: Collection) -> Callable[..., Awaitable[str]]:
    """Return a dependency for the name of the object in the path; it raises RequestError where there is none."""

    async def name(
        context: ContextDep,
        msg_vpn: MsgVpnDep,
        key: Annotated[str, Path(alias=collection.key, description=collection.key_description)],
    ) -> str:
        names = collection.parse(key)
        if names is None or collection.open(context, msg_vpn).status(names) is None:
            raise collection.missing(msg_vpn, unquote(key))
        return names

    return name


def serve(routes: APIRouter, collection: Collection, named: Callable[..., Awaitable[str]]) -> None:
    """Add the paths that list a collection in a message VPN and get one of its objects.

    `named` is its `name_in_path`.
    """

    async def many(
        request: Request, context: ContextDep, msg_vpn: MsgVpnDep, query: ListQueryDep
    ) -> Response:
        source, root = collection.open(context, msg_vpn), root_of(request)
        return await query.reply(
            request,
            [(msg_vpn, name) for name in source.names()],
            lambda key: _row(source, key),
            lambda key: collection.links_of(root, key),
            collection.kind,
        )

    async def one(
        request: Request,
        context: ContextDep,
        msg_vpn: MsgVpnDep,
        name: Annotated[str, Depends(named)],
        query: ObjectQueryDep,
    ) -> Response:
        key = (msg_vpn, name)
        row = _row(collection.open(context, msg_vpn), key)
        if row is None:
            raise collection.missing(msg_vpn, name)
        return query.reply(
            request, row, collection.links_of(root_of(request), key), collection.kind
        )

    path = f"{MONITOR}{OF_MSG_VPN}/{collection.path}"
    _get(
        routes, path, many, collection, f"List {collection.many}", collection.description, many=True
    )
    summary, description = f"Get {collection.article} {collection.one}", f"One {collection.one}."
    _get(routes, f"{path}/{{{collection.key}}}", one, collection, summary, description, many=False)


def serve_all(
    routes: APIRouter,
    collection: Collection,
    description: str,
    row: "Callable[[DataclassInstance], Row]" = row_of,
) -> None:
    """Add the path that lists a collection over all message VPNs that the user sees."""

    async def all_of(
        request: Request, context: ContextDep, caller: CallerDep, query: ListQueryDep
    ) -> Response:
        sources = {
            msg_vpn: collection.open(context, msg_vpn)
            # In order already: sorting a list that is sorted takes no time.
            for msg_vpn in sorted(context.router.vpns)
            if caller.sees(msg_vpn)
        }

        def row_at(key: Key) -> Row | None:
            status = sources[key[0]].status(key[1])
            return None if status is None else row(status)

        root = root_of(request)
        keys = [(msg_vpn, name) for msg_vpn, here in sources.items() for name in here.names()]
        return await query.reply(
            request, keys, row_at, lambda key: collection.links_of(root, key), collection.kind
        )

    routes.add_api_route(
        f"{OURS}/{collection.path}",
        all_of,
        name=f"all_{collection.many}",
        summary=f"List the {collection.many} of all message VPNs",
        description=description,
        tags=["vpnrouter"],
        responses=answers(collection.kind, many=True),
        response_model=None,
    )


def serve_clear_stats(
    routes: APIRouter,
    collection: Collection,
    named: Callable[..., Awaitable[str]],
    clear: Callable[[ApiContext, str, str], bool],
    description: str,
) -> None:
    """Add the action that resets the counts of an object; `clear` returns False where it does not exist."""

    async def clear_stats(
        request: Request,
        caller: OperatorDep,
        context: ContextDep,
        msg_vpn: MsgVpnDep,
        name: Annotated[str, Depends(named)],
    ) -> Response:
        await body_of(request, {})
        if not clear(context, msg_vpn, name):
            raise collection.missing(msg_vpn, name)
        audit_action(request, caller, f"cleared the counts of {collection.one} {name}", msg_vpn)
        return object_reply(request, {}, {})

    routes.add_api_route(
        f"{ACTION}{OF_MSG_VPN}/{collection.path}/{{{collection.key}}}/clearStats",
        clear_stats,
        methods=["PUT"],
        summary=f"Clear the counts of {collection.article} {collection.one}",
        description=description,
        tags=[collection.tag],
        response_model=None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Children:
    """What one object of a collection holds, under `…/{path}` below it."""

    path: str
    kind: "type[DataclassInstance]"
    many: str
    """Names them in the summary of the API's description."""
    name: str
    """Identifies the operation in the API's description."""
    description: str
    found: "Callable[[ApiContext, str, str], Sequence[DataclassInstance]]"
    """Gives the children of a message VPN's object."""
    key: Callable[[Any], Key]
    segment: Callable[[Key], str] = lambda key: segment(*key)
    """The end of a child's URI."""


def serve_children(
    routes: APIRouter, parent: Collection, named: Callable[..., Awaitable[str]], children: Children
) -> None:
    """Add the path that lists what one object of a collection holds."""

    async def many(
        request: Request,
        context: ContextDep,
        msg_vpn: MsgVpnDep,
        name: Annotated[str, Depends(named)],
        query: ListQueryDep,
    ) -> Response:
        by_key = {children.key(child): child for child in children.found(context, msg_vpn, name)}
        uri = f"{parent.links_of(root_of(request), (msg_vpn, name))['uri']}/{children.path}"
        return await query.reply(
            request,
            list(by_key),
            lambda key: row_of(by_key[key]),
            lambda key: {"uri": f"{uri}/{children.segment(key)}"},
            children.kind,
        )

    routes.add_api_route(
        f"{MONITOR}{OF_MSG_VPN}/{parent.path}/{{{parent.key}}}/{children.path}",
        many,
        name=children.name,
        summary=f"List {children.many}",
        description=children.description,
        tags=[parent.tag],
        responses=answers(children.kind, many=True),
        response_model=None,
    )


def serve_child(
    routes: APIRouter,
    parent: Collection,
    named: Callable[..., Awaitable[str]],
    children: Children,
    *,
    name: str,
    one: str,
    param: str,
    param_description: str | None = None,
    parse: Callable[[str], Key] = lambda sent: (unquote(sent),),
    missing: Callable[[str, str], str],
) -> None:
    """Add the path that gets one child by its key in the path parameter `param`.

    `missing` says what was not found, from the key as sent and the parent's name.
    """

    async def get(
        request: Request,
        context: ContextDep,
        msg_vpn: MsgVpnDep,
        of: Annotated[str, Depends(named)],
        sent: Annotated[str, Path(alias=param, description=param_description)],
        query: ObjectQueryDep,
    ) -> Response:
        child_key = parse(sent)
        for child in children.found(context, msg_vpn, of):
            if children.key(child) == child_key:
                uri = parent.links_of(root_of(request), (msg_vpn, of))["uri"]
                links = {"uri": f"{uri}/{children.path}/{children.segment(child_key)}"}
                return query.reply(request, row_of(child), links, children.kind)
        raise not_found(missing(unquote(sent), of))

    routes.add_api_route(
        f"{MONITOR}{OF_MSG_VPN}/{parent.path}/{{{parent.key}}}/{children.path}/{{{param}}}",
        get,
        name=name,
        summary=f"Get a {one}",
        description=f"One {one}.",
        tags=[parent.tag],
        responses=answers(children.kind, many=False),
        response_model=None,
    )


def _row(found: Found, key: Key) -> Row | None:
    status = found.status(key[1])
    return None if status is None else row_of(status)


def _get(
    routes: APIRouter,
    path: str,
    handler: Callable[..., Awaitable[Response]],
    collection: Collection,
    summary: str,
    description: str,
    *,
    many: bool,
) -> None:
    routes.add_api_route(
        path,
        handler,
        name=(collection.many if many else collection.one).lower().replace(" ", "_"),
        summary=summary,
        description=description,
        tags=[collection.tag],
        responses=answers(collection.kind, many=many),
        response_model=None,
    )
