"""Finds bridges that ask for messages that never come."""

from __future__ import annotations

from vpnrouter.config.checks.message_vpns import DIALECTS
from vpnrouter.config.configured_connector import source_filter
from vpnrouter.config.mesh.graph import Crossing, Graph, Vpn, attraction_of, queue_topics
from vpnrouter.config.mesh.remotes import ConfiguredRemote, RemoteRouter, Routers
from vpnrouter.config.mesh.topics import (
    ALL_OF_IT,
    NOTHING,
    TopicSet,
    account_of,
    login,
    may_subscribe,
)
from vpnrouter.config.msg_vpn import MsgVpn
from vpnrouter.config.problem import Path
from vpnrouter.config.problem_list import MeshProblems
from vpnrouter.config.router import Loaded
from vpnrouter.errors import TopicError
from vpnrouter.topics.algebra import covers
from vpnrouter.topics.grammar import Filter, parse_filter

_NAMES = 3
"""Message VPNs named one by one."""


def report_without_source(problems: MeshProblems, graph: Graph, routers: Routers) -> None:
    """Report the remote subscriptions that attract nothing since their topics are never published."""
    brought: dict[int, list[TopicSet] | None] = {}
    for crossing in graph.crossings:
        source = graph.vpns[crossing.source]
        if crossing.source not in brought:
            brought[crossing.source] = _brought(graph, source, routers)
        others = brought[crossing.source]
        if others is None or any(each.mapped for each in _into(graph, crossing.source)):
            continue
        for topics in (*crossing.direct, *crossing.maybe):
            topic = graph.topics.example(topics)
            # The router itself may publish topics that begin with these.
            if topic is None or topic.startswith(("$", "#")):
                continue
            if source.publishers.part_of(topics) is not None:
                continue
            if any(graph.topics.common(each, topics) is not None for each in others):
                continue
            at = source.loaded.positions.key_at(
                ("msg_vpns", crossing.configured.remote.name, "acl_profiles")
            )
            problems.add(
                "warning",
                crossing.configured.loaded,
                (*crossing.configured.bridge_path, "remote_subscriptions"),
                f"black hole: nobody may publish topics such as {topic} in {source.name} ({at}), and no"
                f" bridge brings them there, so none crosses"
                f" {graph.route(crossing.source, [crossing])}",
            )


def _into(graph: Graph, vpn: int) -> list[Crossing]:
    return [graph.crossings[number] for number in graph.vpns[vpn].into]


def _brought(graph: Graph, vpn: Vpn, routers: Routers) -> list[TopicSet] | None:
    """Return what bridges may bring into a message VPN, wherever they lead; None where that is unknown."""
    brought: list[TopicSet] = []
    for name, bridge in vpn.msg_vpn.bridges.items():
        if not bridge.enabled:
            continue
        if bridge.topic_mapping:
            return None
        attraction = attraction_of(graph.topics, bridge)
        brought += [*attraction.sure, *attraction.maybe]
        for index, remote in enumerate(bridge.remote_msg_vpns):
            if remote.queue_binding is None or not remote.enabled:
                continue
            path = (
                "msg_vpns",
                vpn.name.partition("/")[2],
                "bridges",
                name,
                "remote_msg_vpns",
                index,
            )
            target: RemoteRouter = routers.resolve(
                ConfiguredRemote(vpn.loaded, path, bridge, remote)
            )
            peer = target.peer.config.msg_vpns.get(remote.name) if target.peer is not None else None
            queue = peer.queues.get(remote.queue_binding) if peer is not None else None
            if queue is None:
                return None
            brought += queue_topics(graph.topics, queue)
    return brought


