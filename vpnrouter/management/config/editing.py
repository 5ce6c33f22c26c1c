"""What every handler of this package needs: the editor, who may do what, and how an edit is asked for."""

import os
from collections.abc import Callable
from typing import Annotated, Final
from urllib.parse import unquote

import trio
from fastapi import Depends, Query, Request

from vpnrouter.config import passwords
from vpnrouter.config.document import Plain
from vpnrouter.config.problem import Path
from vpnrouter.errors import ConfigError, OperationError, RequestError
from vpnrouter.management.access import Caller
from vpnrouter.management.body import json_object_of
from vpnrouter.management.config.change import place_of
from vpnrouter.management.config.given import Given, passwords_in
from vpnrouter.management.config.kind import Keys, Kind
from vpnrouter.management.config.refusals import told
from vpnrouter.management.context import CallerHere, sources_of
from vpnrouter.management.editor import Editor
from vpnrouter.management.faults import (
    forbidden,
    in_use,
    invalid,
    not_allowed,
    not_found,
    not_supported_here,
)

_HASHING: Final = trio.CapacityLimiter(1)
"""Password hashes made at once: more would take the data plane's core away."""

_SALT_BYTES: Final = 16

_NOBODY: Final = "localhost"
"""Who changes things where no users are configured."""


async def _editor(request: Request) -> Editor:
    editor = sources_of(request).editor
    if editor is None:
        raise not_allowed(
            "this router was not started from a file, so there is no configuration to look at or change"
        )
    return editor


async def _changer(caller: CallerHere) -> Caller:
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


EditorHere = Annotated[Editor, Depends(_editor)]
ChangerHere = Annotated[Caller, Depends(_changer)]
"""Who asks, and may change things."""

NO_OPAQUE_PASSWORD: Final = Depends(_no_opaque_password)


def keys_of(request: Request, kind: Kind | None) -> Keys:
    """The keys in a path: of an object of this kind and all above it, () for no kind."""
    chain = () if kind is None else kind.chain
    params = request.path_params
    return tuple(tuple(unquote(params[name]) for name in each.key_names) for each in chain)


def look(caller: Caller, editor: Editor, keys: Keys) -> None:
    """Raises RequestError if the message VPN of these keys is not there or hidden: one answer for both."""
    if not keys:
        return
    name = keys[0][0]
    if not caller.sees(name) or name not in editor.config().msg_vpns:
        raise not_found(f"msgVpn {name}")


def demand_all(caller: Caller) -> None:
    """Raises RequestError for a user of some message VPNs: they do not come and go by such a one."""
    if caller.msg_vpns is not None:
        raise forbidden(f"User {caller.name} may neither create nor delete message VPNs")


async def body_of(request: Request) -> dict[str, object]:
    """The attributes in the body.

    It has to be declared as JSON: a web page can send a POST to this address from a browser on the router's
    machine, but none of this type without being asked first, and this API does not answer that.
    """
    declared = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if declared != "application/json":
        raise invalid("the content-type of the body must be application/json")
    return await json_object_of(request)


async def hash_passwords(kind: Kind, given: Given) -> None:
    """Put hashes in the place of the passwords that are only compared; a hash stands as it is.

    Raises RequestError for a password that cannot be one.
    """
    for name in passwords_in(kind, given):
        if not _is_good_hash(given[name]):
            try:
                given[name] = await trio.to_thread.run_sync(
                    # Bridges log in with nothing less.
                    passwords.scram_verifier,
                    given[name],
                    os.urandom(_SALT_BYTES),
                    limiter=_HASHING,
                )
            except ValueError as error:
                raise invalid(f"{name}: {error}") from None


def _is_good_hash(text: str) -> bool:
    try:
        passwords.check_stored(text)
    except ValueError:
        return False
    return True


async def edit(
    editor: Editor,
    caller: Caller,
    kind: Kind,
    keys: Keys,
    change: Callable[[Plain], None],
    *,
    deletes: bool = False,
) -> None:
    """Have the configuration changed. Raises RequestError if it is refused; nothing has changed then."""
    place: Path = ()

    def changing(document: Plain) -> None:
        nonlocal place
        if deletes:
            place = place_of(document, kind, keys)
        change(document)
        if not deletes:
            place = place_of(document, kind, keys)

    try:
        await editor.edit(changing, caller.name or _NOBODY)
    except ConfigError as error:
        within = "" if caller.msg_vpns is None else keys[0][0]
        raise _refusal(told(error, kind, place, within), deletes=deletes) from error
    except OperationError as error:
        raise not_allowed(str(error)) from error


def _refusal(text: str, *, deletes: bool) -> RequestError:
    return in_use(text) if deletes else invalid(text)
