"""The body of a request that changes something: a JSON object with known names, bounded."""

import json
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

from fastapi import Request

from vpnrouter import limits
from vpnrouter.management.faults import invalid


async def body_of(request: Request, known: Mapping[str, type]) -> dict[str, Any]:
    """The object in the body, {} for an empty one; each value is of the type that `known` names.

    Raises RequestError for anything else.
    """
    body = await json_object_of(request)
    for name, value in body.items():
        if name not in known:
            raise invalid(f"there is no attribute {name}")
        # True is an int for Python and no number for anybody else.
        if not isinstance(value, known[name]) or isinstance(value, bool) is not (
            known[name] is bool
        ):
            raise invalid(f"{name}: {value!r} is of the wrong kind")
    return body


async def json_object_of(request: Request) -> dict[str, Any]:
    """The object in the body, {} for an empty one. Raises RequestError for what is none, or is too long."""
    written = b""
    async with aclosing(request.stream()) as parts:
        async for part in parts:
            written += part
            if len(written) > limits.MANAGEMENT_BODY_BYTES:
                raise invalid(f"the body has more than {limits.MANAGEMENT_BODY_BYTES:,} bytes")
    if not written:
        return {}
    try:
        body = json.loads(written)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise invalid("the body is no JSON object")
    return body