def report_broken_chains(problems: MeshProblems, graph: Graph) -> None:
    """Report the message VPNs that bridges bring topics into and other bridges take other topics from."""
    for hub, vpn in enumerate(graph.vpns):
        into = [crossing for crossing in _into(graph, hub) if crossing.all_kinds]
        known = {crossing.bridge for crossing in _into(graph, hub)}
        if len(known) < sum(bridge.enabled for bridge in vpn.msg_vpn.bridges.values()):
            continue  # what a router brings that no file describes may go on
        ends: list[tuple[Crossing, list[Crossing]]] = []
        for number in vpn.out:
            onward = graph.crossings[number]
            if onward.mapped or not onward.all_kinds:
                continue
            directly = {crossing.source for crossing in _into(graph, onward.target)}
            before = [
                crossing
                for crossing in into
                if crossing.source != onward.target and crossing.source not in directly
            ]
            if before and not any(
                crossing.mapped or _have_common(graph, crossing, onward) for crossing in into
            ):
                ends.append((onward, before))
        if ends:
            _report_ends(problems, graph, ends)


def _report_ends(
    problems: MeshProblems, graph: Graph, ends: list[tuple[Crossing, list[Crossing]]]
) -> None:
    """Add one note for all bridges that lead out of one message VPN."""
    onward, before = ends[0]
    first = before[0]
    topic = graph.topics.example(first.all_kinds[0])
    froms = _named(graph, {each.source for _, each_before in ends for each in each_before})
    to = _named(graph, {each.target for each, _ in ends})
    problems.add_key(
        "note",
        onward.configured.loaded,
        onward.configured.bridge_path,
        f"chain ends: nothing that bridges bring from {froms} into {graph.vpns[onward.source].name}"
        f" goes on to {to}, since no filter there matches it; topic {topic} goes"
        f" {graph.route(first.source, [first])} and no further",
    )


def _named(graph: Graph, numbers: set[int]) -> str:
    names = sorted(graph.vpns[number].name for number in numbers)
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    return ", ".join(names[:_NAMES]) + more


def report_untaken(problems: MeshProblems, graph: Graph) -> None:
    """Report the bridges that bring guaranteed messages which nothing that is configured takes."""
    for crossing in graph.crossings:
        if crossing.mapped or not crossing.queue or not crossing.preferred:
            continue
        target = graph.vpns[crossing.target]
        takers = _takers(graph, target)
        if target.msg_vpn.topic_endpoints:
            continue  # clients say what these attract
        lost = [
            topics
            for topics in crossing.queue
            if all(graph.topics.common(topics, taker) is None for taker in takers)
        ]
        topic = graph.topics.example(lost[0]) if lost else None
        if topic is None:
            continue
        problems.add(
            "warning",
            crossing.configured.loaded,
            (*crossing.configured.path, "queue_binding"),
            f"brings guaranteed messages such as {topic}, and no queue, bridge or connector takes them from"
            f" {target.name}: while no client there subscribes to them, they are discarded, and gone at the remote",
        )


def _takers(graph: Graph, vpn: Vpn) -> list[TopicSet]:
    """Return what the queues of a message VPN, bridges out of it and links of its connectors take."""
    takers = [
        topics
        for queue in vpn.msg_vpn.queues.values()
        for topics in queue_topics(graph.topics, queue)
    ]
    for number in vpn.out:
        takers += graph.crossings[number].all_kinds
    for connector in vpn.msg_vpn.connectors.values():
        for link in connector.links.values():
            if link.source.topic is not None and link.enabled and connector.enabled:
                try:
                    topics = graph.topics.of(source_filter(connector, link))
                except TopicError:
                    continue  # told where the file is checked by itself
                takers += [] if topics is None else [topics]
    return takers


def _have_common(graph: Graph, crossing: Crossing, other: Crossing) -> bool:
    return any(
        graph.topics.common(a, b) is not None for a in crossing.all_kinds for b in other.all_kinds
    )


