"""Client usernames: the accounts that clients and bridges log in with."""

from vpnrouter.config.model import Model
from vpnrouter.config.names import AclProfileName, ClientProfileName
from vpnrouter.config.secret import Password


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
