"""Checks the connectors of one message VPN."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from vpnrouter import limits
from vpnrouter.config.checks.failures import check_failures
from vpnrouter.config.checks.message_vpns import check_dialect, clause_of
from vpnrouter.config.checks.transforms import check_transform
from vpnrouter.config.configured_connector import (
    all_links,
    connection_of,
    connections_of,
    dead_link,
    login_of,
    path_of,
    place_of,
    provider_settings_of,
    rule_of,
    session_name,
    settings_of,
    source_filter,
    speaks_amqp,
    speaks_http,
    urls_of,
)
from vpnrouter.connectors.amqp.brokers import TOPIC, broker_named, kind_and_name
from vpnrouter.connectors.http.authorization import authorization
from vpnrouter.connectors.http.templates import OWN_HEADERS, parse_header
from vpnrouter.errors import SelectorError, TopicError
from vpnrouter.settings.connector import AMQP, AS_SOURCE, HTTP
from vpnrouter.settings.connector import MQTT as MQTT_PROVIDER
from vpnrouter.topics.algebra import intersects, matches, witness
from vpnrouter.topics.grammar import MQTT, SMF, parse_filter

if TYPE_CHECKING:
    from vpnrouter.config.connector import Connector, ConnectorLink
    from vpnrouter.config.problem import Path
    from vpnrouter.config.problem_list import ProblemList
    from vpnrouter.config.router import RouterConfig
    from vpnrouter.settings.endpoint import Queue
    from vpnrouter.topics.grammar import Filter


def check_connectors(problems: ProblemList, config: RouterConfig, msg_vpn: str) -> None:
    """Check all connectors of one message VPN."""
    vpn = config.msg_vpns[msg_vpn]
    for name, connector in vpn.connectors.items():
        path = ("msg_vpns", msg_vpn, "connectors", name)
        _check_provider(problems, path, connector)
        _check_broker(problems, path, connector)
        if not connector.links and problems.is_unwritten((*path, "links")):
            problems.key_warning(path, "carries nothing: it has no links")
        for link_name, link in connector.links.items():
            at = (*path, "links", link_name)
            _check_link(problems, at, connector, link)
            check_failures(problems, at, link, link.source.queue)
            _check_dead_letters(problems, at, connector, link_name)
            queue = link.source.queue or link.target.queue
            side = "source" if link.source.queue else "target"
            if queue is not None and not problems.is_configured(
                ("msg_vpns", msg_vpn, "queues", queue)
            ):
                problems.error((*at, side, "queue"), f"there is no queue {queue}")
            if not config.guaranteed_msging.enabled and (
                queue is not None or link.quality_of_service != "at-most-once"
            ):
                problems.key_warning(
                    at, "not served: guaranteed_msging: {enabled: false}; only at-most-once works"
                )
    _check_logins(problems, config, msg_vpn)
    _check_ways(problems, config, msg_vpn)
    _check_returns(problems, config, msg_vpn)
    _check_protocols(problems, config, msg_vpn)


def _check_logins(problems: ProblemList, config: RouterConfig, msg_vpn: str) -> None:
    """Refuse two connectors with one session, and one broker under several names."""
    logins: dict[tuple[str, str], str] = {}
    names: dict[str, tuple[str, str]] = {}
    for name, connector in config.msg_vpns[msg_vpn].connectors.items():
        if not connector.enabled:
            continue
        path = ("msg_vpns", msg_vpn, "connectors", name, "provider")
        try:
            urls = urls_of(connector)
            place = place_of(config.router.name, connector)
            for link in connections_of(connector):
                login = login_of(config.router.name, msg_vpn, name, connector, link)
                other = logins.setdefault(login, name)
                if urls and other != name:
                    problems.key_error(
                        path,
                        f"has the client_id of connector {other}, {login[1]}: each would end the other's connection",
                    )
        except ValueError:
            continue  # told where the provider is checked
        for url in urls:
            address = url.place(config.router.name)
            owner, other_place = names.setdefault(address, (name, place))
            if place != other_place:
                problems.key_error(
                    path,
                    f"leads to {url}, as connector {owner} does, under another name: give both the same provider.name",
                )
                break


def _check_provider(problems: ProblemList, path: Path, connector: Connector) -> None:
    provider = connector.provider
    place = (*path, "provider")
    if not provider.url and problems.is_unwritten((*place, "url")):
        problems.key_error(path, "has no provider.url")
    nameless = provider.username is None and problems.is_unwritten((*place, "username"))
    if provider.password is not None and nameless:
        problems.error((*place, "password"), "needs a username beside it")
    if provider.proxy.password is not None and provider.proxy.username is None:
        problems.error((*place, "proxy", "password"), "needs a username beside it")
    if provider.proxy.username is not None and provider.proxy.url is None:
        problems.key_error((*place, "proxy"), "has no url")
    if ":" in (provider.proxy.username or ""):
        problems.error(
            (*place, "proxy", "username"), "has a colon, which the basic scheme does not allow"
        )
    _check_without_effect(problems, place, connector)
    asked = provider.tls.server_name or provider.tls.alpn
    if asked and not any(url.tls for url in urls_of(connector)):
        problems.key_error((*place, "tls"), f"is for an address with TLS: {_secure(connector)}")
    if provider.client_cert is not None:
        if any(not url.tls for url in urls_of(connector)):
            problems.key_error(
                (*place, "client_cert"), f"needs TLS to every address: {_secure(connector)}"
            )
        for key in ("certificate", "key"):
            file = getattr(provider.client_cert, key)
            if file is None:
                problems.key_error((*place, "client_cert"), f"has no {key}")
            else:
                problems.readable((*place, "client_cert", key), file)
    elif provider.password is not None and any(not url.tls for url in urls_of(connector)):
        problems.warning(
            (*place, "password"), f"everybody on the way can read it: use {_secure(connector)}"
        )
    if provider.connect.idle_timeout:
        for name, link in connector.links.items():
            if link.inbound or (
                link.source.topic is not None and link.quality_of_service == "at-most-once"
            ):
                problems.error(
                    (*place, "connect", "idle_timeout"),
                    f"link {name} needs the connection: what it carries waits nowhere",
                )
                break
    _check_protocol(problems, place, connector)


_MEANT_FOR: Final = {
    "client_id": (MQTT_PROVIDER, AMQP),
    "client_names": (MQTT_PROVIDER, AMQP),
    "keepalive": (MQTT_PROVIDER, AMQP),
    "mqtt_version": (MQTT_PROVIDER,),
    "receive_maximum": (MQTT_PROVIDER,),
    "broker": (AMQP,),
    "virtual_host": (AMQP,),
    "window": (AMQP,),
    "max_connections": (HTTP,),
}
"""What only providers of these protocols have."""

_SHOWN: Final = {MQTT_PROVIDER: "MQTT", AMQP: "AMQP", HTTP: "HTTP"}


def _check_without_effect(problems: ProblemList, place: Path, connector: Connector) -> None:
    """Warn of what was written for a provider of another protocol."""
    protocols = {url.protocol for url in urls_of(connector)}
    provider = connector.provider
    declared = type(provider).declared
    for key, meant in _MEANT_FOR.items():
        if (
            protocols
            and not protocols & set(meant)
            and getattr(provider, key) != declared[key].default
        ):
            whom = " or ".join(_SHOWN[each] for each in meant)
            problems.key_warning((*place, key), f"has no effect: it is for a provider of {whom}")


def _secure(connector: Connector) -> str:
    """Return the beginning of an address with TLS."""
    if speaks_http(connector):
        return "https://"
    return "amqps://" if speaks_amqp(connector) else "mqtts://"


def _check_protocol(problems: ProblemList, place: Path, connector: Connector) -> None:
    """Check what depends on the protocol of the provider."""
    provider = connector.provider
    urls = urls_of(connector)
    if len({url.protocol for url in urls}) > 1:
        problems.key_error((*place, "failover_urls"), "speak another protocol than the url")
    if len({url.base for url in urls}) > 1:
        problems.key_error((*place, "failover_urls"), "have another path than the url")
    if speaks_http(connector):
        _, flaw, key = authorization(provider_settings_of("", "", "", connector))
        if flaw:
            problems.key_error((*place, key), f"cannot be sent: {flaw}")
    if provider.token is None:
        return
    if urls and not any(url.protocol == HTTP for url in urls):
        problems.key_error((*place, "token"), "is for an HTTP server: http:// or https://")
    elif provider.username is not None:
        problems.key_error((*place, "token"), "takes the place of the username: give one of them")
    elif any(not url.tls for url in urls):
        problems.warning((*place, "token"), "everybody on the way can read it: use https://")


def _check_request(
    problems: ProblemList, at: Path, connector: Connector, link: ConnectorLink
) -> None:
    """Check how a link sends to an HTTP server."""
    if not speaks_http(connector):
        if urls_of(connector) and link.request != type(link.request)():
            problems.key_error((*at, "request"), "is for an HTTP server: http:// or https://")
        return
    if link.inbound:
        problems.error((*at, "source", "address"), "nothing comes in from an HTTP server")
        return
    if link.quality_of_service == "once-and-only-once":
        problems.error(
            (*at, "quality_of_service"),
            "HTTP does not say whether a request that was not answered was carried out: duplicates-ok is the most",
        )
    try:
        path_of(connector, link)
    except ValueError as error:
        problems.error((*at, "target", "address"), str(error))
    for name, text in link.request.headers.items():
        if name.lower() in OWN_HEADERS:
            problems.error((*at, "request", "headers", name), "is not for links to set")
            continue
        try:
            parse_header(text)
        except ValueError as error:
            problems.error((*at, "request", "headers", name), str(error))
    retry = link.request.retry
    if retry.initial_interval > retry.max_interval:
        problems.key_error(
            (*at, "request", "retry", "initial_interval"), "is more than max_interval"
        )
    names = [name.lower() for name in link.request.headers]
    for name in sorted({name for name in names if names.count(name) > 1}):
        problems.key_error((*at, "request", "headers"), f"has {name} several times")


def _check_link(problems: ProblemList, at: Path, connector: Connector, link: ConnectorLink) -> None:
    key = link.source.kind
    try:
        filter_ = source_filter(connector, link)
    except TopicError as error:
        problems.error((*at, "source", key), f"{error}{clause_of(error)}")
        return
    amqp = speaks_amqp(connector)
    if link.inbound:
        _check_inbound(problems, at, link, amqp=amqp)
    if key == "topic" or (key == "address" and not amqp):
        check_dialect(problems, (*at, "source", key), filter_)
    if filter_.share and not link.inbound:
        problems.error((*at, "source", key), "a connector has no share of its message VPN's topics")
    if amqp and not link.inbound:
        _check_outbound(problems, at, link)
    try:
        rule_of(connector, link)
    except TopicError as error:
        target = "topic" if link.inbound else "address"
        problems.error((*at, "target", target), f"{error}{clause_of(error)}")
    _check_request(problems, at, connector, link)
    _check_batch(problems, at, connector, link)
    kept = key == "queue" or link.quality_of_service != "at-most-once"
    renamed = link.target.topic != AS_SOURCE or link.target.address != AS_SOURCE
    known = None if key == "queue" or renamed or amqp or link.target.queue else filter_
    check_transform(problems, at, link, known, direct=not kept)
    if link.source.selector is not None:
        # Imported late: most configurations hold no selector, and start-up time counts.
        from vpnrouter.selectors import parse_selector

        try:
            parse_selector(link.source.selector)
        except SelectorError as error:
            problems.error((*at, "source", "selector"), str(error))


def _check_dead_letters(
    problems: ProblemList, at: Path, connector: Connector, link_name: str
) -> None:
    """Check where the dead letters of a link go, as far as the link itself and its provider decide that."""
    link = connector.links[link_name]
    source = link.source
    entries = link.dead_msg_queues
    if entries and source.topic is not None and link.quality_of_service == "at-most-once":
        problems.key_warning(
            (*at, "dead_msg_queues"), "takes nothing: what is sent at most once is not given up"
        )
    if link.inbound and link.expired == "dead-letter" and not entries:
        problems.warning(
            (*at, "expired"), "discards what has expired: there are no dead_msg_queues"
        )
    try:
        filter_ = source_filter(connector, link)
    except TopicError:
        return  # told where the link is checked
    plain = source.queue is None and (source.topic is not None or not speaks_amqp(connector))
    for index, entry in enumerate(entries):
        place = (*at, "dead_msg_queues", index)
        here = entry.address if link.inbound else entry.topic
        key = "address" if link.inbound else "topic"
        if here is not None and (here == source.address if not plain else matches(filter_, here)):
            problems.error((*place, key), "is what the link takes: the message would come back")
        if entry.address is None:
            continue
        taking = all_links(connector)[dead_link(link_name, index)]
        try:
            rule_of(connector, taking)
            if speaks_http(connector):
                path_of(connector, taking)
        except (TopicError, ValueError) as error:
            clause = clause_of(error) if isinstance(error, TopicError) else ""
            problems.error((*place, "address"), f"{error}{clause}")
        if speaks_amqp(connector) and not kind_and_name(entry.address)[1]:
            problems.error((*place, "address"), "has no name")


def _check_broker(problems: ProblemList, path: Path, connector: Connector) -> None:
    """Refuse links that a broker which is named can never carry."""
    named = connector.provider.broker
    if named == "auto" or not speaks_amqp(connector):
        return
    for name, link in connector.links.items():
        try:
            terms = settings_of(connector, name, link)
        except (TopicError, SelectorError, ValueError):
            continue  # told where the link is checked
        at, why = broker_named(named).obstacle(terms)
        if why:
            problems.error((*path, "links", name, *at), why)


def _check_outbound(problems: ProblemList, at: Path, link: ConnectorLink) -> None:
    if link.target.address != AS_SOURCE and not kind_and_name(link.target.address)[1]:
        problems.error((*at, "target", "address"), "has no name")


def _check_batch(
    problems: ProblemList, at: Path, connector: Connector, link: ConnectorLink
) -> None:
    """Check how a link sends messages together: to a provider of AMQP, which answers them."""
    batch = link.batch
    given = [name for name in ("max_size", "max_time") if getattr(batch, name)]
    why = ""
    if link.inbound:
        why = "is for a link that takes messages out; what comes in is accepted when it is in the synced spool"
    elif urls_of(connector) and not speaks_amqp(connector):
        why = "is for a provider of AMQP"
    elif link.quality_of_service == "at-most-once":
        why = "is for messages that the provider answers: duplicates-ok or once-and-only-once"
    if why:
        if link.transacted:
            problems.error((*at, "transacted"), why)
        for name in given:
            problems.error((*at, "batch", name), why)
    elif batch.max_time and not link.transacted:
        problems.error((*at, "batch", "max_time"), "is for a link with transacted: true")


def _check_inbound(problems: ProblemList, at: Path, link: ConnectorLink, *, amqp: bool) -> None:
    source = link.source
    if not amqp:
        for name, value in (("selector", source.selector), ("subscription", source.subscription)):
            if value is not None:
                problems.error((*at, "source", name), "a provider of MQTT has none: only AMQP has")
        if source.shared:
            problems.error(
                (*at, "source", "shared"), "in MQTT the address says so: $share/GROUP/FILTER"
            )
        return
    kind, name = kind_and_name(source.address or "")
    if not name:
        problems.error((*at, "source", "address"), "has no name")
    if source.subscription is not None and kind != TOPIC:
        problems.error(
            (*at, "source", "subscription"), "is for the address of a topic: topic://NAME"
        )
    if source.shared and source.subscription is None:
        problems.error((*at, "source", "shared"), "needs a subscription beside it")


class LinkCrossing(NamedTuple):
    """A link that leaves topics as they are: its place in the file, its connector, and what it takes."""

    path: Path
    connector: str
    link: str
    provider: str
    version: str
    connection: str
    inbound: bool
    filter: Filter

    @property
    def shown(self) -> str:
        """Its name."""
        return f"link {self.link} of connector {self.connector}"


def link_crossings(config: RouterConfig, msg_vpn: str) -> list[LinkCrossing]:
    """Return the enabled links of a message VPN that take each message of their topics, and leave it its topic."""
    found: list[LinkCrossing] = []
    for name, connector in config.msg_vpns[msg_vpn].connectors.items():
        if not connector.enabled:
            continue
        for link_name, link in connector.links.items():
            source, target = link.source, link.target
            plain = source.queue is None and target.queue is None and source.selector is None
            if not (link.enabled and plain and AS_SOURCE == target.topic == target.address):
                continue
            if link.inbound and speaks_amqp(connector):
                continue  # what comes of an address, and whether others get it too, its provider decides
            path = ("msg_vpns", msg_vpn, "connectors", name, "links", link_name)
            version = connector.provider.mqtt_version
            try:
                filter_ = source_filter(connector, link)
                place = place_of(config.router.name, connector)
            except (TopicError, ValueError):
                # Told where the link is checked.
                continue
            if source.address is not None and parse_filter(source.address, MQTT).share:
                continue  # of all that take from one group, one gets a message
            found.append(
                LinkCrossing(
                    path,
                    name,
                    link_name,
                    place,
                    version,
                    session_name(name, connection_of(connector, link_name)),
                    link.inbound,
                    filter_,
                )
            )
    return found


def _check_ways(problems: ProblemList, config: RouterConfig, msg_vpn: str) -> None:
    """Refuse links by which a message would cross twice, and warn of those that depend on the provider's MQTT 5."""
    by_provider: dict[str, list[LinkCrossing]] = {}
    compared = 0
    for one in link_crossings(config, msg_vpn):
        before = by_provider.setdefault(one.provider, [])
        compared += len(before)
        if compared > limits.CHECKED_LINK_PAIRS:
            problems.key_warning(one.path, "is not compared with other links: there are too many")
            return
        for other in before:
            topic = witness(one.filter, other.filter)
            if topic is None:
                continue
            if one.inbound == other.inbound:
                _check_twice(problems, one, other, topic)
            else:
                back, out = (one, other) if one.inbound else (other, one)
                _check_back(problems, back, out, topic)
        before.append(one)