def check_filters_alone(problems: MeshProblems, graph: Graph, configured: ConfiguredRemote) -> None:
    """Report the filters of a bridge that no topic matches, and those that its exceptions empty."""
    parsed = _filters(configured)
    exceptions = [filter_ for _, filter_ in parsed if filter_.exception]
    for path, filter_ in parsed:
        if filter_.exception:
            continue
        if graph.topics.of(filter_) is None:
            message = f"no topic that a client can publish matches {filter_.original}"
            problems.add("warning", configured.loaded, path, message)
        elif graph.topics.of(filter_, exceptions) is None and not any(
            covers(exception, filter_)
            for exception in exceptions  # told where the file is checked by itself
        ):
            problems.add(
                "warning",
                configured.loaded,
                path,
                f"attracts nothing: the exceptions of the bridge together leave nothing of"
                f" {filter_.original}",
            )


def check_filters_there(problems: MeshProblems, configured: ConfiguredRemote, peer: Loaded) -> None:
    """Report the filters of a bridge that the remote message VPN refuses."""
    vpn = peer.config.msg_vpns.get(configured.remote.name)
    if vpn is None:
        return
    router = peer.config.router.name
    where = f"message VPN {configured.remote.name} of router {router}"
    username = login(configured).client_username
    name = f"#bridge/{configured.loaded.config.router.name}/{configured.msg_vpn}/{configured.bridge_name}"
    for path, filter_ in _filters(configured):
        refusal = _too_large(filter_, vpn)
        if refusal:
            at = peer.positions.key_at(("msg_vpns", configured.remote.name))
            problems.add(
                "warning", configured.loaded, path, f"{where} refuses it: {refusal} ({at})"
            )
        elif username is not None and not filter_.exception:
            granted = may_subscribe(vpn, username, name, filter_)
            if granted == ALL_OF_IT:
                continue
            account = account_of(vpn, username)
            profile = account.acl_profile if account is not None else "default"
            acl = ("msg_vpns", configured.remote.name, "acl_profiles", profile, "subscribe_topic")
            problems.add(
                "warning",
                configured.loaded,
                path,
                f"{where} {'refuses it' if granted == NOTHING else 'sends only a part of it'}: ACL profile {profile}"
                f" of client username {username} forbids to subscribe to {filter_.original}"
                f"{'' if granted == NOTHING else ' as a whole'} ({peer.positions.key_at(acl)})",
            )


def check_queue(
    problems: MeshProblems, graph: Graph, configured: ConfiguredRemote, peer: Loaded
) -> None:
    """Report a bound queue that no topic leads into."""
    name = configured.remote.queue_binding
    vpn = peer.config.msg_vpns.get(configured.remote.name)
    queue = vpn.queues.get(name) if vpn is not None and name is not None else None
    if queue is None or queue_topics(graph.topics, queue):
        return
    at = peer.positions.key_at(("msg_vpns", configured.remote.name, "queues", str(name)))
    why = "all its subscriptions are empty" if queue.subscriptions else "it has no subscriptions"
    problems.add(
        "warning",
        configured.loaded,
        (*configured.path, "queue_binding"),
        f"queue {name} of {peer.config.router.name}/{configured.remote.name} attracts nothing: {why} ({at});"
        f" only what is published to $queue/{name} itself crosses",
    )


def _filters(configured: ConfiguredRemote) -> list[tuple[Path, Filter]]:
    filters: list[tuple[Path, Filter]] = []
    for index, subscription in enumerate(configured.bridge.remote_subscriptions):
        path: Path = (*configured.bridge_path, "remote_subscriptions", index)
        if configured.loaded.positions.has((*path, "topic")):
            path = (*path, "topic")
        try:
            dialect = DIALECTS[configured.bridge.topic_syntax]
            filters.append((path, parse_filter(subscription.topic, dialect, exceptions=True)))
        except TopicError:
            continue  # told where the file is checked by itself
    return filters


def _too_large(filter_: Filter, vpn: MsgVpn) -> str:
    levels, size = len(filter_.levels), len(filter_.original.encode())
    if levels > vpn.max_topic_levels:
        return f"{filter_.original} has {levels} levels, max_topic_levels is {vpn.max_topic_levels}"
    if size > vpn.max_topic_bytes:
        return f"it has {size} bytes, max_topic_bytes is {vpn.max_topic_bytes}"
    return ""
