"""Backs up the spool while the router runs."""

import posixpath
from pathlib import Path
from typing import Final

import trio
from fastapi import APIRouter, Request
from starlette.responses import Response

from vpnrouter import limits
from vpnrouter.errors import SpoolError
from vpnrouter.management.answers.replies import object_reply
from vpnrouter.management.collections import OperatorDep
from vpnrouter.management.dependencies import audit_action, body_of, context_of
from vpnrouter.management.errors import forbidden, invalid, no_path, not_allowed

ours: Final = APIRouter(prefix="/vpnrouter/v1/spool", tags=["vpnrouter"])


@ours.put("/backup", summary="Back up the spool", response_model=None)
async def backup(request: Request, caller: OperatorDep) -> Response:
    """Copy the spool, as of one moment, into `directory` on the router's machine, which is not there yet."""
    # The copy holds the messages of all message VPNs.
    if caller.msg_vpns is not None:
        raise forbidden(f"User {caller.name} does not see all message VPNs")
    context = context_of(request)
    store = context.store
    if store is None:
        raise no_path(f"{request.url.path}: this router has no spool (guaranteed_msging)")
    body = await body_of(request, {"directory": str})
    directory = body.get("directory", "")
    if not posixpath.isabs(directory) or "\0" in directory or len(directory) > limits.PATH_LENGTH:
        raise invalid("directory: an absolute path on the router's machine is needed")
    try:
        async with context.backups:
            await trio.to_thread.run_sync(store.backup, Path(directory))
    except SpoolError as error:
        raise not_allowed(str(error)) from error
    audit_action(request, caller, f"backed up the spool to {directory}")
    return object_reply(request, {"directory": directory}, {})
