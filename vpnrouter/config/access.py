"""Client usernames, and what the built-in ACL profile starts with."""

from __future__ import annotations

from typing import Final

from vpnrouter.config.model import AclProfileName, ClientProfileName, Model
from vpnrouter.config.secrets import Password

GROUPS: Final = ("client_connect", "publish_topic", "subscribe_topic", "subscribe_share_name")


def allow_by_default(written: object) -> object:
    """What is written for the profile `default`, with `allow` wherever no action is written."""
    written = {} if written is None else written
    if not isinstance(written, dict):
        return written
    opened = dict(written)
    for group in GROUPS:
        inner = opened.get(group) or {}
        if isinstance(inner, dict):
            opened[group] = {"default_action": "allow", **inner}
    return opened


class ClientUsername(Model):
    """An account that clients and bridges log in with."""

    enabled: bool = True
    """Whether its clients may log in."""

    password: Password | None = None
    """Text, {env: NAME}, {file: PATH} or a hash from `vpnrouter hash-password`. Without it nobody
    logs in by password."""

    password_required: bool = True
    """Whether a login needs the password. If not, a client may come in by the name alone; a password
    that it gives has to be right all the same."""

    client_profile: ClientProfileName = "default"
    """What its clients may do and how much of it."""

    acl_profile: AclProfileName = "default"
    """From where its clients may connect, and what they may publish and subscribe to."""

    guaranteed_endpoint_permission_override_enabled: bool = False
    """Whether its clients may do with every endpoint what the endpoint's owner may."""
