"""Gives handlers of the configuration API the editor, checks rights, and words refusals in SEMP terms.

Why a configuration was refused, in the words of whoever sent attributes.

The problems that `check` finds name keys of a document, with the place in a file. Here the place goes, and
the keys of the object that was to change become its attributes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Final
from urllib.parse import unquote

import trio
from fastapi import Depends, Query, Request

from vpnrouter.config import secrets
from vpnrouter.config.parse import Plain
from vpnrouter.config.problem import Path, show_path
from vpnrouter.errors import ConfigError, OperationError, RequestError
from vpnrouter.management.access import Caller
from vpnrouter.management.config.document_changes import (
    Given,
    drop_empty,
    passwords_in,
    place_of,
)
from vpnrouter.management.config.editor import ConfigEditor
from vpnrouter.management.config.object_type import Keys, ObjectType
from vpnrouter.management.dependencies import CallerDep, context_of, json_object_of
from vpnrouter.management.errors import (
    forbidden,
    in_use,
    invalid,
    not_allowed,
    not_found,
    not_supported_here,
)
from vpnrouter.text import camel

_POSITION: Final = re.compile(r"^.*?:\d+:\d+: ")
_KEYS: Final = re.compile(r"[a-z]+(?:_[a-z]+)+(?:\.[a-z]+(?:_[a-z]+)*)*")

MOST_TOLD: Final = 10
"""Problems in one answer; the rest is counted."""


def semp_message(error: ConfigError, kind: ObjectType, place: Path, within: str = "") -> str:
    """Return the problems as one text. `place` is where the object stands in the document.

    With `within`, a message VPN, what is wrong elsewhere is counted and not told.
    """
    words = _words(kind)
    lines: list[str] = []
    hidden = 0
    for problem in error.problems:
        line = _POSITION.sub("", problem)
        if within and not line.startswith((f"msg_vpns.{within}.", f"msg_vpns.{within}: ")):
            hidden += 1
            continue
        lines.append(_worded(line, kind, place, words))
    lines = list(dict.fromkeys(lines))
    more = len(lines) - MOST_TOLD
    told_lines = lines[:MOST_TOLD]
    if more > 0:
        told_lines.append(f"and {more} more")
    if hidden:
        told_lines.append(f"problems in other parts of the configuration: {hidden}")
    return "; ".join(told_lines)


def _words(kind: ObjectType) -> Mapping[str, str]:
    """Return attribute names by keys joined by dots."""
    return {".".join(value.keys): value.name for value in kind.values}


def _worded(line: str, kind: ObjectType, place: Path, words: Mapping[str, str]) -> str:
    whole = show_path(place)
    above = show_path((*place[:-1],))
    if line.startswith(f"{whole}."):
        dotted, _, message = line.removeprefix(f"{whole}.").partition(": ")
        return f"{_name(dotted, words)}: {_replaced(message, dotted, words)}"
    if line.startswith(f"{whole}: "):
        name = kind.noun if kind.changes else kind.identity[-1].name
        return f"{name}: {_replaced(line.removeprefix(f'{whole}: '), '', words)}"
    if line.startswith(f"{above}: "):
        return f"{kind.identity[0].name}: {line.removeprefix(f'{above}: ')}"
    return line


def _name(dotted: str, words: Mapping[str, str]) -> str:
    return words.get(dotted, camel(dotted.replace(".", "_")))


def _replaced(message: str, dotted: str, words: Mapping[str, str]) -> str:
    """Return keys inside a message as attributes, as far as there are such."""
    above = dotted.rpartition(".")[0]

    def named(found: re.Match[str]) -> str:
        key = found.group()
        for place in (f"{dotted}.{key}", f"{above}.{key}" if above else key, key):
            if place in words:
                return words[place]
        return key

    return _KEYS.sub(named, message)


_HASHING: Final = trio.CapacityLimiter(1)
"""Password hashes made at once: more would take the data plane's core away."""

_SALT_BYTES: Final = 16

_NOBODY: Final = "localhost"
"""Who changes things where no users are configured."""


