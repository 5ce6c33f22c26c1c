"""Client usernames, client profiles and ACL profiles as they are in force, with counts of who uses them."""

from functools import partial
from typing import Final

from fastapi import APIRouter

from vpnrouter.management.api_context import ApiContext
from vpnrouter.management.collections import (
    Collection,
    Found,
    name_in_path,
    serve,
)
from vpnrouter.management.status.profiles import (
    AclProfileStatus,
    ClientProfileStatus,
    ClientUsernameStatus,
)

routes: Final = APIRouter()


def _client_usernames(context: ApiContext, msg_vpn: str) -> Found:
    source = context.profiles
    return Found(partial(source.username_names, msg_vpn), partial(source.username, msg_vpn))


def _client_profiles(context: ApiContext, msg_vpn: str) -> Found:
    profiles = context.profiles.client_profiles(msg_vpn)
    by_name = {profile.client_profile_name: profile for profile in profiles}
    return Found(lambda: by_name, by_name.get)


def _acl_profiles(context: ApiContext, msg_vpn: str) -> Found:
    by_name = {
        acl_profile.acl_profile_name: acl_profile
        for acl_profile in context.profiles.acl_profiles(msg_vpn)
    }
    return Found(lambda: by_name, by_name.get)


COLLECTIONS: Final = (
    Collection(
        path="clientUsernames",
        tag="clientUsername",
        key="clientUsername",
        kind=ClientUsernameStatus,
        one="client username",
        many="client usernames",
        description="The client usernames that are configured, or that somebody is connected with.",
        open=_client_usernames,
    ),
    Collection(
        path="clientProfiles",
        tag="clientProfile",
        key="clientProfileName",
        kind=ClientProfileStatus,
        one="client profile",
        many="client profiles",
        description="The client profiles of a message VPN.",
        open=_client_profiles,
    ),
    Collection(
        path="aclProfiles",
        tag="aclProfile",
        key="aclProfileName",
        kind=AclProfileStatus,
        one="ACL profile",
        many="ACL profiles",
        article="an",
        description="The ACL profiles of a message VPN.",
        open=_acl_profiles,
    ),
)

for _each in COLLECTIONS:
    serve(routes, _each, name_in_path(_each))


PAGES: Final = (routes,)
"""What the kind serves."""
