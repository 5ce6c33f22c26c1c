"""TLS of a listener: what it shows and what it takes."""

from typing import Annotated, Literal

from pydantic import Field

from vpnrouter.config.model import Model
from vpnrouter.config.names import FilePath
from vpnrouter.config.secret import Secret


class ListenerTls(Model):
    """Certificate and key of a TLS listener (`mqtts`, `wss`, `links`, `https`)."""

    certificate: Annotated[FilePath, Field(examples=["./certs/edge.pem"])]
    """PEM file with the listener's certificate and, after it, the chain."""

    key: Annotated[FilePath, Field(examples=["./certs/edge.key"])]
    """PEM file with the private key."""

    key_password: Secret | None = None
    """What decrypts the private key."""

    min_version: Literal["1.2", "1.3"] = "1.2"
    """Oldest TLS version that a client may speak."""

    client_ca: FilePath | None = None
    """PEM file with the authorities whose client certificates are taken; without it none is asked
    for."""

    client_crl: FilePath | None = None
    """PEM file with a revocation list of each authority that issues client certificates; needs
    client_ca."""
