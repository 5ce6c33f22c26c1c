"""Finds the reasons why a link of a connector takes a message out, brings it in, or does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vpnrouter.connectors.connector_links import own_queue
from vpnrouter.connectors.visited import has_visited
from vpnrouter.core.discard_reasons import LOOP_DETECTED, TOPIC_PARSE_ERROR
from vpnrouter.core.mqtt.session import CONNECTOR_PREFIX
from vpnrouter.explain.mesh_index import attribute, in_words, rule
from vpnrouter.topics.algebra import matches

if TYPE_CHECKING:
    from vpnrouter.config.problem import Path
    from vpnrouter.connectors.links import LinkSettings
    from vpnrouter.connectors.outward import OutwardLink
    from vpnrouter.explain.connector import MemoryConnector
    from vpnrouter.explain.mesh_index import MeshIndex
    from vpnrouter.explain.providers import Entry, Passage
    from vpnrouter.explain.request import Rule
    from vpnrouter.explain.visits import Visit

NOT_BACK: Final = "it does not go back to a provider from which it came"


def named(connector: MemoryConnector, link: str) -> str:
    """Return a link as it is called in an answer."""
    return f"connector {connector.name} link {link}"


def link_path(connector: MemoryConnector, link: str) -> Path:
    """Return where a link stands in its router's configuration."""
    return (*connector.path, "links", link)


def link_rules(connector: MemoryConnector, terms: LinkSettings) -> list[Rule]:
    """Return what a link takes, how and as what: its source, its quality of service and its target."""
    loaded = connector.node.loaded
    path = link_path(connector, terms.name)
    link = connector.configured.links[terms.name]
    key = "address" if terms.inbound else "queue" if terms.from_queue else "topic"
    rules = [rule(loaded, (*path, "source", key), f"source {key}: {terms.source}")]
    if link.source.selector is not None:
        rules.append(
            rule(loaded, (*path, "source", "selector"), f"selector: {link.source.selector}")
        )
    rules.append(attribute(loaded, (*path, "quality_of_service")))
    if link.transacted:
        rules.append(attribute(loaded, (*path, "transacted")))
    target = link.target
    if terms.queue_target:
        rules.append(rule(loaded, (*path, "target", "queue"), f"target queue: {target.queue}"))
    elif terms.rule is not None:
        key, text = ("topic", target.topic) if terms.inbound else ("address", target.address)
        rules.append(rule(loaded, (*path, "target", key), f"target {key}: {text}"))
    return rules


def paused(connector: MemoryConnector, link: str) -> tuple[str, Rule | None]:
    """Return that a link is paused and by which switch, "" where it is not."""
    loaded = connector.node.loaded
    if connector.configured.paused:
        return "the connector is paused", attribute(loaded, (*connector.path, "paused"))
    if connector.configured.links[link].paused:
        return "the link is paused", attribute(loaded, (*link_path(connector, link), "paused"))
    return "", None


def state_rule(connector: MemoryConnector) -> Rule:
    """Return where a connector is configured, or the switch that keeps it down."""
    loaded = connector.node.loaded
    if not connector.configured.enabled:
        return attribute(loaded, (*connector.path, "enabled"))
    if not connector.vpn.enabled:
        return attribute(loaded, ("msg_vpns", connector.vpn_name, "enabled"))
    return rule(loaded, connector.path, f"connector {connector.name}")


def taken(passage: Passage) -> str:
    """Return how a link takes the message, or why it does not."""
    connector, link, event = passage.connector, passage.link, passage.event
    who = named(connector, link.terms.name)
    request = link.terms.request
    if not event.reason and request is not None:
        path = request.path.target(event.topic)
        return f"{who} takes it to {connector.address} by {request.method} {path}"
    if not event.reason and connector.speaks_amqp:
        quality = connector.configured.links[link.terms.name].quality_of_service
        return f"{who} takes it to {connector.address} for {event.topic}, {quality}"
    if not event.reason:
        return f"{who} takes it to {connector.address} as topic {event.topic}, QoS {link.terms.qos}"
    why = {
        LOOP_DETECTED: NOT_BACK,
        TOPIC_PARSE_ERROR: "it can have no topic at the provider",
    }.get(event.reason, in_words(event.reason))
    return f"{who} does not take it: {why}"


