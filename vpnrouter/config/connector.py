"""The model of a connector: what `settings/connector.py` declares, and its links by name."""

from typing import TYPE_CHECKING

from pydantic import Field

from vpnrouter.config.model import ConnectorLinkName, Model, Named, model_of
from vpnrouter.settings import connector

if TYPE_CHECKING:

    class _Declared(connector.Connector, Model):
        pass

    class ConnectorLink(connector.ConnectorLink, Model):
        """A link of a connector."""
else:
    _Declared = model_of(connector.Connector)
    ConnectorLink = model_of(connector.ConnectorLink)


class Connector(_Declared):
    """A connector of a message VPN to a foreign broker."""

    links: Named[ConnectorLinkName, ConnectorLink] = Field(
        default_factory=dict, examples=["sensors-in"]
    )
    """Links by name."""
