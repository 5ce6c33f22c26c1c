"""Client usernames, client profiles and ACL profiles as they are in force, with counts of who uses them."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Final
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


@routes.get(
    "/clientUsernames",
    summary="List client usernames",
    tags=["clientUsername"],
    responses=answers(ClientUsernameStatus, many=True),
    response_model=None,
)
async def client_usernames(
    request: Request, source: ProfilesHere, msg_vpn: MsgVpnHere, asked: AskedMany
) -> Response:
    """The client usernames that are configured, or that somebody is connected with."""
    keys = [(msg_vpn, name) for name in source.username_names(msg_vpn)]
    links = partial(_links, root_of(request), "clientUsernames")
    return await asked.reply(request, keys, partial(_row, source), links, ClientUsernameStatus)


@routes.get(
    "/clientUsernames/{clientUsername}",
    summary="Get a client username",
    tags=["clientUsername"],
    responses=answers(ClientUsernameStatus, many=False),
    response_model=None,
)
async def client_username(
    request: Request,
    source: ProfilesHere,
    msg_vpn: MsgVpnHere,
    written: Annotated[str, Path(alias="clientUsername")],
    asked: AskedOne,
) -> Response:
    """One client username."""
    key = (msg_vpn, unquote(written))
    row = _row(source, key)
    if row is None:
        raise not_found(f"clientUsername {key[1]} in msgVpn {msg_vpn}")
    links = _links(root_of(request), "clientUsernames", key)
    return asked.reply(request, row, links, ClientUsernameStatus)


@routes.get(
    "/clientProfiles",
    summary="List client profiles",
    tags=["clientProfile"],
    responses=answers(ClientProfileStatus, many=True),
    response_model=None,
)
async def client_profiles(
    request: Request, source: ProfilesHere, msg_vpn: MsgVpnHere, asked: AskedMany
) -> Response:
    """The client profiles of a message VPN."""
    rows = _client_profiles(source.client_profiles(msg_vpn))
    links = partial(_links, root_of(request), "clientProfiles")
    return await asked.reply(request, list(rows), _made(rows), links, ClientProfileStatus)


@routes.get(
    "/clientProfiles/{clientProfileName}",
    summary="Get a client profile",
    tags=["clientProfile"],
    responses=answers(ClientProfileStatus, many=False),
    response_model=None,
)
async def client_profile(
    request: Request,
    source: ProfilesHere,
    msg_vpn: MsgVpnHere,
    written: Annotated[str, Path(alias="clientProfileName")],
    asked: AskedOne,
) -> Response:
    """One client profile."""
    key = (msg_vpn, unquote(written))
    status = _client_profiles(source.client_profiles(msg_vpn)).get(key)
    if status is None:
        raise not_found(f"clientProfile {key[1]} in msgVpn {msg_vpn}")
    links = _links(root_of(request), "clientProfiles", key)
    return asked.reply(request, row_of(status), links, ClientProfileStatus)


@routes.get(
    "/aclProfiles",
    summary="List ACL profiles",
    tags=["aclProfile"],
    responses=answers(AclProfileStatus, many=True),
    response_model=None,
)
async def acl_profiles(
    request: Request, source: ProfilesHere, msg_vpn: MsgVpnHere, asked: AskedMany
) -> Response:
    """The ACL profiles of a message VPN."""
    rows = _acl_profiles(source.acl_profiles(msg_vpn))
    links = partial(_links, root_of(request), "aclProfiles")
    return await asked.reply(request, list(rows), _made(rows), links, AclProfileStatus)


@routes.get(
    "/aclProfiles/{aclProfileName}",
    summary="Get an ACL profile",
    tags=["aclProfile"],
    responses=answers(AclProfileStatus, many=False),
    response_model=None,
)
async def acl_profile(
    request: Request,
    source: ProfilesHere,
    msg_vpn: MsgVpnHere,
    written: Annotated[str, Path(alias="aclProfileName")],
    asked: AskedOne,
) -> Response:
    """One ACL profile."""
    key = (msg_vpn, unquote(written))
    status = _acl_profiles(source.acl_profiles(msg_vpn)).get(key)
    if status is None:
        raise not_found(f"aclProfile {key[1]} in msgVpn {msg_vpn}")
    links = _links(root_of(request), "aclProfiles", key)
    return asked.reply(request, row_of(status), links, AclProfileStatus)


def _row(source: Profiles, key: Key) -> Row | None:
    status = source.username(*key)
    return None if status is None else row_of(status)


def _client_profiles(found: Sequence[ClientProfileStatus]) -> dict[Key, ClientProfileStatus]:
    return {(each.msg_vpn_name, each.client_profile_name): each for each in found}


def _acl_profiles(found: Sequence[AclProfileStatus]) -> dict[Key, AclProfileStatus]:
    return {(each.msg_vpn_name, each.acl_profile_name): each for each in found}


def _made(
    rows: dict[Key, ClientProfileStatus] | dict[Key, AclProfileStatus],
) -> Callable[[Key], Row]:
    return lambda key: row_of(rows[key])


def _links(root: str, collection: str, key: Key) -> Links:
    msg_vpn, name = key
    return {"uri": f"{root}{MONITOR}/msgVpns/{segment(msg_vpn)}/{collection}/{segment(name)}"}