def came(entry: Entry) -> str:
    """Return how a link brings the message in, or why it does not."""
    connector = entry.connector
    place = f"{connector.node.name}/{connector.vpn_name}"
    by = f"{connector.address} by {named(connector, entry.link.terms.name)}"
    if entry.reason:
        return f"does not come from {by} into {place}: {in_words(entry.reason)}"
    if entry.waits:
        return f"comes from {by} and waits before {place}: {entry.waits}"
    renamed = f" as topic {entry.topic}" if entry.link.terms.rule is not None else ""
    return f"comes from {by} into {place}{renamed}"


def why_not(
    index: MeshIndex, visit: Visit, connector: MemoryConnector, link: OutwardLink
) -> tuple[str, list[Rule]]:
    """Return why a link does not take the message out that is in the message VPN of `visit`, and what decided."""
    terms = link.terms
    rules = link_rules(connector, terms)
    own = terms.source if terms.from_queue else own_queue(connector.name, terms.name)
    kept = not terms.direct and visit.keeps(own)
    if not kept:
        missed, decided = _not_for_it(index, visit, connector, link, rules)
        if missed:
            return missed, decided
    why, decided = _state(connector, link)
    if kept:
        queue = f"queue {terms.source}" if terms.from_queue else "its queue"
        if not why and terms.from_queue:
            why = _left_by_selector(index, visit, terms)
        return f"it waits in {queue}{f': {why}' if why else ''}", [*rules, *decided]
    if terms.direct and why:
        return f"it is discarded: {why}", [*rules, *decided]
    return why or "its queue did not get it", [*rules, *decided]


def _not_for_it(
    index: MeshIndex,
    visit: Visit,
    connector: MemoryConnector,
    link: OutwardLink,
    rules: list[Rule],
) -> tuple[str, list[Rule]]:
    """Return why a link would not take the message whatever its state is, "" where it would, and which of its
    `rules` decides.
    """
    terms = link.terms
    if terms.from_queue:
        return f"queue {terms.source} did not get it", rules[:1]
    if not matches(terms.filter, index.topic(visit)):
        return "its topic filter does not match", rules[:1]
    unselected = _left_by_selector(index, visit, terms)
    if unselected:
        return unselected, rules[1:2]
    been = has_visited(visit.path, connector.place, carries_path=connector.carries_path)
    if been or (terms.no_local and _came_by(visit, connector)):
        return NOT_BACK, rules[:1]
    return "", []


def _left_by_selector(index: MeshIndex, visit: Visit, terms: LinkSettings) -> str:
    selector = terms.selector
    if selector is None or selector.matches(index.message(visit).properties()):
        return ""
    return f"its selector is not true of it: {selector.text}"


def _came_by(visit: Visit, connector: MemoryConnector) -> bool:
    """Return whether a message came from the provider, by the connector or by a client of the provider."""
    client = "" if visit.entered is None else visit.entered.client
    return client == CONNECTOR_PREFIX + connector.name or (
        client in connector.configured.provider.client_names
    )


def _state(connector: MemoryConnector, link: OutwardLink) -> tuple[str, list[Rule]]:
    """Return why a link carries nothing now, "" where it does, and what decided."""
    loaded = connector.node.loaded
    terms = link.terms
    if not terms.enabled:
        path = (*link_path(connector, terms.name), "enabled")
        return "the link is disabled", [attribute(loaded, path)]
    why, decided = paused(connector, terms.name)
    if decided is not None:
        return why, [decided]
    if not connector.up:
        return f"the connector is down: {connector.why}", [state_rule(connector)]
    status = link.status
    if status.state == "up":
        return "", []
    return f"the link is {status.state.value}: {status.reason}", []
