"""The whole configuration of the router: shown, examined, replaced, returned to (`/vpnrouter/v1/config`).

For administrators of all message VPNs. Secrets are masked; one that comes back as `***` is the one that
stands. What takes long for a large configuration runs beside the router.
"""

import json
from collections.abc import Sequence
from contextlib import aclosing
from functools import partial
from itertools import islice
from typing import Annotated, Any, Final

import trio
from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from vpnrouter import limits
from vpnrouter.beside import beside
from vpnrouter.config.document_values import mask
from vpnrouter.config.effects import Change, describe
from vpnrouter.config.parse import Plain
from vpnrouter.config.problem import Problem
from vpnrouter.errors import ConfigError, OperationError, RequestError
from vpnrouter.limits import CONFIG_DEPTH, CONFIG_VALUES
from vpnrouter.management.access import Caller
from vpnrouter.management.answers.replies import long_reply
from vpnrouter.management.answers.rows import Row
from vpnrouter.management.config.editor import ConfigEditor, Edited
from vpnrouter.management.dependencies import ERRORS, CallerDep, context_of
from vpnrouter.management.errors import busy, forbidden, invalid, not_allowed

PATH: Final = "/vpnrouter/v1/config"

ours: Final = APIRouter(prefix=PATH, tags=["vpnrouter"])

_NOBODY: Final = "localhost"
"""Who changes things where no users are configured."""

_BESIDE: Final = trio.CapacityLimiter(1)
"""Documents read or written at once: more would take the data plane's core away."""

_DIGITS: Final = 30
"""Digits of a whole number; no key takes more than ten."""

_MANY: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "Done"},
    **{code: {"description": text} for code, text in ERRORS.items()},
    503: {"description": "Too many configurations at once"},
}


async def _all(caller: CallerDep) -> Caller:
    if not caller.may_change or caller.msg_vpns is not None:
        raise forbidden(f"User {caller.name} is not an administrator of all message VPNs")
    return caller


async def _editor(request: Request) -> ConfigEditor:
    editor = context_of(request).editor
    if editor is None:
        raise not_allowed(
            "this router was not started from a file, so there is no configuration to look at or change"
        )
    return editor


AdministratorDep = Annotated[Caller, Depends(_all)]
EditorDep = Annotated[ConfigEditor, Depends(_editor)]


@ours.get("", summary="Get the configuration", responses=_MANY, response_model=None)
async def get_config(request: Request, _: AdministratorDep, editor: EditorDep) -> Response:
    """The document in force, its digest, what of it lies over the file, and where each part is written."""
    # All at one moment; what is shown of it afterwards does not change any more.
    document, overlay, places = editor.document(), editor.overlay(), editor.positions()
    file, overlay_file = editor.files()
    row: Row = {
        "routerName": editor.config().router.name,
        "digest": editor.digest(),
        "file": file,
        "overlayFile": overlay_file,
    }

    def made() -> Response:
        row["document"] = mask(document)
        row["overlay"] = mask(overlay)
        row["positions"] = [
            {"path": path, "file": at.file, "line": at.line, "column": at.column}
            for path, at in islice(places, limits.DOCUMENT_POSITIONS)
        ]
        return long_reply(request, row)

    return await beside(made, _BESIDE)


@ours.post("/examine", summary="Examine a configuration", responses=_MANY, response_model=None)
async def examine(request: Request, _: AdministratorDep, editor: EditorDep) -> Response:
    """What it would take to put `document` into force: problems, or changes and what each does."""
    body = await _body(request, {"document": dict})
    examined = await editor.examine(body["document"])
    row: Row = {
        "problems": [_problem(problem) for problem in examined.problems],
        "changes": [_change(change) for change in examined.changes],
        "digest": editor.digest(),
    }
    return await _reply(request, row)


@ours.put("/replace", summary="Replace the configuration", responses=_MANY, response_model=None)
async def replace(request: Request, caller: AdministratorDep, editor: EditorDep) -> Response:
    """Put `document` into force if `expected` is the digest in force; without it whatever is."""
    body = await _body(request, {"document": dict, "expected": str})
    target = body["document"]

    def change(document: Plain) -> None:
        document.clear()
        document.update(target)

    try:
        edited = await editor.edit(change, caller.name or _NOBODY, body.get("expected", ""))
    except (ConfigError, OperationError) as error:
        raise _refusal(error) from error
    return await _reply(request, _edited(edited))


@ours.put("/return", summary="Return to a configuration", responses=_MANY, response_model=None)
async def return_to(request: Request, caller: AdministratorDep, editor: EditorDep) -> Response:
    """Put the document with the digest `digest`, one of the last that were in force, into force again."""
    body = await _body(request, {"digest": str})
    try:
        edited = await editor.return_to(body["digest"], caller.name or _NOBODY)
    except (ConfigError, OperationError) as error:
        raise _refusal(error) from error
    return await _reply(request, _edited(edited))


