"""The models of connectors and their links. For mypy they are the classes that declare them."""

from typing import TYPE_CHECKING

from vpnrouter.config.model import Model, model_of
from vpnrouter.settings import connector

if TYPE_CHECKING:

    class ConnectorLink(connector.ConnectorLink, Model):
        """A link of a connector."""

    class Connector(connector.Connector, Model):
        """A connector of a message VPN to a foreign broker, with its links by name."""

        links: dict[str, ConnectorLink]
else:
    Connector = model_of(connector.Connector)
    ConnectorLink = model_of(connector.ConnectorLink)

__all__ = ("Connector", "ConnectorLink")
