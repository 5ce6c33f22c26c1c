"""Makes the paths of all object types: list, create, get, update, replace, delete."""

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final

from fastapi import APIRouter, Request
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.responses import Response

from vpnrouter.config.parse import Plain
from vpnrouter.management.access import Caller
from vpnrouter.management.answers.query import ListQuery, ListQueryDep, ObjectQueryDep
from vpnrouter.management.answers.replies import done_reply, object_reply, root_of
from vpnrouter.management.answers.rows import Links, segment
from vpnrouter.management.answers.selection import cut, parse_select
from vpnrouter.management.config import document_changes, openapi
from vpnrouter.management.config.document_changes import (
    Given,
    WriteRequest,
    key_of,
    known_by_path,
    read_given,
)
from vpnrouter.management.config.editing import (
    NO_OPAQUE_PASSWORD,
    ChangerDep,
    EditorDep,
    body_of,
    demand_all,
    edit,
    hash_passwords,
    keys_of,
    look,
)
from vpnrouter.management.config.editor import ConfigEditor
from vpnrouter.management.config.kinds import KINDS, MSG_VPN, children_of
from vpnrouter.management.config.object_type import Keys, ObjectType, keys_in, row_at
from vpnrouter.management.dependencies import CallerDep
from vpnrouter.management.errors import not_found

CONFIG: Final = "/SEMP/v2/config"

Handler = Callable[..., Coroutine[Any, Any, Response]]


class _Blank(StringConvertor):
    """A part of a key that may be empty."""

    regex = "[^/,]*"


class _Word(StringConvertor):
    """A part of a key that holds no comma, so that one behind it may, unencoded."""

    regex = "[^/,]+"


register_url_convertor("blank", _Blank())
register_url_convertor("word", _Word())

routes: Final = APIRouter(prefix=CONFIG, dependencies=[NO_OPAQUE_PASSWORD])


def path_of(kind: ObjectType | None) -> str:
    """Return the path of an object, its keys as parameters."""
    chain = () if kind is None else kind.chain
    return "".join(f"/{each.collection}/{each.path}" for each in chain)


def uri_of(request: Request, kind: ObjectType, keys: Keys) -> str:
    """Return the links of an object."""
    parts = (
        f"/{each.collection}/{segment(*key)}" for each, key in zip(kind.chain, keys, strict=True)
    )
    return f"{root_of(request)}{CONFIG}{''.join(parts)}"


def _links(request: Request, kind: ObjectType, keys: Keys) -> Links:
    uri = uri_of(request, kind, keys)
    below = {f"{child.collection}Uri": f"{uri}/{child.collection}" for child in children_of(kind)}
    return {"uri": uri} | below


def _object(
    request: Request, editor: ConfigEditor, kind: ObjectType, keys: Keys, select: str
) -> Response:
    row = row_at(editor.config(), kind, keys)
    if row is None:
        raise not_found(kind.description(keys))
    selected = parse_select(select, kind.readable)
    return object_reply(request, cut(row, selected), _links(request, kind, keys))


def _lister(kind: ObjectType) -> Handler:
    async def lister(
        request: Request, caller: CallerDep, editor: EditorDep, query: ListQueryDep
    ) -> Response:
        above = keys_of(request, kind.parent)
        look(caller, editor, above)
        return await _page(request, caller, editor, kind, above, query)

    return lister


async def _page(
    request: Request,
    caller: Caller,
    editor: ConfigEditor,
    kind: ObjectType,
    above: Keys,
    query: ListQuery,
) -> Response:
    config = editor.config()
    all_keys = keys_in(config, kind, above)
    if all_keys is None and kind.parent is not None:
        raise not_found(kind.parent.description(above))
    keys = [key for key in all_keys or () if kind is not MSG_VPN or caller.sees(key[0])]
    return await query.page(
        request,
        keys,
        lambda key: row_at(config, kind, (*above, key)),
        lambda key: _links(request, kind, (*above, key)),
        kind.readable,
    )


def _getter(kind: ObjectType) -> Handler:
    async def getter(
        request: Request, caller: CallerDep, editor: EditorDep, query: ObjectQueryDep
    ) -> Response:
        keys = keys_of(request, kind)
        look(caller, editor, keys)
        return _object(request, editor, kind, keys, query.select)

    return getter


