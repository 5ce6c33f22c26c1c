"""Makes the settings of a running connector from its configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vpnrouter import limits
from vpnrouter.config.configured_failures import failures_of
from vpnrouter.config.configured_transform import transform_of
from vpnrouter.config.model import changed
from vpnrouter.connectors.amqp.brokers import QUEUE, kind_and_name
from vpnrouter.connectors.http.templates import as_topic, parse_header, parse_path
from vpnrouter.connectors.links import LinkSettings
from vpnrouter.connectors.machine import Attempts
from vpnrouter.connectors.settings import ProviderSettings, RequestSettings
from vpnrouter.core.access import ProviderClient
from vpnrouter.core.mqtt.session import CONNECTOR_PREFIX
from vpnrouter.errors import TopicError
from vpnrouter.selectors import parse_selector
from vpnrouter.settings.connector import AMQP, AS_SOURCE, HTTP, NAMED, parse_url
from vpnrouter.settings.schema import apply_settings
from vpnrouter.topics.grammar import MQTT, SMF, parse_filter
from vpnrouter.topics.mapping import parse_rule
from vpnrouter.units import MILLISECOND_NS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vpnrouter.config.connector import Connector, ConnectorLink
    from vpnrouter.connectors.http.templates import PathTemplate
    from vpnrouter.core.guaranteed.failure_policy import FailurePolicy
    from vpnrouter.settings.connector import ProviderUrl
    from vpnrouter.settings.failures import DeadMsgQueue
    from vpnrouter.topics.grammar import Filter
    from vpnrouter.topics.mapping import MappingRule

CAPTURE: Final = "{"
"""Begins what a template takes out of the source's topic."""

DEAD: Final = "/dead/"
"""Stands between the name of a link and the place of an entry in its list of dead message queues."""

SHARED: Final = ""
"""The connection of all links that have none to themselves. The others have the name of their link."""

ALL_TOPICS: Final = "#"
"""What a queue may hold, as a filter of MQTT: {1} is the whole topic."""


def speaks_amqp(connector: Connector) -> bool:
    """Return whether the provider is one of AMQP."""
    return any(url.protocol == AMQP for url in urls_of(connector))


def source_filter(connector: Connector, link: ConnectorLink) -> Filter:
    """Return the filter of the topics of a link's messages. Raises TopicError."""
    source = link.source
    if source.address is not None and speaks_amqp(connector):
        # An address is no filter: what comes of it has a topic by its own name.
        return parse_filter(ALL_TOPICS, MQTT)
    if source.address is not None:
        found = parse_filter(source.address, MQTT)
        return parse_filter(source.address.split("/", 2)[2], MQTT) if found.share else found
    if source.topic is not None:
        return parse_filter(source.topic, _dialect(connector))
    return parse_filter(ALL_TOPICS, MQTT)


def rule_of(connector: Connector, link: ConnectorLink) -> MappingRule | None:
    """Return how a link renames messages, None where it does not. Raises TopicError."""
    target = link.target.topic if link.inbound else link.target.address
    if target == AS_SOURCE or link.target.queue is not None or speaks_http(connector):
        return None
    source = link.source
    if speaks_amqp(connector):
        if link.inbound:
            return parse_rule(ALL_TOPICS, target, MQTT)
        target = kind_and_name(target)[1]
        if CAPTURE not in target:
            return None
    if source.topic is not None:
        return parse_rule(source.topic, target, _dialect(connector))
    if source.address is None:
        return parse_rule(ALL_TOPICS, target, MQTT)
    shared = parse_filter(source.address, MQTT).share
    text = source.address.split("/", 2)[2] if shared else source.address
    return parse_rule(text, target, MQTT)


def _dialect(connector: Connector) -> int:
    return MQTT if connector.topic_syntax == "mqtt" else SMF


def speaks_http(connector: Connector) -> bool:
    """Return whether the provider is an HTTP server."""
    return any(url.protocol == HTTP for url in urls_of(connector))


def path_of(connector: Connector, link: ConnectorLink) -> PathTemplate:
    """Return the path of a link's requests to an HTTP server. Raises ValueError, and TopicError for its source."""
    base = urls_of(connector)[0].base
    filter_ = source_filter(connector, link)
    address = link.target.address
    return as_topic(base, filter_) if address == AS_SOURCE else parse_path(base, filter_, address)


