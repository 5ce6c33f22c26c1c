"""The model of one router's whole configuration."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from pydantic import Field, field_validator

from vpnrouter import limits
from vpnrouter.config.model import Many, Model, MsgVpnName, Named
from vpnrouter.config.msg_vpn import MsgVpn
from vpnrouter.config.parse import Document
from vpnrouter.config.problem import Problem
from vpnrouter.config.settings_models import (
    GuaranteedMsging,
    Listener,
    Logging,
    Management,
    Router,
    RouterBridging,
    Trace,
)


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


class Loaded(NamedTuple):
    """A configuration that is accepted. `positions` tells where each part of it stands: in the
    file, or in the overlay over it.

    `base` is the file by itself, `overlay` what lies over it; None where nothing does.
    """

    config: RouterConfig
    positions: Document
    warnings: tuple[Problem, ...]
    base: Document | None = None
    overlay: Document | None = None
