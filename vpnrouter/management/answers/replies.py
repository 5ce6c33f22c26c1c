"""Makes the envelope of answers: data, links and meta, or the error."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import quote

from starlette.responses import Response

if TYPE_CHECKING:
    from fastapi import Request

    from vpnrouter.errors import RequestError
    from vpnrouter.management.answers.rows import Links, Row


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
