"""Makes the paths by which an operator acts on objects, from the actions that their kinds declare.

    PUT /vpnrouter/v1/msgVpns/{…}/connectors/{…}/pause
    PUT /vpnrouter/v1/msgVpns/{…}/connectors/{…}/links/{…}/resume

What an action sets is written to the configuration as its API does it, so that it is checked, outlives a restart and is
in force when the answer comes. To set what is set already is no error, and changes nothing.
"""

from functools import partial
from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from vpnrouter.management.access import Caller
from vpnrouter.management.answers.replies import object_reply
from vpnrouter.management.api_context import ApiContext
from vpnrouter.management.collections import OURS, OperatorDep
from vpnrouter.management.config import document_changes
from vpnrouter.management.config.editing import edit, editor_of, keys_of
from vpnrouter.management.config.kinds import TYPES
from vpnrouter.management.config.object_type import Keys
from vpnrouter.management.config.routes import path_of
from vpnrouter.management.dependencies import ContextDep, MsgVpnDep, audit_action, body_of
from vpnrouter.management.errors import not_found
from vpnrouter.management.kind_pages import running_in
from vpnrouter.settings.kinds import KINDS, MSG_VPN, Action, Kind
from vpnrouter.text import camel

routes: Final = APIRouter(prefix=OURS, tags=["vpnrouter"])


async def _set(
    request: Request, caller: Caller, kind: Kind, keys: Keys, attribute: str, *, value: bool
) -> None:
    object_type = TYPES[kind]
    given = {camel(attribute): value}
    change = partial(document_changes.patch, kind=object_type, keys=keys, given=given)
    await edit(await editor_of(request), caller, object_type, keys, change)


def _call(context: ApiContext, kind: Kind, keys: Keys, method: str) -> None:
    """Call a method of a running object; one that stands in a running object is a matter of that."""
    _, top, *_ = kind.chain
    (msg_vpn, *_), (name, *_), *below = keys
    one = running_in(top, context, msg_vpn).get(name)
    if one is None or not all(one.has(*key) for key in below):
        raise not_found(TYPES[kind].description(keys))
    getattr(one, method)(*(key[0] for key in below))


def _serve(kind: Kind, action: Action) -> None:
    async def act(
        request: Request, caller: OperatorDep, context: ContextDep, msg_vpn: MsgVpnDep
    ) -> Response:
        await body_of(request, {})
        keys = keys_of(request, TYPES[kind])
        if action.sets is None:
            _call(context, kind, keys, action.name)
        else:
            attribute, value = action.sets
            await _set(request, caller, kind, keys, attribute, value=value)
        name = "/".join(key[0] for key in keys[1:])
        audit_action(request, caller, f"{action.past} {kind.one} {name}", msg_vpn)
        return object_reply(request, {}, {})

    article = "an" if kind.one[0] in "aeiouAEIOU" else "a"
    routes.add_api_route(
        f"{path_of(TYPES[kind])}/{action.name}",
        act,
        methods=["PUT"],
        name=f"{action.name} {kind.one}".replace(" ", "_"),
        summary=f"{action.name.capitalize()} {article} {kind.one}",
        description=action.doc,
        response_model=None,
    )


for _kind in KINDS:
    if MSG_VPN in _kind.chain:
        for _action in _kind.actions:
            _serve(_kind, _action)
