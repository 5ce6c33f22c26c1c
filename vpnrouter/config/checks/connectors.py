"""Checks the connectors of one message VPN."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vpnrouter.config.checks.message_vpns import clause_of
from vpnrouter.config.configured_connector import rule_of, source_filter, urls_of
from vpnrouter.errors import SelectorError, TopicError
from vpnrouter.settings.connector import AS_SOURCE
from vpnrouter.topics.algebra import intersects

if TYPE_CHECKING:
    from vpnrouter.config.connector import Connector, ConnectorLink
    from vpnrouter.config.problem import Path
    from vpnrouter.config.problem_list import ProblemList
    from vpnrouter.config.router import RouterConfig
    from vpnrouter.topics.grammar import Filter


def check_connectors(problems: ProblemList, config: RouterConfig, msg_vpn: str) -> None:
    """Check all connectors of one message VPN."""
    vpn = config.msg_vpns[msg_vpn]
    for name, connector in vpn.connectors.items():
        path = ("msg_vpns", msg_vpn, "connectors", name)
        _check_provider(problems, path, connector)
        if not connector.links and problems.is_whole(path):
            problems.key_warning(path, "carries nothing: it has no links")
        for link_name, link in connector.links.items():
            at = (*path, "links", link_name)
            _check_link(problems, at, connector, link)
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
        _check_loops(problems, path, connector)


def _check_provider(problems: ProblemList, path: Path, connector: Connector) -> None:
    provider = connector.provider
    place = (*path, "provider")
    if not provider.url and problems.is_whole(path):
        problems.key_error(path, "has no provider.url")
    if provider.password is not None and provider.username is None:
        problems.error((*place, "password"), "needs a username beside it")
    if provider.client_cert is not None:
        if any(not url.tls for url in urls_of(connector)):
            problems.key_error((*place, "client_cert"), "needs TLS to every address: mqtts://")
        for key in ("certificate", "key"):
            file = getattr(provider.client_cert, key)
            if file is None:
                problems.key_error((*place, "client_cert"), f"has no {key}")
            else:
                problems.readable((*place, "client_cert", key), file)
    elif provider.password is not None and any(not url.tls for url in urls_of(connector)):
        problems.warning((*place, "password"), "everybody on the way can read it: use mqtts://")


def _check_link(problems: ProblemList, at: Path, connector: Connector, link: ConnectorLink) -> None:
    key = next(
        key for key in ("address", "topic", "queue") if getattr(link.source, key) is not None
    )
    try:
        filter_ = source_filter(connector, link)
    except TopicError as error:
        problems.error((*at, "source", key), f"{error}{clause_of(error)}")
        return
    if filter_.share and not link.inbound:
        problems.error((*at, "source", key), "a connector has no share of its message VPN's topics")
    try:
        rule_of(connector, link)
    except TopicError as error:
        target = "topic" if link.inbound else "address"
        problems.error((*at, "target", target), f"{error}{clause_of(error)}")
    if link.source.selector is not None:
        # Imported late: most configurations hold no selector, and start-up time counts.
        from vpnrouter.selectors import parse_selector

        try:
            parse_selector(link.source.selector)
        except SelectorError as error:
            problems.error((*at, "source", "selector"), str(error))


def _check_loops(problems: ProblemList, path: Path, connector: Connector) -> None:
    """Warn of topics that go out by one link and come back by another, where the provider has no no-local."""
    if connector.provider.mqtt_version == "5":
        return
    ins: list[tuple[str, Filter]] = []
    outs: list[tuple[str, Filter]] = []
    for name, link in connector.links.items():
        try:
            if link.inbound and link.target.topic == AS_SOURCE and link.target.queue is None:
                ins.append((name, source_filter(connector, link)))
            elif link.source.topic is not None and link.target.address == AS_SOURCE:
                outs.append((name, source_filter(connector, link)))
        except TopicError:
            continue
    for inward, filter_ in ins:
        for outward, other in outs:
            if intersects(filter_, other):
                problems.key_warning(
                    (*path, "links", inward),
                    f"brings back what {outward} takes out if the provider speaks no MQTT 5;"
                    " mqtt_version: 5 makes sure that it does",
                )