def request_of(connector: Connector, link: ConnectorLink) -> RequestSettings | None:
    """Return how a link sends to an HTTP server, None where its provider is none."""
    if not speaks_http(connector) or link.inbound:
        return None
    written = link.request
    return RequestSettings(
        path=path_of(connector, link),
        method=written.method,
        headers=[(name, parse_header(text)) for name, text in written.headers.items()],
        order=written.order,
        reply=written.reply,
        first_ns=written.retry.initial_interval * MILLISECOND_NS,
        most_ns=written.retry.max_interval * MILLISECOND_NS,
    )


def all_links(connector: Connector) -> dict[str, ConnectorLink]:
    """Return the links of a connector by name, and behind each those that take its dead letters to the provider."""
    found: dict[str, ConnectorLink] = {}
    for name, link in connector.links.items():
        found[name] = link
        entries = link.dead_msg_queues
        for index, entry in enumerate(entries):
            if entry.address is not None:
                rest = entries[index + 1 :] + entries[:index]
                found[dead_link(name, index)] = _taking_out(link, name, index, rest)
    return found


def dead_link(name: str, index: int) -> str:
    """Return the name of the link that takes dead letters of the link `name` to entry `index` of its list."""
    return f"{name}{DEAD}{index + 1}"


def _taking_out(
    link: ConnectorLink, name: str, index: int, rest: tuple[DeadMsgQueue, ...]
) -> ConnectorLink:
    """Return the link to the address of an entry; what that refuses goes to the `rest` of the list."""
    entry = link.dead_msg_queues[index]
    nothing = {"address": None, "topic": None, "selector": None, "subscription": None}
    return changed(
        link,
        quality_of_service="duplicates-ok",
        source=changed(link.source, queue=dead_link(name, index), shared=False, **nothing),
        target=changed(link.target, address=entry.address, topic=AS_SOURCE, queue=None),
        request=changed(link.request, reply=False),
        dead_msg_queues=rest,
        reject_attempts=entry.attempts,
        then="dead-letter",
        expired="deliver",
        transacted=False,
    )


def _failures_of(connector: Connector, name: str, link: ConnectorLink) -> FailurePolicy:
    """Return what a link, or one that takes its dead letters, does with messages that cannot be delivered."""
    base, _, number = name.partition(DEAD)
    count = len(connector.links[base].dead_msg_queues)
    first = int(number or 0)
    queues = [dead_link(base, (first + at) % count) for at in range(len(link.dead_msg_queues))]
    return failures_of(link, queues)


def _retry_ms(connector: Connector, name: str) -> int:
    """Return the milliseconds between two attempts at the address to which a link takes dead letters, 0 for others."""
    base, _, number = name.partition(DEAD)
    return connector.links[base].dead_msg_queues[int(number) - 1].interval if number else 0


def links_of(connector: Connector, connection: str | None = None) -> list[LinkSettings]:
    """Return the settings of a connector's links in the order of the configuration: of all, or of one connection."""
    return [
        settings_of(connector, name, link)
        for name, link in all_links(connector).items()
        if connection is None or connection_of(connector, name) == connection
    ]


def connection_of(connector: Connector, link: str) -> str:
    """Return the connection of a link, or of one that takes its dead letters: the link that has it to itself, or
    SHARED. One that is not configured has none: SHARED.
    """
    base = link.partition(DEAD)[0]
    written = connector.links.get(base)
    return base if written is not None and written.connection == "dedicated" else SHARED


def connections_of(connector: Connector) -> list[str]:
    """Return the connections of a connector, the shared one first: that is there where no link needs another."""
    found = dict.fromkeys(connection_of(connector, link) for link in connector.links)
    return sorted(found or [SHARED])


def session_name(name: str, connection: str) -> str:
    """Return the name under which the session of a connection of the connector `name` is stored here."""
    return CONNECTOR_PREFIX + name + (f"/{connection}" if connection else "")


