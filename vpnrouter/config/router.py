"""The router itself and the whole configuration of one router."""

from typing import Annotated

from pydantic import Field, field_validator

from vpnrouter import limits
from vpnrouter.config.guaranteed_msging import GuaranteedMsging
from vpnrouter.config.listeners import Listener
from vpnrouter.config.locations import RouterBridging
from vpnrouter.config.logging import Logging
from vpnrouter.config.management import Management
from vpnrouter.config.model import Many, Model, Named
from vpnrouter.config.msg_vpn import MsgVpn
from vpnrouter.config.names import FilePath, MsgVpnName, RouterName
from vpnrouter.config.trace import Trace


class Router(Model):
    """What holds for the router as a whole."""

    name: Annotated[RouterName, Field(examples=["edge"])]
    """Name of this router, unique among all routers that bridges connect."""

    data_dir: FilePath = "./data"
    """Directory for what must outlive a restart. Two routers must not share one."""

    umask: Annotated[str, Field(pattern="^0[0-7][0-7]$")] = "077"
    """Permissions, in octal, that nobody gets on what the router writes: spool, backups, traces. "077": its
    owner alone; "027": its group may read. The overlay is its owner's in any case."""

    @property
    def file_mask(self) -> int:
        """`umask` as a number."""
        return int(self.umask, 8)


class RouterConfig(Model):
    """The configuration of one router: one YAML file."""

    router: Router
    """The router itself."""

    listeners: Many[Listener] = ()
    """Addresses that the router answers on."""

    guaranteed_msging: GuaranteedMsging = Field(default_factory=GuaranteedMsging)
    """Guaranteed messaging of the router as a whole."""

    bridging: RouterBridging = Field(default_factory=RouterBridging)
    """Bridges of the router as a whole."""

    trace: Annotated[Trace | None, Field(examples=[{}])] = None
    """Routing traces; without this block nothing is traced."""

    logging: Logging = Field(default_factory=Logging)
    """The log on stderr."""

    management: Management = Field(default_factory=Management)
    """Who may use the management API."""

    msg_vpns: Named[MsgVpnName, MsgVpn] = Field(default_factory=dict, examples=["blue"])
    """Message VPNs by name."""

    @field_validator("msg_vpns", mode="before")
    @classmethod
    def _not_too_many(cls, value: object) -> object:
        if isinstance(value, dict) and len(value) > limits.MSG_VPNS:
            raise ValueError(f"{len(value)} message VPNs, at most {limits.MSG_VPNS} are allowed")
        return value
