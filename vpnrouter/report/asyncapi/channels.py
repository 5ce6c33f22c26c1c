"""What the AsyncAPI documents say of a message VPN: its channels, and who sends and receives on each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from vpnrouter.report.topic_templates import Template


class Role(StrEnum):
    """Ways of a message into a message VPN, and out of it."""

    CLIENT_IN = "client_in"
    CONNECTOR_IN = "connector_in"
    BRIDGE_IN = "bridge_in"
    CLIENT_OUT = "client_out"
    QUEUE_OUT = "queue_out"
    CONNECTOR_OUT = "connector_out"
    BRIDGE_OUT = "bridge_out"
    UNWANTED = "unwanted"
    """Discarded, because no subscription matched."""


class Party(NamedTuple):
    """One who sends or receives: a client, a queue, a connector's link or a bridge; "" if unknown.

    `peer_router` is the provider of a connector, or with `peer_vpn` the other end of a bridge.
    """

    name: str
    peer_router: str
    peer_vpn: str
    messages: int


@dataclass(frozen=True, kw_only=True)
class Flow:
    """All messages of a channel that took one way. `estimated` is None where it is not known, `size_bytes` is that of
    all payloads; `parties` are the busiest of `all_parties`.
    """

    messages: int
    estimated: float | None
    size_bytes: int
    parties: tuple[Party, ...]
    all_parties: int


@dataclass(frozen=True, kw_only=True)
class Channel:
    """Topics of one template, and what happened on them."""

    template: Template
    flows: Mapping[Role, Flow]


@dataclass(frozen=True, kw_only=True)
class VpnChannels:
    """The channels of a message VPN in order of their templates, and what they leave out.

    `topics` and `messages` are of all topics that were seen, a message counting as often as it came in, or where it
    was not seen to come in, as it went out. `long_topics` are those too long to be looked at; `channels_left_out` those
    beyond the bound; `messages_left_out` what is on no channel here.
    """

    router: str
    vpn: str
    traced: bool
    channels: tuple[Channel, ...] = ()
    topics: int = 0
    messages: int = 0
    long_topics: int = 0
    channels_left_out: int = 0
    messages_left_out: int = 0