def _creator(kind: ObjectType) -> Handler:
    async def creator(
        request: Request, caller: ChangerDep, editor: EditorDep, query: ObjectQueryDep
    ) -> Response:
        above = keys_of(request, kind.parent)
        look(caller, editor, above)
        if kind is MSG_VPN:
            demand_all(caller)
        body = await body_of(request)
        keys = (*above, key_of(kind, body))
        reads = WriteRequest(creates=True, may_name_files=caller.msg_vpns is None)
        values = read_given(kind, known_by_path(kind, above), body, reads)
        return await _apply(
            request, caller, editor, kind, keys, values, document_changes.create, query.select
        )

    return creator


def _updater(kind: ObjectType) -> Handler:
    async def updater(
        request: Request, caller: ChangerDep, editor: EditorDep, query: ObjectQueryDep
    ) -> Response:
        keys = keys_of(request, kind)
        look(caller, editor, keys)
        reads = WriteRequest(may_name_files=caller.msg_vpns is None)
        values = read_given(kind, kind.known_by(keys), await body_of(request), reads)
        return await _apply(
            request, caller, editor, kind, keys, values, document_changes.patch, query.select
        )

    return updater


def _replacer(kind: ObjectType) -> Handler:
    async def replacer(
        request: Request, caller: ChangerDep, editor: EditorDep, query: ObjectQueryDep
    ) -> Response:
        keys = keys_of(request, kind)
        # Whoever may make a message VPN may do so by its name; for all others it must be there.
        if kind is not MSG_VPN or caller.msg_vpns is not None:
            look(caller, editor, keys)
        reads = WriteRequest(creates=True, may_name_files=caller.msg_vpns is None)
        known = kind.known_by(keys)
        values = read_given(kind, known, await body_of(request), reads)
        # What the path says has to be a key that a new object could have.
        key_of(kind, known)
        return await _apply(
            request, caller, editor, kind, keys, values, document_changes.replace, query.select
        )

    return replacer


def _deleter(kind: ObjectType) -> Handler:
    async def deleter(request: Request, caller: ChangerDep, editor: EditorDep) -> Response:
        keys = keys_of(request, kind)
        look(caller, editor, keys)
        if kind is MSG_VPN:
            demand_all(caller)
        dropping = partial(document_changes.delete, kind=kind, keys=keys)
        await edit(editor, caller, kind, keys, dropping, deletes=True)
        return done_reply(request)

    return deleter


async def _apply(
    request: Request,
    caller: Caller,
    editor: ConfigEditor,
    kind: ObjectType,
    keys: Keys,
    given: Given,
    how: Callable[[Plain, ObjectType, Keys, Given], None],
    select: str,
) -> Response:
    # A misspelt selection is told before anything changes.
    parse_select(select, kind.readable)
    await hash_passwords(kind, given)
    await edit(editor, caller, kind, keys, lambda document: how(document, kind, keys, given))
    return _object(request, editor, kind, keys, select)


_DESCRIPTIONS: Final[list[Callable[[], None]]] = []
"""What `describe_paths` does: it takes longer than everything else here, and few ask for it."""


def describe_paths() -> None:
    """Put the attributes into the descriptions of the paths, before OpenAPI is made of these."""
    for describes in _DESCRIPTIONS:
        describes()


def _add(kind: ObjectType) -> None:
    """Add the paths of one kind."""
    collection = f"{path_of(kind.parent)}/{kind.collection}"
    one = path_of(kind)
    title = kind.title[0].upper() + kind.title[1:]
    table: list[tuple[str, str, str, Handler, openapi.OperationText]] = [
        ("GET", collection, f"get{title}s", _lister(kind), openapi.OperationText(many=True)),
        ("POST", collection, f"create{title}", _creator(kind), openapi.OperationText(creates=True)),
        ("GET", one, f"get{title}", _getter(kind), openapi.OperationText(one=True)),
        (
            "PATCH",
            one,
            f"update{title}",
            _updater(kind),
            openapi.OperationText(one=True, changes=True),
        ),
        (
            "PUT",
            one,
            f"replace{title}",
            _replacer(kind),
            openapi.OperationText(one=True, changes=True),
        ),
        (
            "DELETE",
            one,
            f"delete{title}",
            _deleter(kind),
            openapi.OperationText(one=True, deletes=True),
        ),
    ]
    for method, path, name, handler, says in table:
        if method in {"PATCH", "PUT"} and not kind.changes:
            continue
        documentation: dict[str, Any] = {}
        _DESCRIPTIONS.append(partial(openapi.fill, documentation, kind, says))
        routes.add_api_route(
            path,
            handler,
            methods=[method],
            operation_id=name,
            summary=name,
            tags=[kind.noun],
            deprecated=kind.deprecated or None,
            response_model=None,
            openapi_extra=documentation,
        )


for _each in KINDS:
    _add(_each)
