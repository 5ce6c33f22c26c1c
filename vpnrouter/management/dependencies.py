"""Gives handlers the router, the caller, the message VPN of the path, and the body of a request."""

import json
from collections.abc import Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Annotated, Any, cast
from urllib.parse import unquote

from fastapi import Depends, Path, Request

from vpnrouter import limits
from vpnrouter.management.access import Caller
from vpnrouter.management.answers.rows import schema_of
from vpnrouter.management.api_context import ApiContext
from vpnrouter.management.errors import invalid, not_found
from vpnrouter.management.middleware import caller_of

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

ERRORS = {
    400: "No such object, or a parameter that is wrong",
    401: "A user and password are needed",
    403: "Not served to this address",
}


def context_of(request: Request) -> ApiContext:
    """Return the router, as the application has it."""
    return cast(ApiContext, request.app.state.context)


def audit_action(request: Request, caller: Caller, what: str, msg_vpn: str = "") -> None:
    """Record in the audit trail what a caller did."""
    context_of(request).audit.acted(caller.name, what, msg_vpn)


async def _context(request: Request) -> ApiContext:
    return context_of(request)


async def _caller(request: Request) -> Caller:
    return caller_of(request)


ContextDep = Annotated[ApiContext, Depends(_context)]
CallerDep = Annotated[Caller, Depends(_caller)]


async def _msg_vpn(
    context: ContextDep, caller: CallerDep, name: Annotated[str, Path(alias="msgVpnName")]
) -> str:
    msg_vpn = unquote(name)
    # One answer for what is not there and what is hidden.
    if not caller.sees(msg_vpn) or msg_vpn not in context.router.vpns:
        raise not_found(f"msgVpn {msg_vpn}")
    return msg_vpn


MsgVpnDep = Annotated[str, Depends(_msg_vpn)]
"""The message VPN of the path, which exists and which the caller sees."""


def answers(kind: type["DataclassInstance"], *, many: bool) -> dict[int | str, dict[str, Any]]:
    """Return the answers of a path for the API's description; rows are made of `kind`."""
    row = schema_of(kind)
    links = {"type": "object", "additionalProperties": {"type": "string"}}
    schema = {
        "type": "object",
        "properties": {
            "data": {"type": "array", "items": row} if many else row,
            "links": {"type": "array", "items": links} if many else links,
            "meta": {"type": "object"},
        },
    }
    answers_by_code: dict[int | str, dict[str, Any]] = {
        200: {"description": "Done", "content": {"application/json": {"schema": schema}}}
    }
    return answers_by_code | {code: {"description": text} for code, text in ERRORS.items()}


async def body_of(request: Request, types: Mapping[str, type]) -> dict[str, Any]:
    """Return the object in the body, {} for an empty one; each value is of the type that `types` names.

    Raises RequestError for anything else.
    """
    body = await json_object_of(request)
    for name, value in body.items():
        if name not in types:
            raise invalid(f"there is no attribute {name}")
        # True is an int for Python and no number for anybody else.
        if not isinstance(value, types[name]) or isinstance(value, bool) is not (
            types[name] is bool
        ):
            raise invalid(f"{name}: {value!r} is of the wrong kind")
    return body


async def json_object_of(request: Request) -> dict[str, Any]:
    """Return the object in the body, {} for an empty one. Raises RequestError for what is no object, or too long."""
    text = b""
    async with aclosing(request.stream()) as parts:
        async for part in parts:
            text += part
            if len(text) > limits.MANAGEMENT_BODY_BYTES:
                raise invalid(f"the body has more than {limits.MANAGEMENT_BODY_BYTES:,} bytes")
    if not text:
        return {}
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise invalid("the body is no JSON object")
    return body
