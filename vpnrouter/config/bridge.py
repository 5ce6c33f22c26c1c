"""The model of a bridge. For mypy it is the class that declares it."""

from typing import TYPE_CHECKING

from vpnrouter.config.model import Model, model_of
from vpnrouter.settings import bridge

if TYPE_CHECKING:

    class Bridge(bridge.Bridge, Model):
        """A bridge into the message VPN that it stands in."""
else:
    Bridge = model_of(bridge.Bridge)

__all__ = ("Bridge",)