async def editor_of(request: Request) -> ConfigEditor:
    """Return what changes the configuration. Raises RequestError where there is none."""
    editor = context_of(request).editor
    if editor is None:
        raise not_allowed(
            "this router was not started from a file, so there is no configuration to look at or change"
        )
    return editor


async def _changer(caller: CallerDep) -> Caller:
    if not caller.may_change:
        raise forbidden(f"User {caller.name} may look and not change")
    return caller


async def _no_opaque_password(
    opaque: Annotated[
        str | None,
        Query(alias="opaquePassword", deprecated=True, include_in_schema=False),
    ] = None,
) -> None:
    if opaque is not None:
        raise not_supported_here("opaquePassword: secrets are never shown here, not even encrypted")


EditorDep = Annotated[ConfigEditor, Depends(editor_of)]
ChangerDep = Annotated[Caller, Depends(_changer)]
"""Who asks, and may change things."""

NO_OPAQUE_PASSWORD: Final = Depends(_no_opaque_password)


def keys_of(request: Request, kind: ObjectType | None) -> Keys:
    """Return the keys in a path: of an object of this kind and all above it, () for no kind."""
    chain = () if kind is None else kind.chain
    params = request.path_params
    return tuple(tuple(unquote(params[name]) for name in each.key_names) for each in chain)


def look(caller: Caller, editor: ConfigEditor, keys: Keys) -> None:
    """Raise RequestError if the message VPN of these keys is missing or hidden, alike for both."""
    if not keys:
        return
    name = keys[0][0]
    if not caller.sees(name) or name not in editor.config().msg_vpns:
        raise not_found(f"msgVpn {name}")


def demand_all(caller: Caller) -> None:
    """Raise RequestError for a user of some message VPNs, who may not create or delete any."""
    if caller.msg_vpns is not None:
        raise forbidden(f"User {caller.name} may neither create nor delete message VPNs")


async def body_of(request: Request) -> dict[str, object]:
    """Return the attributes in the body.

    It has to be declared as JSON: a web page can send a POST to this address from a browser on the router's
    machine, but none of this type without being asked first, and this API does not answer that.
    """
    declared = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if declared != "application/json":
        raise invalid("the content-type of the body must be application/json")
    return await json_object_of(request)


async def hash_passwords(kind: ObjectType, given: Given) -> None:
    """Replace the passwords that are only compared by hashes; a hash stays as it is.

    Raises RequestError for a password that cannot be one.
    """
    for name in passwords_in(kind, given):
        if not _is_good_hash(given[name]):
            try:
                given[name] = await trio.to_thread.run_sync(
                    # Bridges log in with nothing less.
                    secrets.scram_verifier,
                    given[name],
                    os.urandom(_SALT_BYTES),
                    limiter=_HASHING,
                )
            except ValueError as error:
                raise invalid(f"{name}: {error}") from None


def _is_good_hash(text: str) -> bool:
    try:
        secrets.check_stored(text)
    except ValueError:
        return False
    return True


async def edit(
    editor: ConfigEditor,
    caller: Caller,
    kind: ObjectType,
    keys: Keys,
    change: Callable[[Plain], None],
    *,
    deletes: bool = False,
) -> None:
    """Change the configuration. Raises RequestError if it is refused; nothing has changed then."""
    place: Path = ()

    def changing(document: Plain) -> None:
        nonlocal place
        if deletes:
            place = place_of(document, kind, keys)
        change(document)
        if not deletes:
            place = place_of(document, kind, keys)
        elif editor.is_overlaid(place[:-1]):
            drop_empty(document, place[:-1])

    try:
        await editor.edit(changing, caller.name or _NOBODY)
    except ConfigError as error:
        within = "" if caller.msg_vpns is None else keys[0][0]
        raise _refusal(semp_message(error, kind, place, within), deletes=deletes) from error
    except OperationError as error:
        raise not_allowed(str(error)) from error


def _refusal(text: str, *, deletes: bool) -> RequestError:
    return in_use(text) if deletes else invalid(text)