def settings_of(connector: Connector, name: str, link: ConnectorLink) -> LinkSettings:
    """Return the settings of a link, or of one that takes dead letters. Raises TopicError and SelectorError."""
    dead_letters = name not in connector.links
    source = link.source
    selector = source.selector
    amqp = speaks_amqp(connector)
    remote = link.inbound and amqp
    target = link.target.address
    computed = LinkSettings(
        name=name,
        source=source.address or source.queue or source.topic or "",
        filter=source_filter(connector, link),
        inbound=link.inbound,
        paused=connector.paused or link.paused,
        from_queue=source.queue is not None and not dead_letters,
        dead_letters=dead_letters,
        retry_ms=_retry_ms(connector, name),
        rule=rule_of(connector, link),
        transform=None if dead_letters else transform_of(link),
        selector=None if selector is None or remote else parse_selector(selector),
        no_local=needs_no_local(connector),
        target=target,
        one_target=amqp and target != AS_SOURCE and CAPTURE not in target,
        subscription=source.subscription or "",
        shared=source.shared,
        selector_text=(selector or "") if remote else "",
        request=request_of(connector, link),
        failures=_failures_of(connector, name, link),
    )
    return apply_settings(computed, connector, link)


def needs_no_local(connector: Connector) -> bool:
    """Return whether something comes in from the provider, by the connector or by clients of the provider."""
    return bool(connector.provider.client_names) or any(
        link.inbound for link in connector.links.values()
    )


def provider_clients_of(connectors: Mapping[str, Connector]) -> dict[str, ProviderClient]:
    """Return the clients that belong to providers of connectors, by name."""
    found: dict[str, ProviderClient] = {}
    for name, connector in connectors.items():
        if not (connector.enabled and connector.provider.client_names):
            continue
        links = [link for link in links_of(connector) if link.enabled and not link.from_queue]
        provided = ProviderClient(
            CONNECTOR_PREFIX + name,
            [each for link in links if link.inbound for each in _brought_in(connector, link)],
            [link.filter for link in links if not (link.inbound or link.dead_letters)],
        )
        found |= dict.fromkeys(connector.provider.client_names, provided)
    return found


def _brought_in(connector: Connector, link: LinkSettings) -> list[Filter]:
    """Return the topics whose messages a link brings in, [] where it takes them from a queue."""
    if not speaks_amqp(connector):
        return [link.filter]
    kind, name = kind_and_name(link.source)
    try:
        return [] if kind == QUEUE else [parse_filter(name, SMF)]
    except TopicError:
        return []  # the broker's own: no topic here is called so


def urls_of(connector: Connector) -> tuple[ProviderUrl, ...]:
    """Return all addresses of the provider, in order."""
    provider = connector.provider
    return tuple(parse_url(text) for text in (provider.url, *provider.failover_urls) if text)


def place_of(router: str, connector: Connector) -> str:
    """Return the name of the provider in the paths of messages of a router, "" where it has no address."""
    given = connector.provider.name
    if given is not None:
        return NAMED + given
    urls = urls_of(connector)
    name = urls[0].place(router).encode()[: limits.LINK_PATH_ENTRY_BYTES] if urls else b""
    return name.decode(errors="ignore")


def login_of(
    router: str, msg_vpn: str, name: str, connector: Connector, connection: str = SHARED
) -> tuple[str, str]:
    """Return what names the session of a connection: the provider, and the client id there."""
    client_id = connector.provider.client_id or f"{router}-{msg_vpn}-{name}"
    return place_of(router, connector), client_id + (f"-{connection}" if connection else "")


def provider_settings_of(
    router: str, msg_vpn: str, name: str, connector: Connector, connection: str = SHARED
) -> ProviderSettings:
    """Return how a connection of the connector `name` logs in, its password included."""
    password = connector.provider.password
    token = connector.provider.token
    place, client_id = login_of(router, msg_vpn, name, connector, connection)
    computed = ProviderSettings(
        place=place,
        client_id=client_id,
        password=None if password is None else password.reveal().encode(),
        shows_certificate=connector.provider.client_cert is not None,
        token=None if token is None else token.reveal(),
    )
    return apply_settings(computed, connector)


def attempts_of(connector: Connector, *, vpn_enabled: bool) -> Attempts:
    """Return when and where the connector connects."""
    computed = Attempts(urls=urls_of(connector), enabled=connector.enabled and vpn_enabled)
    return apply_settings(computed, connector)