def _problem(problem: Problem) -> Row:
    place = problem.position
    return {
        "severity": problem.severity,
        "file": place.file,
        "line": place.line,
        "column": place.column,
        "message": problem.message,
    }


def _change(change: Change) -> Row:
    return {
        "path": [str(step) for step in change.path],
        "text": describe(change),
        "effect": change.kind.name.lower().replace("_", "-"),
    }


def _edited(edited: Edited) -> Row:
    return {"lines": list(edited.lines), "digest": edited.digest}


async def _reply(request: Request, row: Row) -> Response:
    return await beside(partial(long_reply, request, row), _BESIDE)


def _refusal(error: ConfigError | OperationError) -> RequestError:
    if isinstance(error, OperationError):
        return not_allowed(str(error))
    lines = list(error.problems[: limits.DOCUMENT_PROBLEMS])
    if len(error.problems) > len(lines):
        lines.append(f"and {len(error.problems) - len(lines)} more problems")
    return invalid("\n".join(lines))


# -- bodies ----------------------------------------------------------------------------------------

_reading: Final[set[object]] = set()
"""Who is being read just now, in all applications of this process."""


async def _body(request: Request, types: dict[str, type]) -> dict[str, Any]:
    """Return the object in the body; the first of `types` must be in it. Raises RequestError.

    It has to be declared as JSON: see `management.config.editing.body_of`.
    """
    declared = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if declared != "application/json":
        raise invalid("the content-type of the body must be application/json")
    if len(_reading) >= limits.DOCUMENTS_READ:
        raise busy("Too many configurations at once; try again")
    mine = object()
    _reading.add(mine)
    try:
        encoded = await _bytes(request)
        body = await beside(partial(_parsed, encoded), _BESIDE)
    finally:
        _reading.remove(mine)
    for name, value in body.items():
        if name not in types:
            raise invalid(f"there is no attribute {name}")
        if not isinstance(value, types[name]):
            raise invalid(f"{name}: of the wrong kind")
    needed = next(iter(types))
    if needed not in body:
        raise invalid(f"{needed} is missing")
    return body


async def _bytes(request: Request) -> bytes:
    chunks: list[bytes] = []
    size = 0
    async with aclosing(request.stream()) as parts:
        async for part in parts:
            chunks.append(part)
            size += len(part)
            if size > limits.DOCUMENT_BYTES:
                raise invalid(f"the body has more than {limits.DOCUMENT_BYTES:,} bytes")
    return b"".join(chunks)


def _parsed(encoded: bytes) -> dict[str, Any]:
    """Parse JSON more strictly than `json.loads`, which would also hold the interpreter until it is through."""
    decoder = json.JSONDecoder(
        object_pairs_hook=_once, parse_int=_integer, parse_constant=_no_constant
    )
    _Bounds(decoder)
    decoder.scan_once = json.scanner.py_make_scanner(decoder)  # type: ignore[attr-defined]
    try:
        body = decoder.decode(encoded.decode())
    except ValueError as error:
        reason = str(error) if type(error) is ValueError else "it is no JSON"
        raise invalid(f"the body: {reason}") from None
    if not isinstance(body, dict):
        raise invalid("the body is no JSON object")
    return body


class _Bounds:
    """Counts what a decoder makes, while it does: a document may have as many values as a file, and be nested as
    deep within the object that brings it.
    """

    def __init__(self, decoder: Any) -> None:  # noqa: ANN401 - its makers of objects and lists have no types
        self._object, self._array = decoder.parse_object, decoder.parse_array
        self._values = self._depth = 0
        decoder.parse_object, decoder.parse_array = self._nested_object, self._nested_array

    def _nested_object(self, place: Any, strict: Any, scan: Any, *more: Any) -> Any:  # noqa: ANN401
        return self._nested(self._object, place, strict, self._counting(scan), *more)

    def _nested_array(self, place: Any, scan: Any) -> Any:  # noqa: ANN401
        return self._nested(self._array, place, self._counting(scan))

    def _nested(self, make: Any, *given: Any) -> Any:  # noqa: ANN401
        self._depth += 1
        if self._depth > CONFIG_DEPTH + 1:
            raise ValueError(f"nested deeper than {CONFIG_DEPTH} levels")
        value = make(*given)
        self._depth -= 1
        return value

    def _counting(self, scan: Any) -> Any:  # noqa: ANN401
        def counted(text: str, at: int) -> Any:  # noqa: ANN401
            self._values += 1
            if self._values > CONFIG_VALUES:
                raise ValueError(f"more than {CONFIG_VALUES} values")
            return scan(text, at)

        return counted


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a key stands twice in an object")
    return members


def _integer(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
