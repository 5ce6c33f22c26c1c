"""Client usernames: the accounts that clients and bridges log in with."""

from __future__ import annotations

from vpnrouter import limits
from vpnrouter.settings import names
from vpnrouter.settings.schema import Effect, Password, Settings, Text, attribute


class ClientUsername(Settings, effect=Effect.NEXT_LOGIN):
    """An account that clients and bridges log in with."""

    enabled: bool = attribute(True, off=Effect.DISCONNECT, semp_default=False)
    """Whether its clients may log in."""

    password: Password | None = attribute(
        None, text=Text(0, limits.PASSWORD_BYTES), hashed=True, held=None
    )
    """Text, {env: NAME}, {file: PATH} or a hash from `vpnrouter hash-password`. Without it nobody
    logs in by password."""

    password_required: bool = attribute(True, ours=True)
    """Whether a login needs the password. If not, a client may come in by the name alone; a password
    that it gives has to be right all the same."""

    client_profile: str = attribute(
        "default",
        text=names.CLIENT_PROFILE,
        effect=Effect.IN_PLACE,
        semp_name="clientProfileName",
    )
    """What its clients may do and how much of it."""

    acl_profile: str = attribute(
        "default", text=names.ACL_PROFILE, effect=Effect.IN_PLACE, semp_name="aclProfileName"
    )
    """From where its clients may connect, and what they may publish and subscribe to."""

    guaranteed_endpoint_permission_override_enabled: bool = attribute(False, effect=Effect.IN_PLACE)
    """Whether its clients may do with every endpoint what the endpoint's owner may."""