class _Way(NamedTuple):
    """A link to or from a provider of MQTT: its place in the file, its name for people, and the topics at the provider.

    `plain`: it leaves topics as they are, so that `_check_ways` has looked at it.
    """

    path: Path
    shown: str
    connector: str
    connection: str
    provider: str
    inbound: bool
    plain: bool
    filters: list[Filter]


def _ways_of(config: RouterConfig, msg_vpn: str) -> list[_Way]:
    """Return the enabled links to providers that are to speak MQTT 3.1.1."""
    vpn = config.msg_vpns[msg_vpn]
    found: list[_Way] = []
    for name, connector in vpn.connectors.items():
        foreign = speaks_amqp(connector) or speaks_http(connector)
        if foreign or not connector.enabled or connector.provider.mqtt_version != "3.1.1":
            continue
        for link_name, link in connector.links.items():
            try:
                filters = [source_filter(connector, link)]
                rule = rule_of(connector, link)
                place = place_of(config.router.name, connector)
                if not link.inbound and rule is not None:
                    filters = [rule.image]
                elif link.source.queue in vpn.queues:
                    filters = _attracted(vpn.queues[link.source.queue]) or filters
            except (TopicError, ValueError):
                continue  # told where the link, or its queue, is checked
            plain = rule is None and link.source.queue is None and link.target.queue is None
            if link.enabled:
                path = ("msg_vpns", msg_vpn, "connectors", name, "links", link_name)
                connection = session_name(name, connection_of(connector, link_name))
                shown = f"link {link_name} of connector {name}"
                ways = _Way(path, shown, name, connection, place, link.inbound, plain, filters)
                found.append(ways)
    return found


