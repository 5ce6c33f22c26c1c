"""Client usernames, client profiles and ACL profiles as they are in force, with counts of who uses them."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Final, NamedTuple
from urllib.parse import unquote

from fastapi import APIRouter, Depends, Path, Request
from starlette.responses import Response

from vpnrouter.management.body import not_found
from vpnrouter.management.context import MsgVpnHere, answers, sources_of
from vpnrouter.management.msg_vpns import MONITOR
from vpnrouter.management.rows import AskedMany, AskedOne, Key, Links, Row, root_of, row_of, segment
from vpnrouter.management.status.profiles import (
    AclProfileStatus,
    ClientProfileStatus,
    ClientUsernameStatus,
    Profiles,
)

routes: Final = APIRouter(prefix=f"{MONITOR}/msgVpns/{{msgVpnName}}")


async def _source(request: Request) -> Profiles:
    return sources_of(request).profiles


ProfilesHere = Annotated[Profiles, Depends(_source)]


Found = tuple[Callable[[], list[Key]], Callable[[Key], Row | None]]
"""The keys of a collection, and the row of a key, None where there is no such object."""


def _client_usernames(source: Profiles, msg_vpn: str) -> Found:
    def row(key: Key) -> Row | None:
        status = source.username(*key)
        return None if status is None else row_of(status)

    return lambda: [(msg_vpn, name) for name in source.username_names(msg_vpn)], row


def _client_profiles(source: Profiles, msg_vpn: str) -> Found:
    return _made({each.client_profile_name: each for each in source.client_profiles(msg_vpn)})


def _acl_profiles(source: Profiles, msg_vpn: str) -> Found:
    return _made({each.acl_profile_name: each for each in source.acl_profiles(msg_vpn)})


def _made(found: dict[str, Any]) -> Found:
    rows: dict[Key, Any] = {(each.msg_vpn_name, name): each for name, each in found.items()}

    def row(key: Key) -> Row | None:
        status = rows.get(key)
        return None if status is None else row_of(status)

    return lambda: list(rows), row


class _Collection(NamedTuple):
    """A collection of a message VPN: its path, the name of its key, and what the API's description says of it."""

    path: str
    tag: str
    key: str
    kind: type[Any]
    found: Callable[[Profiles, str], Found]
    one: str
    many: str
    of_all: str


def _serve(each: _Collection) -> None:
    """Answer on the two paths of a collection: for all objects, and for one."""

    async def many(
        request: Request, source: ProfilesHere, msg_vpn: MsgVpnHere, asked: AskedMany
    ) -> Response:
        keys, row = each.found(source, msg_vpn)
        links = partial(_links, root_of(request), each.path)
        return await asked.reply(request, keys(), row, links, each.kind)

    async def one(
        request: Request,
        source: ProfilesHere,
        msg_vpn: MsgVpnHere,
        written: Annotated[str, Path(alias=each.key)],
        asked: AskedOne,
    ) -> Response:
        key = (msg_vpn, unquote(written))
        row = each.found(source, msg_vpn)[1](key)
        if row is None:
            raise not_found(f"{each.tag} {key[1]} in msgVpn {msg_vpn}")
        return asked.reply(request, row, _links(root_of(request), each.path, key), each.kind)

    article = "an" if each.one[0] in "aA" else "a"
    routes.add_api_route(
        f"/{each.path}",
        many,
        name=each.many.lower().replace(" ", "_"),
        summary=f"List {each.many}",
        description=each.of_all,
        tags=[each.tag],
        responses=answers(each.kind, many=True),
        response_model=None,
    )
    routes.add_api_route(
        f"/{each.path}/{{{each.key}}}",
        one,
        name=each.one.lower().replace(" ", "_"),
        summary=f"Get {article} {each.one}",
        description=f"One {each.one}.",
        tags=[each.tag],
        responses=answers(each.kind, many=False),
        response_model=None,
    )


_serve(
    _Collection(
        "clientUsernames",
        "clientUsername",
        "clientUsername",
        ClientUsernameStatus,
        _client_usernames,
        "client username",
        "client usernames",
        "The client usernames that are configured, or that somebody is connected with.",
    )
)
_serve(
    _Collection(
        "clientProfiles",
        "clientProfile",
        "clientProfileName",
        ClientProfileStatus,
        _client_profiles,
        "client profile",
        "client profiles",
        "The client profiles of a message VPN.",
    )
)
_serve(
    _Collection(
        "aclProfiles",
        "aclProfile",
        "aclProfileName",
        AclProfileStatus,
        _acl_profiles,
        "ACL profile",
        "ACL profiles",
        "The ACL profiles of a message VPN.",
    )
)


def _links(root: str, collection: str, key: Key) -> Links:
    msg_vpn, name = key
    return {"uri": f"{root}{MONITOR}/msgVpns/{segment(msg_vpn)}/{collection}/{segment(name)}"}
