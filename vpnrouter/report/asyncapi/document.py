"""Makes the AsyncAPI document of a message VPN: what its topics were in the time reported on. Pure, but for YAML.

Topics may hold any characters, addresses of AsyncAPI may not: a level with braces, `?` or `#` becomes a parameter that
has this one value. Names are values everywhere, never keys.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml

from vpnrouter import __version__
from vpnrouter.report.asyncapi.channels import Channel, Flow, Party, Role, VpnChannels
from vpnrouter.report.page.contents import moment
from vpnrouter.report.topic_templates import Parameter
from vpnrouter.text import counted, in_number, printable, printable_lines
from vpnrouter.units import SECOND_NS

VERSION: Final = "3.0.0"
"""Of AsyncAPI."""

Document = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Observed:
    """What was observed: the first and the last time, nanoseconds since 1970, and the share of messages that each
    router traces, of those of which it is known.
    """

    span: tuple[int, int]
    sampling: Mapping[str, float]

    @property
    def seconds(self) -> float:
        """The length of the time."""
        return (self.span[1] - self.span[0]) / SECOND_NS


def document_of(vpn: VpnChannels, observed: Observed) -> Document:
    """Return the AsyncAPI document of a message VPN."""
    ids = channel_ids(vpn.channels)
    named = list(zip(ids, vpn.channels, strict=True))
    operations: Document = {}
    for name, channel in named:
        operations |= _operations(name, channel, observed)
    return {
        "asyncapi": VERSION,
        "info": _info(vpn, observed),
        "servers": _servers(vpn.router),
        "channels": {name: _channel(channel, observed) for name, channel in named},
        "operations": operations,
    }


def _info(vpn: VpnChannels, observed: Observed) -> Document:
    first, last = (moment(at) for at in observed.span)
    place = f"message VPN {printable(vpn.vpn)} of router {printable(vpn.router)}"
    sentences = [
        f"The topics of {place} as its messages had them from {first} to {last} UTC, made from routing traces.",
        "Nobody has declared them: what was not sent in this time is missing. Payloads are not in the traces.",
        *_sampled(vpn.router, observed.sampling),
        *_left_out(vpn),
    ]
    about: Document = {
        "router": vpn.router,
        "vpn": vpn.vpn,
        "since": first,
        "until": last,
        "seconds": round(observed.seconds, 3),
        "topics": vpn.topics,
        "messages": vpn.messages,
        "channels-left-out": vpn.channels_left_out,
        "messages-left-out": vpn.messages_left_out,
        "topics-too-long": vpn.long_topics,
    }
    if observed.sampling:
        about["sampling"] = _sampling(vpn.router, observed.sampling)
    return {
        "title": f"{printable(vpn.router)}/{printable(vpn.vpn)}",
        "version": f"{last} UTC",
        "description": " ".join(sentences),
        "x-vpnrouter-version": f"vpnrouter {__version__}",
        "x-vpnrouter-observed": about,
    }


def _sampling(router: str, shares: Mapping[str, float]) -> Document:
    here = {"here": shares[router]} if router in shares else {}
    return {**here, "least": min(shares.values()), "most": max(shares.values())}


def _sampled(router: str, shares: Mapping[str, float]) -> list[str]:
    if not shares:
        return [
            "The share of messages that was traced is not known: figures are of traced messages."
        ]
    if min(shares.values()) == 1.0:
        return []
    least, most = (f"{share:.4g}" for share in (min(shares.values()), max(shares.values())))
    told = least if least == most else f"{least} to {most}"
    if router in shares and least != most:
        told += f", at this router {shares[router]:.4g}"
    rare = "topics of few messages may be missing"
    return [
        f"A share of {told} of the messages was traced: figures are estimates where they say so, and {rare}."
    ]


def _left_out(vpn: VpnChannels) -> list[str]:
    told = []
    if not vpn.traced:
        told.append(
            "The router wrote no traces for this message VPN, so that its topics are not known."
        )
    if vpn.channels_left_out:
        told.append(f"Left out: {counted(vpn.channels_left_out, 'channel')} of fewer messages.")
    looked_at = sum(channel.template.topics for channel in vpn.channels)
    if vpn.topics > looked_at:
        told.append(
            f"The channels are made from {looked_at:,} of {counted(vpn.topics, 'topic')}, the busiest;"
            f" {counted(vpn.messages_left_out, 'message')} of {vpn.messages:,} are on none of them."
        )
    if vpn.long_topics:
        were = in_number(vpn.long_topics, "topic is", "topics are")
        told.append(f"{vpn.long_topics:,} {were} too long to be listed.")
    return told


def _servers(router: str) -> Document:
    """Return how clients may reach the router; at which address, traces do not say."""

    def server(protocol: str, name: str) -> Document:
        return {
            "host": "{address}",
            "protocol": protocol,
            "title": printable(router),
            "description": f"Listeners of router {printable(router)} for {name}, if it has any.",
            "variables": {
                "address": {"description": "Host and port of a listener. Traces do not have them."}
            },
            "x-vpnrouter-router": router,
        }

    return {"mqtt": server("mqtt", "MQTT"), "amqp": server("amqp1", "AMQP 1.0")}


_RESERVED: Final = re.compile(r"[{}?#]")


def name_of(level: int) -> str:
    """Return the name of the parameter for a level, which counts from 1."""
    return f"level{level}"


def address_of(levels: Sequence[str | None]) -> str:
    """Return the address of a channel."""
    return "/".join(
        f"{{{name_of(at)}}}" if level is None or _RESERVED.search(level) else level
        for at, level in enumerate(levels, 1)
    )


_PLAIN: Final = re.compile(r"(?!level\d+\Z)[A-Za-z0-9_-]+")
_ID_LENGTH: Final = 80


def channel_ids(channels: Iterable[Channel]) -> list[str]:
    """Return a key for each channel: its levels with dots between. A digest parts those that would look alike."""
    ids: dict[str, None] = {}
    for channel in channels:
        levels = channel.template.levels
        parts = [name_of(at) if level is None else level for at, level in enumerate(levels, 1)]
        name = re.sub(r"[^A-Za-z0-9_.-]", "_", ".".join(parts))[:_ID_LENGTH]
        plain = all(level is None or _PLAIN.fullmatch(level) for level in levels)
        key = f"topic.{name}"
        if not plain or len(name) == _ID_LENGTH or key in ids:
            digest = hashlib.sha256(repr(levels).encode(errors="backslashreplace")).hexdigest()
            size = 8
            while (longer := f"{key}.{digest[:size]}") in ids:
                size += 8
            key = longer
        ids[key] = None
    return list(ids)


_LOOKS: Final = {
    "number": "numbers",
    "uuid": "UUIDs",
    "hex": "hexadecimal digits",
    "code": "codes",
    "word with a number": "words with numbers",
    "abbreviation": "abbreviations",
    "word": "words",
}


def _parameters(channel: Channel) -> Document:
    varying = {parameter.level: parameter for parameter in channel.template.parameters}
    parameters: Document = {}
    for at, level in enumerate(channel.template.levels, 1):
        if at in varying:
            parameters[name_of(at)] = _parameter(varying[at])
        elif level is not None and _RESERVED.search(level):
            parameters[name_of(at)] = {
                "enum": [level],
                "default": level,
                "description": "Always this, which an address cannot hold.",
            }
    return parameters


def _parameter(parameter: Parameter) -> Document:
    looks = ", ".join(_LOOKS[name] for name in parameter.looks)
    return {
        "description": f"{counted(parameter.values, 'value')} seen: {looks}.",
        "examples": list(parameter.examples),
        "x-vpnrouter-values": parameter.values,
    }


_SENDERS: Final = {
    Role.CLIENT_IN: "clients",
    Role.BRIDGE_IN: "bridges",
    Role.CONNECTOR_IN: "connectors",
}
_RECEIVERS: Final = {
    Role.CLIENT_OUT: "clients",
    Role.QUEUE_OUT: "queues",
    Role.BRIDGE_OUT: "bridges",
    Role.CONNECTOR_OUT: "connectors",
}


def _channel(channel: Channel, observed: Observed) -> Document:
    template, flows = channel.template, channel.flows
    described: Document = {"address": address_of(template.levels)}
    if template.topics > 1:
        described["description"] = f"{counted(template.topics, 'topic')} seen."
    described["messages"] = {"message": _message(flows)}
    parameters = _parameters(channel)
    if parameters:
        described["parameters"] = parameters
    described["x-vpnrouter-topics"] = template.topics
    described["x-vpnrouter-senders"] = _parties(_SENDERS, flows, observed)
    described["x-vpnrouter-receivers"] = _parties(_RECEIVERS, flows, observed)
    if Role.UNWANTED in flows:
        described["x-vpnrouter-unwanted"] = _figures([flows[Role.UNWANTED]], observed)
    return described


def _message(flows: Mapping[Role, Flow]) -> Document:
    """Return the message of a channel: of its payload only the size is known."""
    seen = [flow for role, flow in flows.items() if role in _SENDERS]
    seen = seen or [flow for role, flow in flows.items() if role in _RECEIVERS]
    messages = sum(flow.messages for flow in seen)
    message: Document = {"summary": "Any message on these topics. Traces have no payloads."}
    if messages:
        size = sum(flow.size_bytes for flow in seen) / messages
        message["x-vpnrouter-payload-bytes-mean"] = round(size, 1)
    return message


def _figures(flows: Sequence[Flow], observed: Observed) -> Document:
    """Return how many messages took these ways, and how many a second: by the estimate where there is one."""
    traced = sum(flow.messages for flow in flows)
    figures: Document = {"messages-traced": traced}
    estimates = [flow.estimated for flow in flows if flow.estimated is not None]
    total = float(traced)
    if len(estimates) == len(flows):
        total = sum(estimates)
        if round(total) != traced:
            figures["messages-estimated"] = round(total)
    if observed.seconds > 0:
        figures["per-second"] = float(f"{total / observed.seconds:.4g}")
    return figures


def _parties(kinds: Mapping[Role, str], flows: Mapping[Role, Flow], observed: Observed) -> Document:
    found: Document = {}
    for role, kind in kinds.items():
        flow = flows.get(role)
        if flow is not None:
            more = flow.all_parties - len(flow.parties)
            found[kind] = {
                **_figures([flow], observed),
                "names": [_party(role, party) for party in flow.parties],
                **({"more": more} if more else {}),
            }
    return found


def _party(role: Role, party: Party) -> Document:
    told: Document = {"name": party.name} if party.name else {}
    if role in {Role.BRIDGE_IN, Role.BRIDGE_OUT}:
        told["router"] = party.peer_router
        told["vpn"] = party.peer_vpn
    elif party.peer_router:
        told["provider"] = party.peer_router
    told["messages-traced"] = party.messages
    return told


def _operations(name: str, channel: Channel, observed: Observed) -> Document:
    """Return what applications of the message VPN do on a channel: only what their clients did."""
    made: Document = {}
    sent = [channel.flows[role] for role in (Role.CLIENT_IN,) if role in channel.flows]
    received = [
        channel.flows[role] for role in (Role.CLIENT_OUT, Role.QUEUE_OUT) if role in channel.flows
    ]
    for action, flows, by in (
        ("send", sent, _told(_SENDERS, channel.flows, "Sent by")),
        ("receive", received, _told(_RECEIVERS, channel.flows, "Received by")),
    ):
        if flows:
            made[f"{action}.{name}"] = {
                "action": action,
                "channel": {"$ref": f"#/channels/{name}"},
                "description": by,
                "messages": [{"$ref": f"#/channels/{name}/messages/message"}],
                "x-vpnrouter-messages": _figures(flows, observed),
            }
    return made


def _told(kinds: Mapping[Role, str], flows: Mapping[Role, Flow], verb: str) -> str:
    """Return a sentence about who sends or receives, with the busiest of each kind."""
    parts = []
    for role, kind in kinds.items():
        flow = flows.get(role)
        if flow is None:
            continue
        names = [_name(party) for party in flow.parties[:_TOLD]]
        more = flow.all_parties - len(names)
        if more:
            names.append(f"{more:,} more")
        noun = kind.removesuffix("s") if flow.all_parties == 1 else kind
        parts.append(f"{noun} {', '.join(names)}")
    return f"{verb} {'; '.join(parts)}."


_TOLD: Final = 3


def _name(party: Party) -> str:
    name = printable(party.name) or "of unknown name"
    if not party.peer_router:
        return name
    peer = "/".join(one for one in (party.peer_router, party.peer_vpn) if one)
    return f"{name} ({printable(peer)})"


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Writes texts so that YAML 1.2 takes none for a number that YAML 1.1 does not: `1e3`, `0o17`."""


def _represented(dumper: _Dumper, text: str) -> yaml.Node:
    style = "'" if text[:1] in _OF_NUMBERS else None
    node: yaml.Node = dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)
    return node


_OF_NUMBERS: Final = frozenset("+-.0123456789")
_Dumper.add_representer(str, _represented)
_WIDTH: Final = 1_000_000
"""Texts stay on their lines."""


def yaml_of(document: Document) -> str:
    """Return a document as YAML, in which nothing stands that does not print."""
    text = _dumped(document, unicode=True)
    # What turns the direction of writing, say: as escapes it does no harm.
    return text if printable_lines(text) == text else _dumped(document, unicode=False)


def _dumped(document: Document, *, unicode: bool) -> str:
    text: str = yaml.dump(
        document, Dumper=_Dumper, allow_unicode=unicode, sort_keys=False, width=_WIDTH
    )
    return text