def _attracted(queue: Queue) -> list[Filter]:
    """Return the filters of what a queue's subscriptions bring. Raises TopicError."""
    dialect = MQTT if queue.topic_syntax == "mqtt" else SMF
    parsed = [parse_filter(text, dialect, exceptions=True) for text in queue.subscriptions]
    return [each for each in parsed if not each.exception]


def _check_returns(problems: ProblemList, config: RouterConfig, msg_vpn: str) -> None:
    """Tell of links by which MQTT 3.1.1 brings back what leaves over another connection, renamed or out of a queue."""
    ways = _ways_of(config, msg_vpn)
    outward = [way for way in ways if not way.inbound]
    if len(ways) ** 2 > limits.CHECKED_LINK_PAIRS:
        problems.key_warning(ways[-1].path, "is not compared with other links: there are too many")
        return
    for back in ways:
        for out in outward:
            apart = back.connection != out.connection and not (back.plain and out.plain)
            if not (back.inbound and apart and back.provider == out.provider):
                continue
            if not any(intersects(one, each) for one in back.filters for each in out.filters):
                continue
            text = (
                f"brings back what {out.shown} takes out: MQTT 3.1.1 does not say where a message has been;"
                " use one connection, or mqtt_version: 5"
            )
            if back.connector == out.connector:
                problems.key_error(back.path, text)
            else:
                problems.key_warning(back.path, text)
            break


def _check_protocols(problems: ProblemList, config: RouterConfig, msg_vpn: str) -> None:
    """Warn of what leaves for a provider by one protocol, and comes back by another one."""
    out: dict[tuple[str, bool], str] = {}
    into: dict[tuple[str, bool], str] = {}
    for name, connector in config.msg_vpns[msg_vpn].connectors.items():
        if not connector.enabled or speaks_http(connector) or not urls_of(connector):
            continue
        key = place_of(config.router.name, connector), speaks_amqp(connector)
        for link in connector.links.values():
            if link.enabled:
                (into if link.inbound else out).setdefault(key, name)
    for (place, amqp), name in into.items():
        other = out.get((place, not amqp))
        if other is not None:
            problems.key_warning(
                ("msg_vpns", msg_vpn, "connectors", name),
                f"brings back what connector {other} takes out by another protocol, unless the provider hands the path"
                " of messages from one protocol to the other: vpnrouter does, Artemis does not",
            )


def _check_twice(problems: ProblemList, one: LinkCrossing, other: LinkCrossing, topic: str) -> None:
    if one.connector != other.connector or (one.inbound and one.connection != other.connection):
        way = f"comes from {one.provider}" if one.inbound else f"goes to {one.provider}"
        text = f"a message on {topic} {way} twice: by {other.shown} too"
        problems.key_error(one.path, text)
    elif not one.inbound:
        problems.key_warning(
            one.path, f"a message on {topic} goes out twice: by link {other.link} too"
        )


def _check_back(problems: ProblemList, back: LinkCrossing, out: LinkCrossing, topic: str) -> None:
    versions = {back.version, out.version}
    if versions == {"5"}:
        return
    if back.connection == out.connection:
        if "3.1.1" in versions:
            problems.key_warning(
                back.path,
                f"is refused where the provider of MQTT 3.1.1 knows no bridges: it would bring back what {out.link}"
                " takes out",
            )
            return
        problems.key_warning(
            back.path,
            f"brings back what {out.link} takes out if the provider speaks no MQTT 5;"
            " mqtt_version: 5 makes sure that it does",
        )
    elif "3.1.1" in versions:
        problems.key_error(
            back.path,
            f"brings back what {out.shown} takes out, {topic} for example: MQTT 3.1.1 does not say where a message"
            " has been; use one connection, or mqtt_version: 5",
        )
    else:
        problems.key_warning(
            back.path,
            f"brings back what {out.shown} takes out if the provider speaks no MQTT 5;"
            " mqtt_version: 5 makes sure that it does",
        )
